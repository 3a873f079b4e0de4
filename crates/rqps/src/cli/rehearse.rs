//! `rqps rehearse`: what an upgrade breaks, answers differently, slows and speeds up, on one page.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::cli::args::{Folders, GuestOptions, RuleOptions, share};
use crate::cli::folders;
use crate::cli::hosts::Hosts;
use crate::cli::parts::{BlocksWord, Switch, WorkloadArgs, duration, whole};
use crate::cli::plans::{self, Planned, Plans, PlansForm};
use crate::cli::report::{self, Compared};
use crate::cli::{exit, measure, questions, terminal};
use rqps_analysis::answers::AnswerWeight;
use rqps_analysis::comparison::StepComparison;
use rqps_lab::benchmarks;
use rqps_lab::plan::{Auto, Blocks, Plan, PlanDraft};
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_model::units::counted;
use rqps_model::verdict::Verdict;
use rqps_model::{escape, safe_path};
use rqps_plans::{Judged, PlanClass, Report};
use rqps_results as results;

/// The version of the JSON form.
const REHEARSAL_SCHEMA: u32 = 1;
/// The least time for a measurement that says something.
const MEASURED_LEAST: Duration = Duration::from_secs(20);
/// Columns of a terminal.
const WIDTH: usize = 80;
/// Findings of a section that a terminal gets.
const SHOWN: usize = 5;
/// Costs of a plan that is not measured: as much more, or as much less, is a finding.
const COST_RATIO: f64 = 1.5;

/// `rqps rehearse`.
#[derive(Debug, Args)]
pub(super) struct Rehearse {
    #[command(flatten)]
    pub plans: Plans,
    /// Time for everything after the builds
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub budget: Duration,
    /// Measure only steps of the workload whose name matches; !GLOB excludes; repeatable
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Number of blocks of the measurement; `auto` stops when every step is decided or the budget
    /// is spent
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub blocks: BlocksWord,
    /// Seed of the statements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>)]
    pub seed: u64,
    /// Smallest relative difference that matters [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub delta: Option<f64>,
}

/// Something that the new version does in another way.
#[derive(Debug, PartialEq, Serialize)]
struct Finding {
    /// The statement, the step or the setting.
    what: String,
    /// What was seen.
    evidence: String,
    /// The share of the load, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

impl Finding {
    fn new(what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        Finding { what: what.into(), evidence: evidence.into(), share: None }
    }

