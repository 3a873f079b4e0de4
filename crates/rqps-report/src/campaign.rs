//! Results of campaigns: a bisection, a gap.

use std::collections::BTreeSet;
use std::time::Duration;

use super::document::{
    Block, Cell, Digits, Document, Mark, Placed, Section, Table, name_of_row, numbers, words,
};
use super::facts::host_line;
use super::form::{render_text, versioned};
use super::html::{PageFrame, render_document};
use rqps_analysis::Comparison;
use rqps_analysis::best_rate::{BestRate, BestRates, FoundRate};
use rqps_analysis::gap::{Cause, Gap, Unknown};
use rqps_analysis::history::{Bisection, Culprit, CulpritCheck};
use rqps_analysis::repetition::{
    Agreement, OtherBuild, RepeatedRatio, RepeatedStep, RepeatedTarget, Repetition,
};
use rqps_model::build::Manifest;
use rqps_model::{escape, units};
use rqps_stats::Interval;
use rqps_stats::factors::{Account, Effect};

// The result of a bisection, as a document and as JSON.

/// Version of the JSON form; it grows when a reader would have to change.
pub const BISECTION_SCHEMA: u32 = 1;

const CHANGED: Mark = Mark { sign: "!", colour: "#E0C060", meaning: "the step changed here" };

/// The document of a bisection.
pub fn bisection_document(found: &Bisection) -> Document {
    let name = |place: usize| found.versions.get(place).map_or("", |it| it.label.as_str());
    let last = found.versions.len().saturating_sub(1);
    let title = format!("rqps bisect: {} from {} to {}", found.step, name(0), name(last));
    let sections = vec![result(found), versions(found), how_to_read(found)];
    Document { title, sections }
}

fn result(found: &Bisection) -> Section {
    let mut blocks = vec![Block::Paragraph(ends(found))];
    for culprit in &found.culprits {
        blocks.push(Block::Paragraph(culprit_text(found, culprit)));
        let mut lines: Vec<String> = Vec::new();
        if let Some(check) = &culprit.check {
            lines.push(check_text(check));
        }
        if !culprit.functions.is_empty() {
            let named = culprit.functions.iter().map(|(name, by)| format!("{name} {by:+.0}"));
            let named: Vec<String> = named.collect();
            lines.push(format!("Functions, instructions per operation: {}.", named.join(", ")));
        }
        blocks.push(Block::List(lines));
    }
    if found.reproduced && found.culprits.is_empty() {
        let text = "No version makes a quarter of the difference: it is spread over many changes.";
        blocks.push(Block::text(text));
    }
    blocks.push(Block::Paragraph(cost_text(found)));
    Section::new("result", "Result", blocks)
}

fn ends(found: &Bisection) -> String {
    let interval = found.ends_interval.map(|interval| format!(" {interval}"));
    let ratio = format!("{:.4}{}", found.ends, interval.unwrap_or_default());
    let metric = &found.metric;
    if found.reproduced {
        return format!("Candidate / baseline by {metric}: {ratio} ({}).", found.reason);
    }
    format!(
        "Not reproduced: candidate / baseline by {metric} is {ratio}, which is no difference \
         ({}). There is no change to search for.",
        found.reason
    )
}

fn culprit_text(found: &Bisection, culprit: &Culprit) -> String {
    let name = |place: usize| match found.versions.get(place) {
        Some(version) if version.about.is_empty() => version.label.clone(),
        Some(version) => format!("{} ({})", version.label, version.about),
        None => String::new(),
    };
    let what = format!(
        "{} {:.4} against {}, {:.0} % of the difference",
        found.metric,
        culprit.ratio,
        found.versions.get(culprit.after).map_or("", |it| it.label.as_str()),
        100.0 * culprit.share
    );
    match culprit.suspects.as_slice() {
        [(place, probability)] if *probability >= 1.0 => {
            format!("First version with the change: {}: {what}.", name(*place))
        }
        [(place, probability)] => format!(
            "First version with the change: {} (probability {probability:.2}): {what}.",
            name(*place)
        ),
        several => {
            let named: Vec<String> = several
                .iter()
                .map(|(place, probability)| format!("{} ({probability:.2})", name(*place)))
                .collect();
            format!(
                "First version with the change, one of {} with their probabilities: {}: {what}.",
                several.len(),
                named.join(", ")
            )
        }
    }
}

