//! Words and settings of a program, and its file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::steps;
use crate::spec::{CliContext, DataSize, UserCode};
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::seconds;
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::client::ClientShape;
use rqps_model::sql_workload::PinnedFile;

/// Assumed bytes of the data, which only the program knows.
const UNKNOWN_BYTES: u64 = 1 << 30;

fn shape_of(workload: &mut Workload) -> Option<&mut ClientShape> {
    match &mut workload.shape {
        BenchmarkParameters::Client(shape) => Some(shape),
        _ => None,
    }
}

/// Adds the program and its options to the workload.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    let [name] = said.what else {
        return Err("it takes one program; make a comparison of each".to_owned());
    };
    if name.is_empty() {
        return Err("it needs a program, such as --bench client:./redis_client.py".to_owned());
    }
    let program = std::path::absolute(name).map_err(|error| format!("find {name}: {error}"))?;
    if !program.is_file() {
        return Err(format!("{} was not found; write its path", program.display()));
    }
    let mut options = BTreeMap::new();
    for word in said.options {
        let option = word.strip_prefix("--").and_then(|option| option.split_once('='));
        let Some((key, value)) = option.filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("its options look like --size=100, not `{word}`"));
        };
        options.insert(key.to_owned(), value.to_owned());
    }
    let told = (said.look)(&program, false)?;
    let declared = serde_json::from_str(&told)
        .map_err(|error| format!("read what {} declares: {error}", program.display()))?;
    steps::check_declared(&declared)?;
    if let Some(shape) = shape_of(workload) {
        *shape = ClientShape { program, options, declared, ..ClientShape::default() };
    }
    Ok(())
}

/// The program; its pin, once there is one.
pub(super) fn files(workload: &Workload) -> BTreeMap<String, Option<PinnedFile>> {
    let Some(shape) = steps::shape(workload) else { return BTreeMap::new() };
    let name = shape.program.display().to_string();
    let known = shape.files.get(&name).cloned();
    BTreeMap::from([(name, known)])
}

/// Stores the pin.
pub(super) fn pin(workload: &mut Workload, _: &Path, files: BTreeMap<String, PinnedFile>) {
    if let Some(shape) = shape_of(workload) {
        shape.files = files;
    }
}

/// The program, and its options.
pub(super) fn brought(workload: &Workload) -> Vec<UserCode> {
    let Some(shape) = steps::shape(workload) else { return Vec::new() };
    let program = shape.program.display().to_string();
    let sha256 = shape.files.get(&program).map(|file| file.sha256.clone());
    let place = Some(PathBuf::from(&program));
    let program = UserCode { kind: "program", name: program, sha256, place };
    let option =
        |(key, value): (&String, &String)| UserCode::named("option", format!("--{key}={value}"));
    std::iter::once(program).chain(shape.options.iter().map(option)).collect()
}

/// The assumed size of the data.
pub(super) fn data_size(_: &Workload) -> DataSize {
    DataSize { data_bytes: UNKNOWN_BYTES as f64, cached_bytes: UNKNOWN_BYTES }
}

own_settings! { ClientShape:
    "timeout", |_, shape, value| shape.timeout_seconds = Some(seconds(value)?);
}

const SETTINGS: Settings<ClientShape> = Settings {
    benchmark: "client",
    own: OWN,
    common: &[("rows", "rows")],
    others: true,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Client(shape) => Some(shape),
        _ => None,
    },
};

/// Changes the workload by one `key=value`.
pub(super) fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}
