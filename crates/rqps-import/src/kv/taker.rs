//! Collects values from db_bench files of all forms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::ImportOptions;
use crate::kv::metrics::{group, tag_of};
use crate::kv::rates::RatesOnly;
use crate::kv::runs::Runs;
use crate::notice::{Notice, NoticeKind};
use crate::published::{Published, StepKind};
use crate::text::Text;
use crate::variants::Variants;
use rqps_model::benchmark::RateUnit;
use rqps_model::run::StepRecord;

/// The word of the format in `rqps import`.
pub(super) const WORD: &str = "dbbench";

/// Cells of a row: head, value.
pub(super) type Cells = Vec<(String, String)>;

pub(super) struct Taker<'a> {
    pub(super) published: Published,
    pub(super) options: &'a ImportOptions,
    /// The workloads of all files. If there are several, they are part of the names of steps.
    pub(super) workloads: BTreeSet<&'static str>,
    /// Conditions that the names of tables of rates tell apart.
    pub(super) variants: Variants,
    /// Tables of rates and ratios, taken after all reports.
    pub(super) tables: Vec<(Text, RatesOnly)>,
    /// Labels of a table's columns, from the report of the same name: file, labels of the rows of a
    /// step.
    pub(super) reports: Vec<(PathBuf, Vec<String>)>,
    pub(super) rows: Runs,
    pub(super) logs: Runs,
    /// Rows by label, step, version and second: file, line, cells.
    pub(super) dated: BTreeMap<String, (String, usize, Cells)>,
    /// Digest of a log's results, with the log's name and the given label.
    pub(super) digests: BTreeMap<[u8; 32], (String, Option<String>)>,
    /// Number of repetitions by label and step.
    pub(super) blocks: BTreeMap<(String, String), u32>,
}

impl Taker<'_> {
    pub(super) fn left(&mut self, path: &Path, what: impl Into<String>) {
        self.published.left(path, what);
    }

    /// The name of a step in a file: with its workload, where the files have several.
    pub(super) fn name(&self, file: &Path, step: &str) -> String {
        match workload_of(file).filter(|_| self.workloads.len() > 1) {
            Some(workload) => format!("{step}.{workload}"),
            None => step.to_owned(),
        }
    }

    /// The label and block of a run by its number: a target of its own, or a repetition.
    pub(super) fn numbered(&self, label: &str, place: usize) -> (String, u32) {
        match (place, self.options.repeats) {
            (0, _) => (label.to_owned(), 1),
            (_, true) => (label.to_owned(), u32::try_from(place + 1).unwrap_or(u32::MAX)),
            (_, false) => (format!("{label}#{}", place + 1), 1),
        }
    }

    pub(super) fn note_several(&mut self, text: &Text, line: usize, test: &str, label: &str) {
        let said = self.published.notices.iter().any(|notice| {
            notice.kind == NoticeKind::Note && notice.text.contains("--repeats imports")
        });
        if !said {
            let label = label.trim_end_matches("#2");
            let what = format!(
                "{label} has several runs of {test}: each run became a separate target (--labels \
                 or LABEL=FILE name them; --repeats imports them as repetitions)"
            );
            self.published.notices.push(Notice::at(NoticeKind::Note, text.path(), line, what));
        }
    }

    pub(super) fn step(
        &mut self,
        label: &str,
        block: u32,
        version: Option<&str>,
        step: &str,
    ) -> &mut StepRecord {
        let tag = tag_of(label, version);
        let run = self.published.run(label, block, &tag);
        let kind = StepKind { group: group(step), rate: RateUnit::Operations };
        run.step(WORD, step, kind)
    }
}

/// Workloads in names of published files and folders.
const WORKLOADS: [&str; 4] = ["byrx", "byos", "iobuf", "iodir"];

/// The workload of `res.byrx` or `sum.iobuf.8x.txt`.
pub(super) fn workload_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.split('.').collect();
    let of = |parts: &[&str]| WORKLOADS.into_iter().find(|workload| parts.contains(workload));
    of(&parts).or_else(|| of(&folder.split('.').collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variants::kin;

    #[test]
    fn names_tell_workload_and_kin() {
        assert_eq!(workload_of(Path::new("a/sum.iobuf.8x.txt")), Some("iobuf"));
        assert_eq!(workload_of(Path::new("res.byrx/summary.tsv")), Some("byrx"));
        assert_eq!(workload_of(Path::new("summary.tsv")), None);
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/abs.iobuf.8x.tsv"), of("a/sum.iobuf.8x.txt"));
        assert_eq!(of("a/fmt.byrx.lru.abs0.tsv"), of("a/sum.byrx.lru.txt"));
        assert_ne!(of("a/abs.iobuf.7x.tsv"), of("a/sum.iobuf.8x.txt"));
    }
}
