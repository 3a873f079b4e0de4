//! The forms of a report: text, Markdown, JSON.

use std::io::{self, BufWriter, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::build::{self, ReportOptions, Sections};
use super::document::{Block, Cell, Column, Digits, Document, Section, Table};
use super::{export, facts, tables, verdicts};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetFacts;
use rqps_model::build::Config;
use rqps_model::escape;
use rqps_model::metric::Metric;

/// Forms of a report that need only a comparison; [`crate::html::render`] needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For reading and for pasting into a bug report.
    Text,
    /// Sections of tab-separated rows; the first has the layout of published files of relative
    /// rates, byte for byte.
    Tsv,
    /// One long table: a row for each metric of each step of each run.
    Csv,
    /// The whole comparison, with a schema version.
    Json,
    /// For a bug report or a comment.
    Markdown,
    /// Markdown in the order of a published post.
    Post,
}

impl Format {
    /// All forms, in the order of help texts.
    pub const ALL: [Format; 6] =
        [Format::Text, Format::Tsv, Format::Csv, Format::Json, Format::Markdown, Format::Post];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
            Format::Post => "post",
        }
    }
}

/// Renders the report in one form, with the sections of `own` benchmarks. The text ends with a line
/// end.
pub fn render(comparison: &Comparison, format: Format, own: &[&Sections]) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and every form consists of text and plain values.
    let _ = write(comparison, format, own, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Streams the report, because forms with rows for each step of each run are longer than a large
/// comparison itself.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(
    comparison: &Comparison,
    format: Format,
    own: &[&Sections],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Text => {
            let document = build::document(comparison, &ReportOptions::default(), own);
            out.write_all(render_text(&document, None).as_bytes())?;
        }
        Format::Tsv => out.write_all(export::tsv(comparison).as_bytes())?,
        Format::Csv => export::write_csv(comparison, &mut out)?,
        Format::Json => write_json(comparison, &mut out)?,
        Format::Markdown => {
            let document = build::bug_report(comparison, own);
            out.write_all(render_markdown(&document).as_bytes())?;
        }
        Format::Post => out.write_all(post(comparison, own, None).as_bytes())?,
    }
    out.flush()
}

/// The most characters of a comment on GitHub.
const COMMENT_MOST: usize = 65_536;

/// Renders the tables of a report as Markdown that fits a comment.
pub fn brief_markdown(comparison: &Comparison, own: &[&Sections]) -> String {
    let document = build::document(comparison, &ReportOptions { efficiency: false }, own);
    render_tables(&document, COMMENT_MOST)
}

// The comparison as JSON (docs/results.md, "Report formats").

/// Version of the JSON report. It increases when a field changes its meaning or disappears, not
/// when a field is added.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a> {
    schema: u32,
    comparison: Content<'a>,
}

/// A comparison with its baseline under both keys: `baseline`, and `base` for older readers.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    baseline: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl Content<'_> {
    pub(super) fn of(comparison: &Comparison) -> Content<'_> {
        Content { baseline: &comparison.baseline, comparison }
    }
}

/// Pretty JSON with a final line end.
fn write_json(comparison: &Comparison, out: &mut impl io::Write) -> io::Result<()> {
    let envelope = Envelope { schema: SCHEMA, comparison: Content::of(comparison) };
    let text = serde_json::to_string_pretty(&envelope)?;
    writeln!(out, "{}", escape::json(&text))
}

/// Pretty JSON of any other form, with its version and a final line end:
/// `{"schema": 1, "NAME": VALUE}`.
///
/// # Errors
/// A number that JSON cannot write.
pub(super) fn versioned<T: Serialize + ?Sized>(
    schema: u32,
    name: &'static str,
    value: &T,
) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(&Versioned { schema, name, value })?;
    Ok(format!("{}\n", escape::json(&text)))
}

/// `{"schema": 1, "NAME": VALUE}`.
pub(super) struct Versioned<'a, T: ?Sized> {
    pub schema: u32,
    pub name: &'static str,
    pub value: &'a T,
}

impl<T: Serialize + ?Sized> Serialize for Versioned<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("schema", &self.schema)?;
        map.serialize_entry(self.name, self.value)?;
        map.end()
    }
}

// A document as plain text: aligned columns, complete names, no truncation.

