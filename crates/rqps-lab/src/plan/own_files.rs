//! The user's own files that a plan reads.

use std::path::{Component, Path, PathBuf};

use crate::benchmarks;
use crate::plan::definition::PlanDraft;
use rqps_model::benchmark::{Phase, StepBody};
use rqps_model::value_source::SourceValues;

/// Bytes of the largest file of which results keep a copy.
const COPIED_BYTES: u64 = 1 << 20;

/// A file of which results keep a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Its path on this host.
    pub path: PathBuf,
    /// Name of its copy: the path in the workload, below its folder.
    pub copy: PathBuf,
}

/// Scripts and small data files that the workload reads. Results keep copies, so that a report can
/// be traced to them.
pub fn own_files(plan: &PlanDraft) -> Vec<OwnFile> {
    let Some(own) = &benchmarks::of(&plan.workload).file else { return Vec::new() };
    let folder = (own.folder)(&plan.workload).unwrap_or_default();
    let files = (own.files)(&plan.workload).into_iter();
    let small = files.filter_map(|(name, known)| {
        let file = known.filter(|file| file.bytes <= COPIED_BYTES)?;
        let copy = copy_name(Path::new(&name), &file.sha256);
        Some(OwnFile { path: folder.join(&name), copy })
    });
    small.collect()
}

/// A file that a driver reads in a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepFile {
    /// Its path on this host.
    pub path: PathBuf,
    /// SHA-256 of its content in hex, if the plan knows it.
    pub sha256: Option<String>,
}

/// The user's own files that the drivers of steps read, each once: CSV files, scripts, vectors.
/// Excludes files that only the load reads.
pub fn step_files(plan: &PlanDraft) -> Vec<StepFile> {
    let spec = benchmarks::of(&plan.workload);
    let mut pinned = Vec::new();
    if let Some(own) = &spec.file {
        let folder = (own.folder)(&plan.workload).unwrap_or_default();
        let files = (own.files)(&plan.workload).into_iter();
        pinned.extend(files.map(|(name, file)| (folder.join(name), file)));
    }
    let mut paths = (spec.own_data)(&plan.workload);
    // If a glob matches no step, `plan.phases` reports that elsewhere.
    let phases = plan.targets.iter().filter_map(|target| plan.phases(target).ok());
    for phase in phases.flatten() {
        let Phase::Measure(step) = phase else { continue };
        match &step.work {
            StepBody::Script(script) => {
                paths.extend(script.sources.iter().filter_map(|source| match &source.values {
                    SourceValues::File { path, .. } => Some(path.clone()),
                    _ => None,
                }));
            }
            _ => paths.extend(pinned.iter().map(|(path, _)| path.clone())),
        }
    }
    paths.sort();
    paths.dedup();
    let known = |path: &PathBuf| {
        let (_, file) = pinned.iter().find(|(other, _)| other == path)?;
        Some(file.as_ref()?.sha256.clone())
    };
    paths.into_iter().map(|path| StepFile { sha256: known(&path), path }).collect()
}

/// The path unchanged if it stays below the folder; else the hash and the name of the file.
fn copy_name(name: &Path, sha256: &str) -> PathBuf {
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    if is_below {
        return name.to_owned();
    }
    let last = name.file_name().map(|last| last.to_string_lossy().into_owned());
    // The text is a plan's.
    let hash: String = sha256.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    PathBuf::from(format!("{hash}-{}", last.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::file;
    use rqps_model::sql_workload::PinnedFile;

    #[test]
    fn drivers_read_the_files_of_parameters_and_not_those_of_the_load() {
        let text = "targets = [\"a=postgres@17.2\"]\nbenchmark = \"sysbench\"\n\
                    order = \"abbreviated\"\nsteps = []\nblocks = 1\ninterleave = \"step\"\n\
                    seed = \"1\"\n[workload]\ntables = 1\nrows = 10\nclients = 1\n\
                    read_seconds = 1.0\nwrite_seconds = 1.0\nwarmup_seconds = 0.1\n\
                    settle_scale = 0.0\npace = \"closed\"\nidle = \"os\"\nplacement = \"os\"\n";
        let mut plan = file::draft(text).unwrap();
        let text = "[load]\ndata = [{ csv = \"rows.csv\", table = \"t\" }]\n\
                    [parameter]\nword = { kind = \"file\", csv = \"w.csv\", column = \"w\" }\n\
                    [[step]]\nname = \"look\"\n[[step.event]]\n\
                    [[step.event.statement]]\nsql = \"SELECT 1 FROM t WHERE w = :word\"\n";
        let own = benchmarks::named("sql").unwrap().file.as_ref().unwrap();
        (own.read)(&mut plan.workload, text).unwrap();
        let known = PinnedFile { sha256: "ab".to_owned(), bytes: 1 };
        let names = ["rows.csv", "w.csv"].map(|name| (name.to_owned(), known.clone()));
        (own.pin)(&mut plan.workload, Path::new("/data"), names.into_iter().collect());
        let path = PathBuf::from("/data/w.csv");
        assert_eq!(step_files(&plan), [StepFile { path, sha256: Some("ab".to_owned()) }]);
    }

    #[test]
    fn a_copy_never_leaves_its_folder() {
        let check = |name: &str, want: &str| {
            assert_eq!(copy_name(Path::new(name), "0123456789ab"), Path::new(want), "{name}");
        };
        check("a.sql", "a.sql");
        check("data/a.csv", "data/a.csv");
        check("../a.csv", "01234567-a.csv");
        check("/usr/share/x.lua", "01234567-x.lua");
        let other = copy_name(Path::new("../x.lua"), "../../..");
        assert_eq!(other, Path::new("-x.lua"));
    }
}
