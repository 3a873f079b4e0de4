//! The course of a measurement: blocks, sessions, turns, and the seconds of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Block, Cell, Column, Digits, Placed, Section, Table, numbers, words};
use super::verdicts;
use rqps_analysis::Comparison;
use rqps_analysis::calibration::HostNoise;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::pairing::{TurnScatter, carry_over, share_between_turns, turn_scatter};
use rqps_model::gate::{BlockRecord, Canary, CanaryRule, HostLog};
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_stats::moderated::SD_MIN;
use rqps_stats::power::{self, Aim};
use rqps_stats::stability::{Evenness, Stability};
use rqps_stats::summary::{median, stddev};

// The host during the blocks: discarded blocks, canaries, and the last look at each step.

/// Maximum number of steps that a line names; it counts the rest.
const NAMED: usize = 12;

/// Empty with canaries off and a fixed number of blocks, measured in one sitting.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for (set, gate) in &comparison.gates {
        let several = comparison.gates.len() > 1;
        if several && !gate.blocks.is_empty() {
            blocks.push(Block::Paragraph(format!("{set}:")));
        }
        blocks.extend(canaries(gate, comparison.all_in_turns()));
        blocks.extend(sittings(gate));
        blocks.extend(stops(gate));
    }
    (!blocks.is_empty()).then_some(Section::new("blocks", "Blocks and host", blocks))
}

fn canaries(gate: &HostLog, in_turns: bool) -> Vec<Block> {
    let read = gate.blocks.iter().any(|block| block.before.is_some());
    if gate.canaries == CanaryRule::Off || !read {
        return Vec::new();
    }
    let heads = ["block", "spin_ms", "memory_GB/s", "fsync_ms"];
    let mut columns: Vec<Column> = heads.into_iter().map(Column::numbers).collect();
    columns.push(Column::words("outcome"));
    let rows = gate.blocks.iter().map(row).collect();
    let rule = match gate.canaries {
        CanaryRule::Calibration => "the A/A calibration of this host",
        _ => "this plan's own canaries",
    };
    let calibrated = gate.calibration.as_ref().map_or_else(String::new, |known| {
        let sd = HostNoise::of(known)
            .sd_ln()
            .map_or("unknown".to_owned(), |sd| format!("{:.2} %", 100.0 * sd));
        format!(" A/A run of {}: {} ({} blocks, s_d {sd}).", known.made, known.target, known.blocks)
    });
    let out = gate.out_of_range();
    let discards = gate.blocks.iter().any(|block| block.discarded);
    let fate = match (out, in_turns && !discards) {
        (0, _) => "",
        (_, true) => " rqps kept them: turns cancel noise that lasts longer than a turn.",
        (_, false) => " rqps repeats disturbed blocks, up to one in five.",
    };
    let were = if out == 1 { "was" } else { "were" };
    let text = format!(
        "Canaries before > after each block (range from {rule}); {out} of {} blocks {were} \
         disturbed.{fate}{calibrated}",
        gate.measured()
    );
    let table = Table::new("", columns, rows);
    vec![Block::Paragraph(text), Block::Table(table)]
}

/// On which hosts blocks were measured; on one, in how many sittings a plan that was interrupted
/// and resumed.
fn sittings(gate: &HostLog) -> Option<Block> {
    let all = || gate.blocks.iter().filter_map(|block| block.session.as_ref());
    let nodes: BTreeSet<&str> = all().filter_map(|session| session.node.as_deref()).collect();
    if !nodes.is_empty() {
        let count = |node: &str| all().filter(|own| own.node.as_deref() == Some(node)).count();
        let named: Vec<String> = nodes
            .iter()
            .take(NAMED)
            .map(|node| format!("{node} ({})", count(node)))
            .chain((nodes.len() > NAMED).then(|| format!("{} others", nodes.len() - NAMED)))
            .collect();
        let text = format!("Blocks by host: {}.", named.join(", "));
        return Some(Block::Paragraph(text));
    }
    let started: BTreeSet<&str> = all().map(|session| session.started.as_str()).collect();
    let hosts: BTreeSet<&str> = all().map(|session| session.host.as_str()).collect();
    let boots: BTreeSet<_> = all().map(|session| (&session.host, &session.boot)).collect();
    let restarted =
        if boots.len() > hosts.len() { "; the host was restarted in between" } else { "" };
    let count = started.len();
    (count > 1)
        .then(|| Block::Paragraph(format!("Blocks were measured in {count} sittings{restarted}.")))
}

