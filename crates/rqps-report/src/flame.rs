//! The flame graph of a step: the sampled call stacks of a target and the baseline in one picture.

use std::collections::BTreeMap;

use rqps_analysis::comparison::TargetResult;
use rqps_analysis::sampled::SampledFunction;

/// Frames with a smaller share of the time, in both targets, are narrower than a pixel or two.
const SHARE_LEAST: f64 = 0.002;

/// Call stacks of two targets, with CPU microseconds per operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flame {
    /// Title.
    pub title: String,
    /// Label of the baseline.
    pub baseline: String,
    /// Label of the target.
    pub target: String,
    /// Names of functions.
    pub names: Vec<String>,
    /// A caller comes before those that it calls.
    pub frames: Vec<Frame>,
}

/// A function in the place where it was called, with all that it calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Place of its caller among the frames; `None` for where a thread began.
    pub caller: Option<usize>,
    /// Place of its name.
    pub name: usize,
    /// Microseconds per operation of the baseline.
    pub baseline: f64,
    /// Value of the target.
    pub target: f64,
    /// The difference of the function over all its callers: log2 of target / baseline, at most 1 in
    /// size; 0 if it was not shown to differ.
    pub change: f64,
}

/// The flame graph of a target; `None` without samples, and where stacks do not lead to callers.
pub(super) fn of_target(baseline: &str, step: &str, target: &TargetResult) -> Option<Flame> {
    let change = target.sampled.as_ref()?;
    let tree = &change.tree;
    let changes: BTreeMap<&str, f64> =
        change.functions.iter().map(|it| (&*it.name, of_function(it))).collect();
    let mut flame = Flame {
        title: format!("{step}: CPU time per operation, {} and {baseline}", target.label),
        baseline: baseline.to_owned(),
        target: target.label.clone(),
        ..Flame::default()
    };
    let mut places: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut names: Vec<Option<usize>> = vec![None; tree.names.len()];
    for (place, (baseline, target)) in tree.inclusive().into_iter().enumerate() {
        let least = (SHARE_LEAST * change.baseline_total, SHARE_LEAST * change.target_total);
        if baseline < least.0 && target < least.1 {
            continue;
        }
        let node = tree.nodes[place];
        // A caller has at least the time of those that it calls, so it is there.
        let caller = node.caller.and_then(|caller| places[caller as usize]);
        let text = &*tree.names[node.name as usize];
        let name = *names[node.name as usize].get_or_insert_with(|| {
            flame.names.push(text.to_owned());
            flame.names.len() - 1
        });
        places[place] = Some(flame.frames.len());
        let change = changes.get(text).copied().unwrap_or(0.0);
        flame.frames.push(Frame { caller, name, baseline, target, change });
    }
    (!flame.frames.is_empty()).then_some(flame)
}

/// The change of a function that was shown to differ: of its own time, or if that was not shown to,
/// with those that it calls.
fn of_function(it: &SampledFunction) -> f64 {
    let (before, after) = if it.q_own.is_some_and(|q| q <= it.q_inclusive.unwrap_or(1.0)) {
        (it.baseline.own, it.target.own)
    } else {
        (it.baseline.inclusive, it.target.inclusive)
    };
    match (before > 0.0, after > 0.0) {
        (true, true) => (after / before).log2().clamp(-1.0, 1.0),
        (false, _) => 1.0,
        (true, false) => -1.0,
    }
}
