//! Random passwords.

use std::fs::File;
use std::io::{self, Read};

use crate::units;

/// Random bytes of a password: as many as nobody tries out.
const BYTES: usize = 24;

/// A new password: hexadecimal digits, so that no statement and no shell reads them differently.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn password() -> io::Result<String> {
    let mut bytes = [0; BYTES];
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
