//! `rqps doctor`: noise sources and achievable resolution of this host.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::cli::args::{Doctor, DoctorFormat, GuestOptions};
use crate::cli::hosts::{self, Hosts};
use crate::cli::parts::{BlocksWord, WorkloadArgs};
use crate::cli::{exit, folders, measure, questions};
use rqps_analysis as analyze;
use rqps_analysis::VerdictOptions;
use rqps_analysis::calibration::{
    FALSE_ALARM_ALPHA, HostNoise, KindPromise, LayoutNoise, Resolution, SLOT_ALPHA, layout_noise,
    layout_rates, promise,
};
use rqps_dbms::spec::relink_word;
use rqps_host::host;
use rqps_host::noise;
use rqps_host::noise::findings::{self, FindingLevel, HostFinding};
use rqps_lab::benchmarks;
use rqps_lab::campaign::{self, Calibrated};
use rqps_lab::plan::{Plan, words};
use rqps_model::build::{BuildSource, Target};
use rqps_model::gate::{Calibration, Canary, LayoutRates};
use rqps_model::host::{Host, fingerprint};
use rqps_model::verdict::Rules;
use rqps_model::{escape, safe_path};
use rqps_results as results;

/// Duration for which rqps watches the idle host.
const WATCH: Duration = Duration::from_secs(3);
/// Default number of blocks of an A/A test: the fewest with a good estimate of the spread.
const AA_BLOCKS: u32 = 12;
/// Column at which text wraps.
const WIDTH: usize = 96;

/// All findings.
#[derive(Serialize)]
struct Report {
    class: String,
    fingerprint: String,
    host: Host,
    canary: Canary,
    findings: Vec<HostFinding>,
}

/// `rqps doctor`.
pub(super) fn examine(words: &Doctor) -> Result<u8> {
    match (&words.aa, &words.layout) {
        (Some(target), _) => against_itself(words, target),
        (None, Some(target)) => measure(words, target),
        (None, None) => look(words),
    }
}

fn look(words: &Doctor) -> Result<u8> {
    let existing = folders::existing(&words.folders);
    info!("rqps: watching this host for {} s; leave it idle", WATCH.as_secs());
    let idle = noise::idleness(WATCH, &mut |_| true);
    let canary = noise::read_canaries(&existing);
    let facts = host::read(&existing);
    let report = Report {
        class: facts.class(),
        fingerprint: fingerprint(&facts),
        findings: findings::all(Path::new("/"), &facts, &idle, &canary),
        canary,
        host: facts,
    };
    match words.format {
        DoctorFormat::Json => out!("{}", escape::json(&serde_json::to_string_pretty(&report)?)),
        DoctorFormat::Text => out!("{}", text(&report).trim_end()),
    }
    Ok(exit::FINE)
}

fn text(report: &Report) -> String {
    let host = &report.host;
    let mut text = String::new();
    let said = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".to_owned());
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{} (fingerprint {}): {}, {}, kernel {}",
        report.class,
        report.fingerprint,
        said(&host.cpu_model),
        said(&host.os),
        said(&host.kernel)
    );
    let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let _ = writeln!(
        text,
        "canaries: spin {} ms, memory {} GB/s, fsync {} ms; a reading takes {:.2} s\n",
        value(report.canary.spin_ns.map(|ns| ns / 1e6)),
        value(report.canary.memory_mb_s.map(|rate| rate / 1e3)),
        value(report.canary.fsync_ns.map(|ns| ns / 1e6)),
        report.canary.seconds
    );
    for finding in &report.findings {
        let head = format!("{:<8} {:<18} ", finding.level.name(), finding.about);
        push_wrapped(&mut text, &head, &finding.found);
        if finding.level != FindingLevel::Fine {
            push_wrapped(&mut text, INDENT, finding.means);
            if !finding.advice.is_empty() {
                push_wrapped(&mut text, INDENT, &format!("→ {}", finding.advice));
            }
        }
    }
    let noisy =
        report.findings.iter().filter(|finding| finding.level == FindingLevel::Noisy).count();
    let _ = match noisy {
        0 => writeln!(text, "\nNo noise found on the idle host."),
        1 => writeln!(text, "\n1 noise source found."),
        _ => writeln!(text, "\n{noisy} noise sources found."),
    };
    text.push_str("Run `rqps doctor --aa TARGET` to measure their effect on rates.\n");
    text
}