    fn of(judged: &Judged, evidence: String) -> Finding {
        let text: Vec<&str> = judged.text.split_whitespace().collect();
        Finding { share: judged.share, ..Finding::new(text.join(" "), evidence) }
    }
}

/// The page (docs/plans.md has its JSON form).
#[derive(Debug, Default, Serialize)]
struct Page {
    schema: u32,
    exit: u8,
    old: String,
    new: String,
    breaks: Vec<Finding>,
    answers_differently: Vec<Finding>,
    slower: Vec<Finding>,
    faster: Vec<Finding>,
    cannot_be_said: Vec<Finding>,
    /// Statements with the same plan, and steps with the same rate.
    same_plans: usize,
    same_rates: usize,
}

/// Rehearses.
pub(super) fn rehearse(words: &Rehearse) -> Result<u8> {
    let sides = plans::sides(&words.plans)?;
    let labels = [sides.old.label.clone(), sides.new.label.clone()];
    let out = folders::results(words.plans.out.as_deref(), &labels);
    let mut page = Page { schema: REHEARSAL_SCHEMA, ..Page::default() };
    let began = Instant::now();
    let planned = match plans::planned(&words.plans, sides)? {
        Ok(planned) => planned,
        Err(code) => return Ok(code),
    };
    safe_path::make_folder(&out).with_context(|| format!("make {}", out.display()))?;
    plans::write(&planned.report, &out)?;
    page.take_plans(&planned.report);
    let left = words.budget.saturating_sub(began.elapsed());
    let found = match measured(words, &planned, &out.join("results"), left)? {
        Measured::Compared(found) => Some(found),
        Measured::Not(why) => {
            page.cannot_be_said.push(Finding::new("speed and answers", why));
            None
        }
        Measured::Stopped => return Ok(exit::INTERRUPTED),
    };
    if let Some(found) = &found {
        page.take_steps(found, &planned.report);
    }
    page.take_unmeasured(&planned.report, found.as_deref());
    page.exit = page.code();
    end(&page, words.plans.format, &out)
}

/// What became of the measurement.
enum Measured {
    Compared(Box<Compared>),
    Not(String),
    Stopped,
}

/// Runs the steps of the workload on both versions, if it says how to load them.
fn measured(words: &Rehearse, planned: &Planned, out: &Path, left: Duration) -> Result<Measured> {
    let no = |why: &str| Ok(Measured::Not(format!("nothing was executed: {why}")));
    let Some(bench) = &words.plans.bench else {
        return no("--bench sql:FILE names statements and their data");
    };
    let shape = WorkloadArgs {
        bench: vec![bench.clone()],
        preset: "quick".to_owned(),
        steps: words.steps.clone(),
        canaries: Switch::Off,
        seed: words.seed,
        ..WorkloadArgs::default()
    };
    let draft = measure::drafted(&planned.targets, &shape)?.0;
    let own = benchmarks::of(&draft.workload).file.as_ref();
    if !own.is_some_and(|own| (own.has_load)(&draft.workload)) {
        return no("the workload has no [load], which fills both versions");
    }
    if !planned.report.preflight.is_empty() {
        return no("the new version does not take all of the source, see above");
    }
    let blocks = match words.blocks {
        BlocksWord::Number(blocks) => Blocks::Fixed(blocks),
        BlocksWord::Auto if left < MEASURED_LEAST => return no("no time of --budget was left"),
        BlocksWord::Auto => {
            let budget_seconds = Some(left.as_secs_f64());
            Blocks::Auto(Auto { budget_seconds, ..Auto::default() })
        }
    };
    let plan = Plan::build(PlanDraft { blocks, ..draft })?;
    let folders = Folders {
        out: Some(out.to_owned()),
        work: words.plans.work.clone(),
        cache: words.plans.cache.clone(),
        ..Folders::default()
    };
    let consent = questions::own(&plan, &folders)?;
    let (stored, _) = results::read_calibrations(&folders::calibrations());
    let place = (&folders, Hosts::default(), &consent);
    info!("rqps: measuring the steps of {bench} on both versions");
    let (summary, _) = measure::measure_on(plan, place, &GuestOptions::default(), stored, 0.0)?;
    for fault in &summary.faults {
        error!("rqps: failed: {fault}");
    }
    if summary.interrupted {
        return Ok(Measured::Stopped);
    }
    let rules = RuleOptions { delta: words.delta, ..RuleOptions::default() };
    Ok(Measured::Compared(Box::new(report::written(out, &rules)?)))
}

impl Page {
    /// What planning shows by itself.
    fn take_plans(&mut self, report: &Report) {
        (self.old, self.new) = (report.old.clone(), report.new.clone());
        let all = report.preflight.iter();
        self.breaks.extend(all.map(|text| Finding::new(text.clone(), "preflight")));
        for judged in report.worst_first() {
            match (judged.class, &judged.new_error) {
                (PlanClass::Error, Some(words)) => {
                    self.breaks.push(Finding::of(judged, words.clone()));
                }
                (PlanClass::Error, None) => {
                    let evidence =
                        format!("runs only on the new version: {}", judged.notes.join("; "));
                    self.answers_differently.push(Finding::of(judged, evidence));
                }
                (class, _) if class.is_unknown() => {
                    let evidence = format!("{}: {}", class.words(), judged.notes.join("; "));
                    self.cannot_be_said.push(Finding::of(judged, evidence));
                }
                _ => {}
            }
        }
        self.same_plans = report.statements.iter().filter(|it| it.class == PlanClass::Same).count();
    }

