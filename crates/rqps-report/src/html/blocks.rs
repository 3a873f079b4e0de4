//! Blocks of a document as HTML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::RunLink;
use super::data::{self, id};
use crate::chart::{Chart, Heat};
use crate::document::{Block, Cell, CellValue, Column, Digits, Fold, Mark, Table};
use crate::stacks::Flame;
use rqps_model::escape::{attribute, html as text};

/// Cells with more characters than this may wrap.
const LONG_CELL: usize = 40;

/// Tables with more rows than this exceed a screen.
const TALL_TABLE: usize = 60;

/// Writes blocks and collects the data for scripts.
pub(super) struct Writer {
    /// Folder → index in the list of runs.
    places: BTreeMap<String, usize>,
    /// Ids in use, so that each id is unique.
    ids: BTreeSet<String>,
    /// Script elements with JSON.
    data: String,
    /// Nesting depth of folds at the current position.
    depth: usize,
}

impl Writer {
    pub(super) fn new(runs: &[RunLink]) -> Writer {
        let places = runs.iter().enumerate().map(|(place, run)| (run.folder.clone(), place));
        Writer { places: places.collect(), ids: BTreeSet::new(), data: String::new(), depth: 0 }
    }

    /// The collected script elements.
    pub(super) fn into_data(self) -> String {
        self.data
    }

    pub(super) fn push_blocks(&mut self, html: &mut String, within: &str, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Paragraph(prose) => {
                    let _ = writeln!(html, "<p>{}</p>", text(prose));
                }
                Block::Facts(facts) => push_facts(html, facts),
                Block::Lines(lines) => {
                    let _ = writeln!(html, "<pre>{}</pre>", text(&lines.join("\n")));
                }
                Block::List(points) => {
                    html.push_str("<ul>");
                    for point in points {
                        let _ = write!(html, "<li>{}</li>", text(point));
                    }
                    html.push_str("</ul>\n");
                }
                Block::Table(table) => self.push_table(html, table),
                Block::Chart(chart) => self.push_chart(html, chart),
                Block::Heat(heat) => self.push_heat(html, heat),
                Block::Flame(flame) => self.push_flame(html, flame),
                Block::Fold(fold) => self.push_fold(html, within, fold),
            }
        }
    }

    fn push_fold(&mut self, html: &mut String, within: &str, fold: &Fold) {
        let id = format!("{within}-{}", id(&fold.summary));
        self.push_details(html, &id, &text(&fold.summary), &fold.blocks);
    }

    /// With scripts, the browser keeps folded content as text until someone opens it: layout of
    /// thousands of hidden cells would dominate the load time. Without scripts, the content is
    /// visible.
    pub(super) fn push_details(
        &mut self,
        html: &mut String,
        id: &str,
        summary: &str,
        blocks: &[Block],
    ) {
        let id = self.unique(id);
        // Such an element cannot contain another one.
        let (open, close) =
            if self.depth == 0 { ("<noscript>", "</noscript>") } else { Default::default() };
        let _ = writeln!(
            html,
            "<details id=\"{id}\"><summary>{summary}</summary><div class=\"in\">{open}"
        );
        self.depth += 1;
        self.push_blocks(html, &id, blocks);
        self.depth -= 1;
        let _ = writeln!(html, "{close}</div></details>");
    }

    fn push_chart(&mut self, html: &mut String, chart: &Chart) {
        let id = self.unique(&id(&chart.id));
        let _ = write!(
            html,
            "<figure class=\"chart\" id=\"{id}\" data-json=\"{id}\"><figcaption>{}</figcaption>\
             <div class=\"plot needs-script\" role=\"img\" aria-label=\"{}\"></div>",
            text(&chart.title),
            attribute(&data::description(chart)),
        );
        for note in &chart.notes {
            let _ = write!(html, "<p class=\"notes\">{}</p>", text(note));
        }
        html.push_str("</figure>\n");
        data::push_json(&mut self.data, &id, &data::chart(chart, &self.places));
    }

    fn push_heat(&mut self, html: &mut String, heat: &Heat) {
        let id = self.unique("heat");
        let _ = writeln!(
            html,
            "<div class=\"heat\" data-json=\"{id}\"><p>This table needs JavaScript. The steps \
             below have the same numbers.</p></div>"
        );
        data::push_json(&mut self.data, &id, &data::heat(heat, &self.places));
    }

    fn push_flame(&mut self, html: &mut String, flame: &Flame) {
        let id = self.unique(&id(&flame.title));
        let _ = writeln!(
            html,
            "<figure id=\"{id}\" data-flame=\"{id}\"><figcaption>{}</figcaption>\
             <div class=\"flame needs-script\"></div></figure>",
            text(&flame.title),
        );
        data::push_json(&mut self.data, &id, &data::flame(flame));
    }

    fn push_table(&mut self, html: &mut String, table: &Table) {
        match table.rows.len() {
            rows if rows > TALL_TABLE => {
                let _ = write!(html, "<div class=\"scroll tall\" style=\"--rows:{rows}\"><table>");
            }
            _ => html.push_str("<div class=\"scroll\"><table>"),
        }
        if !table.caption.is_empty() {
            // The published dashes are for text only.
            let caption = table.caption.trim_start_matches("--- ");
            let _ = write!(html, "<caption>{}</caption>", text(caption));
        }
        html.push_str("<thead><tr>");
        for column in &table.columns {
            let class = match (column.right, column.names_row) {
                (true, _) => " class=\"n\"",
                (_, true) => " class=\"pin\"",
                _ => "",
            };
            let title = match column.legend {
                "" => String::new(),
                legend => format!(" title=\"{}\"", attribute(legend)),
            };
            let head = text(&column.head);
            let _ = write!(html, "<th scope=\"col\"{class}{title}>{head}</th>");
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &table.rows {
            self.push_row(html, table, row);
        }
        html.push_str("</tbody></table></div>\n");
    }

    /// If all numbers of a row come from the same runs, the row links there (scripts add a button
    /// at its end); otherwise each cell links by itself.
    fn push_row(&self, html: &mut String, table: &Table, row: &[Cell]) {
        let mut sources: Vec<&[String]> =
            row.iter().map(|cell| &*cell.runs).filter(|runs| !runs.is_empty()).collect();
        sources.dedup();
        let shared = if sources.len() == 1 { self.runs(sources[0]) } else { String::new() };
        if shared.is_empty() {
            html.push_str("<tr>")
        } else {
            let _ = write!(html, "<tr data-r=\"{shared}\">");
        }
        for (cell, column) in row.iter().zip(&table.columns) {
            let own = if shared.is_empty() { self.runs(&cell.runs) } else { String::new() };
            push_cell(html, cell, column, &own);
        }
        html.push_str("</tr>\n");
    }

    /// Indexes of folders in the list of runs, separated by blanks.
    fn runs(&self, folders: &[String]) -> String {
        let places = folders.iter().filter_map(|folder| self.places.get(folder));
        places.map(usize::to_string).collect::<Vec<_>>().join(" ")
    }

    fn unique(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        let mut number = 2;
        while !self.ids.insert(id.clone()) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        id
    }
}

