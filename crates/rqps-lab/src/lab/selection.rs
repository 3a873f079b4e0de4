//! Selects the phases of a block when only some steps are still undecided.

use std::collections::{BTreeMap, BTreeSet};

use rqps_model::benchmark::{Phase, Step};

/// The phases of one block: for each, why it is left out, or `None` if it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    left_out: Vec<Option<&'static str>>,
}

/// The reason for leaving a step out.
const NOTHING_FOLLOWS: &str = "decided, and no undecided step follows it";
const CHANGES_NOTHING: &str = "decided; it changes no data, and all data are cached";

impl Selection {
    /// All phases.
    pub(super) fn all(phases: &[Phase]) -> Selection {
        Selection { left_out: vec![None; phases.len()] }
    }

    /// The steps that the open steps need.
    ///
    /// The steps before a step make the state of the DBMS for it: writes change the data, reads the
    /// caches. So an open step keeps all writes and all warm-up steps before it. A decided step
    /// that only reads is left out only if everything is `cached` anyway, so that later steps find
    /// the same state. Nothing is needed after the last open step. All targets of a block leave out
    /// the same steps, so its pairs stay pairs.
    pub(super) fn of_open(phases: &[Phase], open: &BTreeSet<String>, cached: bool) -> Selection {
        let is_open =
            |phase: &Phase| matches!(phase, Phase::Measure(step) if open.contains(&step.name));
        let last = phases.iter().rposition(is_open);
        let left_out = phases.iter().enumerate().map(|(index, phase)| {
            if last.is_none_or(|last| index > last) {
                return Some(NOTHING_FOLLOWS);
            }
            match phase {
                Phase::Measure(step) if cached && only_reads(step) && !is_open(phase) => {
                    Some(CHANGES_NOTHING)
                }
                _ => None,
            }
        });
        Selection { left_out: left_out.collect() }
    }

    /// True if the phase is carried out.
    pub(super) fn holds(&self, phase: usize) -> bool {
        self.left_out.get(phase).is_none_or(Option::is_none)
    }

    /// Steps that are left out, and why.
    pub(super) fn skipped(&self, phases: &[Phase]) -> BTreeMap<String, String> {
        let pairs = phases.iter().zip(&self.left_out).filter_map(|(phase, why)| {
            let Phase::Measure(step) = phase else { return None };
            Some((step.name.clone(), (*why)?.to_owned()))
        });
        pairs.collect()
    }

    /// The steps left out: number of the phase, from 1, and reason.
    pub(super) fn left_out(&self) -> BTreeMap<u32, String> {
        let reasons = (1..).zip(&self.left_out);
        reasons.filter_map(|(number, why)| Some((number, (*why)?.to_owned()))).collect()
    }

    /// The phases that are carried out, with their numbers from 0.
    pub(super) fn kept<'p>(&self, phases: &'p [Phase]) -> Vec<(usize, &'p Phase)> {
        phases.iter().enumerate().filter(|(index, _)| self.holds(*index)).collect()
    }
}

/// True for a measured step whose statements never write. Other benchmarks are sequences in which
/// each step builds on the one before.
fn only_reads(step: &Step) -> bool {
    step.reported && step.only_reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::{self, StepSet};
    use rqps_bench::sysbench::presets as preset;
    use rqps_model::dialect::Dialect;

    fn phases() -> Vec<Phase> {
        benchmarks::phases(Dialect::Fake, StepSet::Abbreviated, &preset::QUICK.workload())
    }

    fn kept(open: &[&str], cached: bool) -> Vec<String> {
        let open = open.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::of_open(&phases(), &open, cached);
        let name = |phase: &Phase| match phase {
            Phase::Measure(step) => step.name.clone(),
            Phase::Settle | Phase::Restore => "(settle)".to_owned(),
        };
        selection.kept(&phases()).into_iter().map(|(_, phase)| name(phase)).collect()
    }

    #[test]
    fn an_early_write_needs_nothing_after_it() {
        let warming = ["point-query.warm", "scan.warmpre", "point-query.pre"];
        let pre = "range-notcovered-si.pre";
        let kept = kept(&["update-index"], true);
        assert_eq!(kept[..3], warming);
        assert_eq!(kept[3..], [pre, "update-inlist", "update-index"]);
    }

    #[test]
    fn an_open_read_keeps_all_writes_and_warming_before_it_and_no_settled_read() {
        let kept = kept(&["points-covered-si"], true);
        for needed in ["update-index", "read-write_range=100", "(settle)", "scan.warm"] {
            assert!(kept.iter().any(|name| name == needed), "{needed} of {kept:?}");
        }
        for needless in ["hot-points", "read-only-count", "delete", "points-notcovered-si"] {
            assert!(!kept.iter().any(|name| name == needless), "{needless} of {kept:?}");
        }
        assert_eq!(kept.last().map(String::as_str), Some("points-covered-si"));
    }

    #[test]
    fn where_not_all_is_cached_a_settled_read_still_warms() {
        let kept = kept(&["points-covered-si"], false);
        assert!(kept.iter().any(|name| name == "hot-points"), "{kept:?}");
        assert!(!kept.iter().any(|name| name == "points-notcovered-si"), "{kept:?}");
    }

    #[test]
    fn what_is_left_out_has_its_reason() {
        let open = BTreeSet::from(["scan".to_owned()]);
        let skipped = Selection::of_open(&phases(), &open, true).skipped(&phases());
        assert_eq!(skipped["insert"], NOTHING_FOLLOWS);
        assert!(!skipped.contains_key("scan") && !skipped.contains_key("update-one"));
        assert!(Selection::all(&phases()).skipped(&phases()).is_empty());
        let left_out = Selection::of_open(&phases(), &open, true).left_out();
        for (number, phase) in (1..).zip(&phases()) {
            if let Phase::Measure(step) = phase {
                assert_eq!(left_out.get(&number), skipped.get(&step.name), "{}", step.name);
            }
        }
        let none = Selection::of_open(&phases(), &BTreeSet::new(), true);
        assert!(none.kept(&phases()).is_empty());
    }
}
