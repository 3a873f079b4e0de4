//! Messages of the Postgres protocol, version 3: written into a buffer, read from a slice. No I/O.

use std::io::{Error, ErrorKind, Write};

use crate::error::words_of;
use crate::socket::Channel;
use crate::{RowTexts, Value, ValueType, WireError};
use rqps_model::escape;

/// Bytes of a header: type and length.
pub(super) const HEADER: usize = 5;

/// Longest message that is read as a whole, bytes: a value may have 1 GB.
const LONGEST_KEPT: usize = (1 << 30) + 4096;

const INT8_OID: u32 = 20;
const VARCHAR_OID: u32 = 1043;
const INT4_OID: u32 = 23;
const INT2_OID: u32 = 21;
/// The OID that leaves the type to the server.
const ANY_OID: u32 = 0;
/// Length of a NULL.
const NULL: [u8; 4] = (-1i32).to_be_bytes();

/// The form in which values of a placeholder are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterForm {
    /// Whole numbers in binary, with this number of bytes.
    Binary(u8),
    /// Whole numbers in digits.
    Digits,
    /// Text as it is.
    Text,
    /// Bytes as they are.
    Bytes,
}

impl ParameterForm {
    /// The form for a placeholder declared as `declared` that the server describes by this OID.
    pub(super) fn of(declared: ValueType, oid: u32) -> ParameterForm {
        match (declared, oid) {
            (ValueType::Int, _) | (ValueType::AnyInt, INT8_OID) => ParameterForm::Binary(8),
            (ValueType::AnyInt, INT4_OID) => ParameterForm::Binary(4),
            (ValueType::AnyInt, INT2_OID) => ParameterForm::Binary(2),
            (ValueType::AnyInt, _) => ParameterForm::Digits,
            (ValueType::Text | ValueType::AnyText, _) => ParameterForm::Text,
            (ValueType::Bytes, _) => ParameterForm::Bytes,
        }
    }
}

/// The end of an execution after its values: results in binary, Execute of the unnamed portal
/// without a limit of rows, Sync.
const EXECUTE_AND_SYNC: [u8; 19] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];

/// Length of the body according to the header, which must be in `bytes`; `None` if it is negative.
#[inline]
pub(super) fn body_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    if length > i32::MAX as u32 {
        return None;
    }
    (length as usize).checked_sub(4)
}

/// What the body of a ParameterStatus says about backslashes in literals; `None` if it is about
/// another setting.
pub(super) fn escapes_backslash(body: &[u8]) -> Option<bool> {
    let value = body.strip_prefix(b"standard_conforming_strings\0")?;
    Some(value.starts_with(b"off"))
}

/// Starts a message; [`end`] writes its length.
pub(super) fn begin(output: &mut Vec<u8>, kind: u8) -> usize {
    output.push(kind);
    output.extend_from_slice(&[0; 4]);
    output.len() - 4
}

