//! Keeps `gate.json`: decides by the canaries beside each block whether the block is discarded, and
//! counts the time that the plan has taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::lab::canaries::{self, CanaryReader, CanarySource};
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::plan::BlockSpec;
use rqps_model::block::BlockReport;
use rqps_model::gate::{
    BlockRecord, Calibration, Canary, CanaryReference, CanaryRule, GATE_FORMAT, HostLog,
};
use rqps_model::host::Session;
use rqps_model::run::{RunKey, Status};
use rqps_results::ResultSet;

/// One block may be discarded for this number of valid blocks: 20 % of all measured blocks.
const KEPT_PER_DISCARDED: usize = 4;

/// Outcome of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockDisposition {
    /// It counts.
    Kept,
    /// It does not, and is measured again.
    Discarded,
}

/// The gate of a plan that is carried out.
pub(super) struct HostMonitor<'e> {
    execution: &'e Execution<'e>,
    gate: HostLog,
    began: Instant,
    spent_before: f64,
    blocks_least: usize,
    /// Blocks take turns in every step. Such a block is kept whatever the canaries say: they are
    /// seconds apart, and turns cancel noise of that length.
    in_turns: bool,
    /// Blocks have several hosts. Each is judged by the readings of its own host.
    has_many_hosts: bool,
}

impl<'e> HostMonitor<'e> {
    /// Takes up the gate of the result set, or begins one with first readings. Returns what reads
    /// the canaries from here on.
    ///
    /// # Errors
    /// `gate.json` cannot be read or written.
    pub(super) fn open(
        execution: &'e Execution<'e>,
        (source, in_turns): (CanarySource, bool),
        progress: &mut Progress<'_>,
    ) -> Result<(HostMonitor<'e>, CanaryReader)> {
        let calibration = calibration(execution);
        let there = execution.results.gate()?;
        let is_new = there.is_none();
        let gate = there.unwrap_or_else(|| HostLog {
            format: GATE_FORMAT,
            canaries: rule(&source, calibration.as_ref()),
            calibration,
            ledger: execution.options.ledger.clone(),
            ..HostLog::default()
        });
        let (is_off, has_many_hosts) = (source.is_off(), source.is_elsewhere());
        let mut reader = CanaryReader::new(source, readings(&gate));
        let mut monitor = HostMonitor {
            execution,
            spent_before: gate.spent_seconds,
            gate,
            began: Instant::now(),
            blocks_least: execution.plan.blocks.fewest() as usize,
            in_turns,
            has_many_hosts,
        };
        if is_new {
            if !is_off && !has_many_hosts {
                progress.doing("", "read the canaries", None);
            }
            monitor.gate.first_canaries = reader.first();
            monitor.say_first(progress);
        }
        for block in monitor.gate.blocks.iter().filter(|block| block.discarded) {
            mark_discarded(&execution.results, block, &keys_of(&execution.results, block)?)?;
        }
        monitor.write()?;
        Ok((monitor, reader))
    }

    /// Seconds that the plan has taken so far, including earlier sittings.
    pub(super) fn spent_seconds(&self) -> f64 {
        self.spent_before + self.began.elapsed().as_secs_f64()
    }

    /// The reference for the canaries of the next block; `None` if they are off.
    pub(super) fn reference(&self) -> Option<CanaryReference> {
        let rule = self.gate.canaries;
        let pairs = self.known().to_vec();
        let usual = match rule {
            // The host of a block is not known yet.
            _ if self.has_many_hosts => Vec::new(),
            CanaryRule::Calibration => pairs.iter().flatten().cloned().collect(),
            CanaryRule::Own => self.own_canaries().cloned().collect(),
            CanaryRule::Off => return None,
        };
        Some(CanaryReference { rule, usual, pairs, may_discard: !self.in_turns })
    }

