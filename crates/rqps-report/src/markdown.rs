//! A document as GitHub Markdown, for bug reports and comments: complete names and numbers, long
//! tables folded.

use super::document::{Block, Document, Section, Table};
use rqps_model::escape;

/// Tables with more rows than this are folded.
const OPEN_ROWS: usize = 16;

/// Renders the document as Markdown.
pub(super) fn render(document: &Document) -> String {
    let mut text = format!("## {}\n", escape::markdown(&document.title));
    for section in &document.sections {
        push_section(&mut text, section);
    }
    text
}

/// Renders the title, the first sentence and the tables alone, in fewer than so many characters:
/// what has no room is counted.
pub(super) fn render_tables(document: &Document, most: usize) -> String {
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
    lines.iter().for_each(|line| text.push_str(&format!("{}\n", escape::line(line))));
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

#[cfg(test)]
mod tests {
    use super::super::chart::{Chart, Form};
    use super::super::document::{Cell, Column, Digits, Fold};
    use super::*;
    use rqps_stats::Interval;

    fn table(rows: usize) -> Table {
        let interval = Some(Interval { low: 0.6714, high: 0.7049 });
        let number = Cell::number(0.688, Digits::Fixed(3), "ratio").within(interval);
        let row = vec![number, Cell::text("a|b <c>\nd_e_f")];
        let columns = vec![Column::numbers("rQPS"), Column::words("step")];
        Table { caption: "--- point".to_owned(), columns, rows: vec![row; rows] }
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
        let section =
            |id, heading: &str, blocks| Section { id, heading: heading.to_owned(), blocks };
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
        insta::assert_snapshot!(render(&document), @r###"
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
    }
}
