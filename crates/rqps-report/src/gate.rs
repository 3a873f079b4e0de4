//! Findings of the gate in formats for CI systems.

use std::fmt::Write;

use rqps_analysis::gate::{Assessment, Finding, GateOutcome, Level};
use rqps_model::escape;

/// Formats of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFormat {
    /// One line for each finding and one for the result.
    Text,
    /// JSON with all data, for programs.
    Json,
    /// Markdown for a comment on a change.
    Markdown,
    /// JUnit XML: a test case for each finding.
    Junit,
    /// Workflow commands of GitHub Actions.
    Github,
}

/// Renders the findings in one format. `exit` is the exit code of the process.
pub fn render_gate(assessment: &Assessment, exit: u8, format: GateFormat) -> String {
    match format {
        GateFormat::Text => text(assessment, exit),
        GateFormat::Json => json(assessment, exit),
        GateFormat::Markdown => markdown(assessment, exit),
        GateFormat::Junit => junit(assessment),
        GateFormat::Github => github(assessment, exit),
    }
}

/// `mysql-8.0.33 point-query o/s SLOWER 0.710 [0.690, 0.731] n=6 holm=0.0004`.
fn what(finding: &Finding) -> String {
    let mut parts: Vec<String> = [&finding.target, &finding.step]
        .into_iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect();
    parts.extend(finding.metric.map(|metric| metric.name().to_owned()));
    if !finding.verdict.is_empty() {
        parts.push(finding.verdict.clone());
    }
    parts.extend(finding.ratio.map(|ratio| format!("{ratio:.3}")));
    parts.extend(finding.interval.map(|interval| interval.to_string()));
    if finding.metric.is_some() {
        parts.push(format!("n={}", finding.pairs));
    }
    parts.extend(
        finding
            .holm
            .map(|p| if p < 0.0001 { "holm<0.0001".to_owned() } else { format!("holm={p:.4}") }),
    );
    parts.join(" ")
}