    /// What running shows.
    fn take_steps(&mut self, found: &Compared, report: &Report) {
        let comparison = &found.comparison;
        let mut differing: BTreeSet<&str> = BTreeSet::new();
        let weighty = |weight| matches!(weight, AnswerWeight::Data | AnswerWeight::Answer);
        for finding in comparison.answers.iter().filter(|it| weighty(it.weight)) {
            differing.extend(finding.steps.iter().map(String::as_str));
            let steps = finding.steps.join(", ");
            self.answers_differently.push(Finding::new(steps, finding.text.clone()));
        }
        for step in comparison.measured_steps() {
            let Some(target) = step.targets.get(1) else { continue };
            if let Some(failure) = target.failures.first() {
                let ran_before = step.targets[0].failures.is_empty();
                let text = match &failure.status {
                    Status::Failed(words) => words.clone(),
                    _ => "it did not end".to_owned(),
                };
                let finding = Finding::new(step.name.clone(), text);
                let list = if ran_before { &mut self.breaks } else { &mut self.cannot_be_said };
                list.push(finding);
                continue;
            }
            let (verdict, evidence) = rate(step);
            let plans = plans_of(report, &step.name);
            let evidence = if plans.is_empty() { evidence } else { format!("{evidence}; {plans}") };
            let finding = Finding::new(step.name.clone(), evidence);
            match verdict {
                Verdict::Slower | Verdict::SlowerSmall => self.slower.push(finding),
                Verdict::Faster | Verdict::FasterSmall => self.faster.push(finding),
                Verdict::Same => self.same_rates += 1,
                _ if differing.contains(step.name.as_str()) => {}
                _ => self.cannot_be_said.push(finding),
            }
        }
    }

    /// Changed plans of statements that nothing measured.
    fn take_unmeasured(&mut self, report: &Report, found: Option<&Compared>) {
        let steps = found.map(|found| found.comparison.measured_steps());
        let measured: BTreeSet<&str> =
            steps.into_iter().flatten().map(|step| step.name.as_str()).collect();
        for judged in report.worst_first() {
            let is_measured = judged.step.as_deref().is_some_and(|step| measured.contains(step));
            if is_measured || !judged.class.is_change() || judged.class == PlanClass::Error {
                continue;
            }
            let evidence = changed(judged);
            match judged.cost_ratio {
                Some(ratio) if ratio >= COST_RATIO => {
                    self.slower.push(Finding::of(judged, format!("{evidence}, not measured")));
                }
                Some(ratio) if ratio <= 1.0 / COST_RATIO => {
                    self.faster.push(Finding::of(judged, format!("{evidence}, not measured")));
                }
                _ => self.cannot_be_said.push(Finding::of(judged, evidence)),
            }
        }
    }

    fn code(&self) -> u8 {
        let bad = [&self.breaks, &self.answers_differently, &self.slower];
        if bad.iter().any(|list| !list.is_empty()) {
            exit::REGRESSION
        } else if !self.cannot_be_said.is_empty() {
            exit::NO_VERDICT
        } else {
            exit::FINE
        }
    }