/// Indent of the text below a finding.
const INDENT: &str = "                            ";

/// Appends text after a head, wrapped into lines.
fn push_wrapped(text: &mut String, head: &str, words: &str) {
    let mut line = head.to_owned();
    for word in words.split_whitespace() {
        if line.len() > INDENT.len() && line.chars().count() + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            INDENT.clone_into(&mut line);
        }
        line.push_str(word);
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// `--aa`: measures, calibrates, stores and prints.
fn against_itself(said: &Doctor, target: &str) -> Result<u8> {
    if words::label_of(target).is_some() {
        bail!(
            "measure `{target}` against itself: leave out the label; the A/A test labels both \
               sides"
        );
    }
    // Errors must show the target as written, which the labels would hide.
    words::targets(&[target.to_owned()])?;
    let shape = shape(said, AA_BLOCKS);
    let targets = [format!("a={target}"), format!("a-again={target}")];
    let plan = measure::plan_of(&targets, &shape)?;
    hosts::refuse_server(&plan, "rqps doctor --aa")?;
    let calibrations = folders::calibrations();
    let kept = ("a calibration", calibrations.as_path());
    let Some((out, code)) = carry_out(said, plan, kept)? else { return Ok(exit::INTERRUPTED) };
    let Calibrated { known, comparison, file } = campaign::calibrate(&out, target, &calibrations)?;
    info!("rqps: results are in {}; the calibration is {}", out.display(), file.display());
    let noise = HostNoise::of(&known);
    match said.format {
        DoctorFormat::Json => out!("{}", json(&known, &noise)?),
        DoctorFormat::Text => {
            let rules = Rules::default();
            let told = promise(&noise, &rules);
            let Some(told) = told else { bail!("calibrate: no step has two blocks") };
            let alarms = verdict_alarms(&comparison);
            out!("{}", calibration_text((&known, &noise), &told, &rules, alarms).trim_end());
        }
    }
    Ok(code)
}

/// The number of rates that the verdicts call different although both targets are the same.
fn verdict_alarms(comparison: &analyze::Comparison) -> usize {
    let rates = comparison.steps.iter().filter_map(|step| {
        step.targets.get(1)?.relative(rqps_model::metric::Metric::Rate)?.judgement.as_ref()
    });
    rates.filter(|told| told.verdict.is_worse() || told.verdict.is_better()).count()
}

/// The calibration with values computed from its differences, as JSON.
fn json(known: &Calibration, noise: &HostNoise) -> Result<String> {
    let mut json = serde_json::to_value(known)?;
    json["steps"] = serde_json::to_value(&noise.steps)?;
    json["slot"] = serde_json::to_value(noise.slot)?;
    Ok(escape::json(&serde_json::to_string_pretty(&json)?).into_owned())
}

/// A logarithm of a ratio as a share.
fn percent(ln: f64) -> String {
    format!("{:.2} %", 100.0 * ln.exp_m1())
}

/// The noise of each kind of steps, and what can be found with it.
fn resolution_text(kinds: &[KindPromise], rules: &Rules) -> String {
    let mut text = String::new();
    let cells = |cell: &dyn Fn(&KindPromise) -> String| -> String {
        kinds.iter().map(|kind| format!("{:>9}", cell(kind))).collect()
    };
    let _ = writeln!(text, "\n{:<28}{}", "Noise of", cells(&|kind| kind.kind.name().to_owned()));
    let _ = writeln!(text, "{:<28}{}", "s_d", cells(&|kind| percent(kind.sd)));
    let _ =
        writeln!(text, "{:<28}{}", "s_d, at most (90 %)", cells(&|kind| percent(kind.sd_upper)));
    for at in 0..kinds[0].detectable.len() {
        let name = format!("MDE of {} blocks, one step", kinds[0].detectable[at].0);
        let share = |kind: &KindPromise| format!("{:.1} %", 100.0 * kind.detectable[at].1);
        let _ = writeln!(text, "{name:<28}{}", cells(&share));
    }
    for at in 0..kinds[0].blocks_needed.len() {
        let name = format!("Blocks to find {:.0} %", 100.0 * kinds[0].blocks_needed[at].0);
        let blocks = |kind: &KindPromise| match kind.blocks_needed[at].1 {
            Some(blocks) => blocks.to_string(),
            None => "never".to_owned(),
        };
        let _ = writeln!(text, "{name:<28}{}", cells(&blocks));
    }
    let _ = writeln!(text, "To find a difference, it must exceed tau ({}).", rules.text());
    text
}

fn calibration_text(
    (known, noise): (&Calibration, &HostNoise),
    told: &Resolution,
    rules: &Rules,
    verdict_alarms: usize,
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} against itself, {} blocks, {} clients, read steps of {} s{} (host {})\n",
        known.target,
        known.blocks,
        known.clients,
        known.read_seconds,
        if known.turns { " in turns" } else { "" },
        known.host_fingerprint
    );
    let _ = writeln!(text, "{:>9} {:>9} {:>8}  step", "s_d", "mean", "p");
    for step in &noise.steps {
        let (sd, mean) = (percent(step.sd_ln), percent(step.mean_ln));
        let mark = if step.p < FALSE_ALARM_ALPHA { "  false alarm" } else { "" };
        let _ = writeln!(text, "{sd:>9} {mean:>9} {:>8.3}  {}{mark}", step.p, step.step);
    }
    text.push_str(&resolution_text(&told.kinds, rules));
    let _ = writeln!(
        text,
        "False alarms: {} of {} steps at p < {FALSE_ALARM_ALPHA} (chance: up to {}; verdicts: \
         {verdict_alarms})",
        told.false_alarms,
        noise.steps.len(),
        told.false_alarms_max
    );
    let slot = match noise.slot.p {
        Some(p) => format!("{} faster in first position, p {p:.3}", percent(noise.slot.mean_ln)),
        None => "unknown: too few blocks".to_owned(),
    };
    let _ = writeln!(text, "Slot effect: {slot}");
    if told.slot_matters {
        let _ = writeln!(
            text,
            "BROKEN: p < {SLOT_ALPHA}: target order changes rates. See --interleave."
        );
    }
    if told.false_alarms > told.false_alarms_max {
        text.push_str(
            "BROKEN: more false alarms than chance allows; blocks are not alike on this host.\n",
        );
    }
    if known.out_of_range > 0 {
        let _ = writeln!(text, "The canaries found {} disturbed blocks.", known.out_of_range);
    }
    text
}

