//! Stands between rqps and a server, and cuts connections after a random byte.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

/// A socket that leads to another.
pub(crate) struct Proxy {
    pub(crate) socket: PathBuf,
    /// Bytes until the next cut; below zero: none.
    left: Arc<AtomicI64>,
}

impl Proxy {
    pub(crate) fn start(folder: &Path, to: &Path) -> Result<Proxy, String> {
        let socket = folder.join(".s.PGSQL.5432");
        let listener = UnixListener::bind(&socket).map_err(|error| error.to_string())?;
        let left = Arc::new(AtomicI64::new(-1));
        let (to, counter) = (to.to_owned(), Arc::clone(&left));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&to) else { continue };
                let ends = [client.try_clone(), server.try_clone()];
                let [Ok(client_again), Ok(server_again)] = ends else { continue };
                carry(client, server, &counter);
                carry(server_again, client_again, &counter);
            }
        });
        Ok(Proxy { socket, left })
    }

    /// The connection that carries this byte, counted from now, is cut.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, left: &Arc<AtomicI64>) {
    let left = Arc::clone(left);
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let mut passed = bytes;
            if left.load(Ordering::SeqCst) >= 0 {
                let before = left.fetch_sub(bytes as i64, Ordering::SeqCst);
                if before <= bytes as i64 {
                    passed = usize::try_from(before).unwrap_or_default();
                }
            }
            if to.write_all(&buffer[..passed]).is_err() || passed < bytes {
                break;
            }
        }
        for end in [&from, &to] {
            end.shutdown(Shutdown::Both).ok();
        }
    });
}
