//! Reads messages, for the login and for the connection after it.

use super::message::{HEADER, LONGEST_KEPT, body_length};
use crate::WireError;
use crate::socket::Channel;

/// Waits for the header of the next message: its type and the length of its body.
#[inline]
pub(super) fn header(channel: &mut Channel) -> Result<(u8, usize), WireError> {
    channel.need(HEADER)?;
    let bytes = channel.available();
    let kind = bytes[0];
    match body_length(bytes) {
        Some(length) => Ok((kind, length)),
        None => Err(channel.confused(format!(
            "message {:?} has an impossible length; is that a Postgres server?",
            char::from(kind)
        ))),
    }
}

/// Longest error or notice, bytes.
const LONGEST_WORDS: usize = 16 << 20;

/// As [`whole`], for errors and notices, which are no rows.
pub(super) fn words(channel: &mut Channel, kind: u8, length: usize) -> Result<&[u8], WireError> {
    if length > LONGEST_WORDS {
        return Err(channel.confused(format!("an error or a notice has {length} bytes")));
    }
    whole(channel, kind, length)
}

/// Waits for a whole message, whose header was just read.
pub(super) fn whole(channel: &mut Channel, kind: u8, length: usize) -> Result<&[u8], WireError> {
    if length > LONGEST_KEPT {
        return Err(channel.confused(format!(
            "message {:?} of {length} bytes is too long; is that a Postgres server?",
            char::from(kind)
        )));
    }
    channel.need(HEADER + length)?;
    Ok(&channel.available()[HEADER..HEADER + length])
}