const SYSBENCH: &str = "sysbench";

/// The workload as given, with defaults for what it leaves out: this number of blocks, and a few
/// short steps of sysbench.
pub(super) fn shape(said: &Doctor, blocks: u32) -> WorkloadArgs {
    let mut shape = said.shape.clone();
    shape.blocks = Some(shape.blocks.unwrap_or(BlocksWord::Number(blocks)));
    if shape.steps.is_empty() && shape.bench == [SYSBENCH] {
        shape.steps = measure::SHORT_STEPS.map(str::to_owned).to_vec();
    }
    shape
}

/// Carries out `plan` and reports its faults. `finding` names what `folder` will keep.
///
/// # Errors
/// The folder cannot be made, or the plan cannot be carried out.
pub(super) fn carry_out(
    said: &Doctor,
    plan: Plan,
    (finding, folder): (&str, &Path),
) -> Result<Option<(PathBuf, u8)>> {
    // Known now, not after an hour of measuring.
    safe_path::make_folder(folder).with_context(|| {
        let place = folder.display();
        format!("keep {finding} in {place}; name another folder with RQPS_STATE")
    })?;
    let guest = GuestOptions::default();
    // An earlier calibration must not judge what makes the next one.
    let consent = questions::own(&plan, &said.folders)?;
    let place = (&said.folders, Hosts::default(), &consent);
    let (summary, out) = measure::measure_on(plan, place, &guest, Vec::new(), 0.0)?;
    for fault in &summary.faults {
        error!("rqps: failed: {fault}");
    }
    if summary.interrupted {
        let out = out.display();
        info!(
            "rqps: stopped; finished runs are in {out}\nhint: give the same command again with \
             --out {out}, and it goes on there"
        );
        return Ok(None);
    }
    let code = if summary.faults.is_empty() { exit::FINE } else { exit::RUN_FAILED };
    Ok(Some((out, code)))
}