/// Column at which text wraps that no terminal shows.
const WIDTH: usize = 100;
/// The narrowest and the widest lines of a terminal.
const NARROWEST: usize = 40;
const WIDEST: usize = 120;
/// The fewest characters of a last column that wraps.
const WORDS_LEAST: usize = 16;

/// Renders the document as text: names and messages in it are shown, and steer no terminal. Lines
/// follow the columns of a terminal; without one, tables are as wide as they are.
pub fn render_text(document: &Document, columns: Option<usize>) -> String {
    let width = Width {
        prose: columns.map_or(WIDTH, |columns| columns.clamp(NARROWEST, WIDEST)),
        table: columns,
    };
    let mut text = format!("{}\n", escape::line(&document.title));
    let shown = document.sections.iter().filter(|section| section.blocks.iter().any(is_shown));
    for section in shown {
        text.push('\n');
        render_section(section, width, &mut text);
    }
    escape::terminal(&text).into_owned()
}

/// The most characters of a line.
#[derive(Clone, Copy)]
struct Width {
    prose: usize,
    table: Option<usize>,
}

fn render_section(section: &Section, width: Width, text: &mut String) {
    if !section.heading.is_empty() {
        let heading = escape::line(&section.heading);
        text.push_str(&heading);
        text.push('\n');
        text.push_str(&"-".repeat(heading.chars().count()));
        text.push('\n');
    }
    render_blocks(&section.blocks, width, text);
}

fn render_blocks(blocks: &[Block], width: Width, text: &mut String) {
    let shown = blocks.iter().filter(|block| is_shown(block));
    for (index, block) in shown.enumerate() {
        // Tables with a `---` caption follow directly; a blank line precedes all other blocks.
        let joined = matches!(block, Block::Table(table) if table.caption.starts_with("---"));
        if index > 0 && !joined {
            text.push('\n');
        }
        match block {
            Block::Paragraph(prose) => wrap(prose, ("", ""), width.prose, text),
            Block::Facts(facts) => render_facts(facts, width.prose, text),
            Block::Lines(lines) => lines.iter().for_each(|line| push_line(line, text)),
            Block::List(points) => {
                points.iter().for_each(|point| wrap(point, ("- ", "  "), width.prose, text));
            }
            Block::Table(table) => render_table(table, width.table, text),
            Block::Chart(_) | Block::Heat(_) | Block::Flame(_) => {}
            Block::Fold(fold) => {
                push_line(&fold.summary, text);
                render_blocks(&fold.blocks, width, text);
            }
        }
    }
}

/// Returns false for charts and for folds that contain only charts.
fn is_shown(block: &Block) -> bool {
    match block {
        Block::Chart(_) | Block::Heat(_) | Block::Flame(_) => false,
        Block::Fold(fold) => fold.blocks.iter().any(is_shown),
        _ => true,
    }
}

/// Line ends within it are shown, too: what looks like a line of rqps is one.
fn push_line(line: &str, text: &mut String) {
    text.push_str(&escape::line(line.trim_end()));
    text.push('\n');
}

fn render_facts(facts: &[(String, String)], columns: usize, text: &mut String) {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let indent = " ".repeat(width + 2);
    for (name, value) in facts {
        let pad = " ".repeat(width - name.chars().count());
        wrap(value, (&format!("{name}{pad}  "), &indent), columns, text);
    }
}

/// Wraps text at blanks; the first line and the others have their beginnings. A word longer than
/// the line stays whole.
fn wrap(prose: &str, (first, rest): (&str, &str), width: usize, text: &mut String) {
    let mut line = first.to_owned();
    let mut empty = true;
    // Shown, so that it does not begin a line here by chance.
    let prose = escape::line(prose);
    for word in prose.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            push_line(&line, text);
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    push_line(&line, text);
}

/// The lines of wrapped text, at most so many: the last one ends with `…` if there were more.
pub(super) fn wrapped(prose: &str, rest: &str, width: usize, most: usize) -> Vec<String> {
    let mut text = String::new();
    wrap(prose, ("", rest), width, &mut text);
    let mut lines: Vec<String> = text.lines().map(|line| fitted(line, width)).collect();
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fitted(&format!("{last} {}", "…".repeat(width)), width);
        }
    }
    lines
}