    /// Before blocks: writes down that they are begun, and the steps that are skipped. An attempt
    /// that was begun before and has no run yet is the same one.
    ///
    /// # Errors
    /// `gate.json` cannot be written.
    pub(super) fn begin(
        &mut self,
        specs: &[BlockSpec],
        skipped: BTreeMap<String, String>,
    ) -> Result<()> {
        let keys: BTreeSet<_> = specs.iter().map(|spec| (spec.block, spec.attempt)).collect();
        self.gate.blocks.retain(|begun| !keys.contains(&(begun.block, begun.attempt)));
        self.gate.blocks.extend(keys.into_iter().map(|(block, attempt)| {
            let skipped = skipped.clone();
            BlockRecord { block, attempt, skipped, ..BlockRecord::default() }
        }));
        self.write()
    }

    /// Attempts that were begun and have no report yet, by block. Other hosts may be at them.
    pub(super) fn unreported(&self) -> BTreeMap<u32, u32> {
        let begun = self.gate.blocks.iter().filter(|block| block.session.is_none());
        begun.map(|block| (block.block, block.attempt)).collect()
    }

    /// After a block: decides by its canaries whether it counts; one that was interrupted is only
    /// written down. What is discarded is marked in `gate.json` first: if rqps is killed before all
    /// its runs are marked, the rest is when the plan is resumed.
    ///
    /// # Errors
    /// `gate.json` or a `run.json` cannot be written.
    pub(super) fn end(
        &mut self,
        (spec, report): (&BlockSpec, &BlockReport),
        progress: &mut Progress<'_>,
    ) -> Result<BlockDisposition> {
        let may_discard = !self.in_turns && self.may_discard();
        let mut reference = spec.canaries.clone().filter(|_| !self.execution.stopped());
        if let Some(reference) = reference.as_mut().filter(|_| self.has_many_hosts) {
            reference.usual = self.canaries_of(&report.session);
        }
        let of_spec =
            |begun: &BlockRecord| (begun.block, begun.attempt) == (spec.block, spec.attempt);
        let Some(entry) = self.gate.blocks.iter_mut().find(|begun| of_spec(begun)) else {
            bail!("judge block {}: it was never begun", spec.block);
        };
        let [before, after] = &report.canaries;
        let faults = reference.map_or_else(Vec::new, |reference| {
            canaries::faults(&reference, [before.as_ref(), after.as_ref()])
        });
        let discarded = !faults.is_empty() && may_discard;
        entry.session = Some(report.session.clone());
        (entry.before, entry.after) = (before.clone(), after.clone());
        entry.out_of_range = (!faults.is_empty()).then(|| faults.join("; "));
        entry.discarded = discarded;
        let entry = entry.clone();
        self.write()?;
        if let Some(fault) = &entry.out_of_range {
            self.say_fate(&entry, fault, progress);
        }
        if !discarded {
            return Ok(BlockDisposition::Kept);
        }
        let keys: Vec<RunKey> = report.runs.iter().map(|run| run.key.clone()).collect();
        mark_discarded(&self.execution.results, &entry, &keys)?;
        Ok(BlockDisposition::Discarded)
    }

    /// Records which steps are open after the last block.
    ///
    /// # Errors
    /// `gate.json` cannot be written.
    pub(super) fn note_open(&mut self, open: BTreeMap<String, Option<u32>>) -> Result<()> {
        if let Some(last) = self.gate.blocks.last_mut() {
            last.open = Some(open);
        }
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        self.gate.spent_seconds = self.spent_seconds();
        Ok(self.execution.results.write_gate(&self.gate)?)
    }

    /// The readings before and after each block of the calibration that this plan goes by.
    fn known(&self) -> &[[Canary; 2]] {
        match (&self.gate.canaries, &self.gate.calibration) {
            (CanaryRule::Calibration, Some(known)) => &known.canary_pairs,
            _ => &[],
        }
    }

    /// This plan's own readings: those at its beginning, and of all blocks that were in range.
    fn own_canaries(&self) -> impl Iterator<Item = &Canary> {
        let in_range = self.gate.blocks.iter().filter(|block| block.out_of_range.is_none());
        let of_blocks = in_range.flat_map(|block| block.before.iter().chain(&block.after));
        self.gate.first_canaries.iter().chain(of_blocks)
    }

