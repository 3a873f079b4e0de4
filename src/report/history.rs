//! Ladders as a document, as a flat table, and as JSON.

use std::collections::BTreeSet;

use super::document::{Block, Cell, Column, Digits, Document, Mark, Section, Table};
use super::flat::quoted;
use super::json::versioned;
use crate::analyze::history::{Ladder, LevelChange, StepLadder, VersionPoint};

/// Version of the JSON form; it grows when a reader would have to change.
pub const HISTORY_SCHEMA: u32 = 1;

const OUTLIER: Mark =
    Mark { sign: "*", colour: "#D7D7D7", meaning: "off by itself: its neighbours share a level" };
const CHANGED: Mark = Mark { sign: "!", colour: "#E0C060", meaning: "a new level begins here" };
const STEADY: Mark = Mark { sign: " ", colour: "inherit", meaning: "" };

/// The document of ladders: what changed where, and all points.
pub fn history_document(ladders: &[Ladder]) -> Document {
    let labels: Vec<String> = ladders
        .iter()
        .map(|ladder| format!("{} ({} versions)", ladder.family, ladder.rungs.len()))
        .collect();
    let mut sections = Vec::new();
    for ladder in ladders {
        sections.push(changes(ladder));
        sections.push(points(ladder));
    }
    sections.push(how_to_read());
    Document { title: format!("rqps history: {}", labels.join("; ")), sections }
}

fn changes(ladder: &Ladder) -> Section {
    let mut blocks = vec![Block::Paragraph(found(ladder))];
    let of_steps = ladder.steps.iter().flat_map(|step| step.changes.iter().map(move |c| (step, c)));
    let mut all: Vec<(&StepLadder, &LevelChange)> = of_steps.collect();
    // By version, the largest change first: what a release did stands together.
    let size = |change: &LevelChange| change.ratio.ln().abs();
    all.sort_by(|(_, a), (_, b)| a.at.cmp(&b.at).then(size(b).total_cmp(&size(a))));
    let rows: Vec<Vec<Cell>> =
        all.iter().map(|(step, change)| change_row(ladder, step, change)).collect();
    if !rows.is_empty() {
        blocks.push(Block::List(releases(ladder, &all)));
        let columns = vec![
            Column::words("since"),
            Column::words("after"),
            Column::numbers("new / old level"),
            Column::of_row("step"),
        ];
        blocks.push(Block::Table(Table { caption: String::new(), columns, rows }));
    }
    if ladder.chains.len() > 1 {
        blocks.push(Block::Paragraph(along_branches(ladder)));
    }
    if !ladder.broken.is_empty() {
        let labels = ladder.broken.join(", ");
        blocks.push(Block::Paragraph(format!("Left out, all values are 0: {labels}.")));
    }
    if !ladder.by_version {
        let text = "The order is that of the plan or of --order: not every version is known.";
        blocks.push(Block::Paragraph(text.to_owned()));
    }
    let heading = format!("Changes of {}: {}", ladder.metric, ladder.family);
    Section { id: "changes", heading, blocks }
}

fn found(ladder: &Ladder) -> String {
    let count: usize = ladder.steps.iter().map(|step| step.changes.len()).sum();
    let with = ladder.steps.iter().filter(|step| !step.changes.is_empty()).count();
    let outliers = |step: &StepLadder| step.points.iter().flatten().filter(|p| p.outlier).count();
    let out: usize = ladder.steps.iter().map(outliers).sum();
    let first = ladder.rungs.first().map_or("", |rung| rung.name());
    let last = ladder.rungs.last().map_or("", |rung| rung.name());
    let plural = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    format!(
        "From {first} to {last}: {} in {with} of {}; {}.",
        plural(count, "change"),
        plural(ladder.steps.len(), "step"),
        plural(out, "outlier")
    )
}

fn along_branches(ladder: &Ladder) -> String {
    let name = |at: &usize| ladder.rungs[*at].name();
    let trunk: Vec<&str> = ladder.chains[0].iter().map(name).collect();
    let ends = |chain: &Vec<usize>| match (chain.first(), chain.last()) {
        (Some(first), Some(last)) => format!("{} … {}", name(first), name(last)),
        _ => String::new(),
    };
    let branches: Vec<String> = ladder.chains[1..].iter().map(ends).collect();
    format!(
        "Changes are those along the first versions of the branches ({}) and along the branches \
         {}.",
        trunk.join(", "),
        branches.join(", ")
    )
}

/// A line for each version that changed steps, the oldest first.
fn releases(ladder: &Ladder, changes: &[(&StepLadder, &LevelChange)]) -> Vec<String> {
    let lines = changes.chunk_by(|(_, a), (_, b)| a.at == b.at).map(|same| {
        let ratios: Vec<f64> = same.iter().map(|(_, change)| change.ratio).collect();
        let range = |of: fn(f64) -> bool| {
            let some: Vec<f64> = ratios.iter().copied().filter(|ratio| of(*ratio)).collect();
            let least = some.iter().copied().fold(f64::INFINITY, f64::min);
            let most = some.iter().copied().fold(0.0, f64::max);
            match some.len() {
                0 => None,
                1 => Some(format!("1 step to {least:.2}")),
                count => Some(format!("{count} steps to {least:.2} … {most:.2}")),
            }
        };
        let down = range(|ratio| ratio < 1.0);
        let up = range(|ratio| ratio >= 1.0);
        let parts: Vec<String> = [down, up].into_iter().flatten().collect();
        format!("{}: {}", ladder.rungs[same[0].1.at].name(), parts.join("; "))
    });
    lines.collect()
}