    fn sections(&self) -> [(&'static str, &[Finding]); 5] {
        [
            ("Breaks", &self.breaks),
            ("Answers differently", &self.answers_differently),
            ("Slower", &self.slower),
            ("Faster", &self.faster),
            ("Cannot be said", &self.cannot_be_said),
        ]
    }

    fn head(&self) -> String {
        let counts = self.sections().map(|(_, list)| list.len());
        let [breaks, answers, slower, faster, _] = counts;
        format!(
            "{} -> {}: {breaks} break, {answers} differ, {slower} slower, {faster} faster",
            escape::line(&self.old),
            escape::line(&self.new)
        )
    }

    /// The page for a terminal.
    fn text(&self, out: &Path) -> String {
        let mut lines = vec![self.head()];
        for (title, list) in self.sections().into_iter().filter(|(_, list)| !list.is_empty()) {
            lines.push(format!("{title}:"));
            for finding in list.iter().take(SHOWN) {
                let share = finding.share.map(|share| format!("{:.0} % ", share * 100.0));
                let what = share.unwrap_or_default() + &finding.what;
                lines.extend(wrapped(&what, 2));
                lines.extend(wrapped(&finding.evidence, 6));
            }
            if list.len() > SHOWN {
                lines.push(format!("  ... and {} more", list.len() - SHOWN));
            }
        }
        lines.push(self.same());
        lines.push(format!("Page: {}", escape::line(&out.join(PAGE).to_string_lossy())));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn same(&self) -> String {
        let (plans, rates) = (self.same_plans, self.same_rates);
        format!("Same: {}, {}", counted(plans, "plan"), counted(rates, "rate"))
    }

    /// The page for a browser.
    fn html(&self) -> String {
        let title = escape::html(&self.head());
        let mut body = String::new();
        for (title, list) in self.sections().into_iter().filter(|(_, list)| !list.is_empty()) {
            body.push_str(&format!("<h2>{title}</h2>\n<table>\n"));
            for finding in list {
                let share = finding.share.map(|share| format!("{:.1} %", share * 100.0));
                body.push_str(&format!(
                    "<tr><td>{}<td><code>{}</code><td>{}</tr>\n",
                    share.unwrap_or_default(),
                    escape::html(&finding.what),
                    escape::html(&finding.evidence)
                ));
            }
            body.push_str("</table>\n");
        }
        body.push_str(&format!("<p>{}. <a href=\"plans.html\">All plans</a>", self.same()));
        if self.same_rates + self.slower.len() + self.faster.len() > 0 {
            body.push_str(", <a href=\"results/report.html\">all measurements</a>");
        }
        rqps_plans::framed(&title, &format!("{body}</p>\n"))
    }
}

/// File name of the page.
const PAGE: &str = "rehearsal.html";

/// A text in at most two lines of a terminal.
fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let text = escape::line(text);
    let width = WIDTH - indent;
    let end = text.char_indices().nth(width).map_or(text.len(), |(end, _)| end);
    let end = if end == text.len() { end } else { text[..end].rfind(' ').unwrap_or(end) };
    let parts = [&text[..end], text[end..].trim_start()];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.map(|part| format!("{:indent$}{}", "", rqps_plans::cut(part, width))).collect()
}

/// The verdict of a step, with its ratio and interval.
fn rate(step: &StepComparison) -> (Verdict, String) {
    let Some(relative) = step.targets[1].relative(Metric::Rate) else {
        return (Verdict::NoVerdict, "no ratio".to_owned());
    };
    let verdict = relative.judgement.as_ref().map_or(Verdict::NoVerdict, |it| it.verdict);
    let interval = relative.shown_interval();
    let interval = interval.map(|it| format!(" [{:.3}, {:.3}]", it.low, it.high));
    let text = format!(
        "{} {:.3}{} of the rate",
        verdict.word(Metric::Rate),
        relative.ratio,
        interval.unwrap_or_default()
    );
    (verdict, text)
}

/// The changed plans of a step, in words.
fn plans_of(report: &Report, step: &str) -> String {
    let of_step = report.statements.iter().filter(|it| it.step.as_deref() == Some(step));
    let all: Vec<String> = of_step.filter(|it| it.class.is_change()).map(changed).collect();
    all.join("; ")
}

fn changed(judged: &Judged) -> String {
    let cost = judged.cost_ratio.map(|ratio| format!(", cost x{ratio:.2}")).unwrap_or_default();
    format!("plan {}: {}: {}{cost}", judged.number, judged.class.words(), judged.notes.join("; "))
}

fn end(page: &Page, form: PlansForm, out: &Path) -> Result<u8> {
    let json = serde_json::to_string_pretty(page).context("write the page")?;
    terminal::put(Some(&out.join(PAGE)), page.html().as_bytes())?;
    terminal::put(Some(&out.join("rehearsal.json")), json.as_bytes())?;
    match form {
        PlansForm::Text => out!("{}", page.text(out).trim_end()),
        PlansForm::Json => out!("{}", escape::json(&json)),
        PlansForm::Html => out!("{}", page.html().trim_end()),
    }
    Ok(page.exit)
}