fn line(finding: &Finding) -> String {
    let text = finding.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = what(finding);
    let parts = [what.as_str(), text.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// What made the gate fail, the worst first, as one line each.
pub fn regressions(assessment: &Assessment) -> Vec<String> {
    let failing = assessment.findings.iter().filter(|it| it.level == Level::Regression);
    failing.map(|finding| escape::line(&line(finding)).into_owned()).collect()
}

/// The result in one line.
fn whole(assessment: &Assessment, exit: u8) -> String {
    let ending = match assessment.ending {
        GateOutcome::Boring => "boring",
        GateOutcome::NoRegression => "no regression",
        GateOutcome::Undecided => "undecided, no regression shown",
        GateOutcome::Regression => "REGRESSION",
        GateOutcome::NoVerdict => "NO VERDICT",
        GateOutcome::RunFailed => "A RUN FAILED",
    };
    let count = |level| assessment.findings.iter().filter(|f| f.level == level).count();
    format!(
        "{ending} (exit {exit}): regressions {}, small losses {}, gains {}, allowed {}, failures \
         {}; {} of {} verdicts unclear, {:.0} % may be; {} by {}, alpha {}",
        count(Level::Regression),
        assessment.small,
        count(Level::Gain),
        count(Level::Allowed),
        count(Level::Failure),
        assessment.unclear,
        assessment.judged,
        100.0 * assessment.unclear_max,
        assessment.metrics.join(", "),
        assessment.rules.text(),
        assessment.rules.alpha,
    )
}

fn text(assessment: &Assessment, exit: u8) -> String {
    let mut text = String::new();
    for finding in &assessment.findings {
        let _ = writeln!(text, "{} {}", finding.level.name(), escape::line(&line(finding)));
    }
    for note in &assessment.notes {
        let _ = writeln!(text, "NOTE {}", escape::line(note));
    }
    let _ = writeln!(text, "gate: {}", whole(assessment, exit));
    escape::terminal(&text).into_owned()
}

fn json(assessment: &Assessment, exit: u8) -> String {
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        schema: u32,
        exit: u8,
        gate: &'a Assessment,
    }
    let whole = Whole { schema: super::SCHEMA, exit, gate: assessment };
    let text = serde_json::to_string_pretty(&whole)
        .unwrap_or_else(|fault| format!("{{\"fault\": \"{fault}\"}}"));
    format!("{}\n", escape::json(&text))
}

fn markdown(assessment: &Assessment, exit: u8) -> String {
    let mut text = format!("**rqps gate: {}**\n\n", escape::markdown(&whole(assessment, exit)));
    for sentence in [&assessment.sentence, &assessment.limit] {
        if !sentence.is_empty() {
            let _ = writeln!(text, "{}\n", escape::markdown_paragraph(sentence));
        }
    }
    for note in &assessment.notes {
        let _ = writeln!(text, "{}\n", escape::markdown_paragraph(note));
    }
    if assessment.findings.is_empty() {
        return text;
    }
    text.push_str(
        "| | target | step | metric | verdict | ratio | n | |\n|---|---|---|---|---|---|---|---|\n",
    );
    for finding in &assessment.findings {
        let ratio = finding.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let interval = finding.interval.map(|interval| format!(" {interval}"));
        let cells = [
            finding.level.name().to_owned(),
            finding.target.clone(),
            finding.step.clone(),
            finding.metric.map(|metric| metric.name().to_owned()).unwrap_or_default(),
            finding.verdict.clone(),
            format!("{ratio}{}", interval.unwrap_or_default()),
            if finding.pairs > 0 { finding.pairs.to_string() } else { String::new() },
            finding.text.split_whitespace().collect::<Vec<_>>().join(" "),
        ];
        let cells = cells.map(|cell| escape::markdown(&cell));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// A test case for each finding and one for the result, so a gate without findings also has a case.
fn junit(assessment: &Assessment) -> String {
    let failures =
        assessment.findings.iter().filter(|finding| finding.level == Level::Regression).count();
    let errors = assessment.findings.iter().filter(|f| f.level == Level::Failure).count();
    let skipped = assessment.findings.iter().filter(|f| f.level == Level::Unclear).count();
    let whole_fails = !is_fine(assessment.ending) && failures + errors == 0;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rqps gate\">\n\
         <testsuite name=\"rqps gate\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\" \
         skipped=\"{skipped}\">\n",
        assessment.findings.len() + 1,
        failures + usize::from(whole_fails),
    );
    for finding in &assessment.findings {
        let name = [finding.step.as_str(), finding.metric.map_or("", |metric| metric.name())];
        let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let name = if name.is_empty() { "run" } else { &name };
        let tag = match finding.level {
            Level::Regression => "failure",
            Level::Failure => "error",
            Level::Unclear => "skipped",
            Level::Small | Level::Allowed | Level::NotConfirmed | Level::Gain => "system-out",
        };
        let inside = match tag {
            "system-out" => format!("<system-out>{}</system-out>", escape::xml(&line(finding))),
            _ => format!("<{tag} message=\"{}\"/>", escape::xml(&line(finding))),
        };
        let _ = writeln!(
            text,
            "<testcase classname=\"{}\" name=\"{}\">{inside}</testcase>",
            escape::xml(&finding.target),
            escape::xml(name)
        );
    }
    let sentence = escape::xml(&assessment.sentence);
    let inside = if whole_fails {
        format!("<failure message=\"{sentence}\"/>")
    } else {
        format!("<system-out>{sentence}</system-out>")
    };
    let _ = writeln!(text, "<testcase classname=\"rqps\" name=\"gate\">{inside}</testcase>");
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn github(assessment: &Assessment, exit: u8) -> String {
    let mut text = String::new();
    for finding in &assessment.findings {
        let command = match finding.level {
            Level::Regression | Level::Failure => "error",
            Level::Unclear | Level::Small => "warning",
            Level::Allowed | Level::NotConfirmed | Level::Gain => "notice",
        };
        let title = format!("rqps {} {}", finding.level.name(), finding.step);
        let (title, line) =
            (escape::github_property(title.trim()), escape::github_message(&line(finding)));
        let _ = writeln!(text, "::{command} title={title}::{line}");
    }
    for note in &assessment.notes {
        let _ = writeln!(text, "::notice title=rqps gate::{}", escape::github_message(note));
    }
    let command = if is_fine(assessment.ending) { "notice" } else { "error" };
    let whole = escape::github_message(&whole(assessment, exit));
    let _ = writeln!(text, "::{command} title=rqps gate::{whole}");
    text
}

/// True if the job passes.
fn is_fine(ending: GateOutcome) -> bool {
    matches!(ending, GateOutcome::Boring | GateOutcome::NoRegression | GateOutcome::Undecided)
}