fn push_facts(html: &mut String, facts: &[(String, String)]) {
    html.push_str("<dl>");
    for (name, value) in facts {
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", text(name), text(value));
    }
    html.push_str("</dl>\n");
}

fn push_cell(html: &mut String, cell: &Cell, column: &Column, runs: &str) {
    let mut class = String::from(if column.right { "n" } else { "" });
    if let CellValue::Text(words) = &cell.value
        && !column.right
    {
        class.push_str(if words.chars().count() > LONG_CELL { "long" } else { "w" });
    }
    if column.names_row {
        class.push_str(" pin");
    }
    let mut style = String::new();
    if let Some((kind, strength)) = tone(cell) {
        let _ = write!(class, " t {kind}");
        let _ = write!(style, " style=\"--a:{strength}%\"");
    }
    if let Some(mark) = cell.mark {
        let Mark { colour, meaning, .. } = mark;
        let meaning = attribute(meaning);
        let _ = match colour {
            Mark::NO_COLOUR => write!(style, " title=\"{meaning}\""),
            // Published colours are light, so they need dark text even in dark mode.
            _ => write!(style, " style=\"background:{colour};color:#111\" title=\"{meaning}\""),
        };
    }
    let class = if class.is_empty() { class } else { format!(" class=\"{}\"", class.trim()) };
    let runs = if runs.is_empty() { String::new() } else { format!(" data-r=\"{runs}\"") };
    let _ = write!(html, "<td{class}{style}{runs}>");
    if let Some(link) = &cell.link {
        let _ = write!(html, "<a href=\"{}\">", attribute(link));
    }
    match &cell.value {
        CellValue::Text(words) => html.push_str(&text(words)),
        CellValue::Missing(why) => {
            let _ = write!(html, "<span class=\"none\" title=\"{}\">–</span>", attribute(why));
        }
        CellValue::Number(number, digits) => push_number(html, cell, *number, *digits),
    }
    if cell.link.is_some() {
        html.push_str("</a>");
    }
    html.push_str("</td>");
}

fn push_number(html: &mut String, cell: &Cell, number: f64, digits: Digits) {
    html.push_str(&digits.write(number));
    if let Some(mark) = cell.mark.filter(|mark| mark.colour == Mark::NO_COLOUR) {
        html.push_str(&text(mark.sign));
    }
    if let Some(interval) = cell.interval {
        let (low, high) = (digits.write(interval.low), digits.write(interval.high));
        let _ = write!(html, " <span class=\"ci\">[{low}, {high}]</span>");
    }
}

/// Class and strength of the colour of a comparison, in per cent: none if the interval contains 1,
/// full from a factor of 2 on.
fn tone(cell: &Cell) -> Option<(&'static str, u32)> {
    let tone = cell.tone?;
    let open = cell.interval.is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0);
    if open || tone.abs() < 0.005 || tone.is_nan() {
        return None;
    }
    let kind = if tone < 0.0 { "worse" } else { "better" };
    let strength = 8.0 + 55.0 * (tone.abs() / std::f64::consts::LN_2).min(1.0);
    Some((kind, strength.round() as u32))
}