/// Ends the message whose length is at `position`.
#[inline]
pub(super) fn end(output: &mut [u8], position: usize) -> Result<(), String> {
    let length = output.len() - position;
    match i32::try_from(length) {
        Ok(length) => {
            output[position..position + 4].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(_) => Err(format!("a statement of {length} bytes is longer than Postgres allows")),
    }
}

/// Appends text and its terminator.
pub(super) fn text(output: &mut Vec<u8>, text: &str) -> Result<(), String> {
    if text.as_bytes().contains(&0) {
        return Err("text for the server holds a zero byte".to_owned());
    }
    output.extend_from_slice(text.as_bytes());
    output.push(0);
    Ok(())
}

fn name(number: usize) -> String {
    format!("s{number}")
}

/// Appends a Query message.
pub(super) fn query(output: &mut Vec<u8>, sql: &str) -> Result<(), String> {
    let position = begin(output, b'Q');
    text(output, sql)?;
    end(output, position)
}

/// Appends Parse, Bind, Describe and Execute of a statement without values, whose results are text.
pub(super) fn one_statement(output: &mut Vec<u8>, sql: &str) -> Result<(), String> {
    const BIND: &[u8] = b"B\0\0\0\x0c\0\0\0\0\0\0\0\0";
    const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
    const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
    let position = begin(output, b'P');
    output.push(0);
    text(output, sql)?;
    // No types of values.
    output.extend_from_slice(&[0, 0]);
    end(output, position)?;
    for message in [BIND, DESCRIBE, EXECUTE] {
        output.extend_from_slice(message);
    }
    Ok(())
}

/// Appends a Parse message.
pub(super) fn parse(
    output: &mut Vec<u8>,
    number: usize,
    sql: &str,
    types: &[ValueType],
) -> Result<(), String> {
    let position = begin(output, b'P');
    text(output, &name(number))?;
    text(output, sql)?;
    let count = u16::try_from(types.len()).map_err(|_| "too many placeholders".to_owned())?;
    output.extend_from_slice(&count.to_be_bytes());
    for kind in types {
        let oid = match kind {
            ValueType::Int => INT8_OID,
            ValueType::Text => VARCHAR_OID,
            ValueType::Bytes | ValueType::AnyInt | ValueType::AnyText => ANY_OID,
        };
        output.extend_from_slice(&oid.to_be_bytes());
    }
    end(output, position)
}

/// Appends a Describe message for a statement.
pub(super) fn describe(output: &mut Vec<u8>, number: usize) -> Result<(), String> {
    let position = begin(output, b'D');
    output.push(b'S');
    text(output, &name(number))?;
    end(output, position)
}

/// Appends a Flush message.
pub(super) fn flush(output: &mut Vec<u8>) {
    output.extend_from_slice(&[b'H', 0, 0, 0, 4]);
}

/// Appends a Sync message.
pub(super) fn sync(output: &mut Vec<u8>) {
    output.extend_from_slice(&[b'S', 0, 0, 0, 4]);
}

/// The Bind message of a statement up to its values, copied for each execution. The length is
/// written later. The number of types fits, because Parse was made with them.
pub(super) fn bind_beginning(number: usize, forms: &[ParameterForm]) -> Vec<u8> {
    let count = (forms.len() as u16).to_be_bytes();
    let mut bind = vec![b'B', 0, 0, 0, 0, 0];
    bind.extend_from_slice(name(number).as_bytes());
    bind.push(0);
    bind.extend_from_slice(&count);
    for form in forms {
        let format: u16 = match form {
            ParameterForm::Binary(_) | ParameterForm::Bytes => 1,
            ParameterForm::Text | ParameterForm::Digits => 0,
        };
        bind.extend_from_slice(&format.to_be_bytes());
    }
    bind.extend_from_slice(&count);
    bind
}

/// Writes Bind, Execute and Sync into the empty `output`.
#[inline]
pub(super) fn bind_and_execute(
    output: &mut Vec<u8>,
    bind: &[u8],
    forms: &[ParameterForm],
    values: &[Value<'_>],
) -> Result<(), String> {
    if forms.len() != values.len() {
        return Err(format!("{} values for {} placeholders", values.len(), forms.len()));
    }
    output.extend_from_slice(bind);
    for (form, value) in forms.iter().zip(values) {
        match (form, value) {
            (ParameterForm::Binary(8), Value::Int(number)) => {
                let mut bytes = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
                bytes[4..].copy_from_slice(&number.to_be_bytes());
                output.extend_from_slice(&bytes);
            }
            (ParameterForm::Text, Value::Text(text))
            | (ParameterForm::Bytes, Value::Bytes(text)) => {
                output.extend_from_slice(&(text.len() as u32).to_be_bytes());
                output.extend_from_slice(text);
            }
            (_, Value::Null) => output.extend_from_slice(&NULL),
            (_, Value::Int(number)) => inferred_number(output, *form, *number)?,
            _ => return Err(format!("a placeholder of type {form:?} was given {value:?}")),
        }
    }
    output.extend_from_slice(&EXECUTE_AND_SYNC);
    // The length counts itself and the two bytes of result formats, but not Execute and Sync.
    let length = output.len() - 1 - (EXECUTE_AND_SYNC.len() - 4);
    match i32::try_from(length) {
        Ok(length) => {
            output[1..5].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(_) => Err(format!("values of {length} bytes are longer than Postgres allows")),
    }
}

/// Changes the message of [`bind_and_execute`]: results as text instead of binary.
pub(super) fn ask_for_text(output: &mut [u8]) {
    // The last of the two bytes of the only result format.
    let format = output.len() - EXECUTE_AND_SYNC.len() + 3;
    output[format] = 0;
}

/// Appends a number for a placeholder whose type the server chose.
fn inferred_number(output: &mut Vec<u8>, form: ParameterForm, number: i64) -> Result<(), String> {
    let too_large = |_| format!("{number} is out of the range of its placeholder");
    match form {
        ParameterForm::Binary(4) => {
            output.extend_from_slice(&4u32.to_be_bytes());
            let number = i32::try_from(number).map_err(too_large)?;
            output.extend_from_slice(&number.to_be_bytes());
        }
        ParameterForm::Binary(2) => {
            output.extend_from_slice(&2u32.to_be_bytes());
            let number = i16::try_from(number).map_err(too_large)?;
            output.extend_from_slice(&number.to_be_bytes());
        }
        ParameterForm::Digits => {
            let length = output.len();
            output.extend_from_slice(&[0; 4]);
            write!(output, "{number}").map_err(|error| error.to_string())?;
            let digits = (output.len() - length - 4) as u32;
            output[length..length + 4].copy_from_slice(&digits.to_be_bytes());
        }
        _ => return Err(format!("a placeholder of type {form:?} was given the number {number}")),
    }
    Ok(())
}

/// Starts a CopyData message; the caller appends the data.
pub(super) fn begin_copy_data(output: &mut Vec<u8>) -> usize {
    begin(output, b'd')
}

/// Ends a CopyData message; removes an empty one.
pub(super) fn end_copy_data(output: &mut Vec<u8>, position: usize) -> Result<(), String> {
    match output.len().checked_sub(position) {
        None | Some(0..=3) => {
            Err("the rows of a COPY may only be appended to what is there".to_owned())
        }
        Some(4) => {
            output.truncate(position - 1);
            Ok(())
        }
        Some(_) => end(output, position),
    }
}

/// Appends a CopyDone message.
pub(super) fn copy_done(output: &mut Vec<u8>) {
    output.extend_from_slice(&[b'c', 0, 0, 0, 4]);
}

/// Appends a CopyFail message.
pub(super) fn copy_fail(output: &mut Vec<u8>, why: &str) {
    let length = why.len() as u32 + 5;
    output.push(b'f');
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(why.as_bytes());
    output.push(0);
}

/// Changed rows according to the tag of CommandComplete: `INSERT 0 5`, `UPDATE 3`. 0 for SELECT.
#[inline]
pub(super) fn affected(tag: &[u8]) -> u64 {
    match tag {
        [b'S', ..] => 0,
        [b'I', b'N', ..] | [b'U', b'P', ..] | [b'D', b'E', ..] | [b'M', b'E', ..] => count(tag),
        [b'C', b'O', b'P', ..] => count(tag),
        _ => 0,
    }
}

/// The number at the end of a tag.
fn count(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    tag.iter().fold(0, |number: u64, byte| match byte {
        b'0'..=b'9' => number.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
        _ => 0,
    })
}

/// OIDs of the parameters in a ParameterDescription.
pub(super) fn parameters(body: &[u8]) -> Vec<u32> {
    let oids = body.get(2..).unwrap_or_default().as_chunks::<4>().0;
    oids.iter().map(|oid| u32::from_be_bytes(*oid)).collect()
}

/// The only value of a DataRow, an int4 or int8 in binary form.
#[inline]
pub(super) fn single_number(body: &[u8]) -> Option<u64> {
    match *body {
        [0, 1, 0, 0, 0, 4, a, b, c, d] => Some(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [0, 1, 0, 0, 0, 8, ref number @ ..] => Some(u64::from_be_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

/// Adds the values of a DataRow as text to `rows`; `None` if the message is invalid.
pub(super) fn text_values(body: &[u8], rows: &mut RowTexts) -> Option<()> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        match i32::from_be_bytes(*length) {
            -1 => rows.push(None),
            length => {
                let (value, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                rows.push(Some(value));
                rest = after;
            }
        }
    }
    rows.end_row();
    Some(())
}

/// An ErrorResponse or NoticeResponse.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerError {
    severity: String,
    code: String,
    message: String,
}

impl ServerError {
    /// Reads the fields that rqps uses; missing ones stay empty.
    pub(super) fn parse(body: &[u8]) -> ServerError {
        let mut error = ServerError::default();
        let (mut detail, mut row) = (String::new(), String::new());
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let value = || words_of(text);
            match kind {
                // The severity that is never translated, since 9.6; S may be.
                b'V' => error.severity = value(),
                b'S' if error.severity.is_empty() => error.severity = value(),
                b'C' => error.code = value(),
                b'M' => error.message = value(),
                b'D' => detail = value(),
                // Names the row of a COPY. In other errors, W names functions and queries.
                b'W' if text.starts_with(b"COPY ") => row = value(),
                _ => {}
            }
        }
        if !detail.is_empty() {
            error.message = format!("{}: {detail}", error.message);
        }
        if let Some(row) = row.lines().next() {
            error.message = format!("{} ({row})", error.message);
        }
        error
    }

    /// True if the server closes the connection after this.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// The error of a connection that has ended.
    pub(super) fn into_io(self) -> Error {
        let words = format!("{}: {} ({})", self.severity, self.message, self.code);
        Error::new(ErrorKind::ConnectionAborted, escape::line(&words))
    }

    /// The text of a notice.
    pub(super) fn into_words(self) -> String {
        escape::line(&format!("{}: {}", self.severity, self.message)).into_owned()
    }

    /// The error of a refused statement.
    pub(super) fn into_wire(self) -> WireError {
        WireError::Server { code: self.code, message: self.message }
    }
}

// Reads messages, for the login and for the connection after it.

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
