//! Keeps `gate.json`: reads the canaries beside each block, decides whether to discard the block,
//! and counts the time that the plan has taken.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::domain::benchmark::Phase;
use crate::domain::gate::{BlockRecord, Calibration, Canary, CanaryRule, GATE_FORMAT, HostLog};
use crate::domain::run::Status;
use crate::lab::canaries::{self, CanarySource, FIRST_READINGS};
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::lab::selection::Selection;
use crate::results::ResultSet;

/// A block is not begun while the canary before it is out of range; but no longer than this many
/// pauses.
const PAUSES: usize = 3;
/// Between two readings of them.
const PAUSE: Duration = Duration::from_secs(5);
/// A canary takes a tenth of a second, a block minutes: a disturbance must persist for this long
/// before it discards a block.
const MOMENT: Duration = Duration::from_secs(1);
/// Of the blocks that count, one in so many may be discarded besides: 20 % of all measured.
const KEPT_PER_DISCARDED: usize = 4;

/// Outcome of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It counts.
    Kept,
    /// It does not, and is measured again.
    Discarded,
}

/// The gate of a plan that is carried out.
pub(super) struct HostMonitor {
    gate: HostLog,
    source: CanarySource,
    readings: usize,
    began: Instant,
    spent_before: f64,
    blocks_least: usize,
    /// The block at hand takes turns in every step. Such a block is kept whatever the canaries say:
    /// they are seconds apart, and turns cancel noise of that length.
    in_turns: bool,
}

impl HostMonitor {
    /// Takes up the gate of the result set, or begins one with first readings.
    ///
    /// # Errors
    /// `gate.json` cannot be read or written.
    pub(super) fn open(
        execution: &Execution<'_>,
        source: CanarySource,
        progress: &mut Progress<'_>,
    ) -> Result<HostMonitor> {
        let calibration = calibration(execution);
        let there = execution.results.gate()?;
        let is_new = there.is_none();
        let gate = there.unwrap_or_else(|| HostLog {
            format: GATE_FORMAT,
            canaries: rule(&source, calibration.as_ref()),
            calibration,
            ..HostLog::default()
        });
        let mut monitor = HostMonitor {
            readings: readings(&gate),
            spent_before: gate.spent_seconds,
            gate,
            source,
            began: Instant::now(),
            blocks_least: execution.options.plan.blocks.fewest() as usize,
            in_turns: false,
        };
        if is_new {
            if !monitor.source.is_off() {
                progress.doing("", "read the canaries", None);
            }
            for _ in 0..FIRST_READINGS {
                let reading = monitor.read();
                monitor.gate.first_canaries.extend(reading);
            }
            monitor.say_first(progress);
        }
        for block in monitor.gate.blocks.iter().filter(|block| block.discarded) {
            mark_discarded(&execution.results, block)?;
        }
        monitor.write(execution)?;
        Ok(monitor)
    }

    /// Seconds that the plan has taken so far, including earlier sittings.
    pub(super) fn spent_seconds(&self) -> f64 {
        self.spent_before + self.began.elapsed().as_secs_f64()
    }

    /// Before a block: reads the canaries. Waits a while if they are out of range and the block
    /// could be discarded for it.
    ///
    /// # Errors
    /// `gate.json` cannot be written.
    pub(super) fn before(
        &mut self,
        execution: &Execution<'_>,
        (block, attempt): (u32, u32),
        (selection, stages): (&Selection, &[Phase]),
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.in_turns = execution.options.plan.takes_turns_in_all(stages);
        let pauses = if self.in_turns { 0 } else { PAUSES };
        let mut reading = self.read();
        for _ in 0..pauses {
            let Some(fault) = reading.as_ref().and_then(|reading| self.fault(reading)) else {
                break;
            };
            if execution.stopped() {
                break;
            }
            progress.doing("", &format!("wait for a quieter host ({fault})"), None);
            self.rest(PAUSE);
            reading = self.read();
        }
        self.gate.blocks.push(BlockRecord {
            block,
            attempt,
            before: reading,
            skipped: selection.skipped(stages),
            ..BlockRecord::default()
        });
        self.write(execution)
    }

