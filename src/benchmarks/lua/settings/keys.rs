//! Settings of scripts, and the files that they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::benchmarks::lua::steps;
use crate::benchmarks::spec::DataSize;
use crate::domain::benchmark::{BenchmarkParameters, Workload};
use crate::domain::lua::{LuaRights, LuaShape, RandomType};
use crate::domain::sql_workload::PinnedFile;
use crate::workload::settings::{self as shared, SETTINGS, SetError};

/// Settings of all benchmarks that mean nothing here.
const FOREIGN: [&str; 3] = ["tables", "rows", "prepared"];

/// Settings of scripts alone.
const OWN: [&str; 3] = ["rights", "before", "api"];

/// Bytes of data that scripts may make, of which nothing is known before.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// The scripts, to be changed.
pub(super) fn shape_of(workload: &mut Workload) -> Option<&mut LuaShape> {
    match &mut workload.shape {
        BenchmarkParameters::Lua(shape) => Some(shape),
        _ => None,
    }
}

/// Scripts are named after the colon, not read from a workload file.
///
/// # Errors
/// Always.
pub fn no_file(_: &mut Workload, _: &str) -> Result<(), String> {
    Err("scripts are named after `lua:`".to_owned())
}

/// The scripts and modules that the workload reads, with what is known of each.
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

/// Notes what the files are.
pub fn pin(workload: &mut Workload, _: &Path, files: BTreeMap<String, PinnedFile>) {
    if let Some(shape) = shape_of(workload) {
        shape.files = files;
    }
}

/// How large the data may be: only the scripts know.
pub fn data_size(_: &Workload) -> DataSize {
    DataSize { disk_bytes: 2.0 * UNKNOWN_BYTES as f64, cached_bytes: UNKNOWN_BYTES }
}

/// Changes the workload by one `key=value`.
///
/// # Errors
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = shared::parts(assignment)?;
    let shared = || SETTINGS.iter().map(|setting| setting.key).filter(|key| !FOREIGN.contains(key));
    let bad = |key, why: &str| {
        let (value, why) = (value.to_owned(), why.to_owned());
        Err(SetError::BadValue { key, value, why })
    };
    let Some(shape) = shape_of(workload) else { return shared::set(workload, assignment) };
    match (key, value) {
        ("rights", "full") => shape.rights = LuaRights::Full,
        ("rights", "none") => shape.rights = LuaRights::None,
        ("rights", _) => return bad("rights", "write full or none"),
        ("api", "1.0") => {}
        ("api", "1.1") => shape.random.kind = RandomType::Uniform,
        ("api", _) => return bad("api", "write 1.0 or 1.1"),
        ("before", commands) => {
            let commands: Vec<String> = commands.split(',').map(str::to_owned).collect();
            let known = |command: &String| {
                shape.declared.iter().any(|script| script.commands.contains_key(command))
            };
            if let Some(unknown) = commands.iter().find(|command| !known(command)) {
                return bad("before", &format!("no script has the command `{unknown}`"));
            }
            shape.before = commands;
        }
        _ if shared().any(|known| known == key) => return shared::set(workload, assignment),
        _ => {
            let known: Vec<&str> = OWN.into_iter().chain(shared()).collect();
            let (key, known) = (key.to_owned(), known.join(", "));
            return Err(SetError::UnknownKeyOf { key, benchmark: "lua", known });
        }
    }
    Ok(())
}

/// Where sysbench's own scripts lie.
const INSTALLED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

/// The file that a script's name means: as it stands, or in the folder of an installed sysbench.
///
/// # Errors
/// There is none.
pub(super) fn found(name: &str) -> Result<PathBuf, String> {
    let with_end = match name.ends_with(".lua") {
        true => name.to_owned(),
        false => format!("{name}.lua"),
    };
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