fn check_text(check: &CulpritCheck) -> String {
    let interval = check.interval.map(|interval| format!(" {interval}"));
    format!(
        "Check on {} fresh blocks: {} {:.3}{}: {}. Results: {}.",
        check.pairs,
        check.metric,
        check.ratio,
        interval.unwrap_or_default(),
        check.verdict.name(),
        check.folder
    )
}

fn cost_text(found: &Bisection) -> String {
    let cost = found.cost;
    let lost = match cost.lost {
        0 => String::new(),
        lost => format!(", {lost} could not be measured"),
    };
    format!(
        "{} of {} versions measured{lost}; {} counts, {} blocks, {}.",
        cost.versions,
        found.versions.len(),
        cost.counts,
        cost.blocks,
        units::duration(Duration::from_secs_f64(cost.seconds.round()))
    )
}

fn versions(found: &Bisection) -> Section {
    let rows = found.versions.iter().enumerate().map(|(place, version)| {
        let changed = found.culprits.iter().any(|culprit| culprit.at == place);
        let mark = version.ratio.and(changed.then_some(CHANGED));
        let ratio = Cell::number_or(version.ratio, Digits::Fixed(4), "ratio", "not measured");
        let lost = version.lost.as_deref().and_then(|lost| lost.lines().next());
        let known = match lost {
            Some(lost) => format!("not measured: {lost}"),
            None if version.passed_over => format!("{} (cannot matter)", version.about),
            None => version.about.clone(),
        };
        let values = Some(version.n as f64).filter(|n| *n > 0.0);
        [
            name_of_row("version", &*version.label),
            numbers(format!("{} / baseline", found.metric), ratio.marked(mark)),
            numbers("values", Cell::number_or(values, Digits::Fixed(0), "", "not measured")),
            words("status", Cell::text(known)),
        ]
    });
    let table = Table::of("", rows).map(Block::Table);
    Section::new("versions", "Versions", Vec::from_iter(table))
}

fn how_to_read(found: &Bisection) -> Section {
    let counted = found.ends_interval.is_none();
    let method = if counted {
        "Counted instructions repeat, so one count of a version is enough. rqps halves each range \
         whose ends differ, and follows every change that makes a quarter of the difference."
    } else {
        "Rates scatter. rqps measures each version in blocks together with the baseline, computes \
         the probability of each version to be the first with the change, and measures the version \
         at its median. It stops when one version has 95 %. A build has an offset of its own \
         (layout, tau), which more blocks do not average out."
    };
    let check = "The check measures the versions before and after the change in blocks that the \
                 search has not seen.";
    Section::how_to_read("reading", vec![method.to_owned(), check.to_owned()])
}

/// A bisection with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn bisection_json(found: &Bisection) -> serde_json::Result<String> {
    versioned(BISECTION_SCHEMA, "bisection", found)
}

// The gap between two targets as a short text, each line at most 80 columns wide, and as JSON.

/// Version of the JSON form; it grows when a reader would have to change.
pub const GAP_SCHEMA: u32 = 1;

/// Columns of a line at most.
const COLUMNS: usize = 80;
/// Where ratios begin.
const RATIO_AT: usize = 57;
/// Lines of the text at most, and those at its end.
const LINES: usize = 20;
const LINES_AT_END: usize = 2;
/// Smaller logarithms round to a ratio of 1.000.
const VISIBLE: f64 = 0.0005;

/// A gap with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn gap_json(gap: &Gap) -> serde_json::Result<String> {
    versioned(GAP_SCHEMA, "gap", gap)
}

/// The text of a gap, and of all its steps in a table of so many columns.
pub fn gap_text(gap: &Gap, columns: Option<usize>) -> String {
    let cut = |line: &String| escape::line(&cut(line, COLUMNS)).into_owned() + "\n";
    let mut text: String = gap_lines(gap).iter().map(cut).collect();
    if let Some(section) = gap_steps(gap) {
        let document = Document { title: String::new(), sections: vec![section] };
        text.push_str(&render_text(&document, columns));
    }
    text
}

