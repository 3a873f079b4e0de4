//! A document as plain text: aligned columns, complete names, no truncation.

use super::document::{Block, Document, Section, Table};
use rqps_model::escape;

/// Column at which text wraps.
const WIDTH: usize = 100;

/// Renders the document as text: names and messages in it are shown, and steer no terminal.
pub(super) fn render(document: &Document) -> String {
    let mut text = format!("{}\n", escape::line(&document.title));
    let shown = document.sections.iter().filter(|section| section.blocks.iter().any(is_shown));
    for section in shown {
        text.push('\n');
        render_section(section, &mut text);
    }
    escape::terminal(&text).into_owned()
}

fn render_section(section: &Section, text: &mut String) {
    if !section.heading.is_empty() {
        let heading = escape::line(&section.heading);
        text.push_str(&heading);
        text.push('\n');
        text.push_str(&"-".repeat(heading.chars().count()));
        text.push('\n');
    }
    render_blocks(&section.blocks, text);
}

fn render_blocks(blocks: &[Block], text: &mut String) {
    let shown = blocks.iter().filter(|block| is_shown(block));
    for (index, block) in shown.enumerate() {
        // Tables with a `---` caption follow directly; a blank line precedes all other blocks.
        let joined = matches!(block, Block::Table(table) if table.caption.starts_with("---"));
        if index > 0 && !joined {
            text.push('\n');
        }
        match block {
            Block::Paragraph(prose) => wrap(prose, "", "", text),
            Block::Facts(facts) => render_facts(facts, text),
            Block::Lines(lines) => lines.iter().for_each(|line| push_line(line, text)),
            Block::List(points) => points.iter().for_each(|point| wrap(point, "- ", "  ", text)),
            Block::Table(table) => render_table(table, text),
            Block::Chart(_) | Block::Heat(_) | Block::Flame(_) => {}
            Block::Fold(fold) => {
                push_line(&fold.summary, text);
                render_blocks(&fold.blocks, text);
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

fn render_facts(facts: &[(String, String)], text: &mut String) {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let indent = " ".repeat(width + 2);
    for (name, value) in facts {
        let pad = " ".repeat(width - name.chars().count());
        wrap(value, &format!("{name}{pad}  "), &indent, text);
    }
}

/// Wraps text at blanks. A word longer than the line stays whole.
fn wrap(prose: &str, first: &str, rest: &str, text: &mut String) {
    let mut line = first.to_owned();
    let mut empty = true;
    // Shown, so that it does not begin a line here by chance.
    let prose = escape::line(prose);
    for word in prose.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
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

fn render_table(table: &Table, text: &mut String) {
    if !table.caption.is_empty() {
        push_line(&table.caption, text);
    }
    let shown = |text: &str| escape::line(text).into_owned();
    let heads = table.columns.iter().map(|column| shown(&column.head)).collect();
    let body = table.rows.iter().map(|row| row.iter().map(|cell| shown(&cell.plain())).collect());
    let lines: Vec<Vec<String>> = std::iter::once(heads).chain(body).collect();
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    for cells in &lines {
        let padded = table.columns.iter().zip(cells).zip(&widths).map(|((column, cell), width)| {
            let pad = " ".repeat(width - cell.chars().count());
            if column.right { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        push_line(&padded.collect::<Vec<_>>().join("  "), text);
    }
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
        render_table(&table, &mut text);
        assert_eq!(text, format!("  qps  step\n    5  {long}\n12345  b\n"));
    }

    #[test]
    fn prose_is_wrapped_between_words() {
        let mut text = String::new();
        wrap(&"word ".repeat(30), "- ", "  ", &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[1].starts_with("  word"));
    }
}
