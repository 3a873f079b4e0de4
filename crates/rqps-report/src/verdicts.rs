//! The verdict sections: the summary sentence, the lists, and the rule with its figures.

use super::document::{Block, Cell, Column, Digits, Section, Table, numbers, words};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{Relative, StepComparison, TargetResult};
use rqps_analysis::verdict::{
    Explanation, Judgement, TOLD_TOGETHER, TargetVerdicts, VerdictCounts,
};
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};

/// The findings, what they are about and their limits, a sentence each; empty for a baseline alone.
pub(super) fn headline(comparison: &Comparison) -> Option<Section> {
    let summary = &comparison.summary;
    let sentences = [&summary.sentence, &summary.about, &summary.limit];
    let blocks: Vec<Block> = sentences
        .into_iter()
        .filter(|sentence| !sentence.is_empty())
        .map(|sentence| Block::Paragraph(sentence.clone()))
        .collect();
    (!blocks.is_empty()).then(|| Section::new("verdict", "", blocks))
}

/// The summary of all verdicts; empty for a baseline alone.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let summary = &comparison.summary;
    if summary.targets.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    if summary.targets.len() > 1 {
        let points = summary.targets.iter().map(|t| format!("{}: {}", t.label, t.sentence));
        blocks.push(Block::List(points.collect()));
    }
    let means: Vec<String> = summary.targets.iter().filter_map(suite).collect();
    if !means.is_empty() {
        blocks.push(Block::List(means));
    }
    for (index, target) in summary.targets.iter().enumerate() {
        blocks.extend(differences(comparison, index + 1, &target.label).map(Block::Table));
        blocks.extend(open(comparison, index + 1, &target.label));
    }
    blocks.push(Block::Table(counts(&summary.targets)));
    blocks.push(Block::Paragraph(rule(comparison)));
    Some(Section::new("verdicts", "Verdicts", blocks))
}

/// The geometric mean over the suite, as text. `None` for one step, whose ratio it would repeat.
fn suite(target: &TargetVerdicts) -> Option<String> {
    let mean = target.geomean.as_ref().filter(|mean| mean.steps > 1)?;
    let interval = mean.interval.map(|interval| format!(" {interval}")).unwrap_or_default();
    Some(format!(
        "{}: geometric mean of rQPS {:.3}{interval} over these {} steps",
        target.label, mean.ratio, mean.steps
    ))
}

type Judged<'a> = (&'a StepComparison, &'a TargetResult, &'a Relative, &'a Judgement);

fn judged(comparison: &Comparison, target: usize) -> impl Iterator<Item = Judged<'_>> {
    comparison.steps.iter().filter_map(move |step| {
        let target = &step.targets[target];
        let relative = target.relative(Metric::Rate)?;
        Some((step, target, relative, relative.judgement.as_ref()?))
    })
}

/// A ratio with the interval of its verdict.
pub(super) fn ratio(relative: &Relative) -> Cell {
    Cell::number(relative.ratio, Digits::Fixed(3), "ratio").within(relative.shown_interval())
}

/// Steps with a demonstrated difference, the largest loss first, with associated costs.
pub(super) fn differences(comparison: &Comparison, target: usize, label: &str) -> Option<Table> {
    let mut found: Vec<Judged<'_>> = judged(comparison, target)
        .filter(|(_, _, _, judgement)| judgement.verdict < Verdict::Same)
        .collect();
    found.sort_by(|a, b| {
        (a.3.verdict.is_better(), a.3.verdict)
            .cmp(&(b.3.verdict.is_better(), b.3.verdict))
            .then(a.2.ratio.total_cmp(&b.2.ratio))
    });
    let another = |relative: &Relative| relative.test().and_then(|test| test.another_sitting);
    let has_other = found.iter().any(|(_, _, relative, _)| another(relative).is_some());
    let shrunken = |relative: &Relative| relative.test().and_then(|test| test.shrunken);
    let has_shrunken = found.iter().any(|(_, _, relative, _)| shrunken(relative).is_some());
    let rows = found.into_iter().map(|(step, target, relative, judgement)| {
        let test = judgement.test.as_ref();
        let told = shrunken(relative);
        let told = has_shrunken.then(|| {
            let ratio =
                Cell::number_or(told.map(|it| it.ratio), Digits::Fixed(3), "ratio", "no test");
            let p_loss = Cell::probability(told.map(|it| it.p_loss), "no test");
            let ratio = ratio.within(told.map(|it| it.interval));
            [numbers("shrunken", ratio), numbers("P(loss>delta)", p_loss)]
        });
        let other = has_other.then(|| {
            let interval = another(relative).map(|interval| interval.to_string());
            let cell = Cell::text_or(interval, "the ledger has nothing of such steps");
            words("another sitting", cell)
        });
        let costs = explained(&target.explanations, &judgement.reasons);
        let rest = [
            numbers("n", Cell::number(relative.pairs as f64, Digits::Fixed(0), "")),
            numbers("q(tau)", Cell::probability(test.map(|test| test.q_treat), "no test")),
            numbers("q(0)", Cell::probability(test.map(|test| test.q_zero), "no test")),
            words("step", Cell::text(step.name.clone())),
            words("associated costs", Cell::text(costs)),
        ];
        let verdict = words("verdict", Cell::text(judgement.verdict.name()));
        let first = [verdict, numbers("rQPS", ratio(relative))];
        first.into_iter().chain(other).chain(told.into_iter().flatten()).chain(rest)
    });
    Table::of(format!("{label}: steps with a demonstrated difference"), rows)
}