/// The page of a gap: the waterfall, all its steps as a heat map, and what was not found out.
pub fn gap_html(gap: &Gap) -> String {
    let title = format!("rqps gap: {}, from {} to {}", gap.step, gap.base, gap.goal);
    let whole = gap.account.as_ref().map_or(gap.ends.ln, |account| account.gap.ln);
    let lead = format!("{} is {} of {}", gap.base, ratio(-whole), gap.goal);
    let mut sections = vec![waterfall(gap)];
    sections.extend(gap_steps(gap));
    let document = Document { title, sections };
    render_document(&document, &lead, &[], PageFrame::Whole)
}

/// What each cause is worth in the step, and what it left.
fn waterfall(gap: &Gap) -> Section {
    let mut rows: Vec<(String, Effect)> = Vec::new();
    if let Some(account) = &gap.account {
        rows.extend(gap.causes.iter().map(Cause::text).zip(account.effects.iter().copied()));
        if account.higher.ln.abs() >= VISIBLE {
            rows.push(("interactions of three or more".to_owned(), account.higher));
        }
        rows.push(("together".to_owned(), account.together));
        rows.push((format!("unexplained: {} relative to that", gap.goal), account.rest));
    }
    // The first lines say what the table does, under two of their own.
    let before = if rows.is_empty() { 0 } else { rows.len() + 2 };
    let told = gap_lines(gap);
    let told = told.iter().skip(before).map(|line| line.trim().to_owned()).collect();
    let head = format!("factor on the rate of {}", gap.base);
    let table = rows.into_iter().map(|(name, effect)| {
        [name_of_row(format!("with this of {}", gap.goal), name), numbers(&*head, factor(effect))]
    });
    let table = Table::of("", table).map(Block::Table);
    let blocks = table.into_iter().chain([Block::List(told)]).collect();
    Section::new("gap", "What each is worth", blocks)
}

/// What each cause is worth in each step, if that was measured.
fn gap_steps(gap: &Gap) -> Option<Section> {
    let names = gap.causes.iter().map(|cause| match cause.changes.as_slice() {
        [one] => one.name.clone(),
        several => format!("{} others", several.len()),
    });
    let (names, why) = (names.collect::<Vec<_>>(), "not measured in two blocks");
    let rows = gap.steps.iter().map(|step| {
        let account = step.account.as_ref();
        let cell = |of: fn(&Account) -> Effect| {
            account.map_or_else(|| Cell::missing(why), |account| factor(of(account)))
        };
        let mut row =
            vec![name_of_row("step", &*step.name), numbers("gap", cell(|it| negative(it.gap)))];
        for (at, name) in names.iter().enumerate() {
            let effect = account.and_then(|account| account.effects.get(at).copied());
            row.push(numbers(&**name, effect.map_or_else(|| Cell::missing(why), factor)));
        }
        row.push(numbers("together", cell(|it| it.together)));
        row.push(numbers("unexplained", cell(|it| it.rest)));
        row
    });
    let about = format!(
        "gap: {base} relative to {goal}. The others are factors on the rate of {base} with this of \
         {goal}. All have 95 % intervals for each step alone; of many steps, some miss by chance.",
        base = gap.base,
        goal = gap.goal
    );
    Section::of_table("steps", "All steps", about, Table::of("", rows))
}

/// The ratio of an effect; its colour tells by how much, if it is known not to be 1.
fn factor(effect: Effect) -> Cell {
    let cell = Cell::number(effect.ln.exp(), Digits::Fixed(3), "ratio");
    cell.within(effect.interval.map(Interval::exp)).toned(effect.is_proven().then_some(effect.ln))
}

