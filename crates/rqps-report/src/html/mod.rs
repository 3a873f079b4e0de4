//! A report as one self-contained HTML file: no network, no other files.
//!
//! The document is plain HTML, with its charts and the overview as JSON beside it; scripts draw
//! those when they scroll into view. A policy in the head forbids every request.

mod blocks;
mod data;
#[cfg(test)]
mod tests;

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

pub(super) use data::id;

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
    data::push_json(&mut html, "runs", &data::runs(runs));
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
const ASIDES: [&str; 10] = [
    "host", "turns", "method", "efficiency", "other-metrics", "how-to-read", "details", "runs",
    "settings", "server-settings",
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
