//! A report as one self-contained HTML file: no network, no other files.
//!
//! The document is plain HTML, with its charts and the overview as JSON beside it; scripts draw
//! those when they scroll into view. A policy in the head forbids every request.

mod blocks;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

use super::build::{self, Sections};
use super::document::{Block, Document, Section};
use super::facts;
use super::families::{self, FamilyReport};
use super::timeline::SecondsOf;
use blocks::Writer;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::RunFacts;
use rqps_model::escape::{attribute, html as text};
use rqps_model::run::Dataset;

pub(super) use blocks::id;

// The file around the document: head, navigation, sections, scripts.

const STYLE: &str = include_str!("assets/report.css");
const SCRIPTS: [&str; 5] = [
    include_str!("assets/page.js"),
    include_str!("assets/flame.js"),
    include_str!("assets/heat.js"),
    include_str!("assets/forest.js"),
    include_str!("assets/charts.js"),
];
const NOTICE: &str = include_str!("assets/ECHARTS-NOTICE");

/// Forbids all loading; the page creates its images itself.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// Forbids all loading but of the files of the site, also where it is opened from a folder.
const SITE_POLICY: &str = "default-src 'none'; script-src 'self' file: 'unsafe-inline'; \
                           style-src 'self' file: 'unsafe-inline'; img-src data: blob:; \
                           base-uri 'none'; form-action 'none'";

/// Input of an HTML report.
pub struct Material<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The dataset, which locates the rows per second.
    pub dataset: &'a Dataset,
    /// Reads the rows per second of a step.
    pub seconds: &'a SecondsOf<'a>,
    /// Run folder in the dataset → its address relative to the file of the report, without a
    /// trailing slash. A folder without an entry is its own address.
    pub links: &'a BTreeMap<String, String>,
    /// Hooks of the benchmarks.
    pub own: &'a [&'a Sections],
}

/// Renders the complete file.
pub fn render(material: &Material) -> String {
    let (document, lead, runs) = parts(material);
    render_document(&document, &lead, &runs, PageFrame::Whole)
}

