//! Parses names of microbenchmarks in published files, and groups them as the reports do.

use rqps_model::benchmark::Group;
use rqps_model::step_parameters::{StepParameters, StepPurpose};

/// The parts of a file name or head: `sb.met.point-query.pre.range100.pk1.dop40`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// The kind of measurement: `met`, `o`, `r.qps`, `vm`; `prepare.o` for the load.
    pub kind: String,
    /// The step as in labels of tables: `point-query.pre_range=100`; [`LOAD`] for the load.
    pub step: String,
    /// Clients, if the name has them.
    pub clients: Option<u32>,
}

/// The step of loading and indexing.
pub const LOAD: &str = "load";

/// Kinds of measurements, the longest first.
const KINDS: [&str; 30] = [
    "prepare.met", "prepare.vm", "prepare.io", "prepare.ps", "prepare.o", "r.qps", "r.trx",
    "r.rtavg", "r.rtmax", "r.rt95", "time", "espl", "pgid", "perf", "pmp", "pgs", "pgi", "mem",
    "top", "met", "lsh", "lsa", "sei", "vm", "io", "ps", "sz", "es", "ls", "o",
];

/// Parses a name with or without `.gz`. `None` for another form.
pub fn file_name(name: &str) -> Option<FileName> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let rest = name.strip_prefix("sb.")?;
    let (kind, rest) =
        KINDS.iter().find_map(|kind| Some((kind, rest.strip_prefix(kind)?.strip_prefix('.')?)))?;
    let (rest, clients) = match rest.rsplit_once(".dop") {
        Some((rest, clients)) => (rest, Some(clients.parse().ok()?)),
        None => (rest, None),
    };
    let rest = rest.strip_suffix(".pk1").or_else(|| rest.strip_suffix(".pk0")).unwrap_or(rest);
    let (test, range) = rest.rsplit_once(".range")?;
    if test.is_empty() || range.is_empty() || !range.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let step = if kind.starts_with("prepare.") {
        LOAD.to_owned()
    } else {
        format!("{test}_range={range}")
    };
    Some(FileName { kind: (*kind).to_owned(), step, clients })
}

/// The step of a label, which may be the name of a file.
pub(super) fn step(label: &str) -> String {
    file_name(label).map_or_else(|| label.to_owned(), |name| name.step)
}

/// True for the load, under whatever condition.
pub fn is_load(step: &str) -> bool {
    step.strip_prefix(LOAD).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The group of a step by the published rule on the text of its label: point, then write, the rest
/// is range.
pub fn group(step: &str) -> Group {
    if is_load(step) {
        Group::Load
    } else if step.contains("point") {
        Group::Point
    } else if ["delete", "insert", "update", "write"].iter().any(|word| step.contains(word)) {
        Group::Write
    } else {
        Group::Range
    }
}

/// The parameters that follow from the name of a published step.
pub(super) fn parameters(step: &str) -> StepParameters {
    let purpose = if step.contains(".warm") {
        StepPurpose::Warming
    } else if step.contains(".pre") {
        StepPurpose::BeforeWrites
    } else {
        StepPurpose::Result
    };
    StepParameters { purpose, ..StepParameters::default() }
}

/// True for the step whose rate is in thousands of rows per second.
pub fn counts_rows(step: &str) -> bool {
    step == "scan" || step.starts_with("scan.") || step.starts_with("scan_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let check = |name: &str, kind: &str, step: &str, clients: Option<u32>| {
            let expected = FileName { kind: kind.to_owned(), step: step.to_owned(), clients };
            assert_eq!(file_name(name), Some(expected), "{name}");
        };
        check(
            "sb.met.point-query.pre.range100.pk1.dop40",
            "met",
            "point-query.pre_range=100",
            Some(40),
        );
        check("sb.r.qps.scan.range100.pk1", "r.qps", "scan_range=100", None);
        check("sb.o.read-only.range10000.pk0.dop1.gz", "o", "read-only_range=10000", Some(1));
        check("sb.prepare.o.point-query.warm.range100.pk1", "prepare.o", "load", None);
        for name in ["", "sb.", "sb.met", "sb.met.x", "sb.met.x.range", "sb.o.x.range1.dopx", "x.y"]
        {
            assert_eq!(file_name(name), None, "{name}");
        }
    }

    #[test]
    fn groups_are_those_of_the_scripts() {
        let check = |step: &str, expected: Group| assert_eq!(group(step), expected, "{step}");
        check("hot-points_range=100", Group::Point);
        check("read-only_range=10", Group::Range);
        check("scan.warm_range=100", Group::Range);
        check("read-write_range=10", Group::Write);
        check("update-one_range=100", Group::Write);
        check("load", Group::Load);
    }
}