// `rqps doctor --layout`: the noise of code layout of a DBMS on this host.

/// Default number of blocks.
const BLOCKS: u32 = 6;

/// `--layout`: measures, stores and prints.
pub(super) fn measure(said: &Doctor, target: &str) -> Result<u8> {
    let targets = relinked(target, said.relink)?;
    let plan = measure::plan_of(&targets, &shape(said, BLOCKS))?;
    hosts::refuse_server(&plan, "rqps doctor --layout")?;
    let layouts = folders::layouts();
    let kept = ("layout noise", layouts.as_path());
    let Some((out, code)) = carry_out(said, plan, kept)? else { return Ok(exit::INTERRUPTED) };
    let dataset = results::read(std::slice::from_ref(&out)).context("read the results")?;
    let comparison =
        benchmarks::compare(&dataset, &VerdictOptions::default()).context("compare")?;
    let known = layout_rates(&dataset, &comparison, target)?;
    let Some(noise) = layout_noise(&known.steps) else {
        bail!("layout: no step has two blocks in which all builds completed it");
    };
    let file = results::keep_layout(&layouts, &known)?;
    info!("rqps: results are in {}; the layout noise is {}", out.display(), file.display());
    match said.format {
        DoctorFormat::Json => {
            let mut json = serde_json::to_value(&known)?;
            json["tau"] = noise.tau().exp_m1().into();
            json["p"] = noise.p.into();
            out!("{}", escape::json(&serde_json::to_string_pretty(&json)?));
        }
        DoctorFormat::Text => out!("{}", layout_text(&known, &noise).trim_end()),
    }
    Ok(code)
}

/// A target for each order of linking.
fn relinked(target: &str, count: u32) -> Result<Vec<String>> {
    if words::label_of(target).is_some() {
        bail!("relink `{target}`: leave out the label; rqps labels the orders of linking");
    }
    // The word is shown as written where it is wrong.
    let parsed = words::targets(&[target.to_owned()])?;
    let Some(Target { source: BuildSource::Source { folder, reference, variant }, .. }) =
        parsed.first()
    else {
        bail!("relink `{target}`: this needs sources; write DBMS=src:DIR@REF (docs/builds.md)");
    };
    let of = |order: u32| {
        let words = variant.iter().cloned().chain([relink_word(order)]);
        let (folder, reference) = (folder.clone(), reference.clone());
        let variant = Some(words.collect::<Vec<_>>().join("+"));
        let source = BuildSource::Source { folder, reference, variant };
        let label = format!("order-{order}");
        words::word(&Target { label, source, ..parsed[0].clone() })
    };
    Ok((1..=count).map(of).collect())
}

fn layout_text(known: &LayoutRates, noise: &LayoutNoise) -> String {
    let blocks = known.steps.first().and_then(|step| step.rates.first()).map_or(0, Vec::len);
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{}, functions linked in {} orders, {blocks} blocks (host {})\n",
        known.target, known.layouts, known.host_fingerprint
    );
    let _ = writeln!(text, "{:>9} {:>9} {:>8}  step", "layout", "noise", "p");
    for step in &known.steps {
        let Some(own) = layout_noise(std::slice::from_ref(step)) else { continue };
        let (sd, error) = (percent(own.build_sd), percent(own.error));
        let _ = writeln!(text, "{sd:>9} {error:>9} {:>8.3}  {}", own.p, step.step);
    }
    let _ = writeln!(
        text,
        "\nLayout of one build: standard deviation {}, at most {} (90 %); noise of its mean {}; p \
         {:.3}.\nTau: {}. `compare` and `bisect` use it for {} on this host unless --tau or \
         [gate] names another.",
        percent(noise.build_sd),
        percent(noise.build_sd_upper),
        percent(noise.error),
        noise.p,
        percent(noise.tau()),
        known.dbms
    );
    if noise.build_sd < noise.error {
        text.push_str(
            "The noise is larger than the layout: measure more blocks for a smaller tau.\n",
        );
    }
    text
}
