//! Histories over time as a document, as a flat table, and as JSON.

use super::document::{Block, Cell, Column, Digits, Document, Section, Table};
use super::flat::quoted;
use super::json::versioned;
use rqps_analysis::history::{DateHistory, HostChange, StepDates};
use rqps_model::units::counted;

/// Version of the JSON form; it grows when a reader would have to change.
pub const DATES_SCHEMA: u32 = 1;

/// The document of histories: changes, and the present level of each step.
pub fn dates_document(histories: &[DateHistory]) -> Document {
    let labels: Vec<&str> = histories.iter().map(|history| history.label.as_str()).collect();
    let mut sections: Vec<Section> = Vec::new();
    for history in histories {
        sections.push(changes(history));
        sections.push(levels(history));
    }
    sections.push(how_to_read());
    Document { title: format!("rqps history by date: {}", labels.join(", ")), sections }
}

fn changes(history: &DateHistory) -> Section {
    let of_steps =
        history.steps.iter().flat_map(|step| step.changes.iter().map(move |it| (step, it)));
    let mut all: Vec<_> = of_steps.collect();
    all.sort_by(|(a, one), (b, other)| {
        let date = |step: &StepDates, at: usize| step.points.get(at).map(|it| it.date.clone());
        date(b, other.at).cmp(&date(a, one.at)).then(a.step.cmp(&b.step))
    });
    let points = history.steps.iter().map(|step| step.points.len()).max().unwrap_or(0);
    let text = format!(
        "{} in {}; up to {}, on the host {}.",
        counted(all.len(), "change"),
        counted(history.steps.len(), "step"),
        counted(points, "result set"),
        history.host
    );
    let columns = vec![
        Column::words("since"),
        Column::words("result set"),
        Column::numbers("new / old level"),
        Column::numbers("p"),
        Column::of_row("step"),
    ];
    let rows = all.iter().map(|(step, change)| {
        let point = step.points.get(change.at);
        vec![
            Cell::text(point.map_or("", |point| point.date.as_str())),
            Cell::text(point.map_or("", |point| point.result_set.as_str())),
            Cell::number(change.ratio, Digits::Fixed(3), "ratio"),
            Cell::text(format!("{:.1e}", change.p)),
            Cell::text(step.step.clone()),
        ]
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    let mut blocks = vec![Block::Paragraph(text)];
    if !history.host_changes.is_empty() {
        blocks.push(Block::List(history.host_changes.iter().map(host_change).collect()));
    }
    if !all.is_empty() {
        blocks.push(Block::Table(table));
    }
    let heading = format!("Changes of {}: {}, the newest first", history.metric, history.label);
    Section { id: "changes", heading, blocks }
}

fn host_change(change: &HostChange) -> String {
    let HostChange { date, before, after, differs } = change;
    format!("{date}: the host changes from {before} to {after}: {differs}")
}

fn levels(history: &DateHistory) -> Section {
    let columns = vec![
        Column::of_row("step"),
        Column::numbers("points"),
        Column::numbers("first level"),
        Column::numbers("present level"),
        Column::numbers("present / first"),
        Column::words("since"),
    ];
    let rows = history.steps.iter().map(|step| {
        let [first, last] = [step.first_level(), step.present_level()];
        let since = step.changes.last().map_or(0, |change| change.at);
        let digits = Digits::Significant(4);
        vec![
            Cell::text(step.step.clone()),
            Cell::number(step.points.len() as f64, Digits::Fixed(0), ""),
            Cell::number(first, digits, ""),
            Cell::number(last, digits, ""),
            Cell::number(last / first, Digits::Fixed(3), "ratio"),
            Cell::text(step.points.get(since).map_or("", |point| point.date.as_str())),
        ]
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    let heading = format!("Levels of {}: {}", history.metric, history.label);
    Section { id: "levels", heading, blocks: vec![Block::Table(table)] }
}

fn how_to_read() -> Section {
    let lines = [
        "A point is the geometric mean of all values of a result set. Points of another host are \
         another history, unless --same-host takes all for one.",
        "Changes are found by E-divisive means with Student's t test, as in Hunter and Apache \
         Otava (docs/history.md). A level is the mean of the points between two changes.",
    ];
    Section::how_to_read("reading", lines.map(str::to_owned).to_vec())
}

/// One row for each point of each step, with a head line.
pub fn dates_csv(histories: &[DateHistory]) -> String {
    let mut text = "label,host,metric,step,date,result_set,value,n,change,p\n".to_owned();
    for history in histories {
        for step in &history.steps {
            for (at, point) in step.points.iter().enumerate() {
                let change = step.changes.iter().find(|change| change.at == at);
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let cells = [
                    quoted(&history.label),
                    quoted(&history.host),
                    quoted(&history.metric),
                    quoted(&step.step),
                    quoted(&point.date),
                    quoted(&point.result_set),
                    point.value.to_string(),
                    point.n.to_string(),
                    number(change.map(|change| change.ratio)),
                    number(change.map(|change| change.p)),
                ];
                text.push_str(&cells.join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// The histories with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn dates_json(histories: &[DateHistory]) -> serde_json::Result<String> {
    versioned(DATES_SCHEMA, "histories", histories)
}
