//! Encodes rows of generated tables for COPY, LOAD DATA and INSERT.

use crate::part::LoadRow;
use crate::request::{LoadRequest, LoadType};
use rqps_wire::{Value, ValueType};

/// The columns of generated tables, and the encoders of their rows.
pub struct LoadColumns {
    /// Their names as a list for SQL.
    pub names: String,
    /// Their types.
    pub holds: Vec<LoadType>,
}

impl LoadColumns {
    /// The columns of a load.
    pub fn of(task: &LoadRequest) -> LoadColumns {
        let names: Vec<&str> = task.columns.iter().map(|column| column.name.as_str()).collect();
        let holds = task.columns.iter().map(|column| column.holds).collect();
        LoadColumns { names: names.join(", "), holds }
    }

    /// The types as the protocols name them.
    pub fn types(&self) -> Vec<ValueType> {
        let of = |holds: &LoadType| match holds {
            LoadType::Int => ValueType::Int,
            LoadType::Text { .. } => ValueType::Text,
        };
        self.holds.iter().map(of).collect()
    }

    /// One row of placeholders, in parentheses.
    pub fn placeholders(&self) -> String {
        format!("({})", vec!["?"; self.holds.len()].join(","))
    }

    /// The values of a row in the order of the columns. Allocates nothing.
    pub fn values<'a>(&'a self, row: &'a LoadRow) -> impl Iterator<Item = Value<'a>> {
        let (mut numbers, mut text) = (row.numbers.iter(), row.text.as_slice());
        self.holds.iter().map(move |holds| match holds {
            LoadType::Int => Value::Int(numbers.next().copied().unwrap_or(0)),
            LoadType::Text { bytes, .. } => {
                let (own, rest) = text.split_at((*bytes as usize).min(text.len()));
                text = rest;
                Value::Text(own)
            }
        })
    }

    /// Appends a LOAD DATA line without separators, the cheapest form for the server: 11 bytes of
    /// an INT (MySQL's manual), and each text filled with spaces to the width of its column.
    pub fn fixed_line(&self, out: &mut Vec<u8>, row: &LoadRow) {
        for (value, holds) in self.values(row).zip(&self.holds) {
            match (value, holds) {
                (Value::Int(number), _) => out.extend_from_slice(&fixed_number(number as u64)),
                (Value::Text(text) | Value::Bytes(text), LoadType::Text { width, .. }) => {
                    out.extend_from_slice(text);
                    out.resize(out.len() + (*width as usize).saturating_sub(text.len()), b' ');
                }
                (Value::Text(text) | Value::Bytes(text), LoadType::Int) => {
                    out.extend_from_slice(text);
                }
                // Generated rows have no NULL.
                (Value::Null, _) => {}
            }
        }
        out.push(b'\n');
    }

    /// Appends a tuple of COPY's binary form: int4 and texts. `rows` is checked to fit into 32
    /// bits.
    pub fn copy_tuple(&self, out: &mut Vec<u8>, row: &LoadRow) {
        const INT: [u8; 4] = 4i32.to_be_bytes();
        out.extend_from_slice(&(self.holds.len() as i16).to_be_bytes());
        for value in self.values(row) {
            match value {
                Value::Int(int) => {
                    out.extend_from_slice(&INT);
                    out.extend_from_slice(&(int as i32).to_be_bytes());
                }
                Value::Text(text) | Value::Bytes(text) => {
                    out.extend_from_slice(&(text.len() as i32).to_be_bytes());
                    out.extend_from_slice(text);
                }
                Value::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
            }
        }
    }
}

/// An INT as 11 bytes.
fn fixed_number(mut number: u64) -> [u8; 11] {
    let mut digits = *b"          0";
    let mut place = digits.len();
    while number > 0 && place > 0 {
        place -= 1;
        digits[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}
