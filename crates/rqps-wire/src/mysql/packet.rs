//! Packets of the MySQL protocol, version 10: written into a buffer, read from a slice. No I/O.

use std::io::{Error, ErrorKind};

use crate::error::words_of;
use crate::{RowTexts, Value, ValueType, WireError};
use rqps_model::escape;

/// Bytes of a header: length and sequence number.
pub(super) const HEADER: usize = 4;

/// Longest body of one packet, bytes. A body of exactly this length continues in the next packet.
/// `socket.rs` bounds a whole login and a whole answer, `rows.rs` the rows that are kept.
pub(super) const LONGEST: usize = 0xff_ff_ff;

/// First byte of an OK packet.
pub(super) const OK: u8 = 0x00;
/// First byte of a request for a local file.
pub(super) const LOCAL_INFILE: u8 = 0xfb;
/// First byte of the packet that ends rows or definitions.
pub(super) const EOF: u8 = 0xfe;
/// First byte of an error packet.
pub(super) const ERR: u8 = 0xff;

/// A statement as text.
pub(super) const COM_QUERY: u8 = 0x03;
/// Prepare a statement.
pub(super) const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
/// Sets an option of the session, of two bytes.
pub(super) const COM_SET_OPTION: u8 = 0x1b;

const MYSQL_TYPE_LONGLONG: u8 = 0x08;
const MYSQL_TYPE_VAR_STRING: u8 = 0xfd;
const MYSQL_TYPE_BLOB: u8 = 0xfc;

/// Length of the body according to the header, which must be in `bytes`.
#[inline]
pub(super) fn body_length(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize
}

