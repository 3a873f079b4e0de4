//! The report: for a terminal, as JSON, and as a page with both trees side by side.

use crate::compare::PlanClass;
use crate::rehearsal::{Judged, PlanNode, Report};
use rqps_model::escape;

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Most lines that a terminal gets.
const LINES: usize = 20;

/// Statements that also show their text.
const WITH_TEXT: usize = 4;

/// The report as JSON.
///
/// # Errors
/// None that a report can cause.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report)
}

/// The report in at most twenty lines: what changes, the worst first.
pub fn text(report: &Report) -> String {
    let mut lines = vec![summary(report)];
    let all: Vec<&String> = report.preflight.iter().chain(&report.notes).collect();
    let notes: Vec<String> = all.iter().take(3).map(|note| format!("! {note}")).collect();
    let worst = report.worst_first();
    let with_text = worst.len() <= WITH_TEXT;
    let each = if with_text { 2 } else { 1 };
    let warned = |one: &&&Judged| usize::from(!one.warnings.is_empty());
    // Beside them: the head, and two lines about what is left out.
    let room = LINES - lines.len() - notes.len() - 3;
    let mut used = 0;
    let shown = worst.iter().take_while(|one| {
        used += each + if with_text { warned(one) } else { 0 };
        used <= room
    });
    let shown = shown.count();
    if shown > 0 {
        lines.push("   #  share    cost  what changes".to_owned());
    }
    for one in &worst[..shown] {
        lines.push(line(one));
        if with_text {
            lines.push(format!("{:21}{}", "", one_line(&one.text)));
            lines.extend(one.warnings.first().map(|warning| format!("{:21}! {warning}", "")));
        }
    }
    if shown < worst.len() {
        lines.push(format!("... and {} more: --format json, or -o DIR", worst.len() - shown));
    }
    lines.extend(notes);
    if all.len() > 3 {
        lines.push(format!("! and {} more notes", all.len() - 3));
    }
    lines.iter().map(|text| format!("{}\n", cut(&escape::line(text), WIDTH))).collect()
}

fn summary(report: &Report) -> String {
    let count =
        |is: fn(PlanClass) -> bool| report.statements.iter().filter(|one| is(one.class)).count();
    let all = report.statements.len();
    let changed = count(PlanClass::is_change);
    let unknown = count(PlanClass::is_unknown);
    let mut text = format!("{} -> {}: {changed} of {all} change", report.old, report.new);
    if unknown > 0 {
        text.push_str(&format!(", {unknown} cannot be told"));
    }
    text
}