fn change_row(ladder: &Ladder, step: &StepLadder, change: &LevelChange) -> Vec<Cell> {
    let ratio = Cell::number(change.ratio, Digits::Fixed(3), "ratio");
    vec![
        Cell::text(ladder.rungs[change.at].name()),
        Cell::text(ladder.rungs[change.after].name()),
        ratio.within(Some(change.interval)),
        Cell::text(step.step.clone()),
    ]
}

fn points(ladder: &Ladder) -> Section {
    let mut columns = vec![Column::of_row("step")];
    columns.extend((1..=ladder.rungs.len()).map(|place| Column::numbers(format!("v{place}"))));
    let remarks = ladder.steps.iter().any(|step| !step.remarks.is_empty());
    if remarks {
        columns.push(Column::words("author's remark"));
    }
    let rows = ladder.steps.iter().map(|step| {
        let changed = |at: usize| step.changes.iter().any(|change| change.at == at);
        let cells = step.points.iter().enumerate().map(|(at, point)| match point {
            None => Cell::missing("not measured"),
            Some(point) => point_cell(point, changed(at)),
        });
        let remark = remarks.then(|| Cell::text(step.remarks.join("; ")));
        std::iter::once(Cell::text(step.step.clone())).chain(cells).chain(remark).collect()
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    let configs: BTreeSet<&str> = ladder.rungs.iter().map(|rung| rung.config.as_str()).collect();
    let legend = ladder.rungs.iter().enumerate().map(|(place, rung)| {
        let version = rung.version.iter().map(|version| format!("version {version}"));
        let config = (configs.len() > 1).then(|| format!("config {}", rung.config));
        let facts: Vec<String> = version.chain(config).collect();
        match facts.as_slice() {
            [] => format!("v{}: {}", place + 1, rung.label),
            facts => format!("v{}: {} ({})", place + 1, rung.label, facts.join(", ")),
        }
    });
    let heading = format!("{} relative to v1: {}", ladder.metric, ladder.family);
    let blocks = vec![Block::List(legend.collect()), Block::Table(table)];
    Section { id: "ladder", heading, blocks }
}

fn point_cell(point: &VersionPoint, changed: bool) -> Cell {
    let mark = match (point.outlier, changed) {
        (true, _) => OUTLIER,
        (false, true) => CHANGED,
        (false, false) => STEADY,
    };
    // No interval in the cell: thirty narrow columns must fit a screen. CSV and JSON have it.
    Cell::number(point.ratio, Digits::Fixed(2), "ratio").marked(Some(mark))
}

fn how_to_read() -> Section {
    let lines = [
        "v1, v2, … are versions in their order; the table shows each relative to v1. ! a new level \
         begins; * an outlier: this version alone is off, its neighbours share a level.",
        "rqps divides the versions of a step into levels by optimal partitioning: it minimises the \
         weighted squares around the levels plus 3 ln V for each change, with V versions. The \
         weight of a version is 1 / (s²/n + layout²): s is the scatter of a value, moderated over \
         the steps, n its values.",
        "layout is what another link order of the same code may give: tau / (2 √2). It stands for \
         one build.",
        "With one value per version, s follows from the differences of neighbouring versions; that \
         is a rough estimate.",
        "[low, high] is the 95 % interval of new / old level. It does not contain that the data \
         chose the place of the change.",
    ];
    let list = lines.into_iter().map(str::to_owned).collect();
    let heading = "How to read this".to_owned();
    Section { id: "reading", heading, blocks: vec![Block::List(list)] }
}

/// One row for each version of each step, with a head line.
pub fn history_csv(ladders: &[Ladder]) -> String {
    let mut text =
        "family,metric,step,place,label,version,ratio,low,high,n,level,outlier,change\n".to_owned();
    for ladder in ladders {
        for step in &ladder.steps {
            for (at, (rung, point)) in ladder.rungs.iter().zip(&step.points).enumerate() {
                let Some(point) = point else { continue };
                let change = step.changes.iter().find(|change| change.at == at);
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let cells = [
                    quoted(&ladder.family),
                    quoted(&ladder.metric),
                    quoted(&step.step),
                    (at + 1).to_string(),
                    quoted(&rung.label),
                    quoted(rung.version.as_deref().unwrap_or_default()),
                    point.ratio.to_string(),
                    number(point.interval.map(|interval| interval.low)),
                    number(point.interval.map(|interval| interval.high)),
                    point.n.to_string(),
                    point.level.to_string(),
                    u8::from(point.outlier).to_string(),
                    number(change.map(|change| change.ratio)),
                ];
                text.push_str(&cells.join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// The ladders with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn history_json(ladders: &[Ladder]) -> serde_json::Result<String> {
    versioned(HISTORY_SCHEMA, "ladders", ladders)
}