/// Writes the header into `output[..4]`, which the caller left free. Splits a body that is too long
/// for one packet.
#[inline]
pub(super) fn frame(output: &mut Vec<u8>, sequence: u8) {
    let length = output.len() - HEADER;
    if length >= LONGEST {
        frame_many(output, sequence);
        return;
    }
    output[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    output[3] = sequence;
}

#[cold]
fn frame_many(output: &mut Vec<u8>, sequence: u8) {
    let body = output.split_off(HEADER);
    output.clear();
    let mut sequence = sequence;
    let mut chunks = body.chunks(LONGEST);
    loop {
        // Another packet always follows a full one, possibly an empty one.
        let chunk = chunks.next().unwrap_or_default();
        output.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
        output.push(sequence);
        output.extend_from_slice(chunk);
        sequence = sequence.wrapping_add(1);
        if chunk.len() < LONGEST {
            return;
        }
    }
}

/// A command with its argument.
pub(super) fn command(output: &mut Vec<u8>, command: u8, argument: &[u8]) {
    output.extend_from_slice(&[0, 0, 0, 0, command]);
    output.extend_from_slice(argument);
    frame(output, 0);
}

/// Position of the NULL bitmap in COM_STMT_EXECUTE: after header, command, statement, flags and
/// iterations.
const NULLS: usize = 14;

/// COM_STMT_EXECUTE up to the values, with a free header. `tell`: with the types, which the server
/// keeps for later executions.
pub(super) fn execute_beginning(statement: u32, types: &[ValueType], tell: bool) -> Vec<u8> {
    let mut beginning = vec![0, 0, 0, 0, COM_STMT_EXECUTE];
    beginning.extend_from_slice(&statement.to_le_bytes());
    // No cursor, one iteration.
    beginning.extend_from_slice(&[0, 1, 0, 0, 0]);
    if types.is_empty() {
        return beginning;
    }
    // One bit per value at [`NULLS`]: none is NULL yet.
    beginning.extend(std::iter::repeat_n(0, types.len().div_ceil(8)));
    beginning.push(u8::from(tell));
    if tell {
        for kind in types {
            let code = match kind {
                ValueType::Int | ValueType::AnyInt => MYSQL_TYPE_LONGLONG,
                ValueType::Text | ValueType::AnyText => MYSQL_TYPE_VAR_STRING,
                ValueType::Bytes => MYSQL_TYPE_BLOB,
            };
            beginning.extend_from_slice(&[code, 0]);
        }
    }
    beginning
}

/// Writes COM_STMT_EXECUTE into the empty `output`.
#[inline]
pub(super) fn execute(
    output: &mut Vec<u8>,
    beginning: &[u8],
    types: &[ValueType],
    values: &[Value<'_>],
) -> Result<(), String> {
    if types.len() != values.len() {
        return Err(format!("{} values for {} placeholders", values.len(), types.len()));
    }
    output.extend_from_slice(beginning);
    for (index, (kind, value)) in types.iter().zip(values).enumerate() {
        match (kind, value) {
            (ValueType::Int | ValueType::AnyInt, Value::Int(number)) => {
                output.extend_from_slice(&number.to_le_bytes());
            }
            (ValueType::Text | ValueType::AnyText, Value::Text(text))
            | (ValueType::Bytes, Value::Bytes(text)) => length_encoded(output, text),
            (_, Value::Null) => output[NULLS + index / 8] |= 1 << (index % 8),
            _ => return Err(format!("a placeholder of type {kind:?} was given {value:?}")),
        }
    }
    frame(output, 0);
    Ok(())
}

/// The only value of a binary row: an INT or BIGINT that is not NULL.
#[inline]
pub(super) fn single_number(body: &[u8]) -> Option<u64> {
    match *body {
        [0, 0, a, b, c, d] => Some(u64::from(u32::from_le_bytes([a, b, c, d]))),
        [0, 0, ref number @ ..] => Some(u64::from_le_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

/// Appends the length of the bytes, then the bytes.
pub(super) fn length_encoded(output: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len() as u64;
    let digits = length.to_le_bytes();
    match length {
        0..=250 => output.push(digits[0]),
        251..=0xffff => {
            output.push(0xfc);
            output.extend_from_slice(&digits[..2]);
        }
        0x1_0000..=0xff_ffff => {
            output.push(0xfd);
            output.extend_from_slice(&digits[..3]);
        }
        _ => {
            output.push(0xfe);
            output.extend_from_slice(&digits);
        }
    }
    output.extend_from_slice(bytes);
}

/// Begins a packet of a local file: an empty header. The caller appends rows.
pub(super) fn begin_file_part(output: &mut Vec<u8>) {
    output.clear();
    output.extend_from_slice(&[0; HEADER]);
}

/// Ends a packet of a local file; removes an empty one, which would end the file.
pub(super) fn end_file_part(output: &mut Vec<u8>, sequence: u8) -> Result<(), String> {
    match output.len().saturating_sub(HEADER) {
        0 => output.clear(),
        1..LONGEST => frame(output, sequence),
        length => return Err(format!("{length} bytes of a file do not fit into one packet")),
    }
    Ok(())
}

/// The empty packet that ends a local file.
pub(super) fn end_of_file(sequence: u8) -> [u8; HEADER] {
    [0, 0, 0, sequence]
}

/// Reads the body of a packet from its start. Each method returns `None` if the body is too short.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next byte.
    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// The next two bytes.
    #[inline]
    pub(super) fn u16(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*bytes))
    }

    /// The next four bytes.
    pub(super) fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// A length-encoded integer; `None` for NULL (0xfb) and 0xff.
    #[inline]
    pub(super) fn length(&mut self) -> Option<u64> {
        let size = match self.u8()? {
            short @ 0..=250 => return Some(u64::from(short)),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => return None,
        };
        let mut digits = [0; 8];
        digits[..size].copy_from_slice(self.bytes(size)?);
        Some(u64::from_le_bytes(digits))
    }

    /// The bytes up to the next zero byte, which is removed, or to the end.
    pub(super) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        text
    }
}

/// The end of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// Rows changed.
    pub(super) affected: u64,
    /// SERVER_STATUS flags.
    pub(super) status: u16,
    /// Number of warnings.
    pub(super) warnings: u16,
}