/// `   7   34 %    x3.5  join order: b is now joined with c`.
fn line(one: &Judged) -> String {
    let share = one.share.map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
    let cost = one.cost_ratio.map_or(String::new(), |ratio| match ratio {
        ratio if ratio >= 100.0 => format!("x{ratio:.0}"),
        ratio => format!("x{ratio:.2}"),
    });
    let notes = one.notes.join("; ");
    format!("{:>4} {share:>6} {cost:>7}  {}: {notes}", one.number, one.class.words())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text in at most `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 3).collect();
    format!("{}...", kept.trim_end())
}

const STYLE: &str = include_str!("report.css");

/// The page: a table of all that is not the same, and the trees of each side by side.
pub fn html(report: &Report) -> String {
    let title = escape::html(&summary(report));
    let mut page = String::new();
    if !report.preflight.is_empty() || !report.notes.is_empty() {
        page.push_str("<ul>");
        for note in report.preflight.iter().chain(&report.notes) {
            page.push_str(&format!("<li>{}</li>\n", escape::html(note)));
        }
        page.push_str("</ul>\n");
    }
    let worst = report.worst_first();
    page.push_str("<table><tr><th>#<th>share<th>cost<th>what changes<th>statement</tr>\n");
    for one in &worst {
        let share = one.share.map_or(String::new(), |share| format!("{:.1} %", share * 100.0));
        let cost = one.cost_ratio.map_or(String::new(), |ratio| format!("&times;{ratio:.2}"));
        let text = escape::html(&cut(&one_line(&one.text), 120));
        page.push_str(&format!(
            "<tr><td><a href=\"#s{0}\">{0}</a><td>{share}<td>{cost}<td>{1}<td>{text}</tr>\n",
            one.number,
            one.class.words(),
        ));
    }
    page.push_str("</table>\n");
    for one in worst {
        section(&mut page, one, report);
    }
    framed(&title, &page)
}

/// A page with this title, which is its first heading, and this content, both of HTML.
pub fn framed(title: &str, content: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n{content}</body></html>\n"
    )
}

fn section(page: &mut String, one: &Judged, report: &Report) {
    page.push_str(&format!(
        "<section id=\"s{0}\"><h2>{0}: <span class=\"class\">{1}</span></h2>\n<p>{2}</p><pre>{3}\
         </pre>\n<ul>",
        one.number,
        one.class.words(),
        escape::html(&one.origin),
        escape::html(&one.text),
    ));
    for note in one.notes.iter().chain(&one.warnings) {
        page.push_str(&format!("<li>{}</li>", escape::html(note)));
    }
    page.push_str("</ul><div class=\"side\">\n");
    let lines = |plan: &Option<PlanNode>| plan.as_ref().map(PlanNode::text).unwrap_or_default();
    let (old, new) = (lines(&one.old), lines(&one.new));
    side(page, &report.old, &old, &new, one.old_error.as_deref());
    side(page, &report.new, &new, &old, one.new_error.as_deref());
    if let Some(source) = &one.source {
        side(page, "the source itself", &source.text(), &old, None);
    }
    page.push_str("</div></section>\n");
}

/// A tree in which lines that the other one does not have are marked; estimates aside.
fn side(page: &mut String, name: &str, text: &str, other: &str, error: Option<&str>) {
    let bare = |line: &str| line.split("  (").next().unwrap_or_default().trim().to_owned();
    let known: Vec<String> = other.lines().map(bare).collect();
    page.push_str(&format!("<div><b>{}</b><pre>", escape::html(name)));
    if let Some(error) = error {
        page.push_str(&format!("<span class=\"other\">{}</span>\n", escape::html(error)));
    }
    for line in text.lines() {
        let shown = escape::html(line);
        if other.is_empty() || known.contains(&bare(line)) {
            page.push_str(&format!("{shown}\n"));
        } else {
            page.push_str(&format!("<span class=\"other\">{shown}</span>\n"));
        }
    }
    page.push_str("</pre></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(number: usize, class: PlanClass) -> Judged {
        Judged {
            number,
            text: "SELECT 1\n  FROM a <b>".to_owned(),
            origin: "q.sql:1".to_owned(),
            step: None,
            share: None,
            class,
            method: None,
            parameters: None,
            notes: vec!["a\u{1b}[2J is read first, then ".to_owned() + &"b".repeat(100)],
            warnings: Vec::new(),
            cost_ratio: Some(1.2),
            old: Some(PlanNode::of("Result")),
            new: Some(PlanNode::of("<Result>")),
            source: None,
            old_error: None,
            new_error: None,
        }
    }

    #[test]
    fn a_terminal_gets_twenty_lines_of_eighty_columns_without_controls() {
        for count in [1, 3, 5, 300] {
            let statements = (1..=count).map(|number| judged(number, PlanClass::JoinOrder));
            let report = Report {
                old: "postgres 15".to_owned(),
                new: "postgres 18".to_owned(),
                preflight: vec!["the setting a = b is gone".to_owned()],
                notes: vec!["a note".to_owned(); 9],
                statements: statements.collect(),
            };
            let text = text(&report);
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(text.contains("join order: a"), "{text}");
            let html = html(&report);
            assert!(html.contains("&lt;Result&gt;") && !html.contains("<Result>"), "{html}");
        }
    }

    #[test]
    fn the_worst_is_first() {
        let mut loaded = judged(2, PlanClass::Conditions);
        loaded.share = Some(0.4);
        let mut far = judged(5, PlanClass::AccessPath);
        far.cost_ratio = Some(0.01);
        let [error, same, unknown] =
            [(3, PlanClass::Error), (1, PlanClass::Same), (4, PlanClass::NotCovered)]
                .map(|(number, class)| judged(number, class));
        let statements = vec![same, loaded, error, unknown, far];
        let (old, new, preflight) = (String::new(), String::new(), Vec::new());
        let report = Report { old, new, preflight, notes: Vec::new(), statements };
        let order: Vec<usize> = report.worst_first().iter().map(|one| one.number).collect();
        assert_eq!(order, [3, 2, 5, 4]);
        assert!(report.has_changes() && report.has_unknowns());
    }
}