/// Renders the reports of several families as one file.
pub fn render_families(materials: &[(&str, Material)]) -> String {
    let (mut documents, mut leads, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (family, material) in materials {
        let (document, lead, of_family) = parts(material);
        documents.push(document);
        leads.push(format!("{family}: {lead}"));
        runs.extend(of_family);
    }
    let reports: Vec<FamilyReport> = materials
        .iter()
        .map(|(family, material)| FamilyReport { family, comparison: material.comparison })
        .collect();
    let document = families::merged(&reports, documents);
    render_document(&document, &leads.join(" · "), &runs, PageFrame::Whole)
}

/// A report as a page of a site.
pub struct SitePage {
    /// The page.
    pub html: String,
    /// Title of the report.
    pub title: String,
    /// Its first paragraph: the verdict.
    pub verdict: String,
}

/// Renders the page of a site. `root` leads from the page to the folder of the site: `../`.
pub fn render_for_site(material: &Material, root: &str) -> SitePage {
    let (document, lead, runs) = parts(material);
    let html = render_document(&document, &lead, &runs, PageFrame::Site { root });
    let mut blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let verdict = blocks.find_map(|block| match block {
        Block::Paragraph(text) => Some(text.clone()),
        _ => None,
    });
    SitePage { html, title: document.title, verdict: verdict.unwrap_or_default() }
}

/// The place of a page's style and scripts.
#[derive(Clone, Copy)]
pub(crate) enum PageFrame<'a> {
    /// In the page.
    Whole,
    /// In files of the site, to whose folder `root` leads.
    Site { root: &'a str },
}

/// Files that all pages of a site share: address in the site, content.
pub fn site_assets() -> Vec<(&'static str, String)> {
    vec![
        ("assets/report.css", STYLE.to_owned()),
        ("assets/report.js", SCRIPTS.concat()),
        ("assets/echarts.js", chart_library().to_owned()),
        ("assets/ECHARTS-LICENSE", include_str!("assets/ECHARTS-LICENSE").to_owned()),
        ("assets/ECHARTS-LICENSE-D3", include_str!("assets/ECHARTS-LICENSE-D3").to_owned()),
        ("assets/ECHARTS-NOTICE", NOTICE.to_owned()),
    ]
}

fn parts(material: &Material) -> (Document, String, Vec<RunLink>) {
    let document =
        build::page_document(material.comparison, material.dataset, material.seconds, material.own);
    let run = |run: &RunFacts| {
        let address = material.links.get(&run.folder).unwrap_or(&run.folder).clone();
        let attempt = match run.key.attempt {
            1 => String::new(),
            attempt => format!(" attempt {attempt}"),
        };
        let name = format!("{}, block {}{attempt}", run.key.label, run.key.block);
        RunLink { folder: run.folder.clone(), address, name }
    };
    let runs: Vec<RunLink> = material.comparison.runs.iter().map(run).collect();
    let lead = facts::brief(material.comparison).join(" · ");
    (document, lead, runs)
}

pub(crate) fn render_document(
    document: &Document,
    lead: &str,
    runs: &[RunLink],
    frame: PageFrame,
) -> String {
    let mut html = String::with_capacity(match frame {
        PageFrame::Whole => 2 << 20,
        PageFrame::Site { .. } => 1 << 17,
    });
    push_head(&mut html, &document.title, frame);
    let title = text(&document.title);
    let _ = write!(
        html,
        "<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n\
         <header><div><h1>{title}</h1>\
         <p>{}</p></div><button type=\"button\" id=\"theme\" class=\"noprint\" hidden></button>\
         </header>\n",
        text(lead)
    );
    let ids = section_ids(&document.sections);
    push_navigation(&mut html, &document.sections, &ids, frame);
    html.push_str("<main id=\"main\">\n");
    let mut writer = Writer::new(runs);
    for (section, id) in document.sections.iter().zip(&ids) {
        push_section(&mut html, section, id, &mut writer);
    }
    html.push_str("</main>\n<dialog id=\"sources\"></dialog>\n");
    push_footer(&mut html);
    blocks::push_json(&mut html, "runs", &blocks::runs(runs));
    html.push_str(&writer.into_data());
    push_scripts(&mut html, frame);
    html.push_str("</body>\n</html>\n");
    html
}

fn push_scripts(html: &mut String, frame: PageFrame) {
    if let PageFrame::Site { root } = frame {
        let _ = write!(
            html,
            "<script src=\"{root}assets/echarts.js\"></script>\n\
             <script src=\"{root}assets/report.js\"></script>\n"
        );
        return;
    }
    // Runs when the first chart is drawn.
    let _ = write!(
        html,
        "<script type=\"text/plain\" id=\"chart-library\">{library}</script>\n<script>\n",
        library = chart_library()
    );
    for script in SCRIPTS {
        html.push_str(script);
    }
    html.push_str("</script>\n");
}

fn push_head(html: &mut String, title: &str, frame: PageFrame) {
    let (policy, style) = match frame {
        PageFrame::Whole => (POLICY, format!("<style>\n{STYLE}</style>\n")),
        PageFrame::Site { root } => (
            SITE_POLICY,
            format!(
                "<link rel=\"stylesheet\" href=\"{root}assets/report.css\">\n\
                 <link rel=\"alternate\" type=\"application/atom+xml\" href=\"{root}feed.xml\">\n"
            ),
        ),
    };
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"rqps {}\">\n<title>{}</title>\n\
         {style}\
         <noscript><style>.needs-script {{ display: none; }}</style></noscript>\n</head>\n",
        attribute(policy),
        env!("CARGO_PKG_VERSION"),
        text(title),
    );
}

/// Unique ids of sections: a repeated id, from a later family, gets a number.
fn section_ids(sections: &[Section]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let id = |section: &Section| {
        let count = counts.entry(section.id).or_default();
        *count += 1;
        match count {
            1 => section.id.to_owned(),
            count => format!("{}-{count}", section.id),
        }
    };
    sections.iter().map(id).collect()
}

fn push_navigation(html: &mut String, sections: &[Section], ids: &[String], frame: PageFrame) {
    html.push_str("<nav aria-label=\"Sections\"><ul>");
    if let PageFrame::Site { root } = frame
        && !root.is_empty()
    {
        let _ = write!(html, "<li><a href=\"{root}index.html\">Overview</a></li>");
    }
    // The head of a warning is a sentence.
    let first = |section: &Section| {
        section.heading.split([':', '(']).next().unwrap_or("").trim().to_owned()
    };
    let named = sections.iter().zip(ids).filter(|(section, _)| !section.heading.is_empty());
    let rest =
        |section: &Section| section.heading.split_once(':').map(|(_, rest)| rest.trim().to_owned());
    for (section, id) in named {
        let name = first(section);
        // Sections of a benchmark begin with its name, so the rest distinguishes them.
        let shared = sections.iter().filter(|other| first(other) == name).count() > 1;
        let own = rest(section).filter(|_| shared);
        // Families have the same sections.
        let name = match own {
            Some(own)
                if sections.iter().filter(|it| rest(it).as_ref() == Some(&own)).count() > 1 =>
            {
                section.heading.clone()
            }
            own => own.unwrap_or(name),
        };
        let _ = write!(html, "<li><a href=\"#{id}\">{}</a></li>", text(&name));
    }
    html.push_str("</ul></nav>\n");
}