impl Ended {
    /// Reads an OK packet, after a statement or (beginning with 0xfe) after rows.
    #[inline]
    pub(super) fn by_ok(body: &[u8]) -> Option<Ended> {
        let mut reader = Reader(body);
        reader.u8()?;
        let affected = reader.length()?;
        let _last_insert_id = reader.length()?;
        Some(Ended { affected, status: reader.u16()?, warnings: reader.u16().unwrap_or(0) })
    }

    /// Reads an EOF packet.
    #[inline]
    pub(super) fn by_eof(body: &[u8]) -> Option<Ended> {
        let mut reader = Reader(body);
        reader.u8()?;
        let warnings = reader.u16()?;
        Some(Ended { affected: 0, status: reader.u16()?, warnings })
    }
}

/// Number of columns in the first packet of a result set.
#[inline]
pub(super) fn column_count(body: &[u8]) -> Option<u64> {
    Reader(body).length()
}

/// The server's description of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Described {
    /// Its number on the server.
    pub(super) statement: u32,
    /// Columns of its result; 0 for none.
    pub(super) columns: u16,
    /// Placeholders.
    pub(super) parameters: u16,
}

/// The first packet of the answer to COM_STMT_PREPARE.
pub(super) fn prepared(body: &[u8]) -> Option<Described> {
    let mut reader = Reader(body);
    if reader.u8()? != OK {
        return None;
    }
    let statement = reader.u32()?;
    let columns = reader.u16()?;
    Some(Described { statement, columns, parameters: reader.u16()? })
}

/// Adds the values of a text row to `rows`; `None` if the row is invalid.
pub(super) fn text_values(body: &[u8], rows: &mut RowTexts) -> Option<()> {
    const NULL: u8 = 0xfb;
    let mut reader = Reader(body);
    while let Some(first) = reader.0.first() {
        if *first == NULL {
            reader.0 = &reader.0[1..];
            rows.push(None);
            continue;
        }
        let length = usize::try_from(reader.length()?).ok()?;
        rows.push(Some(reader.bytes(length)?));
    }
    rows.end_row();
    Some(())
}

/// The name in the definition of a column.
pub(super) fn column_name(body: &[u8]) -> Option<&[u8]> {
    /// Catalog, schema, alias of the table, name of the table.
    const BEFORE: usize = 4;
    let mut reader = Reader(body);
    for _ in 0..BEFORE {
        let length = usize::try_from(reader.length()?).ok()?;
        reader.bytes(length)?;
    }
    let length = usize::try_from(reader.length()?).ok()?;
    reader.bytes(length)
}

/// An error packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerError {
    /// Error number: `1213`.
    pub(super) number: u16,
    /// SQLSTATE: `40001`; empty before the login.
    pub(super) state: String,
    message: String,
}

impl ServerError {
    /// Reads an error packet; missing fields stay empty. Before the login there is no SQLSTATE.
    pub(super) fn parse(body: &[u8]) -> ServerError {
        let mut reader = Reader(body);
        let _ = reader.u8();
        let number = reader.u16().unwrap_or_default();
        let (state, message) = match reader.0 {
            [b'#', state @ ..] if state.len() >= 5 => state.split_at(5),
            message => (&[][..], message),
        };
        ServerError { number, state: words_of(state), message: words_of(message) }
    }

    /// The error of a connection that has ended.
    pub(super) fn into_io(self) -> Error {
        let words = format!("{} ({})", escape::line(&self.message), self.number);
        Error::new(ErrorKind::ConnectionAborted, words)
    }

    /// The error of a refused statement.
    pub(super) fn into_wire(self) -> WireError {
        WireError::Server { code: self.number.to_string(), message: self.message }
    }
}

// Converts binary rows, the results of prepared statements, to text.

/// The type of a column in binary rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnType {
    code: u8,
    unsigned: bool,
}

/// The type in the definition of a column.
pub(super) fn column_type(body: &[u8]) -> Option<ColumnType> {
    const UNSIGNED: u16 = 0x20;
    let mut reader = Reader(body);
    // Catalogue, schema, table twice, name twice.
    for _ in 0..6 {
        let length = usize::try_from(reader.length()?).ok()?;
        reader.bytes(length)?;
    }
    // Length of what follows, character set, width.
    reader.length()?;
    reader.bytes(2 + 4)?;
    let code = reader.u8()?;
    Some(ColumnType { code, unsigned: reader.u16()? & UNSIGNED != 0 })
}

