//! The host during the blocks: discarded blocks, canaries, and the last look at each step.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Block, Cell, Column, Section, Table};
use rqps_analysis::Comparison;
use rqps_analysis::calibration::HostNoise;
use rqps_model::gate::{BlockRecord, Canary, CanaryRule, HostLog};

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
    let heading = "Blocks and host".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "blocks", heading, blocks })
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
    let table = Table { caption: String::new(), columns, rows };
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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::session::Session;

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
