//! What keeps rates undecided, and what it would take to decide them.

use std::time::Duration;

use jiff::Timestamp;

use rqps_analysis::Comparison;
use rqps_analysis::caveat::{CaveatKind, percent};
use rqps_analysis::comparison::{Relative, RunFacts, StepComparison, TargetResult};
use rqps_model::metric::Metric;
use rqps_model::units::counted;
use rqps_model::verdict::Verdict;
use rqps_stats::summary::{mean, median};

use super::BriefPlace;
use crate::facts::distinct_list;

/// The CPU of others that is worth a word.
const OTHERS_LEAST: f64 = 0.1;
/// Nobody waits for more blocks.
const BLOCKS_MOST: f64 = 60.0;

/// The rates without a clear verdict.
type Open<'a> = Vec<(&'a StepComparison, &'a TargetResult, &'a Relative)>;

/// What a reader needs to know about them.
pub(super) struct Undecided {
    /// Why, and what it would take.
    pub(super) why: String,
    /// Blocks that may decide half of them; `None` where rqps cannot measure.
    blocks: Option<f64>,
}

impl Undecided {
    /// The command that decides them.
    pub(super) fn command(&self, place: &BriefPlace) -> Option<String> {
        let blocks = self.blocks?;
        if blocks > BLOCKS_MOST {
            return Some("rqps doctor".to_owned());
        }
        Some(place.command(&format!("run --blocks {blocks}")))
    }
}

/// `None` if every rate is decided.
pub(super) fn of(comparison: &Comparison) -> Option<Undecided> {
    let open: Open<'_> = comparison
        .measured_steps()
        .flat_map(|step| step.targets.iter().skip(1).map(move |target| (step, target)))
        .filter_map(|(step, target)| Some((step, target, target.relative(Metric::Rate)?)))
        .filter(|(_, target, _)| {
            let judgement = target.judgement(Metric::Rate);
            judgement.is_some_and(|it| it.verdict == Verdict::Inconclusive)
        })
        .collect();
    let pairs = open.iter().map(|(_, _, rate)| rate.pairs).max()?;
    let mut why: Vec<String> = others(comparison, &open).into_iter().collect();
    let scatters: Vec<f64> = open.iter().filter_map(|(_, _, rate)| between_starts(rate)).collect();
    let scatter = median(&scatters).filter(|_| 2 * scatters.len() > open.len());
    why.extend(scatter.map(|sd| format!("starts of servers scatter by {}", percent(sd))));
    let found: Vec<f64> = open.iter().filter_map(|(_, _, rate)| Some(rate.test()?.mde)).collect();
    why.push(match median(&found) {
        Some(share) => format!("{} find {} and more", counted(pairs, "pair"), percent(share)),
        None => counted(pairs, "pair"),
    });
    let which = match open.as_slice() {
        [(step, _, _)] => step.name.clone(),
        many => counted(many.len(), "rate"),
    };
    let imported = (0..comparison.targets.len()).any(|target| comparison.is_imported(target));
    let blocks = (!imported).then(|| blocks(comparison, &open, pairs));
    let remedy = blocks.map_or_else(String::new, |blocks| {
        let half = if open.len() > 1 { "half of them" } else { "it" };
        let time = block_seconds(comparison).map(|one| about(one * blocks));
        let time = time.map_or_else(String::new, |time| format!(" ({time})"));
        if blocks > BLOCKS_MOST {
            format!("; it would take {blocks:.0} blocks{time}: make the host quieter")
        } else {
            format!("; {blocks:.0} blocks{time} may decide {half}")
        }
    });
    Some(Undecided { why: format!("INCONCLUSIVE ({which}): {}{remedy}", why.join(", ")), blocks })
}

/// The CPU that other processes had, where that is a caveat.
fn others(comparison: &Comparison, open: &Open<'_>) -> Option<String> {
    comparison.caveats.iter().find(|caveat| caveat.kind == CaveatKind::ForeignLoad)?;
    let samples = open.iter().flat_map(|(_, target, _)| &target.samples);
    let shares = samples.filter_map(|it| it.record.usage.disturbance.as_ref()?.foreign_cpu);
    let most = shares.max_by(f64::total_cmp).filter(|most| *most >= OTHERS_LEAST)?;
    Some(format!("others used up to {} of the CPU", percent(most)))
}

/// What starts of servers add to the scatter of pairs, where it is most of it.
fn between_starts(rate: &Relative) -> Option<f64> {
    let squares: Vec<f64> = rate.block_errors.iter().map(|error| error * error).collect();
    let within = (!squares.is_empty()).then(|| mean(&squares))?;
    let between = rate.sd_ln?.powi(2) - within;
    (between > within).then(|| between.sqrt())
}

/// Blocks that show half of the differences if they are as large as measured, or delta if that is
/// larger: the standard error falls with the root of the pairs.
fn blocks(comparison: &Comparison, open: &Open<'_>, pairs: usize) -> f64 {
    let needed = |rate: &Relative| {
        let wanted = rate.ratio.ln().abs().max(comparison.rules.delta);
        let factor = (rate.test()?.mde / wanted).powi(2);
        let pairs = rate.pairs as f64;
        Some((pairs * factor).max(pairs + 1.0)).filter(|needed| needed.is_finite())
    };
    let needed: Vec<f64> = open.iter().filter_map(|(_, _, rate)| needed(rate)).collect();
    median(&needed).unwrap_or(2.0 * pairs.max(1) as f64).ceil()
}

/// Seconds of a block: the median.
fn block_seconds(comparison: &Comparison) -> Option<f64> {
    let block = |run: &RunFacts| format!("{} {}", run.result_set, run.key.block);
    let seconds = |name: &String| {
        let runs = || comparison.runs.iter().filter(|run| block(run) == *name);
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let start = runs().filter_map(|run| time(&run.started)).min()?;
        let end = runs().filter_map(|run| time(run.finished.as_deref()?)).max()?;
        let time: Duration = end.duration_since(start).try_into().ok()?;
        Some(time.as_secs_f64())
    };
    let times: Vec<f64> =
        distinct_list(&comparison.runs, block).iter().filter_map(seconds).collect();
    median(&times)
}

/// A time in one unit.
fn about(seconds: f64) -> String {
    match seconds {
        short if short < 90.0 => format!("about {short:.0} s"),
        middle if middle < 5400.0 => format!("about {:.0} min", middle / 60.0),
        long => format!("about {:.0} h", long / 3600.0),
    }
}