/// Sections that are rarely read: closed until somebody wants them.
const ASIDES: [&str; 17] = [
    "groups", "verdicts", "plans", "load", "caveats", "blocks", "facts", "host", "turns", "method",
    "efficiency", "other-metrics", "how-to-read", "details", "runs", "settings", "server-settings",
];

fn push_section(html: &mut String, section: &Section, id: &str, writer: &mut Writer) {
    let _ = writeln!(html, "<section id=\"{id}\">");
    let heading = format!("<h2>{}</h2>", text(&section.heading));
    if ASIDES.contains(&section.id) && !section.heading.is_empty() {
        writer.push_details(html, &format!("{id}-all"), &heading, &section.blocks);
    } else {
        if !section.heading.is_empty() {
            let _ = writeln!(html, "{heading}");
        }
        writer.push_blocks(html, id, &section.blocks);
    }
    html.push_str("</section>\n");
}

fn push_footer(html: &mut String) {
    let notice: Vec<&str> = NOTICE.lines().filter(|line| !line.trim().is_empty()).collect();
    let _ = writeln!(
        html,
        "<footer>Written by rqps {}. Charts are drawn by {}, Apache License 2.0.</footer>",
        env!("CARGO_PKG_VERSION"),
        text(&notice.join(" ")),
    );
}

/// A run folder that numbers link to.
pub(crate) struct RunLink {
    /// Name in cells.
    pub(crate) folder: String,
    /// Link address.
    pub(crate) address: String,
    /// Displayed name.
    pub(crate) name: String,
}

/// Apache ECharts 6.1.0, `dist/echarts.common.min.js` of its npm package, through `gzip -9n`;
/// licence and notice are beside it and in every report.
const PACKED: &[u8] = include_bytes!("assets/echarts.common.min.js.gz");

/// The text of the library.
///
/// # Panics
/// Never: a test reads it whole.
fn chart_library() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::new();
        GzDecoder::new(PACKED).read_to_string(&mut text).expect("the library as it was packed");
        text
    })
}

#[cfg(test)]
mod tests {
    //! The structure of the file; the tests of the program try it in a browser.
    use super::{PageFrame, RunLink, chart_library, render_document};
    use crate::document::{Axis, Chart, Form, Line, Point, Series};
    use crate::document::{Block, Cell, Column, Digits, Document, Section};
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
        let section = Section::new("x", "Head <1>", blocks);
        let document = Document { title: "a & b".to_owned(), sections: vec![section] };
        let html = render_document(&document, "lead", &runs(), PageFrame::Whole);
        // The library contains none of our own code.
        html.replace(chart_library(), "")
    }

    #[test]
    fn words_are_escaped_wherever_they_stand() {
        let html = page(vec![
            Block::text("<script>alert(1)</script>"),
            Block::List(vec!["<point>".to_owned()]),
            Block::Facts(vec![("<name>".to_owned(), "<value>".to_owned())]),
            Block::Lines(vec!["<pre>".to_owned()]),
            Block::fold("</summary>", Vec::new()),
            Block::table(
                "<cap>",
                vec![Column::words("<th1>")],
                vec![vec![Cell::text("<td1>")], vec![Cell::missing("why \"<\"")]],
            ),
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
        let shared =
            vec![number(1.0).from_runs(of(&["set/c"])), number(2.0).from_runs(of(&["set/c"]))];
        let apart = vec![
            number(1.0).from_runs(of(&["set/c"])),
            number(2.0).from_runs(of(&["set/a b", "set/c"])),
        ];
        let table = |rows| Block::table("", columns(), rows);
        let html = page(vec![table(vec![shared, apart])]);
        assert!(html.contains("<tr data-r=\"1\"><td class=\"n\">1.0</td>"), "{html}");
        assert!(
            html.contains(
                "<td class=\"n\" data-r=\"1\">1.0</td><td class=\"n\" data-r=\"0 1\">2.0"
            )
        );
        assert!(
            html.contains(r#"[["../set/a%20b","name of set/a b"],["../set/c","name of set/c"]]"#)
        );
    }

    #[test]
    fn colour_says_which_way_is_better_and_nothing_where_nothing_was_shown() {
        let cell = |ratio: f64, low, high, better: f64| {
            Cell::number(ratio, Digits::Fixed(2), "ratio")
                .within(Some(Interval { low, high }))
                .toned(Some(better * ratio.ln()))
        };
        let row =
            vec![cell(0.5, 0.4, 0.6, 1.0), cell(0.5, 0.4, 0.6, -1.0), cell(0.9, 0.8, 1.1, 1.0)];
        let columns = vec![Column::numbers("a"), Column::numbers("b"), Column::numbers("c")];
        let html = page(vec![Block::table("", columns, vec![row])]);
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
}
