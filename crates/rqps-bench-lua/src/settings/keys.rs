//! Settings `key=value` of scripts, and the files of scripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::steps;
use rqps_bench::spec::{DataSize, UserCode};
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::{bytes, choice};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::lua::{LuaRights, LuaShape, RandomType};
use rqps_model::sql_workload::PinnedFile;

/// Assumed bytes of the data, which only the scripts know.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// The scripts, mutable.
pub(super) fn shape_of(workload: &mut Workload) -> Option<&mut LuaShape> {
    match &mut workload.shape {
        BenchmarkParameters::Lua(shape) => Some(shape),
        _ => None,
    }
}

/// Refuses a workload file: scripts are named after the colon.
///
/// # Errors
///
/// Always.
pub fn no_file(_: &mut Workload, _: &str) -> Result<(), String> {
    Err("scripts are named after `lua:`".to_owned())
}

/// The scripts and modules that the workload reads; `None` until they are pinned.
pub fn files(workload: &Workload) -> BTreeMap<String, Option<PinnedFile>> {
    let Some(shape) = steps::shape(workload) else { return BTreeMap::new() };
    let scripts = shape.declared.iter().map(|script| script.path.display().to_string());
    let mut files: BTreeMap<String, Option<PinnedFile>> =
        scripts.map(|script| (script, None)).collect();
    let unknown = PinnedFile::default();
    for (path, file) in &shape.files {
        files.insert(path.clone(), Some(file.clone()).filter(|file| *file != unknown));
    }
    files
}

/// Stores the pinned files.
pub fn pin(workload: &mut Workload, _: &Path, files: BTreeMap<String, PinnedFile>) {
    if let Some(shape) = shape_of(workload) {
        shape.files = files;
    }
}

/// The scripts and modules, their options, and what they may do. What they require may be any file
/// beside them.
pub fn brought(workload: &Workload) -> Vec<UserCode> {
    let Some(shape) = steps::shape(workload) else { return Vec::new() };
    let file = |(path, file): (&String, &PinnedFile)| UserCode {
        kind: "script",
        name: path.clone(),
        sha256: Some(file.sha256.clone()),
        place: Some(PathBuf::from(path)),
    };
    let option =
        |(key, value): (&String, &String)| UserCode::named("option", format!("--{key}={value}"));
    let shell = shape.shell.then(|| "scripts may run programs (shell = true)".to_owned());
    let rights = shell.map(|words| UserCode::named("rights", words));
    shape.files.iter().map(file).chain(shape.options.iter().map(option)).chain(rights).collect()
}

/// The assumed size of the data, which only the scripts know.
pub fn data_size(_: &Workload) -> DataSize {
    DataSize { data_bytes: UNKNOWN_BYTES as f64, cached_bytes: UNKNOWN_BYTES }
}

own_settings! { LuaShape:
    "rights", |_, shape, value| {
        shape.rights = choice(value, &[("full", LuaRights::Full), ("none", LuaRights::None)])?;
    };
    // `--rand-type` sets another distribution; sysbench 1.1 has no `special`.
    "api", |_, shape, value| {
        let is_newer = choice(value, &[("1.0", false), ("1.1", true)])?;
        if is_newer && shape.random.kind == RandomType::Special {
            shape.random.kind = RandomType::Uniform;
        }
    };
    "shell", |_, shape, value| {
        shape.shell = choice(value, &[("on", true), ("off", false)])?;
    };
    "lua_memory", |_, shape, value| {
        shape.memory_bytes = if value == "auto" { None } else { Some(bytes(value)?) };
    };
    "driver", |_, shape, value| {
        shape.driver = choice(value, &[("mysql", "mysql"), ("pgsql", "pgsql"), ("sqlite", "")])?
            .to_owned();
    };
    "before", |_, shape, value| shape.before = commands(shape, value)?;
    "after", |_, shape, value| shape.after = commands(shape, value)?;
}

/// Reads names of commands.
fn commands(shape: &LuaShape, value: &str) -> Result<Vec<String>, String> {
    let commands: Vec<String> = value.split(',').map(str::to_owned).collect();
    let known = |command: &String| {
        shape.declared.iter().any(|script| script.commands.contains_key(command))
    };
    match commands.iter().find(|command| !known(command)) {
        Some(unknown) => Err(format!("no script has the command `{unknown}`")),
        None => Ok(commands),
    }
}

const SETTINGS: Settings<LuaShape> = Settings {
    benchmark: "lua",
    own: OWN,
    common: &[],
    others: true,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Lua(shape) => Some(shape),
        _ => None,
    },
};

/// Changes the workload by one `key=value`.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

/// Folders of sysbench's own scripts.
const INSTALLED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

/// The file of a script: the name as a path, or in the folder of an installed sysbench.
///
/// # Errors
///
/// No such file.
pub(super) fn found(name: &str) -> Result<PathBuf, String> {
    let with_end = if name.ends_with(".lua") { name.to_owned() } else { format!("{name}.lua") };
    let own = Path::new(&with_end);
    let installed = INSTALLED.iter().map(|folder| Path::new(folder).join(own));
    let candidates = std::iter::once(own.to_owned()).chain(installed);
    for candidate in candidates {
        if candidate.is_file() {
            let absolute = std::path::absolute(&candidate);
            return absolute.map_err(|error| format!("find {}: {error}", candidate.display()));
        }
    }
    Err(format!(
        "{with_end} was not found\nhint: install sysbench for its scripts; `--bench sysbench` has \
         native steps"
    ))
}
