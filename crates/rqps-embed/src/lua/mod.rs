//! LuaJIT in this process: a state with a limited heap, and the C functions by which scripts reach
//! what rqps offers them.
//!
//! The library is the one that the system has for the real sysbench, loaded at run time. It costs
//! no build, and scripts get the same `math.random` and the same `ffi` as there.

mod bridge;
mod state;

pub use self::bridge::HeapLimit;
pub use self::state::{EventEnd, LuaError, LuaJit, LuaState};

// The functions that a script can call, as a trait in safe Rust, and their reports.

/// The end of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementEnd {
    /// It was carried out.
    Done,
    /// An error after which the event begins again.
    Restart,
    /// Any other error.
    Failed,
}

/// A value of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binding<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Whole(i64),
    /// A fraction.
    Decimal(f64),
    /// Text.
    Text(&'a [u8]),
}

/// The distribution of a random number between two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomDraw {
    /// The distribution in the options.
    Default,
    /// All alike.
    Uniform,
    /// Around the middle.
    Gaussian,
    /// A few hot ones at the beginning.
    Pareto,
    /// By rank.
    Zipfian,
    /// A hot band in the middle.
    Special,
}

impl RandomDraw {
    /// By the numbers that the preamble uses.
    const ALL: [RandomDraw; 6] = [
        RandomDraw::Default,
        RandomDraw::Uniform,
        RandomDraw::Gaussian,
        RandomDraw::Pareto,
        RandomDraw::Zipfian,
        RandomDraw::Special,
    ];
}

/// The functions that a script can call. Connections and statements have numbers.
pub trait ScriptHost: Sized + 'static {
    /// Opens a connection. `None` with the reason in the report.
    fn connect(&mut self, report: &mut Report) -> Option<u32>;
    /// Closes it.
    fn disconnect(&mut self, connection: u32);
    /// Opens it anew.
    fn reconnect(&mut self, connection: u32, report: &mut Report) -> StatementEnd;
    /// Executes text and keeps its rows.
    fn query(&mut self, connection: u32, sql: &[u8], report: &mut Report) -> StatementEnd;
    /// Prepares a statement. `None` with the reason in the report.
    fn prepare(&mut self, connection: u32, sql: &[u8], report: &mut Report) -> Option<u32>;
    /// Tells the types of its placeholders.
    fn bind<'a>(
        &mut self,
        statement: u32,
        values: impl ExactSizeIterator<Item = Binding<'a>>,
        report: &mut Report,
    ) -> StatementEnd;
    /// Executes it, and keeps its rows if `keep` is set.
    fn execute<'a>(
        &mut self,
        statement: u32,
        values: impl ExactSizeIterator<Item = Binding<'a>>,
        keep: bool,
        report: &mut Report,
    ) -> StatementEnd;
    /// Forgets it.
    fn close(&mut self, statement: u32);
    /// The next row of the last result of a connection. False after the last.
    fn fetch(&mut self, connection: u32, cells: &mut RowCells) -> bool;
    /// Begins an INSERT of many rows.
    fn bulk_begin(&mut self, connection: u32, prefix: &[u8]) -> bool;
    /// Adds a row, and sends what there is when the buffer is full.
    fn bulk_row(&mut self, connection: u32, row: &[u8], report: &mut Report) -> StatementEnd;
    /// Sends what is left.
    fn bulk_end(&mut self, connection: u32, report: &mut Report) -> StatementEnd;
    /// 64 random bits.
    fn bits(&mut self) -> u64;
    /// A fraction from 0, below 1.
    fn fraction(&mut self) -> f64;
    /// A number between `from` and `to`.
    fn draw(&mut self, draw: RandomDraw, from: u32, to: u32) -> u32;
    /// A number that no call gave before.
    fn unique(&mut self) -> u32;
    /// Fills `output`, as long as the template: `#` becomes a digit, `@` a letter.
    fn fill(&mut self, template: &[u8], output: &mut [u8]);
    /// Text of the script's own.
    fn print(&mut self, text: &[u8]);
    /// Waits, for scripts that run `sleep`.
    fn sleep(&mut self, seconds: f64);
    /// Adds to a counter of the script's own.
    fn count(&mut self, counter: u32, add: i64);
}

/// The result of the last call, as Lua reads it.
#[repr(C)]
pub struct Report {
    rows: f64,
    fields: f64,
    /// The number of an error.
    number: f64,
    has_rows: i32,
    cell_count: i32,
    state: Text,
    message: Text,
    cells: *const Text,
    kept_state: String,
    kept_message: String,
}

/// Text as Lua reads it; NULL has no address.
#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    start: *const u8,
    length: f64,
}

impl Text {
    const NULL: Text = Text { start: std::ptr::null(), length: 0.0 };

    fn of(bytes: &[u8]) -> Text {
        Text { start: bytes.as_ptr(), length: bytes.len() as f64 }
    }
}

impl Report {
    fn new() -> Report {
        Report {
            rows: 0.0,
            fields: 0.0,
            number: 0.0,
            has_rows: 0,
            cell_count: 0,
            state: Text::NULL,
            message: Text::NULL,
            cells: std::ptr::null(),
            kept_state: String::new(),
            kept_message: String::new(),
        }
    }

    /// A statement was carried out: rows and columns of its result, if it has one.
    #[inline]
    pub fn done(&mut self, result: Option<(u64, u32)>) {
        self.has_rows = i32::from(result.is_some());
        let (rows, fields) = result.unwrap_or_default();
        self.rows = rows as f64;
        self.fields = f64::from(fields);
    }

    /// Something failed: number and state of the error, and its words.
    #[cold]
    pub fn failed(&mut self, number: i64, state: &str, message: String) {
        self.number = number as f64;
        self.kept_state = state.to_owned();
        self.kept_message = message;
        self.state = Text::of(self.kept_state.as_bytes());
        self.message = Text::of(self.kept_message.as_bytes());
    }
}

/// The values of one row.
pub struct RowCells(Vec<Text>);

impl RowCells {
    /// Adds a value, which must stay where it is until the next call of the host.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.0.push(value.map_or(Text::NULL, Text::of));
    }
}
