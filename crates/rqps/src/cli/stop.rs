//! The wish of the user to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::cli::exit;
use rqps_wire as wire;

/// A flag that the first Ctrl-C sets; the second ends the program at once.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(exit::INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("listen for Ctrl-C")?;
    }
    // Whatever a server does, the first one ends rqps.
    wire::stop_with(Arc::clone(&stop));
    Ok(stop)
}

/// Writing beyond the largest size of files (`ulimit -f`) becomes an error, like a full disk. By
/// default it ends the process without a word.
///
/// # Errors
/// The signal cannot be listened for.
pub(super) fn outlive_file_limits() -> Result<()> {
    let unread = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(Signal::XFSZ.as_raw(), unread).context("listen for SIGXFSZ")?;
    Ok(())
}
