//! Lines of a process that may be hostile: none is longer than a bound.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line, in bytes. The largest message has the seconds of a long step.
const MOST: u64 = 64 << 20;

/// The lines of what a process says.
pub(super) struct BoundedLines<R> {
    from: BufReader<R>,
    most: u64,
}

impl<R: Read> BoundedLines<R> {
    pub(super) fn of(from: R) -> BoundedLines<R> {
        BoundedLines { from: BufReader::new(from), most: MOST }
    }
}

impl<R: Read> Iterator for BoundedLines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let mut line = Vec::new();
        match self.from.by_ref().take(self.most).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 >= self.most {
            return Some(Err(io::Error::other(format!(
                "a line is longer than {} bytes",
                self.most
            ))));
        }
        Some(String::from_utf8(line).map_err(io::Error::other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_never_ends_is_an_error() {
        let lines =
            |text: &'static str| BoundedLines { from: BufReader::new(text.as_bytes()), most: 8 };
        let all: Vec<String> = lines("one\ntwo").map(Result::unwrap).collect();
        assert_eq!(all, ["one", "two"]);
        let mut endless = BoundedLines { from: BufReader::new(io::repeat(b'x')), most: 8 };
        assert!(endless.next().unwrap().is_err());
    }
}