/// The lines of a gap, without those of its steps.
fn gap_lines(gap: &Gap) -> Vec<String> {
    let mut lines = Vec::new();
    let Gap { base, goal, step, .. } = gap;
    let whole = match &gap.account {
        Some(account) => account.gap,
        None => Effect { ln: gap.ends.ln, interval: gap.ends.interval },
    };
    lines.push(row(0, &format!("{step}: {base} relative to {goal}"), negative(whole)));
    match &gap.account {
        Some(account) => of_account(gap, account, &mut lines),
        None => lines.push(format!("  {}", without_account(gap))),
    }
    lines.extend(undecided(&gap.unknown));
    let unmeasured = gap.unknown.iter().filter(|it| it.interval.is_none());
    lines.extend(unmeasured.map(|it| format!("too little time for: {}", it.names.join(", "))));
    let refused = gap.impossible.iter().map(|(name, why)| format!("not possible: {name}: {why}"));
    let room = LINES.saturating_sub(lines.len() + LINES_AT_END);
    lines.extend(at_most(room.max(1), refused.collect(), "are not possible"));
    let left_out: usize = gap.left_out.iter().map(|it| it.names.len()).sum();
    lines.push(format!(
        "{} settings differ and can be changed, {left_out} others are no change{}.",
        gap.candidates,
        if left_out > 0 { " (--format json)" } else { "" }
    ));
    lines.push(format!(
        "{} runs in {} rounds, {}.",
        gap.cost.runs,
        gap.cost.rounds,
        units::duration(Duration::from_secs_f64(gap.cost.seconds.round()))
    ));
    lines
}

/// The waterfall: what each change multiplies the rate by, until what is left.
fn of_account(gap: &Gap, account: &Account, lines: &mut Vec<String>) {
    let Gap { base, goal, .. } = gap;
    lines.push(format!("  the rate of {base} times, with this of {goal}:"));
    for (cause, effect) in gap.causes.iter().zip(&account.effects) {
        let doubt = if effect.is_proven() { "" } else { " (not shown to matter)" };
        lines.push(row(4, &(cause.text() + doubt), *effect));
    }
    if account.higher.ln.abs() >= VISIBLE {
        lines.push(row(4, "interactions of three or more", account.higher));
    }
    lines.push(row(2, "together", account.together));
    lines.push(row(2, &format!("unexplained: {goal} relative to that"), account.rest));
    lines.extend(interactions(gap, account));
}

/// The changes that are worth something else beside others.
fn interactions(gap: &Gap, account: &Account) -> Option<String> {
    let matters = |by: &Effect| by.is_proven() && by.ln.abs() >= gap.least.ln_1p() / 2.0;
    let all = gap.causes.iter().zip(&account.interactions).filter(|(_, by)| matters(by));
    let named = |(cause, by): (&Cause, &Effect)| {
        let name = cause.changes.first().map_or("", |change| change.name.as_str());
        format!("{name} ({})", ratio(by.ln))
    };
    let named: Vec<String> = all.map(named).collect();
    (!named.is_empty()).then(|| {
        format!("  they interact; after all others instead of alone: {}", named.join(", "))
    })
}

fn without_account(gap: &Gap) -> String {
    let many = gap.candidates - gap.impossible.len().min(gap.candidates);
    if !gap.ends.differ {
        return "no difference was shown, so there is no gap to close".to_owned();
    }
    match many {
        0 => "unexplained: no setting that differs can be changed".to_owned(),
        many if gap.unknown.is_empty() => format!(
            "unexplained: none of {many} settings moves the rate by {} or more",
            format_args!("{:.1} %", 100.0 * gap.least)
        ),
        _ => "unexplained".to_owned(),
    }
}

/// The settings whose effects may matter or not, and what holds all their intervals.
fn undecided(all: &[Unknown]) -> Option<String> {
    let measured = all.iter().filter_map(|it| Some((it.interval?, it.names.join(", "))));
    let (intervals, names): (Vec<Interval>, Vec<String>) = measured.unzip();
    let low = intervals.iter().map(|it| it.low).fold(f64::INFINITY, f64::min);
    let high = intervals.iter().map(|it| it.high).fold(f64::NEG_INFINITY, f64::max);
    let count = names.len();
    (count > 0).then(|| {
        format!("{count} undecided, within [{}, {}]: {}", ratio(low), ratio(high), names.join(", "))
    })
}

