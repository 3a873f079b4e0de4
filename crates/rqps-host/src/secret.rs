//! Random passwords, keys and names.

use std::fs::File;
use std::io::{self, Read};

use rqps_model::units;

/// Random bytes of a password: as many as nobody tries out.
const BYTES: usize = 24;

/// A new password: hexadecimal digits, so that no statement and no shell reads them differently.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn password() -> io::Result<String> {
    random::<BYTES>()
}

/// A new key.
pub(super) fn key() -> io::Result<String> {
    random::<32>()
}

/// A name that nobody foresees, for a file or folder in a place for everyone. Short, because the
/// path of a socket ends at 107 bytes.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn name() -> io::Result<String> {
    random::<8>()
}

fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(units::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_comes_twice() {
        let (one, two) = (password().unwrap(), password().unwrap());
        assert_eq!(one.len(), 2 * BYTES);
        assert_ne!(one, two);
    }
}