fn row(block: &BlockRecord) -> Vec<Cell> {
    let again = match block.attempt {
        1 => String::new(),
        attempt => format!(" attempt {attempt}"),
    };
    let pair = |get: fn(&Canary) -> Option<f64>| {
        let value = |canary: &Option<Canary>| {
            let value = canary.as_ref().and_then(get);
            value.map_or("-".to_owned(), |value| format!("{value:.2}"))
        };
        Cell::text(format!("{} > {}", value(&block.before), value(&block.after)))
    };
    let fate = match (&block.out_of_range, block.discarded) {
        (Some(why), true) => format!("discarded: {why}"),
        (Some(why), false) => format!("disturbed but kept: {why}"),
        (None, _) if block.after.is_none() => "interrupted".to_owned(),
        (None, _) => "counts".to_owned(),
    };
    vec![
        Cell::text(format!("{}{again}", block.block)),
        pair(|canary| canary.spin_ns.map(|ns| ns / 1e6)),
        pair(|canary| canary.memory_mb_s.map(|rate| rate / 1e3)),
        pair(|canary| canary.fsync_ns.map(|ns| ns / 1e6)),
        Cell::text(fate),
    ]
}

/// The block of the last look at each step, for a plan with sequential stopping.
fn stops(gate: &HostLog) -> Vec<Block> {
    let looks: Vec<(u32, &BTreeMap<String, Option<u32>>)> =
        gate.blocks.iter().filter_map(|block| Some((block.block, block.open.as_ref()?))).collect();
    let mut lines: Vec<String> = Vec::new();
    for (index, (block, open)) in looks.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| looks.get(before));
        let stopped: Vec<&String> = match before {
            Some((_, earlier)) => earlier.keys().filter(|step| !open.contains_key(*step)).collect(),
            None => Vec::new(),
        };
        let what = match (index, open.len()) {
            (0, left) => format!("first look; {left} steps stay open"),
            (_, left) if stopped.is_empty() => format!("{left} steps stay open"),
            (_, left) => format!("stopped: {}; {left} stay open", named(&stopped)),
        };
        lines.push(format!("after block {block}: {what}"));
    }
    if let Some((_, open)) = looks.last().filter(|(_, open)| !open.is_empty()) {
        lines.push(format!("open at the end: {}", named(&open.keys().collect::<Vec<_>>())));
    }
    if lines.is_empty() { Vec::new() } else { vec![Block::List(lines)] }
}

fn named(steps: &[&String]) -> String {
    let mut names: Vec<&str> = steps.iter().take(NAMED).map(|name| name.as_str()).collect();
    let more = format!("{} others", steps.len().saturating_sub(NAMED));
    if steps.len() > NAMED {
        names.push(&more);
    }
    names.join(", ")
}

// Results of each session: ratios of several result sets side by side, and their heterogeneity.

/// A table for each target; `None` for a single session.
pub(super) fn sessions_section(comparison: &Comparison) -> Option<Section> {
    let targets = comparison.targets.iter().enumerate().skip(1);
    let tables: Vec<Table> =
        targets.filter_map(|(place, facts)| table(comparison, place, &facts.label)).collect();
    if tables.is_empty() {
        return None;
    }
    let about = "Each result set is a session: one series of blocks on one host with its own \
                 loads. Where several hosts measured blocks of one plan, or one host in several \
                 sittings, each host or sitting is a session. rqps pools rQPS over sessions with a \
                 random effect (REML); the interval is the Hartung-Knapp-Sidik-Jonkman interval. \
                 between sd is the standard deviation between sessions beyond the scatter of their \
                 pairs, within sd that of the pairs of one session; needed is the number of \
                 sessions that find a difference of delta in this step.";
    let mut blocks = vec![Block::text(about), Block::List(legend(comparison))];
    blocks.extend(tables.into_iter().map(Block::Table));
    Some(Section::new("sessions", "Sessions", blocks))
}

/// The sessions in the order of their runs.
fn names(comparison: &Comparison) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in &comparison.runs {
        if !names.contains(&run.session.as_str()) {
            names.push(&run.session);
        }
    }
    names
}

