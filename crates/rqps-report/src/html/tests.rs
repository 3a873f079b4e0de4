//! The structure of the file; the tests of the program try it in a browser.

use super::{PageFrame, RunLink, chart_library, render_document};
use crate::chart::{Axis, Chart, Form, Line, Point, Series};
use crate::document::{Block, Cell, Column, Digits, Document, Fold, Section, Table};
use rqps_stats::Interval;

fn runs() -> Vec<RunLink> {
    let run = |folder: &str| RunLink {
        folder: folder.to_owned(),
        address: format!("../{folder}"),
        name: format!("name of {folder}"),
    };
    vec![run("set/a b"), run("set/c")]
}

fn page(blocks: Vec<Block>) -> String {
    let section = Section { id: "x", heading: "Head <1>".to_owned(), blocks };
    let document = Document { title: "a & b".to_owned(), sections: vec![section] };
    let html = render_document(&document, "lead", &runs(), PageFrame::Whole);
    // The library contains none of our own code.
    html.replace(chart_library(), "")
}

#[test]
fn words_are_escaped_wherever_they_stand() {
    let html = page(vec![
        Block::Paragraph("<script>alert(1)</script>".to_owned()),
        Block::List(vec!["<point>".to_owned()]),
        Block::Facts(vec![("<name>".to_owned(), "<value>".to_owned())]),
        Block::Lines(vec!["<pre>".to_owned()]),
        Block::Fold(Fold { summary: "</summary>".to_owned(), blocks: Vec::new() }),
        Block::Table(Table {
            caption: "<cap>".to_owned(),
            columns: vec![Column::words("<th1>")],
            rows: vec![vec![Cell::text("<td1>")], vec![Cell::missing("why \"<\"")]],
        }),
    ]);
    for raw in [
        "<script>alert", "<point>", "<name>", "<value>", "<cap>", "<th1>", "<td1>", "\"<\"",
        "Head <1>",
    ] {
        assert!(!html.contains(raw), "{raw}");
    }
    assert!(html.contains("why &quot;&lt;&quot;"));
    assert!(html.contains("<title>a &amp; b</title>"));
}

#[test]
fn numbers_lead_to_their_runs() {
    let of = |folders: &[&str]| -> Vec<String> {
        folders.iter().map(|folder| (*folder).to_owned()).collect()
    };
    let number = |value| Cell::number(value, Digits::Fixed(1), "ms");
    let columns = || vec![Column::numbers("a"), Column::numbers("b")];
    let shared = vec![number(1.0).from_runs(of(&["set/c"])), number(2.0).from_runs(of(&["set/c"]))];
    let apart = vec![
        number(1.0).from_runs(of(&["set/c"])),
        number(2.0).from_runs(of(&["set/a b", "set/c"])),
    ];
    let table = |rows| Block::Table(Table { caption: String::new(), columns: columns(), rows });
    let html = page(vec![table(vec![shared, apart])]);
    assert!(html.contains("<tr data-r=\"1\"><td class=\"n\">1.0</td>"), "{html}");
    assert!(
        html.contains("<td class=\"n\" data-r=\"1\">1.0</td><td class=\"n\" data-r=\"0 1\">2.0")
    );
    assert!(html.contains(r#"[["../set/a%20b","name of set/a b"],["../set/c","name of set/c"]]"#));
}

#[test]
fn colour_says_which_way_is_better_and_nothing_where_nothing_was_shown() {
    let cell = |ratio: f64, low, high, better: f64| {
        Cell::number(ratio, Digits::Fixed(2), "ratio")
            .within(Some(Interval { low, high }))
            .toned(Some(better * ratio.ln()))
    };
    let row = vec![cell(0.5, 0.4, 0.6, 1.0), cell(0.5, 0.4, 0.6, -1.0), cell(0.9, 0.8, 1.1, 1.0)];
    let columns = vec![Column::numbers("a"), Column::numbers("b"), Column::numbers("c")];
    let html = page(vec![Block::Table(Table { caption: String::new(), columns, rows: vec![row] })]);
    assert!(html.contains("<td class=\"n t worse\" style=\"--a:63%\">0.50"), "{html}");
    assert!(html.contains("<td class=\"n t better\" style=\"--a:63%\">0.50"));
    assert!(html.contains("<td class=\"n\">0.90"));
}

#[test]
fn charts_are_data_and_ids_are_given_once() {
    let mut chart = Chart::new("c", "a </script> title", Form::Lines)
        .axes(Axis::linear("time", "s"), Axis::log("latency", "ms"));
    let points = vec![
        Point::at(0.0, 1.0),
        Point::at(1.0, f64::NAN),
        Point::at(2.0, f64::INFINITY).within(Some(Interval { low: 0.5, high: 2.0 })),
    ];
    chart.series.push(Series { points, ..Series::new("t", 1, Line::Straight) });
    let html = page(vec![Block::Chart(chart.clone()), Block::Chart(chart)]);
    assert!(html.contains("id=\"data-c\">") && html.contains("id=\"data-c-2\">"));
    assert!(html.contains(r#""title":"a \u003c/script> title","form":"lines""#), "{html}");
    assert!(html.contains(r#""y":[1,null,"inf"],"lo":[null,null,0.5],"hi":[null,null,2]"#));
}

/// Seconds of two runs of one target, with one stalled second that keeps its value.
#[test]
fn long_lines_are_written_in_units_and_names_once() {
    let mut chart = Chart::new("c", "rate", Form::Lines);
    let rate = |place: usize| if place == 3 { 7.0 } else { 19_876.0 + place as f64 };
    let whole = |y: f64| Some(Interval { low: y - 5.0, high: y + 21.0 });
    let point = |place: usize| Point::at(place as f64, rate(place)).within(whole(rate(place)));
    let points: Vec<Point> = (0..25).map(point).collect();
    for _ in 0..2 {
        let series = Series::new("t", 1, Line::Straight);
        chart.series.push(Series { points: points.clone(), ..series });
    }
    let html = page(vec![Block::Chart(chart)]);
    assert_eq!(html.matches(r#""n":"t","s":1,"l":"straight""#).count(), 1, "{html}");
    assert_eq!(html.matches(r#""k":20,"y":[994,994,994,0.35,994,"#).count(), 2, "{html}");
    assert_eq!(html.matches(r#""lo":[0,0,0,0.25,"#).count(), 2, "{html}");
    assert_eq!(html.matches(r#""hi":[1,1,1,1.05,"#).count(), 2, "{html}");
}

#[test]
fn every_request_is_forbidden() {
    let html = page(Vec::new());
    assert!(html.contains("content=\"default-src 'none'; script-src 'unsafe-inline'"));
    for outside in [" src=", "<link", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

/// The vendored file equals the published file.
#[test]
fn the_library_is_the_published_one() {
    use sha2::{Digest, Sha256};
    let library = chart_library();
    let sum: String =
        Sha256::digest(library.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum, "61f13280aba3161f77fc801bf5f9c786f55f10432153a0683fc5cc0700b013d5");
    assert!(!library.contains("</script") && !library.contains("<!--"));
}
