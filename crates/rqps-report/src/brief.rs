//! The answer in twenty lines: what a reader wants to know right after measuring, and what to do
//! next. The whole report stays one command away.

use std::time::Duration;

use jiff::Timestamp;

use super::document::{Cell, Column, Table};
use super::facts::distinct_list;
use super::form;
use rqps_analysis::Comparison;
use rqps_analysis::caveat::{Caveat, CaveatKind, percent};
use rqps_analysis::comparison::{Relative, RunFacts, StepComparison, TargetResult};
use rqps_analysis::counted::{FunctionComparison, TotalChange, is_counted};
use rqps_analysis::measurement::rate_unit;
use rqps_analysis::verdict::Explanation;
use rqps_model::escape;
use rqps_model::metric::Metric;
use rqps_model::units::counted;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;
use rqps_stats::summary::{mean, median};

/// The most lines.
const LINES: usize = 20;
/// The most rows of the table, and those that caveats leave it.
const ROWS: usize = 10;
const ROWS_LEAST: usize = 6;
/// The most caveats.
pub(super) const CAVEATS: usize = 3;

/// Where the answer appears.
#[derive(Clone, Copy, Debug)]
pub struct BriefPlace<'a> {
    /// Columns of the terminal.
    pub width: usize,
    /// The result folder as a word of a command; `None` if commands find it without.
    pub folder: Option<&'a str>,
    /// The path of the whole report.
    pub page: Option<&'a str>,
}

impl BriefPlace<'_> {
    /// A command on these results.
    fn command(&self, words: &str) -> String {
        match self.folder {
            Some(folder) => format!("rqps {words} {}", escape::shell(folder)),
            None => format!("rqps {words}"),
        }
    }
}