/// Adds the values of a binary row as text; `None` if the row is invalid.
pub(super) fn binary_row(body: &[u8], columns: &[ColumnType], rows: &mut RowTexts) -> Option<()> {
    let mut reader = Reader(body);
    reader.u8()?;
    // The first two bits of the bitmap are unused.
    let nulls = reader.bytes((columns.len() + 2).div_ceil(8))?;
    for (index, column) in columns.iter().enumerate() {
        let bit = index + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            rows.push(None);
            continue;
        }
        column.read(&mut reader, rows)?;
    }
    rows.end_row();
    Some(())
}

impl ColumnType {
    fn read(self, reader: &mut Reader<'_>, rows: &mut RowTexts) -> Option<()> {
        let mut whole = |size: usize, rows: &mut RowTexts| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(reader.bytes(size)?);
            let (number, spare) = (u64::from_le_bytes(bytes), 64 - 8 * size as u32);
            match self.unsigned {
                true => rows.push_written(format_args!("{number}")),
                // Shifting left and back extends the sign.
                false => rows.push_written(format_args!("{}", (number << spare) as i64 >> spare)),
            }
            Some(())
        };
        match self.code {
            0x01 => whole(1, rows),
            0x02 | 0x0d => whole(2, rows),
            0x03 | 0x09 => whole(4, rows),
            0x08 => whole(8, rows),
            0x04 => {
                let number = f32::from_le_bytes(*reader.bytes(4)?.first_chunk()?);
                rows.push_written(format_args!("{number}"));
                Some(())
            }
            0x05 => {
                let number = f64::from_le_bytes(*reader.bytes(8)?.first_chunk()?);
                rows.push_written(format_args!("{number}"));
                Some(())
            }
            0x07 | 0x0a | 0x0c => moment(self.code, reader, rows),
            0x0b => duration(reader, rows),
            _ => {
                let length = usize::try_from(reader.length()?).ok()?;
                rows.push(Some(reader.bytes(length)?));
                Some(())
            }
        }
    }
}

/// DATE, DATETIME and TIMESTAMP. The server leaves out trailing parts that are zero.
fn moment(code: u8, reader: &mut Reader<'_>, rows: &mut RowTexts) -> Option<()> {
    const DATE: u8 = 0x0a;
    let length = usize::from(reader.u8()?);
    let mut parts = [0; 11];
    parts.get_mut(..length)?.copy_from_slice(reader.bytes(length)?);
    let [low, high, month, day, hour, minute, second, micro @ ..] = parts;
    let (year, micro) = (u16::from_le_bytes([low, high]), u32::from_le_bytes(micro));
    match (code, micro) {
        (DATE, _) => rows.push_written(format_args!("{year:04}-{month:02}-{day:02}")),
        (_, 0) => rows.push_written(format_args!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )),
        _ => rows.push_written(format_args!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micro:06}"
        )),
    }
    Some(())
}

/// TIME: a sign, days, hours, minutes, seconds, microseconds.
fn duration(reader: &mut Reader<'_>, rows: &mut RowTexts) -> Option<()> {
    let length = usize::from(reader.u8()?);
    let mut parts = [0; 12];
    parts.get_mut(..length)?.copy_from_slice(reader.bytes(length)?);
    let [negative, a, b, c, d, hour, minute, second, micro @ ..] = parts;
    let hours = u32::from_le_bytes([a, b, c, d]).checked_mul(24)?.checked_add(hour.into())?;
    let sign = if negative == 1 { "-" } else { "" };
    match u32::from_le_bytes(micro) {
        0 => rows.push_written(format_args!("{sign}{hours:02}:{minute:02}:{second:02}")),
        micro => {
            rows.push_written(format_args!("{sign}{hours:02}:{minute:02}:{second:02}.{micro:06}"));
        }
    }
    Some(())
}