/// `session-1: results/monday, host c2r24 (7883fa9e240c), 2026-11-22T12:00:00Z`.
fn legend(comparison: &Comparison) -> Vec<String> {
    let line = |(place, name): (usize, &str)| {
        let run = comparison.runs.iter().find(|run| run.session == name)?;
        let fingerprint = &run.host_fingerprint;
        let class = comparison.hosts.get(fingerprint).map(|host| host.class());
        let class = class.unwrap_or_else(|| "unknown".to_owned());
        let started = &run.started;
        Some(format!("session-{}: {name}, host {class} ({fingerprint}), {started}", place + 1))
    };
    names(comparison).into_iter().enumerate().filter_map(line).collect()
}

fn table(comparison: &Comparison, target: usize, label: &str) -> Option<Table> {
    let names = names(comparison);
    let mut rows = Vec::new();
    for step in &comparison.steps {
        let Some(relative) = step.targets[target].relative(Metric::Rate) else { continue };
        let Some(sessions) = &relative.sessions else { continue };
        let mut row = vec![
            verdicts::ratio(relative),
            Cell::number(100.0 * sessions.between_sd, Digits::Fixed(2), "%"),
            match sessions.within_sd {
                Some(sd) => Cell::number(100.0 * sd, Digits::Fixed(2), "%"),
                None => Cell::missing("each session has one pair"),
            },
            match needed(&sessions.values, &comparison.rules) {
                Some(needed) => Cell::number(f64::from(needed), Digits::Fixed(0), "sessions"),
                None => Cell::missing("no number of sessions that could be measured"),
            },
        ];
        row.extend(names.iter().map(|name| {
            match sessions.sessions.iter().find(|session| session.session == *name) {
                Some(own) => {
                    Cell::number(own.ratio, Digits::Fixed(3), "ratio").within(own.interval)
                }
                None => Cell::missing("no pair of this step in this session"),
            }
        }));
        row.push(Cell::text(step.name.clone()));
        rows.push(row);
    }
    let mut columns = vec![
        Column::numbers("rQPS"),
        Column::numbers("between sd %"),
        Column::numbers("within sd %"),
        Column::numbers("needed"),
    ];
    columns.extend((1..=names.len()).map(|place| Column::numbers(format!("session-{place}"))));
    columns.push(Column::words("step"));
    let caption = format!("{label}: rQPS by session");
    (!rows.is_empty()).then_some(Table::new(caption, columns, rows))
}

/// Sessions that find a difference of δ, by the scatter of these.
fn needed(values: &[f64], rules: &Rules) -> Option<u32> {
    let sd = stddev(values).filter(|sd| *sd >= SD_MIN)?;
    let (alpha, effect) = (1.0 - rules.confidence, rules.equivalence_limit());
    power::pairs_needed(&Aim { sd, df_lent: 0.0, effect, alpha, power: rules.power })
}

// Turns within a step: their lengths, and the precision of a block's ratio.

/// A row for each step and target; `None` if no targets took turns.
pub(super) fn turns_section(comparison: &Comparison) -> Option<Section> {
    let rows: Vec<Vec<Cell>> = turn_scatter(comparison).iter().map(cells).collect();
    let columns = vec![
        Column::numbers("turn_ms").with_legend("shortest turn"),
        Column::words("waiting").with_legend("state of the DBMS during the turns of others"),
        Column::numbers("turns").with_legend("turns of this target in a block"),
        Column::numbers("inside").with_legend("standard error of a block's ratio, from its turns"),
        Column::numbers("between").with_legend("standard deviation of the ratio between blocks"),
        Column::words("target"),
        Column::words("step"),
    ];
    let explained = "Targets took turns within each step, so a slow disturbance affects all of \
                     them. If `between` is about as large as `inside`, longer windows help as much \
                     as more blocks; if it is larger, only more blocks help. Intervals and \
                     verdicts of rates use `inside` where the blocks scatter less, because a few \
                     blocks may agree by luck.";
    let share = share_between_turns(comparison).map_or_else(String::new, |share| {
        format!(" {:.2} % of the windows lie between turns.", 100.0 * share)
    });
    let about = format!("{explained}{share}{}", carry_over_sentence(comparison));
    let table = (!rows.is_empty()).then(|| Table::new("", columns, rows));
    Section::of_table("turns", "Turns within steps", about, table)
}