/// Renders the answer: at most twenty lines.
pub fn brief(comparison: &Comparison, place: &BriefPlace) -> String {
    let width = place.width.max(40);
    let wrapped = |prose: &str, most: usize| form::wrapped(prose, "  ", width, most);
    let rows = rows_of(comparison);
    let undecided = undecided_of(comparison);
    let mut head = wrapped(&sentence(comparison, &rows), 3);
    if !comparison.summary.about.is_empty() {
        head.extend(wrapped(&comparison.summary.about, 3));
    }
    let why = undecided.as_ref().map(|it| wrapped(&it.why, 3)).unwrap_or_default();
    let mut end: Vec<String> = next(comparison, &rows, place, undecided.as_ref());
    end.extend(place.page.map(|page| format!("Report: {page}")));
    // Names of steps and folders may be of somebody else. A path is not cut.
    end.iter_mut().for_each(|line| *line = escape::line(line).into_owned());
    // Two empty lines, the heads, and what is left out.
    let fixed = head.len() + why.len() + end.len() + 4;
    let (caveats, kinds) = decisive(comparison, undecided.is_some());
    let wanted = rows.len().min(ROWS_LEAST);
    let most = CAVEATS.min(LINES.saturating_sub(fixed + wanted).max(1));
    let shown = most.min(caveats.len());
    // What makes numbers incomparable stands before them.
    let (loud, caveats): (Vec<_>, Vec<_>) =
        caveats.into_iter().take(most).partition(|(kind, _)| kind.is_loud());
    let [loud, caveats] = [loud, caveats]
        .map(|of| of.iter().map(|(_, line)| form::fitted(line, width)).collect::<Vec<String>>());
    let room = LINES.saturating_sub(fixed + shown).min(ROWS).min(rows.len());

    let mut lines = head;
    lines.extend(loud);
    lines.push(String::new());
    lines.extend(rows_table(&rows[..room], width));
    let left_out: Vec<String> = [
        Some(format!("{} more", rows.len() - room)).filter(|_| room < rows.len()),
        Some(counted(kinds - shown, "further caveat")).filter(|_| shown < kinds),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !left_out.is_empty() {
        lines.push(format!("{}: {}", left_out.join(", "), place.command("report")));
    }
    if room > 0 {
        lines.push(String::new());
    }
    for part in [why, caveats, end] {
        lines.extend(part);
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The findings in one sentence.
fn sentence(comparison: &Comparison, rows: &[Row]) -> String {
    let baseline = &comparison.baseline;
    let labels: Vec<&str> = comparison.targets.iter().skip(1).map(|it| it.label.as_str()).collect();
    if labels.is_empty() {
        return format!("{baseline} alone: nothing to compare with.");
    }
    let labels = labels.join(", ");
    if is_counted(comparison) {
        let changes = [TotalChange::More, TotalChange::Fewer, TotalChange::Same];
        let changes: Vec<String> = changes
            .into_iter()
            .chain([TotalChange::Unclear])
            .filter_map(|change| number_of(change, rows))
            .collect();
        let all = counted(rows.len(), "count");
        return format!(
            "{labels} relative to {baseline}, instructions per operation: of {all} {}.",
            changes.join(", ")
        );
    }
    let sentence = &comparison.summary.sentence;
    match sentence.strip_prefix(&format!("{labels}: ")) {
        Some(rest) => format!("{labels} relative to {baseline}: {rest}"),
        None => format!("{sentence} Baseline: {baseline}."),
    }
}

/// `3 MORE (worst: scan 1.204)`; `None` for none.
fn number_of(change: TotalChange, rows: &[Row]) -> Option<String> {
    let mut found = rows.iter().filter(|row| row.verdict == change.word());
    let first = found.next()?;
    let count = 1 + found.count();
    let worst = match (change, count) {
        (TotalChange::More, 1) => format!(" ({} {})", first.step, first.number()),
        (TotalChange::More, _) => format!(" (worst: {} {})", first.step, first.number()),
        _ => String::new(),
    };
    Some(format!("{count} {}{worst}", change.word()))
}

/// Caveats that may overturn a verdict, the gravest first, one line for each kind; and the number
/// of all kinds. What a line on undecided steps tells is not told again.
pub(super) fn decisive(
    comparison: &Comparison,
    is_told: bool,
) -> (Vec<(CaveatKind, String)>, usize) {
    let mut kinds: Vec<(CaveatKind, Vec<&Caveat>)> = Vec::new();
    let told = [CaveatKind::ForeignLoad, CaveatKind::TooFewBlocks];
    let shown = comparison.caveats.iter().filter(|it| !is_told || !told.contains(&it.kind));
    for caveat in shown {
        match kinds.iter_mut().find(|(kind, _)| *kind == caveat.kind) {
            Some((_, all)) => all.push(caveat),
            None => kinds.push((caveat.kind, vec![caveat])),
        }
    }
    kinds.sort_by_key(|(kind, _)| *kind);
    let all = kinds.len();
    let line = |(kind, all): (CaveatKind, Vec<&Caveat>)| {
        let target = all[0].target.as_ref().filter(|_| all.len() == 1);
        let target = target.map(|it| format!("{it}: ")).unwrap_or_default();
        (kind, format!("! {}: {target}{}", kind.title(), all[0].text))
    };
    (kinds.into_iter().filter(|(kind, _)| kind.is_decisive()).map(line).collect(), all)
}

/// The command that helps most, and the one that decides what is undecided.
fn next(
    comparison: &Comparison,
    rows: &[Row],
    place: &BriefPlace,
    undecided: Option<&Undecided>,
) -> Vec<String> {
    let has = |kind| comparison.caveats.iter().any(|caveat| caveat.kind == kind);
    let mut commands = Vec::new();
    if has(CaveatKind::FailedRun) || has(CaveatKind::NeverMeasured) {
        commands.push(place.command("run --resume"));
    } else if let Some(row) = gravest(rows) {
        let step = place.command(&format!("explain --step {}", escape::shell(&row.step)));
        let fits = step.chars().count() + "Next: ".len() <= place.width;
        commands.push(if fits { step } else { place.command("explain") });
    }
    commands.extend(undecided.and_then(|it| it.command(place)));
    if commands.is_empty() {
        commands.push(place.command("report"));
    }
    let words = ["Next: ", "Or: "].into_iter().zip(commands);
    words.map(|(word, command)| format!("{word}{command}")).collect()
}

// The rows of the answer's table, the largest loss first.

/// The most characters of a label, and of a step.
const LABEL: usize = 18;
const STEP: usize = 28;
/// A narrower last column says nothing.
const WHY_LEAST: usize = 16;

/// One step of one target.
struct Row {
    /// Its place: demonstrated losses, what is undecided, what is the same, gains; then by ratio.
    rank: (u8, f64),
    pub(super) verdict: &'static str,
    /// The ratio with its interval; a single target has a rate.
    figure: String,
    pairs: Option<usize>,
    /// `None` if there is one target beside the baseline.
    target: Option<String>,
    pub(super) step: String,
    /// What moved with it, or why there is no verdict.
    why: String,
    /// True in a table of counts.
    is_count: bool,
}

impl Row {
    /// The ratio alone.
    pub(super) fn number(&self) -> &str {
        self.figure.split(' ').next().unwrap_or_default()
    }
}

/// The demonstrated difference that is worth the first look: the largest loss, else the largest.
fn gravest(rows: &[Row]) -> Option<&Row> {
    let changed = |row: &&Row| {
        let words =
            [Verdict::SlowerSmall, Verdict::Faster, Verdict::FasterSmall].map(Verdict::name);
        is_loss(row) || words.contains(&row.verdict) || row.verdict == TotalChange::Fewer.word()
    };
    let size = |row: &Row| row.rank.1.abs().ln().abs();
    rows.iter()
        .filter(changed)
        .max_by(|a, b| is_loss(a).cmp(&is_loss(b)).then(size(a).total_cmp(&size(b))))
}

fn is_loss(row: &Row) -> bool {
    [Verdict::Slower.name(), TotalChange::More.word()].contains(&row.verdict)
}

/// All rows in their order.
fn rows_of(comparison: &Comparison) -> Vec<Row> {
    let several = comparison.targets.len() > 2;
    let counted = is_counted(comparison);
    let first = usize::from(comparison.targets.len() > 1);
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for target in &step.targets[first.min(step.targets.len())..] {
            let row = match (first, counted) {
                (0, _) => alone(step, target, counted),
                (_, true) => count(step, target),
                (_, false) => rate(step, target),
            };
            let target = several.then(|| form::shortened(&target.label, LABEL));
            rows.extend(row.map(|row| Row { target, ..row }));
        }
    }
    rows.sort_by(|a, b| a.rank.0.cmp(&b.rank.0).then(a.rank.1.total_cmp(&b.rank.1)));
    rows
}

fn row(step: &StepComparison, rank: (u8, f64), verdict: &'static str, figure: String) -> Row {
    Row {
        rank,
        verdict,
        figure,
        pairs: None,
        target: None,
        step: step.name.clone(),
        why: String::new(),
        is_count: false,
    }
}

/// A target without another to compare with.
fn alone(step: &StepComparison, target: &TargetResult, counted: bool) -> Option<Row> {
    let metric = if counted { Metric::InstructionsPerOp } else { Metric::Rate };
    let number = target.absolute(metric)?;
    let digits = if number < 100.0 { 1 } else { 0 };
    let unit = if counted { "instructions/o" } else { rate_unit(step.rate) };
    Some(row(step, (0, 0.0), "", format!("{number:.digits$} {unit}")))
}

fn rate(step: &StepComparison, target: &TargetResult) -> Option<Row> {
    let Some(relative) = target.relative(Metric::Rate) else {
        let failed = target.samples.is_empty() && !target.failures.is_empty();
        return failed.then(|| row(step, (0, 0.0), "FAILED", String::new()));
    };
    let judgement = relative.judgement.as_ref()?;
    let rank = match judgement.verdict {
        Verdict::Slower | Verdict::SlowerSmall => 0,
        Verdict::Inconclusive | Verdict::NoVerdict => 1,
        Verdict::Same => 2,
        Verdict::Faster | Verdict::FasterSmall => 3,
    };
    let why = match judgement.verdict {
        Verdict::NoVerdict => judgement.reasons.join("; "),
        Verdict::Inconclusive => String::new(),
        _ => target.explanations.first().map(cost).unwrap_or_default(),
    };
    let figure = figure(relative.ratio, relative.shown_interval(), 3);
    let row = row(step, (rank, relative.ratio), judgement.verdict.name(), figure);
    Some(Row { pairs: Some(relative.pairs), why, ..row })
}

/// `server CPU x2.34`.
fn cost(cost: &Explanation) -> String {
    let name = match cost.metric {
        Metric::ServerCpuPerOp => "server CPU",
        Metric::ClientCpuPerOp => "client CPU",
        other => other.name(),
    };
    let detail: String = cost.detail.iter().map(|detail| format!(" ({detail})")).collect();
    let digits = if cost.ratio < 10.0 { 2 } else { 0 };
    format!("{name} x{:.digits$}{detail}", cost.ratio)
}

fn count(step: &StepComparison, target: &TargetResult) -> Option<Row> {
    let relative: &Relative = target.comparable(Metric::InstructionsPerOp)?;
    let change = TotalChange::of(relative);
    let rank = match change {
        TotalChange::More => 0,
        TotalChange::Unclear => 1,
        TotalChange::Same => 2,
        TotalChange::Fewer => 3,
    };
    let functions = target.counted.as_ref().and_then(|counted| counted.functions.as_ref());
    let changed = functions.and_then(FunctionComparison::leading).filter(|_| rank != 2);
    let why =
        changed.map(|one| format!("{} {:+.0}", form::shortened(&one.name, STEP), one.difference()));
    let figure = figure(relative.ratio, relative.interval, 4);
    let row = row(step, (rank, -relative.ratio), change.word(), figure);
    let pairs = Some(relative.pairs);
    Some(Row { pairs, why: why.unwrap_or_default(), is_count: true, ..row })
}

/// `0.438 [0.427, 0.449]`. What an interval cannot tell within three digits has no digits.
fn figure(ratio: f64, interval: Option<Interval>, digits: usize) -> String {
    let number = |number: f64| match number {
        huge if huge >= 1000.0 => ">999".to_owned(),
        tiny if tiny > 0.0 && tiny < 0.0005 => "<0.001".to_owned(),
        usual => format!("{usual:.digits$}"),
    };
    match interval {
        Some(it) => format!("{} [{}, {}]", number(ratio), number(it.low), number(it.high)),
        None => number(ratio),
    }
}

/// The lines of a table of these rows.
fn rows_table(rows: &[Row], width: usize) -> Vec<String> {
    let Some(first) = rows.first() else { return Vec::new() };
    let is_alone = first.verdict.is_empty();
    let has_targets = first.target.is_some();
    let has_whys = rows.iter().any(|row| !row.why.is_empty());
    let mut columns = Vec::new();
    if !is_alone {
        columns.push(Column::words(if first.is_count { "change" } else { "verdict" }));
    }
    columns.push(match (is_alone, first.is_count) {
        (true, _) => Column::numbers("rate"),
        (false, true) => Column::numbers("ratio [95 % interval]"),
        (false, false) => Column::numbers("rate [95 % interval]"),
    });
    if !is_alone {
        columns.push(Column::numbers("n"));
    }
    if has_targets {
        columns.push(Column::words("target"));
    }
    columns.push(Column::words("step"));
    if has_whys {
        columns.push(Column::words(if first.is_count { "function" } else { "why" }));
    }
    let cells = |row: &Row| {
        let mut cells = Vec::new();
        if !is_alone {
            cells.push(row.verdict.to_owned());
        }
        cells.push(row.figure.clone());
        if !is_alone {
            cells.push(row.pairs.map_or_else(String::new, |pairs| pairs.to_string()));
        }
        cells.extend(row.target.clone());
        cells.push(form::shortened(&row.step, STEP));
        if has_whys {
            cells.push(row.why.clone());
        }
        cells.into_iter().map(Cell::text).collect()
    };
    let mut table = Table::new("", columns, rows.iter().map(cells).collect());
    let mut lines = form::table_lines(&table, None);
    let room = |lines: &[String]| {
        let why = lines.first().and_then(|head| head.rfind("  ")).unwrap_or(0) + 2;
        width.saturating_sub(why)
    };
    if has_whys && room(&lines) < WHY_LEAST {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
        lines = form::table_lines(&table, None);
    }
    lines.iter().map(|line| form::fitted(line, width)).collect()
}

// What keeps rates undecided, and what it would take to decide them.

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
fn undecided_of(comparison: &Comparison) -> Option<Undecided> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_has_the_first_look() {
        let check = |rows: &[(&'static str, f64)], expected: Option<f64>| {
            let row = |&(verdict, ratio): &(&'static str, f64)| Row {
                rank: (0, ratio),
                verdict,
                figure: String::new(),
                pairs: None,
                target: None,
                step: String::new(),
                why: String::new(),
                is_count: false,
            };
            let rows: Vec<Row> = rows.iter().map(row).collect();
            assert_eq!(gravest(&rows).map(|row| row.rank.1), expected, "{expected:?}");
        };
        check(&[("FASTER-SMALL", 1.012), ("FASTER", 1.3), ("FASTER", 1.9)], Some(1.9));
        check(&[("SLOWER-SMALL", 0.985), ("FASTER", 1.9)], Some(1.9));
        check(&[("SLOWER", 0.9), ("SLOWER", 0.7), ("FASTER", 1.9)], Some(0.7));
        check(&[("MORE", -1.1), ("FEWER", -0.5)], Some(-1.1));
        check(&[("SAME", 1.0), ("FEWER", -0.5)], Some(-0.5));
        check(&[("INCONCLUSIVE", 0.5)], None);
    }
}