    /// The readings beside blocks in range on one host of several.
    fn canaries_of(&self, session: &Session) -> Vec<Canary> {
        let of_host = |block: &&BlockRecord| {
            let same = |own: &Session| (&own.host, &own.node) == (&session.host, &session.node);
            block.out_of_range.is_none() && block.session.as_ref().is_some_and(same)
        };
        let blocks = self.gate.blocks.iter().filter(of_host);
        blocks.flat_map(|block| block.before.iter().chain(&block.after)).cloned().collect()
    }

    /// False once so many are out of range that verdicts allow for the noise of the host: where it
    /// stays noisy, to measure again would never end.
    fn may_discard(&self) -> bool {
        let discarded = self.gate.blocks.iter().filter(|block| block.discarded).count();
        let kept =
            self.gate.blocks.iter().filter(|block| !block.discarded && block.after.is_some());
        let planned = self.blocks_least.max(kept.count() + 1);
        discarded < (planned / KEPT_PER_DISCARDED).max(1)
    }

    fn say_first(&self, progress: &mut Progress<'_>) {
        let Some(first) = self.gate.first_canaries.first() else { return };
        let value = |value: Option<f64>, unit: &str| match value {
            Some(value) => format!("{value:.2} {unit}"),
            None => "-".to_owned(),
        };
        let by = match self.gate.canaries {
            CanaryRule::Calibration => "the A/A calibration of this host",
            _ => "this plan's own canaries; run `rqps doctor --aa TARGET` for a calibrated range",
        };
        progress.note(&format!(
            "canaries before and after each block ({:.1} s each): spin {}, memory {}, fsync {}; \
             range from {by}",
            first.seconds,
            value(first.spin_ns.map(|ns| ns / 1e6), "ms"),
            value(first.memory_mb_s.map(|rate| rate / 1000.0), "GB/s"),
            value(first.fsync_ns.map(|ns| ns / 1e6), "ms"),
        ));
    }

    fn say_fate(&self, entry: &BlockRecord, fault: &str, progress: &mut Progress<'_>) {
        let end = if entry.discarded {
            "rqps discards and repeats it"
        } else if self.in_turns {
            "kept, because turns cancel noise that lasts longer than a turn"
        } else {
            "kept, because too many blocks were disturbed before; verdicts account for the host's \
             noise"
        };
        progress.note(&format!("block {} is disturbed ({fault}): {end}", entry.block));
    }
}

/// The stored calibration that fits the plan best.
fn calibration(execution: &Execution<'_>) -> Option<Calibration> {
    let options = execution.options;
    let fingerprint = &execution.session.host;
    options.plan.closest(fingerprint, &options.calibrations).cloned()
}

fn rule(source: &CanarySource, calibration: Option<&Calibration>) -> CanaryRule {
    match calibration {
        _ if source.is_off() => CanaryRule::Off,
        Some(known) if known.canary_pairs.len() >= canaries::PAIRS_MIN => CanaryRule::Calibration,
        _ => CanaryRule::Own,
    }
}

/// Readings that a gate holds: a script goes on after them.
fn readings(gate: &HostLog) -> usize {
    let of_block = |block: &BlockRecord| block.before.iter().chain(&block.after).count();
    gate.first_canaries.len() + gate.blocks.iter().map(of_block).sum::<usize>()
}

/// The runs of an attempt at a block that are in the result folder.
fn keys_of(results: &ResultSet, block: &BlockRecord) -> Result<Vec<RunKey>> {
    let keys = results.runs()?.into_iter().map(|record| record.key);
    Ok(keys.filter(|key| (key.block, key.attempt) == (block.block, block.attempt)).collect())
}

/// Marks these runs of a block as discarded, as far as they are complete.
fn mark_discarded(results: &ResultSet, block: &BlockRecord, keys: &[RunKey]) -> Result<()> {
    let why = block.out_of_range.clone().unwrap_or_default();
    for key in keys {
        let folder = results.run(key)?;
        let mut record = folder.record()?;
        if record.status == Status::Complete {
            record.status = Status::Discarded(why.clone());
            folder.update(&record)?;
        }
    }
    Ok(())
}