/// Lines as they are, or the first of them and the number of the others.
fn at_most(most: usize, mut lines: Vec<String>, what: &str) -> Vec<String> {
    if let Some(more @ 1..) = lines.len().checked_sub(most) {
        lines.truncate(most - 1);
        lines.push(format!("{} more {what} (--format json).", more + 1));
    }
    lines
}

/// A line with a ratio and its interval.
fn row(indent: usize, words: &str, effect: Effect) -> String {
    let interval = effect.interval.map(|interval| format!(" {}", interval.exp()));
    let words = cut(&format!("{}{words}", " ".repeat(indent)), RATIO_AT - 1);
    format!("{words:<RATIO_AT$}{}{}", ratio(effect.ln), interval.unwrap_or_default())
}

fn ratio(ln: f64) -> String {
    format!("{:.3}", ln.exp())
}

/// The same the other way round.
fn negative(effect: Effect) -> Effect {
    let interval = effect.interval.map(|it| Interval { low: -it.high, high: -it.low });
    Effect { ln: -effect.ln, interval }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

// The result of a repetition, as a document and as JSON.

/// Version of the JSON form; it grows when a reader would have to change.
pub const REPETITION_SCHEMA: u32 = 1;

const DIFFERS: Mark =
    Mark { sign: "!", colour: "#E0C060", meaning: "differs beyond the intervals of both" };

/// The document of a repetition of `first`.
pub fn repetition_document(
    found: &Repetition,
    first: &Comparison,
    second: &Comparison,
) -> Document {
    let labels: Vec<&str> = found.targets.iter().map(|target| target.label.as_str()).collect();
    let title = format!("rqps repetition: {} relative to {}", labels.join(", "), found.baseline);
    let mut sections = vec![summary(found)];
    sections.push(places(first, second));
    sections.extend(found.targets.iter().map(steps));
    sections.push(how_to_read_repetition(found));
    Document { title, sections }
}

fn summary(found: &Repetition) -> Section {
    let mut blocks = Vec::new();
    for target in &found.targets {
        blocks.push(Block::Paragraph(sentence(target)));
        let apart: Vec<&str> = target.differing().map(|step| step.step.as_str()).collect();
        if !apart.is_empty() {
            let text = format!("Ratios that differ beyond their intervals: {}.", apart.join(", "));
            blocks.push(Block::Paragraph(text));
        }
        let lists =
            [("Not repeated", &target.not_repeated), ("Only in the repetition", &target.new)];
        for (name, steps) in lists.into_iter().filter(|(_, steps)| !steps.is_empty()) {
            blocks.push(Block::Paragraph(format!("{name}: {}.", steps.join(", "))));
        }
    }
    let builds: Vec<String> = found.other_builds.iter().map(build_line).collect();
    if !builds.is_empty() {
        blocks.push(Block::List(builds));
    }
    Section::new("repetition", "", blocks)
}

/// The summary of one target, such as `b: 30 of 32 verdicts are the same, 2 undecided in one of the
/// two; 1 of 32 ratios differ beyond their intervals`.
fn sentence(target: &RepeatedTarget) -> String {
    let all = target.steps.len();
    let count = |how| target.agreeing(how);
    let mut parts = vec![format!("{} of {all} verdicts are the same", count(Agreement::Same))];
    for (how, text) in [
        (Agreement::Compatible, "compatible"),
        (Agreement::Undecided, "undecided in one of the two"),
        (Agreement::Contrary, "CONTRARY"),
    ] {
        if count(how) > 0 {
            parts.push(format!("{} {text}", count(how)));
        }
    }
    let tested = target.steps.iter().filter(|step| step.change.is_some()).count();
    let differ = target.differing().count();
    let ratios = match tested {
        0 => "no ratio has an interval in both".to_owned(),
        _ => format!("{differ} of {tested} ratios differ beyond their intervals"),
    };
    format!("{}: {}; {ratios}.", target.label, parts.join(", "))
}

fn build_line(other: &OtherBuild) -> String {
    let text = |builds: &[Manifest]| {
        let one = |build: &Manifest| {
            let sum =
                build.sha256.as_deref().map_or("no checksum", |sum| sum.get(..12).unwrap_or(sum));
            format!("{} ({}, SHA-256 {sum})", build.version, build.origin)
        };
        builds.iter().map(one).collect::<Vec<_>>().join(" and ")
    };
    format!(
        "{} has different builds: first {}, repetition {}",
        other.label,
        text(&other.first),
        text(&other.second)
    )
}

/// Hosts, dates and versions of rqps of both.
fn places(first: &Comparison, second: &Comparison) -> Section {
    let mut facts = Vec::new();
    for (name, comparison) in [("first", first), ("repetition", second)] {
        for (fingerprint, host) in &comparison.hosts {
            facts.push((format!("{name} host"), host_line(fingerprint, host)));
        }
        let versions: BTreeSet<&str> =
            comparison.runs.iter().map(|run| run.rqps_version.as_str()).collect();
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        let began = comparison.runs.iter().map(|run| run.started.as_str()).min().unwrap_or("");
        facts.push((format!("{name} began"), format!("{began}, rqps {versions}")));
    }
    Section::new("places", "Hosts", vec![Block::Facts(facts)])
}

fn steps(target: &RepeatedTarget) -> Section {
    let table = Table::of("", target.steps.iter().map(repeated_row)).map(Block::Table);
    let heading = format!("Steps of {}", target.label);
    Section::new("repeated-steps", heading, Vec::from_iter(table))
}

fn repeated_row(step: &RepeatedStep) -> [Placed; 6] {
    let ratio =
        |of: &RepeatedRatio| Cell::number(of.ratio, Digits::Fixed(3), "ratio").within(of.interval);
    let verdicts = match step.agreement {
        Agreement::Same => step.first.verdict.name().to_owned(),
        _ => format!("{} -> {}", step.first.verdict.name(), step.second.verdict.name()),
    };
    let why = "one of the two has no standard error";
    let change = step.change.map(|it| {
        let ratio = Cell::number(it.ratio, Digits::Fixed(3), "ratio");
        ratio.within(Some(it.interval)).marked(it.differs.then_some(DIFFERS))
    });
    let q = step.change.map(|change| change.q);
    [
        words("verdicts", Cell::text(verdicts)),
        numbers("first rQPS", ratio(&step.first)),
        numbers("repetition", ratio(&step.second)),
        numbers("change", change.unwrap_or_else(|| Cell::missing(why))),
        numbers("q", Cell::number_or(q, Digits::Fixed(4), "", why)),
        name_of_row("step", &*step.step),
    ]
}

fn how_to_read_repetition(found: &Repetition) -> Section {
    let lines = vec![
        "change: ratio of the repetition / first ratio, with its 95 % interval (Welch: the \
         standard errors of both, which the verdicts rest on)."
            .to_owned(),
        format!(
            "!: differs beyond the intervals of both (q of Benjamini-Hochberg over the steps of \
             the target, at most {}).",
            found.q
        ),
        "Ratios depend on the CPU, so both can be right where they differ.".to_owned(),
    ];
    Section::how_to_read("reading", lines)
}

/// A repetition with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn repetition_json(found: &Repetition) -> serde_json::Result<String> {
    versioned(REPETITION_SCHEMA, "repetition", found)
}

