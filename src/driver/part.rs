//! What a benchmark has of its own in the driver.

use std::io::Write;

use crate::domain::benchmark::OwnWork;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, StepRequest};
use crate::driver::stop::Stop;

/// What one benchmark has of its own in the driver.
#[derive(Clone, Copy)]
pub struct DriverPart {
    /// The word after `--bench`.
    pub benchmark: &'static str,
    /// The loop of its steps; `None` where all are scripts.
    pub(crate) step_loop: Option<StepLoop>,
    /// The rows of its tables; `None` where no tables are loaded before the first step.
    pub(crate) rows: Option<OpenRows>,
    /// Makes and fills its tables where a request asks for a load of its own; `None` where none
    /// does.
    pub(crate) own_load: Option<OwnLoad>,
}

impl DriverPart {
    /// Scripts only, and no tables.
    pub const NONE: DriverPart =
        DriverPart { benchmark: "", step_loop: None, rows: None, own_load: None };
}

/// Carries out a step that is no script, and says how it went.
pub(crate) type StepLoop =
    fn(&DriverRequest, &StepRequest, &mut LabLink<&mut dyn Write>) -> Result<(), Stop>;

/// Makes and fills all tables, and says how it went.
pub(crate) type OwnLoad =
    fn(&DriverRequest, &OwnWork, &mut LabLink<&mut dyn Write>) -> Result<(), Stop>;

/// Opens the rows of table number `table`, from 1.
pub(crate) type OpenRows = fn(job: &DriverRequest, table: u32) -> Box<dyn LoadRows>;

/// The rows of a table: a row depends on its number alone, so that a load may be split in any way.
pub(crate) trait LoadRows {
    /// Writes row number `id`, from 1, into `row`. Nothing is allocated once `row` is large enough.
    fn row(&self, id: u64, row: &mut LoadRow);
}

/// One row: its numbers in the order of their columns, and its texts one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadRow {
    pub(crate) numbers: Vec<i64>,
    pub(crate) text: Vec<u8>,
}
