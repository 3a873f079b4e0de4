//! A document as plain text: aligned columns, complete names, no truncation.

use super::document::{Block, Document, Section, Table};
use rqps_model::escape;

/// Column at which text wraps that no terminal shows.
const WIDTH: usize = 100;
/// The narrowest and the widest lines of a terminal.
const NARROWEST: usize = 40;
const WIDEST: usize = 120;
/// The fewest characters of a last column that wraps.
const WORDS_LEAST: usize = 16;

/// Renders the document as text: names and messages in it are shown, and steer no terminal. Lines
/// follow the columns of a terminal; without one, tables are as wide as they are.
pub(super) fn render(document: &Document, columns: Option<usize>) -> String {
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

#[cfg(test)]
mod tests {
    use super::super::document::{Cell, Column, Digits};
    use super::*;

    #[test]
    fn columns_line_up_and_names_stay_whole() {
        let long = "a-step-with-a-very-long-name_range=10000";
        let table = Table {
            caption: String::new(),
            columns: vec![Column::numbers("qps"), Column::words("step")],
            rows: vec![
                vec![Cell::number(5.0, Digits::Fixed(0), "qps"), Cell::text(long)],
                vec![Cell::number(12345.0, Digits::Fixed(0), "qps"), Cell::text("b")],
            ],
        };
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
        let table = Table {
            caption: String::new(),
            columns: vec![Column::numbers("n"), Column::words("why")],
            rows: vec![vec![
                Cell::number(12.0, Digits::Fixed(0), ""),
                Cell::text("the host was at work"),
            ]],
        };
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
}
