//! Converts binary rows, the results of prepared statements, to text.

use super::packet::Reader;
use crate::RowTexts;

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