// The best rates of targets under a limit, as a short text and as JSON.

/// Version of the JSON form; it grows when a reader would have to change.
pub const BEST_RATE_SCHEMA: u32 = 1;

/// The best rates with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn best_rate_json(rates: &BestRates) -> serde_json::Result<String> {
    versioned(BEST_RATE_SCHEMA, "best_rate", rates)
}

/// The text of the best rates, a line for each target.
pub fn best_rate_text(rates: &BestRates) -> String {
    let metric = rates.metric.trim_end_matches("_ms");
    let mut lines = vec![format!(
        "{}: most events per second with {metric} <= {} ms",
        rates.step, rates.limit_ms
    )];
    let base = rates.targets.first().map_or("", |target| target.label.as_str());
    for target in &rates.targets {
        lines.push(format!("  {}: {}", target.label, rate_words(target)));
        if let Some(relative) = target.relative {
            let (low, high) = (relative.interval.low, relative.interval.high);
            let verdict = match (low > 1.0, high < 1.0) {
                (true, _) => "MORE",
                (_, true) => "LESS",
                _ => "no difference shown",
            };
            lines.push(format!(
                "    {:.3} [{low:.3}, {high:.3}] of {base}: {verdict}",
                relative.ratio
            ));
        }
        lines.extend(target.fault.iter().map(|fault| format!("    {fault}")));
    }
    let seconds = Duration::from_secs_f64(rates.seconds.round());
    lines.push(format!("{} rounds, {}.", rates.rounds, units::duration(seconds)));
    lines.into_iter().map(|line| escape::line(&line).into_owned() + "\n").collect()
}