/// Steps without a clear verdict, with MDE and sample size. Steps without a test and with the same
/// reason share a line.
pub(super) fn open(comparison: &Comparison, target: usize, label: &str) -> Vec<Block> {
    let all = judged(comparison, target).count();
    let mut found: Vec<Judged<'_>> = judged(comparison, target)
        .filter(|(_, _, _, judgement)| judgement.verdict > Verdict::Same)
        .collect();
    let mut reasons: Vec<(&[String], usize)> = Vec::new();
    for (_, _, _, judgement) in found.iter().filter(|(.., judgement)| judgement.test.is_none()) {
        match reasons.iter_mut().find(|(reasons, _)| *reasons == judgement.reasons) {
            Some((_, steps)) => *steps += 1,
            None => reasons.push((&judgement.reasons, 1)),
        }
    }
    reasons.retain(|(_, steps)| *steps >= TOLD_TOGETHER);
    let lines: Vec<String> = reasons
        .iter()
        .map(|(reasons, steps)| {
            let of = if *steps == all { format!("all {all}") } else { format!("{steps} of {all}") };
            format!("{label}: NO VERDICT on {of} steps: {}", reasons.join("; "))
        })
        .collect();
    let told = |judgement: &Judgement| reasons.iter().any(|(told, _)| *told == judgement.reasons);
    found.retain(|(.., judgement)| judgement.test.is_some() || !told(judgement));
    let lines = (!lines.is_empty()).then_some(Block::List(lines));
    lines.into_iter().chain(open_table(&found, label).map(Block::Table)).collect()
}

fn open_table(found: &[Judged<'_>], label: &str) -> Option<Table> {
    let rows = found.iter().map(|(step, _, relative, judgement)| {
        let mde = judgement.test.as_ref().map(|test| format!("{:.1} %", 100.0 * test.mde));
        let needed = judgement.pairs_needed.map(f64::from);
        let unsure = "no sample size is sure to decide it";
        [
            words("verdict", Cell::text(judgement.verdict.name())),
            numbers("rQPS", ratio(relative)),
            numbers("n", Cell::number(relative.pairs as f64, Digits::Fixed(0), "")),
            numbers("MDE", Cell::text_or(mde, "no test")),
            numbers("sample size", Cell::number_or(needed, Digits::Fixed(0), "pairs", unsure)),
            words("step", Cell::text(step.name.clone())),
            words("why", Cell::text(judgement.reasons.join("; "))),
        ]
    });
    Table::of(format!("{label}: steps without a demonstrated difference"), rows)
}

/// `server_cpu_us/o x1.09 [1.07, 1.11]`, and notes on the verdict.
pub(super) fn explained(explanations: &[Explanation], reasons: &[String]) -> String {
    let costs = explanations.iter().map(|explanation| {
        let Explanation { metric, ratio, interval, detail, .. } = explanation;
        let detail: String = detail.iter().map(|detail| format!(" ({detail})")).collect();
        format!("{} x{ratio:.2} {interval:.2}{detail}", metric.name())
    });
    let costs = costs.collect::<Vec<_>>().join(", ");
    let doubts = reasons.iter().cloned();
    let parts = std::iter::once(costs).chain(doubts).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

/// The number of each verdict, by target and metric.
pub(super) fn counts(targets: &[TargetVerdicts]) -> Table {
    let mut columns: Vec<Column> = [
        "SLOWER/WORSE", "FASTER/BETTER", "SLOWER-SMALL", "FASTER-SMALL", "SAME", "INCONCLUSIVE",
        "NO VERDICT",
    ]
    .into_iter()
    .map(Column::numbers)
    .collect();
    columns.push(Column::words("metric"));
    columns.push(Column::words("target"));
    let mut rows = Vec::new();
    for target in targets {
        for (metric, facts) in &target.metrics {
            let tested = facts.counts.no_verdict < facts.counts.total();
            let beside = metric.spec().counted && tested;
            if *metric == Metric::Rate || beside {
                let mut row = count_cells(facts.counts);
                row.push(Cell::text(metric.name()));
                row.push(Cell::text(target.label.clone()));
                rows.push(row);
            }
        }
    }
    Table::new("Steps by verdict", columns, rows)
}

fn count_cells(counts: VerdictCounts) -> Vec<Cell> {
    let cell = |verdict| Cell::number(counts.of(verdict) as f64, Digits::Fixed(0), "steps");
    Verdict::ALL.into_iter().map(cell).collect()
}

/// The rule as text, with the figures in force.
pub(super) fn rule(comparison: &Comparison) -> String {
    let Rules { delta, q, power, equivalence_alpha, .. } = comparison.rules;
    let rules = &comparison.rules;
    let schedule = comparison.schedule.map_or_else(String::new, |schedule| {
        format!(
            " Interim looks at {} to {} pairs; error rates are corrected for all looks.",
            schedule.blocks_min, schedule.blocks_max
        )
    });
    format!(
        "Rule: {}. SLOWER or FASTER: the difference is shown to exceed {} %, an eighth of delta, \
         with code layout (tau is two standard deviations of it) among the errors (q(tau) <= {q}: \
         the moderated t, adjusted over the steps of one target and metric by \
         Benjamini-Hochberg), and it is not shown to be within delta. -SMALL: the difference is \
         not 0 (q(0) <= {q}), but layout may explain it, or it is within delta. SAME: the {:.0} % interval lies within delta. INCONCLUSIVE: none \
         of these; MDE is the smallest difference that these pairs find as SLOWER or FASTER with \
         {:.0} % power if no other step differs, sample \
         size the number of pairs that detect delta. NO VERDICT: no data to judge, or a verdict \
         that does not hold with the host's noise. Other metrics use WORSE and BETTER for SLOWER \
         and FASTER. See docs/verdicts.md.{schedule}",
        rules.text(),
        100.0 * delta / 8.0,
        100.0 * (1.0 - 2.0 * equivalence_alpha),
        100.0 * power,
    )
}
