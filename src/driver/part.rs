//! Hooks of a benchmark in the driver.

use std::io::Write;

use crate::domain::benchmark::OwnWork;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, PartLoad, StepRequest};
use crate::driver::stop::Stop;

/// What one benchmark has of its own in the driver.
#[derive(Clone, Copy)]
pub struct DriverPart {
    /// The word after `--bench`.
    pub benchmark: &'static str,
    /// The loop of its steps; `None` where all are scripts.
    pub step_loop: Option<StepLoop>,
    /// The rows of its tables; `None` where no tables are loaded before the first step.
    pub rows: Option<OpenRows>,
    /// Makes and fills its tables where a request asks for a load of its own; `None` where none
    /// does.
    pub own_load: Option<OwnLoad>,
    /// The rows of a load in parts, where a request asks for one; else `None`.
    pub part_rows: Option<OpenPart>,
}

impl DriverPart {
    /// Scripts only, and no tables.
    pub const NONE: DriverPart =
        DriverPart { benchmark: "", step_loop: None, rows: None, own_load: None, part_rows: None };
}

/// Carries out a step that is no script, and says how it went.
pub type StepLoop =
    fn(&DriverRequest, &StepRequest, &mut LabLink<&mut dyn Write>) -> Result<(), Stop>;

/// Makes and fills all tables, and says how it went.
pub type OwnLoad = fn(&DriverRequest, &OwnWork, &mut LabLink<&mut dyn Write>) -> Result<(), Stop>;

/// Opens the rows of table number `table`, from 1.
pub type OpenRows = fn(job: &DriverRequest, table: u32) -> Box<dyn LoadRows>;

/// The rows of a table: a row depends on its number alone, so that a load may be split in any way.
pub trait LoadRows {
    /// Writes row number `id`, from 1, into `row`. Nothing is allocated once `row` is large enough.
    fn row(&self, id: u64, row: &mut LoadRow);
}

/// One row: its numbers in the order of their columns, and its texts one after the other.
#[derive(Clone, Debug, Default)]
pub struct LoadRow {
    /// The numbers, in the order of their columns.
    pub numbers: Vec<i64>,
    /// The texts, one after the other.
    pub text: Vec<u8>,
}

/// Opens the rows that a part (from 0) of a load has in a table (from 0); `None` where it has none.
pub type OpenPart = fn(
    job: &DriverRequest,
    task: &PartLoad,
    part: u32,
    table: usize,
) -> Result<Option<Box<dyn PartRows>>, String>;

/// The rows of a part of a load in one table, in the order in which they are to be stored.
pub trait PartRows {
    /// Writes the next row into `row`, which is empty; false after the last.
    fn next(&mut self, row: &mut FieldRow) -> bool;

    /// Why the rows ended before their end; a whole fault.
    fn fault(&mut self) -> Option<String> {
        None
    }

    /// Where the last row came from, for the message about a server that refuses it.
    fn place(&self) -> Option<String> {
        None
    }
}

/// One row as texts in the order of the columns. Nothing is allocated once it is large enough.
#[derive(Clone, Debug, Default)]
pub struct FieldRow {
    bytes: Vec<u8>,
    /// Where each field ends, and whether it is not NULL.
    ends: Vec<(usize, bool)>,
}

impl FieldRow {
    /// Takes all fields out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a whole number.
    pub fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[start..]);
    }

    /// Adds a text.
    pub fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push((self.bytes.len(), true));
    }

    /// Adds a text that `write` appends.
    pub fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((self.bytes.len(), true));
    }

    /// Adds a NULL.
    pub fn null(&mut self) {
        self.ends.push((self.bytes.len(), false));
    }

    /// The fields; `None` is NULL.
    pub fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().map(move |(end, there)| {
            let field = &self.bytes[start..*end];
            start = *end;
            there.then_some(field)
        })
    }
}