fn rate_words(target: &BestRate) -> String {
    let closed = target.closed.map_or_else(String::new, |rate| {
        format!("; as fast as clients can: {}", units::rate(rate))
    });
    let Some(FoundRate { rate, interval, none_kept, all_kept }) = target.found else {
        return "not measured".to_owned();
    };
    let (low, high) = (units::rate(interval.low), units::rate(interval.high));
    let kept = format!("{} of {} windows kept it", target.kept, target.windows);
    match (none_kept, all_kept) {
        (true, _) => format!("less than {high}: {kept}{closed}"),
        (_, true) => format!("more than {low}: {kept}{closed}"),
        _ => format!("{} [{low}, {high}], {kept}{closed}", units::rate(rate)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rqps_analysis::gap::{GapCost, GapEnds, GapStep, LeftOut};
    use rqps_model::bisection::Intervention;

    fn effect(ln: f64, half: f64) -> Effect {
        Effect { ln, interval: Some(Interval { low: ln - half, high: ln + half }) }
    }

    fn cause(name: &str, to: &str) -> Cause {
        let change = Intervention {
            name: name.to_owned(),
            from: "on".to_owned(),
            to: to.to_owned(),
            lines: Vec::new(),
            effective: BTreeMap::new(),
            loads_anew: false,
            about: String::new(),
        };
        Cause { changes: vec![change] }
    }

    fn gap() -> Gap {
        Gap {
            step: "point-query".to_owned(),
            base: "b".to_owned(),
            goal: "a".to_owned(),
            ends: GapEnds { ln: 0.3, interval: None, differ: true },
            candidates: 40,
            causes: vec![cause("jit", "off"), cause("work_mem", "4096")],
            account: Some(Account {
                gap: effect(0.3, 0.01),
                effects: vec![effect(0.2, 0.01), effect(0.005, 0.01)],
                interactions: vec![effect(0.05, 0.01), effect(0.0, 0.01)],
                together: effect(0.205, 0.01),
                higher: effect(0.0, 0.001),
                rest: effect(0.095, 0.01),
                blocks: 6,
            }),
            steps: Vec::new(),
            unknown: vec![Unknown { names: vec!["c".repeat(90)], interval: None }],
            impossible: BTreeMap::from([("d".to_owned(), "FATAL: no".to_owned())]),
            left_out: vec![LeftOut { reason: "x", names: vec!["port".to_owned()] }],
            cost: GapCost { rounds: 5, runs: 120, seconds: 300.0 },
            least: 0.01,
        }
    }

    #[test]
    fn the_rows_multiply_to_the_whole() {
        let text = gap_text(&gap(), None);
        let expected = "\
point-query: b relative to a                             0.741 [0.733, 0.748]
  the rate of b times, with this of a:
    jit = off                                            1.221 [1.209, 1.234]
    work_mem = 4096 (not shown to matter)                1.005 [0.995, 1.015]
  together                                               1.228 [1.215, 1.240]
  unexplained: a relative to that                        1.100 [1.089, 1.111]
  they interact; after all others instead of alone: jit (1.051)
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nnot possible: d: FATAL: no\n"), "{text}");
        assert!(text.lines().all(|it| it.chars().count() <= COLUMNS));
    }

    #[test]
    fn long_results_have_twenty_lines() {
        let mut long = gap();
        long.causes = vec![cause("x", "1"); 7];
        let account = long.account.as_mut().expect("an account");
        account.effects = vec![effect(0.1, 0.01); 7];
        account.interactions = account.effects.clone();
        account.higher = effect(0.1, 0.01);
        let interval = |half| Some(Interval { low: -0.01, high: half });
        let one = |half| Unknown { names: vec!["e".to_owned()], interval: interval(half) };
        long.unknown.extend((1..9).map(|at| one(f64::from(at) / 100.0)));
        long.impossible = (0..9).map(|at| (at.to_string(), "no".to_owned())).collect();
        let text = gap_text(&long, None);
        assert_eq!(text.lines().count(), LINES, "{text}");
        let undecided = "
8 undecided, within [0.990, 1.083]: e, e, e, e, e, e, e, e
";
        assert!(text.contains(undecided), "{text}");
        assert!(text.contains("\n7 more are not possible (--format json).\n"), "{text}");
    }

    #[test]
    fn all_steps_are_a_table_with_intervals_and_a_page_with_colours() {
        let account = gap().account;
        let step = |name: &str, account| GapStep { name: name.to_owned(), account };
        let all = Gap { steps: vec![step("scan", account), step("<q7>", None)], ..gap() };
        let text = gap_text(&all, None);
        for expected in [
            "gap: b relative to a.", "0.741 [0.733, 0.748]", "1.221 [1.209, 1.234]",
            "1.005 [0.995, 1.015]", "1.100 [1.089, 1.111]",
        ] {
            let table = text.split_once("All steps").map_or("", |(_, table)| table);
            assert!(table.contains(expected), "{expected}: {text}");
        }
        let html = gap_html(&all);
        assert!(html.contains("&lt;q7&gt;") && !html.contains("<q7>"));
        assert!(html.contains("not possible: d: FATAL: no"), "what the table does not say");
    }

    #[test]
    fn nothing_is_explained_that_no_change_moved() {
        let none = Gap { account: None, unknown: Vec::new(), impossible: BTreeMap::new(), ..gap() };
        let text = gap_text(&none, None);
        assert!(text.contains("none of 40 settings moves the rate by 1.0 % or more"), "{text}");
        let ends = GapEnds { differ: false, ..none.ends };
        assert!(gap_text(&Gap { ends, ..none }, None).contains("no gap to close"));
    }
}

#[cfg(test)]
mod best_rate_tests {
    use rqps_analysis::best_rate::RelativeRate;
    use rqps_stats::Interval;

    use super::*;

    #[test]
    fn each_target_has_its_rate_and_what_it_is_of_the_first() {
        let found = |rate: f64, none_kept| {
            let interval = Interval { low: rate * 0.98, high: rate * 1.02 };
            Some(FoundRate { rate, interval, none_kept, all_kept: false })
        };
        let target = |label: &str, found, relative| BestRate {
            label: label.to_owned(),
            closed: Some(15_000.0),
            found,
            windows: 20,
            kept: if label == "c" { 0 } else { 11 },
            relative,
            fault: None,
        };
        let ratio = RelativeRate { ratio: 0.9, interval: Interval { low: 0.87, high: 0.93 } };
        let rates = BestRates {
            step: "point-query".to_owned(),
            metric: "p99_ms".to_owned(),
            limit_ms: 5.0,
            targets: vec![
                target("a", found(12_000.0, false), None),
                target("b", found(10_800.0, false), Some(ratio)),
                target("c", found(100.0, true), None),
                target("d", None, None),
            ],
            rounds: 21,
            seconds: 312.0,
        };
        let expected = "\
point-query: most events per second with p99 <= 5 ms
  a: 12.0k [11.8k, 12.2k], 11 of 20 windows kept it; as fast as clients can: 15.0k
  b: 10.8k [10.6k, 11.0k], 11 of 20 windows kept it; as fast as clients can: 15.0k
    0.900 [0.870, 0.930] of a: LESS
  c: less than 102: 0 of 20 windows kept it; as fast as clients can: 15.0k
  d: not measured
21 rounds, 5m12s.
";
        assert_eq!(best_rate_text(&rates), expected);
    }
}
