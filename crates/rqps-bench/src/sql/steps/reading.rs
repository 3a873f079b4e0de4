//! Reads a workload file and lists the files that it names.

use super::dialects::all;
use super::positions;
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::sql_workload::SqlShape;
use rqps_text::toml_reader;

/// The user's statements, if the workload consists of them.
pub fn shape(workload: &Workload) -> Option<&SqlShape> {
    match &workload.shape {
        BenchmarkParameters::Sql(shape) => Some(shape),
        _ => None,
    }
}

/// The error for statements in the place of a workload file.
const NO_SQL: &str = "it holds statements and is no workload file\n\
    hint: a file of statements runs as a script: --bench pgbench:FILE. A workload file names \
    statements, steps and values: docs/workloads.md shows one, and `rqps init` drafts one";

/// True if a text begins as SQL or a script of pgbench does.
fn is_sql(text: &str) -> bool {
    const FIRST: [&str; 12] = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "CREATE", "DROP", "SET", "USE",
        "START", "REPLACE",
    ];
    let mut lines = text.lines().map(str::trim_start);
    let is_comment = |line: &str| line.is_empty() || line.starts_with("--");
    let Some(line) = lines.find(|line| !is_comment(line)) else { return false };
    let word = line.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    line.starts_with(['\\', '('])
        || line.starts_with("/*")
        || FIRST.iter().any(|first| word.eq_ignore_ascii_case(first))
            && !line[word.len()..].trim_start().starts_with('=')
}

/// Reads a workload file.
///
/// # Errors
/// The text is not TOML, or a key is unknown, missing or of the wrong type. The error names the
/// line.
pub fn read(text: &str) -> Result<SqlShape, String> {
    let shape: SqlShape = toml_reader::read(text)
        .map_err(|error| if is_sql(text) { NO_SQL.to_owned() } else { error.to_string() })?;
    Ok(placed(text, shape))
}

/// Adds to the workload the positions of its parts in `text`.
pub fn placed(text: &str, mut shape: SqlShape) -> SqlShape {
    let at = |path: &str| positions::of_path(text, path);
    if let Some(load) = &mut shape.load {
        load.at = at("load");
    }
    for (name, parameter) in &mut shape.parameter {
        parameter.at = at(&format!("parameter.{name}"));
    }
    for (number, step) in shape.step.iter_mut().enumerate() {
        step.at = at(&format!("step.{number}"));
        for (event, statements) in step.event.iter_mut().enumerate() {
            for (index, statement) in statements.statement.iter_mut().enumerate() {
                statement.at = at(&format!("step.{number}.event.{event}.statement.{index}.sql"));
            }
        }
    }
    shape
}

/// The files that a server executes or opens as a database.
pub fn executed_files(shape: &SqlShape) -> Vec<String> {
    let load = shape.load.iter();
    load.flat_map(|load| load.schema.iter().chain(&load.index))
        .flat_map(all)
        .flatten()
        .cloned()
        .collect()
}

/// All files that a workload reads, as it names them, each once.
pub fn files(shape: &SqlShape) -> Vec<String> {
    let mut files = executed_files(shape);
    if let Some(load) = &shape.load {
        files.extend(load.data.iter().map(|data| data.csv.clone()));
    }
    files.extend(shape.parameter.values().filter_map(|parameter| parameter.csv.clone()));
    files.sort();
    files.dedup();
    files
}

/// True if the workload says how its tables are made and filled.
pub fn has_load(workload: &Workload) -> bool {
    let load = shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.schema.is_some() || !load.data.is_empty())
}

/// True if the workload is loaded on servers given by a DSN, too.
pub fn loads_on_servers(workload: &Workload) -> bool {
    let load = shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.on_servers == Some(true))
}
