//! Reads the declarations of a script by running it without a database.

use std::path::Path;
use std::sync::Arc;

use super::state::{PREAMBLE, load_script, plain_limit, tell, tell_folders};
use rqps_driver;
use rqps_driver::confined::{self, ScriptPlaces};
use rqps_embed::lua::{
    Binding, LuaJit, LuaState, RandomDraw, Report, RowCells, ScriptHost, StatementEnd,
};
use rqps_model::lua::{LuaDeclared, LuaOption};

/// The hidden command that reads a script's declarations in its own process.
pub const LUA_COMMAND: &str = "look-at-lua";

/// Most bytes of what a script's `help` prints.
const LONGEST_HELP: usize = 64 << 10;

/// Runs a script and returns its declarations as JSON; `with_help`: also what its own `help`
/// prints. This process gives up its rights and changes to another folder first, so it should do
/// nothing else.
///
/// # Errors
///
/// There is no LuaJIT, or the script fails; the text has file and line.
pub fn declared(script: &Path, with_help: bool) -> Result<String, String> {
    let jit = Arc::new(LuaJit::load().map_err(|error| error.to_string())?);
    let mut state = LuaState::open(&jit, PREAMBLE, Nothing::default(), plain_limit())
        .map_err(|error| error.to_string())?;
    let places = confined::enter(script, None)?;
    let described = described(&mut state, script, (&places, with_help));
    places.clear();
    described
}

/// Runs a script in a state of this process.
fn described(
    state: &mut LuaState<Nothing>,
    named: &Path,
    (places, with_help): (&ScriptPlaces, bool),
) -> Result<String, String> {
    let script = &places.readable(named);
    tell_folders(state, script, &places.start)?;
    for (name, value) in [("command", "run"), ("rights", "none")] {
        tell(state, "fact", &[name, value])?;
    }
    load_script(state, script)?;
    let records = state.command("describe", "")?;
    let mut declared = LuaDeclared::default();
    for record in records.split('\u{1e}') {
        take(&mut declared, record);
    }
    for module in &mut declared.modules {
        *module = places.original(module);
    }
    let runs = |name: &String| name == "event" || name == "thread_run";
    if !declared.functions.iter().any(runs) {
        return Err(format!("{} has no event()", named.display()));
    }
    if with_help {
        // What it prints before is no help.
        state.host().printed.clear();
        state.command("help", "")?;
        declared.help = String::from_utf8_lossy(&state.host().printed).trim_end().to_owned();
    }
    declared.options.sort_by(|one, other| one.name.cmp(&other.name));
    declared.functions.sort();
    serde_json::to_string(&declared).map_err(|error| error.to_string())
}

fn take(declared: &mut LuaDeclared, record: &str) {
    let fields: Vec<&str> = record.split('\u{1f}').collect();
    match fields.as_slice() {
        ["option", name, kind, value, about @ ..] => {
            declared.options.push(LuaOption {
                name: (*name).to_owned(),
                kind: (*kind).to_owned(),
                value: (*value).to_owned(),
            });
            declared.about.insert((*name).to_owned(), about.join(" "));
        }
        ["options"] => declared.has_options = true,
        ["command", name, way] => {
            declared.commands.insert((*name).to_owned(), *way == "parallel");
        }
        ["function", name] => declared.functions.push((*name).to_owned()),
        ["module", _, path] => declared.modules.push((*path).into()),
        _ => {}
    }
}

/// No database: each call fails with the reason.
#[derive(Default)]
struct Nothing {
    /// What the script has printed.
    printed: Vec<u8>,
}

impl Nothing {
    fn refuse(report: &mut Report) -> StatementEnd {
        report.failed(
            0,
            "",
            "the script connects to a database outside of its functions".to_owned(),
        );
        StatementEnd::Failed
    }
}

impl ScriptHost for Nothing {
    fn connect(&mut self, report: &mut Report) -> Option<u32> {
        Nothing::refuse(report);
        None
    }

    fn disconnect(&mut self, _: u32) {}

    fn reconnect(&mut self, _: u32, report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn query(&mut self, _: u32, _: &[u8], report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn prepare(&mut self, _: u32, _: &[u8], report: &mut Report) -> Option<u32> {
        Nothing::refuse(report);
        None
    }

    fn bind<'a>(
        &mut self,
        _: u32,
        _: impl ExactSizeIterator<Item = Binding<'a>>,
        report: &mut Report,
    ) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn execute<'a>(
        &mut self,
        _: u32,
        _: impl ExactSizeIterator<Item = Binding<'a>>,
        _: bool,
        report: &mut Report,
    ) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn close(&mut self, _: u32) {}

    fn fetch(&mut self, _: u32, _: &mut RowCells) -> bool {
        false
    }

    fn bulk_begin(&mut self, _: u32, _: &[u8]) -> bool {
        false
    }

    fn bulk_row(&mut self, _: u32, _: &[u8], report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn bulk_end(&mut self, _: u32, report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn bits(&mut self) -> u64 {
        0
    }

    fn fraction(&mut self) -> f64 {
        0.0
    }

    fn draw(&mut self, _: RandomDraw, from: u32, _: u32) -> u32 {
        from
    }

    fn unique(&mut self) -> u32 {
        0
    }

    fn fill(&mut self, template: &[u8], output: &mut [u8]) {
        output.copy_from_slice(template);
    }

    fn print(&mut self, text: &[u8]) {
        let room = LONGEST_HELP.saturating_sub(self.printed.len());
        self.printed.extend_from_slice(&text[..text.len().min(room)]);
    }

    fn sleep(&mut self, _: f64) {}

    fn count(&mut self, _: u32, _: i64) {}
}