/// A line that is cut where it is longer than the width.
pub(super) fn fitted(line: &str, width: usize) -> String {
    let line = escape::line(line);
    if line.chars().count() <= width {
        return line.into_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end_matches(['…', ' ']))
}

/// A name without its middle where it is longer: its end often tells more than its beginning.
pub(super) fn shortened(name: &str, most: usize) -> String {
    let name: Vec<char> = escape::line(name).chars().collect();
    if name.len() <= most {
        return name.iter().collect();
    }
    let end = most / 2;
    let (begin, end) = (&name[..most - end - 1], &name[name.len() - end..]);
    format!("{}…{}", begin.iter().collect::<String>(), end.iter().collect::<String>())
}

fn render_table(table: &Table, width: Option<usize>, text: &mut String) {
    if !table.caption.is_empty() {
        push_line(&table.caption, text);
    }
    table_lines(table, width).iter().for_each(|line| push_line(line, text));
}

/// The lines of a table: its heads, then its rows. A last column of words wraps at the width.
pub(super) fn table_lines(table: &Table, width: Option<usize>) -> Vec<String> {
    let shown = |text: &str| escape::line(text).into_owned();
    let heads = table.columns.iter().map(|column| shown(&column.head)).collect();
    let body = table.rows.iter().map(|row| row.iter().map(|cell| shown(&cell.plain())).collect());
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(body).collect();
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
    let is_words = table.columns.last().is_some_and(|column| !column.right);
    let room = width.map(|width| width.saturating_sub(before));
    let room = room.filter(|room| is_words && *room >= WORDS_LEAST).unwrap_or(usize::MAX);
    let mut lines = Vec::new();
    for cells in &rows {
        let padded = table.columns.iter().zip(cells).zip(&widths).map(|((column, cell), width)| {
            let pad = " ".repeat(width - cell.chars().count());
            if column.right { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        let mut padded: Vec<String> = padded.collect();
        let last = cells.last().filter(|last| last.chars().count() > room);
        let parts = last.map(|last| wrapped(last, "", room, usize::MAX)).unwrap_or_default();
        if let (Some(cell), Some(part)) = (padded.last_mut(), parts.first()) {
            cell.clone_from(part);
        }
        lines.push(padded.join("  ").trim_end().to_owned());
        let further = parts.iter().skip(1).map(|part| format!("{}{part}", " ".repeat(before)));
        lines.extend(further);
    }
    lines
}

// A document as GitHub Markdown, for bug reports and comments: complete names and numbers, long
// tables folded.

/// Tables with more rows than this are folded.
const OPEN_ROWS: usize = 16;

/// Renders the document as Markdown.
pub fn render_markdown(document: &Document) -> String {
    let mut text = format!("## {}\n", escape::markdown(&document.title));
    document.sections.iter().for_each(|section| push_section(&mut text, section));
    text
}

/// Adds sections as Markdown.
pub(super) fn push_sections(text: &mut String, sections: impl IntoIterator<Item = Section>) {
    sections.into_iter().for_each(|section| push_section(text, &section));
}

/// Renders the title, the first sentence and the tables alone, in fewer than so many characters:
/// what has no room is counted.
fn render_tables(document: &Document, most: usize) -> String {
    let mut text = format!("## {}\n", escape::markdown(&document.title));
    let shown = || document.sections.iter().filter(|section| !is_aside(section));
    let sentence = shown().flat_map(|section| &section.blocks).find_map(|block| match block {
        Block::Paragraph(prose) => Some(prose),
        _ => None,
    });
    text.extend(sentence.map(|prose| format!("\n{}\n", escape::markdown_paragraph(prose))));
    let mut left_out = 0;
    for block in shown().flat_map(|section| &section.blocks) {
        let Block::Table(table) = block else { continue };
        let mut part = String::new();
        push_blocks(&mut part, std::slice::from_ref(block), true);
        if text.chars().count() + part.chars().count() + LEFT_OUT < most {
            text.push_str(&part);
        } else {
            left_out += table.rows.len();
        }
    }
    if left_out > 0 {
        text.push_str(&format!("\n{left_out} more rows: `rqps report --format markdown`\n"));
    }
    text
}

/// Room for the sentence on what is left out.
const LEFT_OUT: usize = 80;

/// Sections that are rarely needed in a bug report: folded, whatever their length.
fn is_aside(section: &Section) -> bool {
    let asides = [
        "efficiency", "other-metrics", "how-to-read", "details", "runs", "settings",
        "server-settings", "plans",
    ];
    asides.contains(&section.id)
}

fn push_section(text: &mut String, section: &Section) {
    let aside = is_aside(section) && !section.heading.is_empty();
    if aside {
        text.push_str(&format!("\n<details>\n<summary>{}</summary>\n", in_html(&section.heading)));
    } else if !section.heading.is_empty() {
        text.push_str(&format!("\n### {}\n", escape::markdown(&section.heading)));
    }
    push_blocks(text, &section.blocks, aside);
    if aside {
        text.push_str("\n</details>\n");
    }
}

fn push_blocks(text: &mut String, blocks: &[Block], folded: bool) {
    for block in blocks {
        match block {
            Block::Chart(_) | Block::Heat(_) | Block::Flame(_) => {}
            Block::Paragraph(prose) => {
                text.push_str(&format!("\n{}\n", escape::markdown_paragraph(prose)))
            }
            Block::Facts(facts) => {
                text.push('\n');
                for (name, value) in facts {
                    text.push_str(&format!(
                        "- **{}**: {}\n",
                        escape::markdown(name),
                        escape::markdown(value)
                    ));
                }
            }
            Block::Lines(lines) => push_code(text, lines),
            Block::List(points) => {
                text.push('\n');
                points.iter().for_each(|point| {
                    text.push_str(&format!("- {}\n", escape::markdown_paragraph(point)))
                });
            }
            Block::Table(table) if table.rows.len() > OPEN_ROWS && !folded => {
                let name = if table.caption.is_empty() { "table" } else { &table.caption };
                text.push_str(&format!(
                    "\n<details>\n<summary>{} ({} rows)</summary>\n",
                    in_html(name),
                    table.rows.len()
                ));
                push_table(text, table);
                text.push_str("\n</details>\n");
            }
            Block::Table(table) => {
                if !table.caption.is_empty() {
                    let caption = table.caption.trim_start_matches("--- ");
                    text.push_str(&format!("\n{}\n", escape::markdown_paragraph(caption)));
                }
                push_table(text, table);
            }
            Block::Fold(fold) => {
                let summary = in_html(&fold.summary);
                text.push_str(&format!("\n<details>\n<summary>{summary}</summary>\n"));
                push_blocks(text, &fold.blocks, true);
                text.push_str("\n</details>\n");
            }
        }
    }
}

/// A fence longer than any run of backticks in the text.
fn push_code(text: &mut String, lines: &[String]) {
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`').map(str::len)).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    text.push_str(&format!("\n{fence}text\n"));
    let shown = |line: &String| escape::terminal(&escape::line(line)).into_owned();
    lines.iter().for_each(|line| text.push_str(&format!("{}\n", shown(line))));
    text.push_str(&format!("{fence}\n"));
}

fn push_table(text: &mut String, table: &Table) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push('\n');
    text.push_str(&row(table.columns.iter().map(|column| in_cell(&column.head)).collect()));
    let rule = |right: bool| if right { "---:".to_owned() } else { "---".to_owned() };
    text.push_str(&row(table.columns.iter().map(|column| rule(column.right)).collect()));
    for cells in &table.rows {
        text.push_str(&row(cells.iter().map(|cell| in_cell(&cell.plain())).collect()));
    }
}

fn in_html(raw: &str) -> String {
    escape::html(&escape::line(raw))
}

fn in_cell(raw: &str) -> String {
    raw.trim().split('\n').map(escape::markdown).collect::<Vec<_>>().join("<br>")
}

// A report in the order of a published post: findings, setup, results, costs, caveats, method.

/// Renders the post as Markdown. `plot` is the address of its picture of the relative rates.
pub fn post(comparison: &Comparison, own: &[&Sections], plot: Option<&str>) -> String {
    let mut text = format!("# {}\n", escape::markdown(&build::subject(comparison)));
    let named =
        |heading: &str, section: Section| Section { heading: heading.to_owned(), ..section };
    let findings = verdicts::headline(comparison).map(|section| named("tl;dr", section));
    push_sections(&mut text, findings);
    let warnings = build::loud_caveats(comparison);
    let setup = named("Builds, configuration and hardware", facts::section(comparison, own));
    push_sections(&mut text, warnings.into_iter().chain([setup]));
    text.push_str("\n### Results\n");
    if let Some(plot) = plot {
        let title = format!("Rates relative to {}", comparison.baseline);
        // Angle brackets let an address have spaces.
        let address = plot.replace(['<', '>', '\n'], "");
        text.push_str(&format!("\n![{}](<{address}>)\n", escape::markdown(&title)));
    }
    let mut sections = vec![named("", tables::rates(comparison))];
    sections.extend(tables::summary(comparison));
    sections.extend(verdicts::section(comparison));
    sections.extend(costs(comparison));
    sections.extend(build::of_benchmarks(comparison, own));
    sections.extend(build::caveats(comparison));
    sections.extend(settings(comparison));
    sections.push(named("Method", build::how_to_read(comparison)));
    sections.extend(facts::terms_section(comparison));
    push_sections(&mut text, sections);
    let version = env!("CARGO_PKG_VERSION");
    let imported = (0..comparison.targets.len()).all(|target| comparison.is_imported(target));
    let measured = if imported { "Computed" } else { "Measured and computed" };
    text.push_str(&format!("\n{measured} by rqps {version}.\n"));
    text
}

/// What an operation costs, in one table: the baseline in units, the others relative to it.
fn costs(comparison: &Comparison) -> Option<Section> {
    let has_value = |metric: &Metric| {
        let mut targets = comparison.measured_steps().flat_map(|step| &step.targets);
        targets.any(|target| target.absolute(*metric).is_some())
    };
    let mut metrics = tables::efficiency_metrics();
    metrics.push(Metric::P99);
    metrics.retain(|metric| *metric != Metric::Rate && has_value(metric));
    if metrics.is_empty() {
        return None;
    }
    let units: Vec<String> =
        metrics.iter().map(|metric| format!("{} in {}", metric.name(), metric.unit())).collect();
    let mut columns = vec![Column::of_row("step"), Column::words("target")];
    columns.extend(metrics.iter().map(|metric| Column::of(*metric)));
    let mut rows = Vec::new();
    for step in comparison.measured_steps() {
        let carried_out = step.targets.iter().enumerate().filter(|(_, it)| it.was_carried_out());
        for (place, target) in carried_out {
            let mut cells = vec![Cell::text(step.name.clone()), Cell::text(target.label.clone())];
            cells.extend(metrics.iter().map(|metric| match place {
                0 => tables::absolute(target, *metric, metric.digits(), metric.unit()),
                _ => tables::judged(target, *metric, Digits::Ratio),
            }));
            rows.push(cells);
        }
    }
    let caption = format!(
        "Rows of {} are medians ({}); other rows are relative to them.",
        comparison.baseline,
        units.join(", ")
    );
    let table = Block::table(caption, columns, rows);
    Some(Section::new("costs", "Costs per operation", vec![table]))
}

/// What the configs of the targets set.
fn settings(comparison: &Comparison) -> Option<Section> {
    let of_target = |target: &TargetFacts| -> Vec<Block> {
        let configs = target.configs.iter().filter(|config| !config.text.trim().is_empty());
        let head = |config: &Config| {
            Block::Paragraph(format!("{}, config {} ({}):", target.label, config.name, config.hash))
        };
        let lines = |config: &Config| {
            let is_setting = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
            Block::Lines(config.text.lines().filter(is_setting).map(str::to_owned).collect())
        };
        configs.flat_map(|config| [head(config), lines(config)]).collect()
    };
    let blocks: Vec<Block> = comparison.targets.iter().flat_map(of_target).collect();
    (!blocks.is_empty()).then(|| Section::new("settings", "Settings", blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Cell, Column, Digits, Fold};
    use crate::document::{Chart, Form};
    use rqps_stats::Interval;

    #[test]
    fn columns_line_up_and_names_stay_whole() {
        let long = "a-step-with-a-very-long-name_range=10000";
        let table = Table::new(
            "",
            vec![Column::numbers("qps"), Column::words("step")],
            vec![
                vec![Cell::number(5.0, Digits::Fixed(0), "qps"), Cell::text(long)],
                vec![Cell::number(12345.0, Digits::Fixed(0), "qps"), Cell::text("b")],
            ],
        );
        let mut text = String::new();
        render_table(&table, None, &mut text);
        assert_eq!(text, format!("  qps  step\n    5  {long}\n12345  b\n"));
    }

    #[test]
    fn prose_is_wrapped_between_words() {
        let mut text = String::new();
        wrap(&"word ".repeat(30), ("- ", "  "), WIDTH, &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[1].starts_with("  word"));
    }

    #[test]
    fn a_last_column_of_words_wraps_at_the_width_of_a_terminal() {
        let table = Table::new(
            "",
            vec![Column::numbers("n"), Column::words("why")],
            vec![vec![
                Cell::number(12.0, Digits::Fixed(0), ""),
                Cell::text("the host was at work"),
            ]],
        );
        let lines = table_lines(&table, Some(20));
        assert_eq!(lines, [" n  why", "12  the host was at", "    work"]);
        assert_eq!(table_lines(&table, None).len(), 2);
    }

    #[test]
    fn what_does_not_fit_is_cut_where_it_shows() {
        assert_eq!(fitted("abcdef", 6), "abcdef");
        assert_eq!(fitted("abcdefg", 6), "abcde…");
        assert_eq!(shortened("my5.6.51_rel_o2nofp.z12a_c8r32", 11), "my5.6…c8r32");
        assert_eq!(wrapped("one two three four", "", 8, 2), ["one two", "three…"]);
    }

    fn table(rows: usize) -> Table {
        let interval = Some(Interval { low: 0.6714, high: 0.7049 });
        let number = Cell::number(0.688, Digits::Fixed(3), "ratio").within(interval);
        let row = vec![number, Cell::text("a|b <c>\nd_e_f")];
        let columns = vec![Column::numbers("rQPS"), Column::words("step")];
        Table::new("--- point", columns, vec![row; rows])
    }

    fn check(block: Block, expected: &str) {
        let mut text = String::new();
        push_blocks(&mut text, &[block], false);
        assert_eq!(text, expected);
    }

    #[test]
    fn a_whole_document() {
        let fold = Fold {
            summary: "more <here>".to_owned(),
            blocks: vec![Block::Lines(vec!["a  b".to_owned(), "# c".to_owned()])],
        };
        let chart = Chart::new("c", "left out", Form::Forest);
        let section = |id, heading: &str, blocks| Section::new(id, heading, blocks);
        let document = Document {
            title: "a_b relative to c*d".to_owned(),
            sections: vec![
                section("facts", "", vec![Block::Facts(vec![("host".into(), "c2r8".into())])]),
                section("rates", "Rates", vec![Block::Table(table(1)), Block::Chart(chart)]),
                section("runs", "Run folders", vec![Block::List(vec!["one".into(), "two".into()])]),
                section(
                    "steps",
                    "Steps",
                    vec![Block::Paragraph("x < y".into()), Block::Fold(fold)],
                ),
            ],
        };
        insta::assert_snapshot!(render_markdown(&document), @r###"
        ## a_b relative to c\*d

        - **host**: c2r8

        ### Rates

        point

        | rQPS | step |
        | ---: | --- |
        | 0.688 \[0.671, 0.705\] | a\|b \<c\><br>d_e_f |

        <details>
        <summary>Run folders</summary>

        - one
        - two

        </details>

        ### Steps

        x \< y

        <details>
        <summary>more &lt;here&gt;</summary>

        ```text
        a  b
        # c
        ```

        </details>
        "###);
    }

    #[test]
    fn cells_hold_whole_numbers_and_no_markup() {
        check(
            Block::Table(table(1)),
            "\npoint\n\n| rQPS | step |\n| ---: | --- |\n\
             | 0.688 \\[0.671, 0.705\\] | a\\|b \\<c\\><br>d_e_f |\n",
        );
    }

    #[test]
    fn long_tables_are_folded_behind_their_number_of_rows() {
        let mut text = String::new();
        push_blocks(&mut text, &[Block::Table(table(OPEN_ROWS + 1))], false);
        assert!(text.starts_with("\n<details>\n<summary>--- point (17 rows)</summary>\n\n| rQPS"));
        assert!(text.ends_with("|\n\n</details>\n"));
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let lines = vec!["a ```` b".to_owned()];
        check(Block::Lines(lines), "\n`````text\na ```` b\n`````\n");
        // No command to the service that keeps the log.
        check(Block::Lines(vec!["::error::x".to_owned()]), "\n```text\n\\::error::x\n```\n");
    }
}
