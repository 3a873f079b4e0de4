//! The answer in twenty lines: what a reader wants to know right after measuring, and what to do
//! next. The whole report stays one command away.

mod rows;
mod undecided;

use rqps_analysis::Comparison;
use rqps_analysis::caveat::{Caveat, CaveatKind};
use rqps_analysis::counted::{TotalChange, is_counted};
use rqps_model::escape;
use rqps_model::units::counted;

use crate::text;
use rows::Row;
use undecided::Undecided;

/// The most lines.
const LINES: usize = 20;
/// The most rows of the table, and those that caveats leave it.
const ROWS: usize = 10;
const ROWS_LEAST: usize = 6;
/// The most caveats.
const CAVEATS: usize = 3;

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
    let wrapped = |prose: &str, most: usize| text::wrapped(prose, "  ", width, most);
    let rows = rows::of(comparison);
    let undecided = undecided::of(comparison);
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
    let caveats: Vec<String> = caveats
        .iter()
        .take(CAVEATS.min(LINES.saturating_sub(fixed + wanted).max(1)))
        .map(|line| text::fitted(line, width))
        .collect();
    let room = LINES.saturating_sub(fixed + caveats.len()).min(ROWS).min(rows.len());

    let mut lines = head;
    lines.push(String::new());
    lines.extend(rows::table(&rows[..room], width));
    let left_out: Vec<String> = [
        Some(format!("{} more", rows.len() - room)).filter(|_| room < rows.len()),
        Some(counted(kinds - caveats.len(), "further caveat")).filter(|_| caveats.len() < kinds),
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
fn decisive(comparison: &Comparison, is_told: bool) -> (Vec<String>, usize) {
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
        format!("! {}: {target}{}", kind.title(), all[0].text)
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
    } else if let Some(row) = rows::gravest(rows) {
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
