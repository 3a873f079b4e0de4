//! Which stages of a block are carried out when only some steps are still open.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::benchmark::{Phase, Step};

/// The stages of one block: for each, why it is left out, or `None` if it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    left_out: Vec<Option<&'static str>>,
}

/// Why a step is left out.
const NOTHING_FOLLOWS: &str = "decided, and no undecided step follows it";
const CHANGES_NOTHING: &str = "decided; it changes no data, and all data are cached";

impl Selection {
    /// All stages.
    pub(super) fn all(stages: &[Phase]) -> Selection {
        Selection { left_out: vec![None; stages.len()] }
    }

    /// What the open steps need.
    ///
    /// The state in which a step finds a DBMS is made by the steps before it: writes change the
    /// data, reads what is cached. So an open step keeps all writes and all warming steps before
    /// it, and a settled step that only reads is left out only where everything is `cached`
    /// anyway: then the steps after it find what they found before. Nothing is needed after the
    /// last open step. All targets of a block leave out the same steps, so its pairs stay pairs
    /// either way.
    pub(super) fn of_open(stages: &[Phase], open: &BTreeSet<String>, cached: bool) -> Selection {
        let is_open =
            |stage: &Phase| matches!(stage, Phase::Measure(step) if open.contains(&step.name));
        let last = stages.iter().rposition(is_open);
        let left_out = stages.iter().enumerate().map(|(index, stage)| {
            if last.is_none_or(|last| index > last) {
                return Some(NOTHING_FOLLOWS);
            }
            match stage {
                Phase::Measure(step) if cached && only_reads(step) && !is_open(stage) => {
                    Some(CHANGES_NOTHING)
                }
                _ => None,
            }
        });
        Selection { left_out: left_out.collect() }
    }

    /// True if the stage is carried out.
    pub(super) fn holds(&self, stage: usize) -> bool {
        self.left_out.get(stage).is_none_or(Option::is_none)
    }

    /// Steps that are left out, and why.
    pub(super) fn skipped(&self, stages: &[Phase]) -> BTreeMap<String, String> {
        let pairs = stages.iter().zip(&self.left_out).filter_map(|(stage, why)| {
            let Phase::Measure(step) = stage else { return None };
            Some((step.name.clone(), (*why)?.to_owned()))
        });
        pairs.collect()
    }

    /// What is left out: number of the stage, from 1 → why.
    pub(super) fn left_out(&self) -> BTreeMap<u32, String> {
        let reasons = (1..).zip(&self.left_out);
        reasons.filter_map(|(number, why)| Some((number, (*why)?.to_owned()))).collect()
    }

    /// The stages that are carried out.
    pub(super) fn kept(&self, stages: &[Phase]) -> Vec<Phase> {
        let kept = stages.iter().enumerate().filter(|(index, _)| self.holds(*index));
        kept.map(|(_, stage)| stage.clone()).collect()
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
    use crate::benchmarks::sysbench::presets as preset;
    use crate::benchmarks::{self, StepSet};
    use crate::domain::dialect::Dialect;

    fn stages() -> Vec<Phase> {
        benchmarks::stages(Dialect::Fake, StepSet::Abbreviated, &preset::QUICK.workload())
    }

    fn kept(open: &[&str], cached: bool) -> Vec<String> {
        let open = open.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::of_open(&stages(), &open, cached);
        let name = |stage: &Phase| match stage {
            Phase::Measure(step) => step.name.clone(),
            Phase::Settle => "(settle)".to_owned(),
        };
        selection.kept(&stages()).iter().map(name).collect()
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
        let skipped = Selection::of_open(&stages(), &open, true).skipped(&stages());
        assert_eq!(skipped["insert"], NOTHING_FOLLOWS);
        assert!(!skipped.contains_key("scan") && !skipped.contains_key("update-one"));
        assert!(Selection::all(&stages()).skipped(&stages()).is_empty());
        let left_out = Selection::of_open(&stages(), &open, true).left_out();
        for (number, stage) in (1..).zip(&stages()) {
            if let Phase::Measure(step) = stage {
                assert_eq!(left_out.get(&number), skipped.get(&step.name), "{}", step.name);
            }
        }
        let none = Selection::of_open(&stages(), &BTreeSet::new(), true);
        assert!(none.kept(&stages()).is_empty());
    }
}