/// The carry-over of each target, as a sentence; empty if no target has two turns in a row.
fn carry_over_sentence(comparison: &Comparison) -> String {
    let all = comparison.targets.iter().zip(carry_over(comparison));
    let told = all.filter_map(|(target, found)| {
        let found = found?;
        let [slower, margin] = [found.slower, 1.96 * found.error].map(|share| 100.0 * share);
        Some(format!("{slower:.1} % ± {margin:.1} ({})", target.label))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!(
        " Carry-over, by how much a turn after another target's is slower than the target's own \
         next turn (± 95 %): {}.",
        told.join(", ")
    )
}

fn cells(of: &TurnScatter) -> Vec<Cell> {
    let percent = |ln: Option<f64>, why: &str| {
        Cell::text_or(ln.map(|ln| format!("{:.2} %", 100.0 * ln.exp_m1())), why)
    };
    vec![
        Cell::number(of.slice_ms, Digits::Significant(3), "ms"),
        Cell::text(of.waiting),
        Cell::number(f64::from(of.turns), Digits::Fixed(0), ""),
        percent(of.inside_ln, "the window has one part"),
        percent(of.between_ln, "one block"),
        Cell::text(of.label.clone()),
        Cell::text(of.step.clone()),
    ]
}

/// The turns in a few words for the head of a report: the number of steps with turns, of all steps;
/// empty if there are none.
pub(super) fn line(comparison: &Comparison) -> Option<String> {
    let records = |step: &rqps_analysis::comparison::StepComparison| -> Vec<bool> {
        let samples = step.targets.iter().flat_map(|target| &target.samples);
        samples.map(|sample| sample.record.outcome.turns.is_some()).collect()
    };
    let steps: Vec<Vec<bool>> = comparison.steps.iter().map(records).collect();
    let within = steps.iter().filter(|step| step.contains(&true)).count();
    if within == 0 {
        return None;
    }
    let rest = match steps.len() - within {
        0 => String::new(),
        rest => format!("; one target after another in {rest}"),
    };
    let slices = comparison.steps.iter().flat_map(|step| &step.targets).flat_map(|target| {
        target
            .samples
            .iter()
            .filter_map(|sample| Some(sample.record.outcome.turns.as_ref()?.slice_ms))
    });
    let (least, most) =
        slices.fold((f64::INFINITY, 0.0f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    let length = if most - least < 0.5 {
        format!("{least:.0} ms")
    } else {
        format!("{least:.0} to {most:.0} ms")
    };
    Some(format!("of {length} within {within} of {} steps{rest}", steps.len()))
}

// Rate stability over the seconds of a run: spread, stalls, drift.

/// A row for each step and target; empty if no record has intervals of 5 s or more.
pub(super) fn evenness_section(comparison: &Comparison) -> Option<Section> {
    let rows = comparison.steps.iter().flat_map(|step| {
        step.targets.iter().filter_map(|target| {
            let names = [("target", &target.label), ("step", &step.name)];
            let names = names.map(|(head, name)| words(head, Cell::text(name)));
            Some(evenness_cells(target)?.into_iter().chain(names))
        })
    });
    let explained = "Statistics of the rates of single seconds: cv is standard deviation / mean; \
                     p1 and p5 are percentiles / median; stall_s counts seconds below a tenth of \
                     the median, longest_s the longest series of them; warm_s is the start of the \
                     steady state (MSER-5, windows from 20 s); drift is the Theil-Sen slope times \
                     the window (windows from 60 s). Medians over the runs; stalls of the worst \
                     run.";
    Section::of_table("evenness", "Rate stability", explained, Table::of("", rows))
}

fn evenness_cells(target: &TargetResult) -> Option<[Placed; 7]> {
    let courses: Vec<Stability> =
        target.samples.iter().filter_map(|sample| sample.stability).collect();
    let evenness: Vec<Evenness> = courses.iter().filter_map(|course| course.evenness).collect();
    if evenness.is_empty() {
        return None;
    }
    let middle = |get: fn(&Evenness) -> f64| {
        let numbers: Vec<f64> = evenness.iter().map(get).collect();
        Cell::number_or(median(&numbers), Digits::Fixed(3), "ratio", "the window is too short")
    };
    let most = |get: fn(&Evenness) -> usize| {
        let most = evenness.iter().map(get).max().unwrap_or(0);
        Cell::number(most as f64, Digits::Fixed(0), "s")
    };
    let cuts = courses.iter().filter_map(|course| course.warm_up);
    let cuts: Vec<f64> = cuts.map(|cut| cut.seconds as f64).collect();
    let drifts: Vec<f64> =
        courses.iter().filter_map(|course| course.trend).map(|trend| trend.change).collect();
    let drift = median(&drifts).map(|share| format!("{:+.1} %", 100.0 * share));
    let cut = median(&cuts);
    Some([
        numbers("cv", middle(|evenness| evenness.cv)),
        numbers("p1", middle(|evenness| evenness.p1)),
        numbers("p5", middle(|evenness| evenness.p5)),
        numbers("stall_s", most(|evenness| evenness.stall_seconds)),
        numbers("longest_s", most(|evenness| evenness.longest_stall)),
        numbers(
            "warm_s",
            Cell::number_or(cut, Digits::Fixed(0), "s", "the window is shorter than 20 s"),
        ),
        numbers("drift", Cell::text_or(drift, "the window is shorter than 60 s")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::host::Session;

    fn look(block: u32, open: &[&str]) -> BlockRecord {
        let open = open.iter().map(|step| ((*step).to_owned(), Some(1))).collect();
        BlockRecord { block, attempt: 1, open: Some(open), ..BlockRecord::default() }
    }

    #[test]
    fn it_is_told_when_which_step_stopped() {
        let blocks = vec![
            BlockRecord { block: 3, attempt: 1, ..BlockRecord::default() },
            look(4, &["a", "b", "c"]),
            look(5, &["b"]),
            look(6, &["b"]),
        ];
        let told = stops(&HostLog { blocks, ..HostLog::default() });
        let expected = [
            "after block 4: first look; 3 steps stay open",
            "after block 5: stopped: a, c; 1 stay open",
            "after block 6: 1 steps stay open",
            "open at the end: b",
        ];
        assert_eq!(told, vec![Block::List(expected.map(str::to_owned).to_vec())]);
        assert!(stops(&HostLog::default()).is_empty());
    }

    #[test]
    fn canaries_and_what_became_of_the_block_are_rows() {
        let canary = Canary { spin_ns: Some(6e6), memory_mb_s: Some(9000.0), ..Canary::default() };
        let block = BlockRecord {
            block: 2,
            attempt: 2,
            before: Some(canary.clone()),
            after: Some(canary),
            out_of_range: Some("spin".to_owned()),
            discarded: true,
            ..BlockRecord::default()
        };
        let texts: Vec<Cell> = row(&block);
        assert_eq!(texts[0], Cell::text("2 attempt 2".to_owned()));
        assert_eq!(texts[1], Cell::text("6.00 > 6.00".to_owned()));
        assert_eq!(texts[3], Cell::text("- > -".to_owned()));
        assert_eq!(texts[4], Cell::text("discarded: spin".to_owned()));
        let off = HostLog { blocks: vec![block], ..HostLog::default() };
        assert!(canaries(&off, false).is_empty(), "nobody looked");
    }

    fn sittings_text(sessions: &[(&str, &str)]) -> String {
        let blocks = sessions.iter().map(|(boot, started)| BlockRecord {
            session: Some(Session {
                host: "abc".to_owned(),
                boot: Some((*boot).to_owned()),
                started: (*started).to_owned(),
                node: None,
            }),
            ..BlockRecord::default()
        });
        let killed = BlockRecord::default();
        let gate = HostLog { blocks: blocks.chain([killed]).collect(), ..HostLog::default() };
        match sittings(&gate) {
            Some(Block::Paragraph(text)) => text,
            _ => String::new(),
        }
    }

    #[test]
    fn a_plan_that_was_resumed_says_so() {
        assert_eq!(sittings_text(&[("a", "09:00"), ("a", "09:00")]), "");
        let resumed = sittings_text(&[("a", "09:00"), ("a", "11:00"), ("a", "11:00")]);
        assert_eq!(resumed, "Blocks were measured in 2 sittings.");
        let restarted = sittings_text(&[("a", "09:00"), ("b", "11:00")]);
        let expected = "Blocks were measured in 2 sittings; the host was restarted in between.";
        assert_eq!(restarted, expected);
    }
}