    /// After a block: reads the canaries, twice if they are out of range, and decides. What is
    /// discarded is marked in `gate.json` first: if rqps is killed before all its runs are
    /// marked, the rest is when the plan is resumed.
    ///
    /// # Errors
    /// `gate.json` or a `run.json` cannot be written.
    pub(super) fn after(
        &mut self,
        execution: &Execution<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Fate> {
        let Some(index) = self.gate.blocks.len().checked_sub(1) else { return Ok(Fate::Kept) };
        let before = self.gate.blocks[index].before.clone();
        let mut reading = self.read();
        let mut faults = self.faults(before.as_ref(), reading.as_ref());
        if !faults.is_empty() && !self.in_turns {
            self.rest(MOMENT);
            reading = self.read();
            faults = self.faults(before.as_ref(), reading.as_ref());
        }
        let discarded = !faults.is_empty() && !self.in_turns && self.may_discard();
        let entry = &mut self.gate.blocks[index];
        entry.after = reading;
        entry.out_of_range = (!faults.is_empty()).then(|| faults.join("; "));
        entry.discarded = discarded;
        let entry = entry.clone();
        self.write(execution)?;
        if let Some(fault) = &entry.out_of_range {
            self.say_fate(&entry, fault, progress);
        }
        if !discarded {
            return Ok(Fate::Kept);
        }
        mark_discarded(&execution.results, &entry)?;
        Ok(Fate::Discarded)
    }

    /// Records which steps are open after the last block.
    ///
    /// # Errors
    /// `gate.json` cannot be written.
    pub(super) fn note_open(
        &mut self,
        execution: &Execution<'_>,
        open: std::collections::BTreeMap<String, Option<u32>>,
    ) -> Result<()> {
        if let Some(last) = self.gate.blocks.last_mut() {
            last.open = Some(open);
        }
        self.write(execution)
    }

    fn write(&mut self, execution: &Execution<'_>) -> Result<()> {
        self.gate.spent_seconds = self.spent_seconds();
        Ok(execution.results.write_gate(&self.gate)?)
    }

    fn rest(&self, pause: Duration) {
        if self.source.is_real() {
            std::thread::sleep(pause);
        }
    }

    fn read(&mut self) -> Option<Canary> {
        let reading = self.source.read(self.readings);
        self.readings += 1;
        reading
    }

    /// Why a block with these readings before and after it does not count.
    fn faults(&self, before: Option<&Canary>, after: Option<&Canary>) -> Vec<String> {
        let slow = |when: &str, reading: Option<&Canary>| {
            Some(format!("{when} it, {}", self.fault(reading?)?))
        };
        let changed = || canaries::changed(self.known(), [before?, after?]);
        [slow("before", before), slow("after", after), changed()].into_iter().flatten().collect()
    }

    /// Why a reading is slower than usual.
    fn fault(&self, reading: &Canary) -> Option<String> {
        let rule = self.gate.canaries;
        let reference = match rule {
            CanaryRule::Calibration => self.known().iter().flatten().collect(),
            CanaryRule::Own | CanaryRule::Off => self.own_canaries(),
        };
        canaries::slow(rule, &reference, reading)
    }

    /// The readings before and after each block of the calibration that this plan goes by.
    fn known(&self) -> &[[Canary; 2]] {
        match (&self.gate.canaries, &self.gate.calibration) {
            (CanaryRule::Calibration, Some(known)) => &known.canary_pairs,
            _ => &[],
        }
    }

    /// This plan's own readings: those at its beginning, and of all blocks that were in range.
    fn own_canaries(&self) -> Vec<&Canary> {
        let in_range = self.gate.blocks.iter().filter(|block| block.out_of_range.is_none());
        let of_blocks = in_range.flat_map(|block| block.before.iter().chain(&block.after));
        self.gate.first_canaries.iter().chain(of_blocks).collect()
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
    let fingerprint = &execution.host_fingerprint;
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

/// Marks all runs of a block as discarded.
fn mark_discarded(results: &ResultSet, block: &BlockRecord) -> Result<()> {
    let why = block.out_of_range.clone().unwrap_or_default();
    for mut record in results.runs()? {
        let of_block = record.key.block == block.block && record.key.attempt == block.attempt;
        if of_block && record.status == Status::Complete {
            record.status = Status::Discarded(why.clone());
            results.run(&record.key)?.update(&record)?;
        }
    }
    Ok(())
}
