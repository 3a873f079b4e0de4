//! Hooks of a benchmark in the driver.

use std::io::Write;
use std::path::PathBuf;

use crate::control_channel::{ControlChannel, Stop};
use crate::request::{DriverRequest, PartLoad, RequestBody, StepRequest};
use rqps_model::benchmark::LoadBody;

/// The hooks of one benchmark.
#[derive(Clone, Copy)]
pub struct DriverPart {
    /// The name of the benchmark, as after `--bench`.
    pub benchmark: &'static str,
    /// Its own loop; `None` if all its steps are scripts.
    pub step_loop: Option<StepLoop>,
    /// The rows of its tables; `None` if it has no generated tables.
    pub rows: Option<OpenRows>,
    /// Creates and fills its tables if a request asks for the benchmark's own load; `None` if none
    /// does.
    pub own_load: Option<OwnLoad>,
    /// The rows of a load in parts; `None` if no request asks for one.
    pub part_rows: Option<OpenPart>,
    /// Finds the script of a request, where scripts are the user's code. The driver gives up its
    /// rights before it runs one.
    pub script: Option<ScriptOf>,
    /// True if its own loop measures events with [`measure`](crate::step::measure), so that
    /// it can be asked for answers.
    pub answers: bool,
}

impl DriverPart {
    /// A benchmark of scripts without tables.
    pub const NONE: DriverPart = DriverPart {
        benchmark: "",
        step_loop: None,
        rows: None,
        own_load: None,
        part_rows: None,
        script: None,
        answers: false,
    };
}

/// Carries out a step that is no script, and sends its progress.
pub type StepLoop =
    fn(&DriverRequest, &StepRequest, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// Creates and fills all tables, and sends its progress.
pub type OwnLoad =
    fn(&DriverRequest, &LoadBody, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// The file with the script of a request. The error is a complete message.
pub type ScriptOf = fn(&RequestBody) -> Result<PathBuf, String>;

/// Opens the rows of table number `table`, from 1.
pub type OpenRows = fn(request: &DriverRequest, table: u32) -> Box<dyn LoadRows>;

/// The rows of a table. A row depends only on its number, so a load may be split in any way.
pub trait LoadRows {
    /// Writes row `id`, from 1, into `row`. Allocates nothing once `row` is large enough.
    fn row(&self, id: u64, row: &mut LoadRow);
}

/// One generated row.
#[derive(Clone, Debug, Default)]
pub struct LoadRow {
    /// Numbers in the order of their columns.
    pub numbers: Vec<i64>,
    /// The texts, one after the other.
    pub text: Vec<u8>,
}

/// Opens the rows of a part (from 0) in a table (from 0); `None` if it has none.
pub type OpenPart = fn(
    request: &DriverRequest,
    task: &PartLoad,
    part: u32,
    table: usize,
) -> Result<Option<Box<dyn PartRows>>, String>;

/// The rows of a part in one table, in the order of the load.
pub trait PartRows {
    /// Writes the next row into `row`, which is empty; false after the last.
    fn next(&mut self, row: &mut FieldRow) -> bool;

    /// The reason why the rows ended early; a complete message.
    fn fault(&mut self) -> Option<String> {
        None
    }

    /// The origin of the last row, for the error of a server that refuses it.
    fn place(&self) -> Option<String> {
        None
    }
}

/// One row as texts in the order of the columns. Allocates nothing once it is large enough.
#[derive(Clone, Debug, Default)]
pub struct FieldRow {
    bytes: Vec<u8>,
    /// The end of each field in `bytes`, and false for NULL.
    ends: Vec<(usize, bool)>,
}

impl FieldRow {
    /// Removes all fields; keeps their memory.
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

    /// Adds the text that `write` appends.
    pub fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((self.bytes.len(), true));
    }

    /// Adds a NULL.
    pub fn null(&mut self) {
        self.ends.push((self.bytes.len(), false));
    }

    /// The fields in order; `None` is NULL.
    pub fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().map(move |(end, there)| {
            let field = &self.bytes[start..*end];
            start = *end;
            there.then_some(field)
        })
    }
}
