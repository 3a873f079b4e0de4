//! Associated costs: cost metrics whose change accompanies a change of the rate.

use super::judgement::Explanation;
use crate::comparison::TargetResult;
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;

/// The costs that were shown to be worse where the rate was shown to be slower, or better where it
/// was faster; the largest change first. A small change of a cost explains only a small one of the
/// rate.
pub(crate) fn explanations(target: &TargetResult) -> Vec<Explanation> {
    let verdict = |metric: Metric| {
        let relative = target.relative(metric)?;
        Some((relative, relative.judgement.as_ref()?))
    };
    let Some((_, rate)) = verdict(Metric::Rate) else { return Vec::new() };
    let mut costs: Vec<Metric> = Metric::which(|spec| spec.explains.is_some()).collect();
    costs.sort_by_key(|metric| metric.spec().explains);
    let mut found: Vec<Explanation> = costs
        .into_iter()
        .filter_map(|metric| {
            let (relative, judgement) = verdict(metric)?;
            let cost = judgement.verdict;
            let with = match rate.verdict {
                Verdict::Slower | Verdict::Faster => cost == rate.verdict,
                small => {
                    (small.is_worse() && cost.is_worse()) || (small.is_better() && cost.is_better())
                }
            };
            let interval = judgement.test.as_ref()?.interval;
            let (ratio, verdict) = (relative.ratio, cost);
            with.then_some(Explanation { metric, ratio, interval, verdict, detail: None })
        })
        .collect();
    found.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    found
}
