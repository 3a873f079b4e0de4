//! A block on another host lives as long as the connection that it was asked for over.

use std::io::{Read, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// Error of a block that was stopped. Reads after "failed to".
pub const STOPPED: &str = "measure the block to its end: stopped by a signal";

/// Sets `stop` when standard input ends: the connection was cut, or the rqps at its other end is
/// gone. Nothing is read from it.
///
/// # Errors
/// No thread can be started.
pub fn stop_with_input(stop: &Arc<AtomicBool>) -> Result<()> {
    let stop = Arc::clone(stop);
    let watch = move || {
        let mut ignored = [0; 256];
        // An error is an end, too.
        while stdin().lock().read(&mut ignored).is_ok_and(|count| count > 0) {}
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("life line".to_owned()).spawn(watch).context("start a thread")?;
    Ok(())
}
