//! Canaries of a plan: where readings come from, and which of them call the host disturbed. They
//! only discard blocks; rates never do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::lab::execution::{self, Execution};
use crate::lab::executor;
use crate::lab::progress::Progress;
use crate::plan::{BlockSpec, cost};
use rqps_host::{clock, host, noise};
use rqps_model::gate::{
    BlockRecord, Calibration, Canary, CanaryReference, CanaryRule, GATE_FORMAT, HostLog,
};
use rqps_model::host::Session;
use rqps_model::run::{BlockReport, RunKey, Status};
use rqps_model::{bounded, escape, safe_path};
use rqps_results::{ResultSet, entries, replace_whole};

/// Readings before the first block: enough for a first median.
const FIRST_READINGS: usize = 3;
/// Blocks of a calibration from which a spread can be taken.
pub(super) const PAIRS_MIN: usize = 3;
/// A block of a host that never changes is discarded this often, with a calibration: 1 %.
const CHANCE: f64 = 0.01;
/// Values that a block is judged by with a calibration: the levels of three canaries before and
/// after it, and their three changes.
const VALUES_OF_BLOCK: f64 = 9.0;
/// Turns a median absolute deviation into a standard deviation, for normal noise.
const MAD_TO_SD: f64 = 1.4826;

/// One of the three values of a canary.
struct CanarySpec {
    name: &'static str,
    /// Larger is slower, whatever the unit.
    slowness: fn(&Canary) -> Option<f64>,
    /// A reading that is slower by up to this factor is never out of range: both targets of a block
    /// have the same host.
    level_floor: f64,
    /// A change within a block by up to this factor is never out of range. That of fsync is wide: a
    /// disk that answers from a cache wanders that far with nothing else running.
    change_floor: f64,
    /// A node that is slower than other nodes by more than this factor measures nothing. Readings
    /// of a quiet host stayed below it, and most of a disturbed one exceeded it (docs/hosts.md).
    sick: f64,
}

const KINDS: [CanarySpec; 3] = [
    CanarySpec {
        name: "spin",
        slowness: |canary| canary.spin_ns,
        level_floor: 1.15,
        change_floor: 1.03,
        sick: 1.5,
    },
    CanarySpec {
        name: "memory",
        slowness: |canary| canary.memory_mb_s.map(|rate| 1e6 / rate),
        level_floor: 1.25,
        change_floor: 1.05,
        sick: 2.0,
    },
    CanarySpec {
        name: "fsync",
        slowness: |canary| canary.fsync_ns,
        level_floor: 3.0,
        change_floor: 2.0,
        sick: 10.0,
    },
];

impl CanarySpec {
    /// ln of the slowness; `None` if it was not read.
    fn ln(&self, canary: &Canary) -> Option<f64> {
        (self.slowness)(canary).filter(|value| *value > 0.0).map(f64::ln)
    }

    /// ln of its slowness after a block divided by that before the block.
    fn change(&self, [before, after]: [&Canary; 2]) -> Option<f64> {
        Some(self.ln(after)? - self.ln(before)?)
    }
}

/// The source of readings.
pub(super) enum CanarySource {
    /// Nowhere.
    Off,
    /// This host; the file to be fsynced lies in the folder.
    Host(PathBuf),
    /// The hosts of a pool, which read them beside the blocks that they measure.
    RemoteHosts,
    /// A script of the fake DBMS: the factor by which each reading is slower, then always 1.
    Script(Vec<f64>),
}

impl CanarySource {
    /// The reading of this number, from 0; `None` if canaries are off.
    pub(super) fn read(&self, number: usize) -> Option<Canary> {
        match self {
            CanarySource::Off | CanarySource::RemoteHosts => None,
            CanarySource::Host(folder) => Some(noise::read_canaries(folder)),
            CanarySource::Script(factors) => Some(Canary {
                at: clock::now_rfc3339(),
                spin_ns: Some(1e6 * factors.get(number).copied().unwrap_or(1.0)),
                memory_mb_s: Some(1000.0),
                fsync_ns: Some(1e6),
                ..Canary::default()
            }),
        }
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self, CanarySource::Off)
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, CanarySource::RemoteHosts)
    }

    /// True if waiting may make a difference.
    fn is_real(&self) -> bool {
        matches!(self, CanarySource::Host(_))
    }
}

/// The factors that scripts of the fake DBMS have under this key (`canaries = 1, 1, 1.5`); `None`
/// if no config has one.
pub(super) fn script<'a>(configs: impl Iterator<Item = &'a str>, key: &str) -> Option<Vec<f64>> {
    let factors = configs.flat_map(str::lines).find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then_some(value)
    })?;
    Some(factors.split(',').filter_map(|word| word.trim().parse().ok()).collect())
}

/// The reason why a node with this reading is much slower than the median of other nodes; `None` if
/// it is not, or if there are no others.
pub(super) fn sick(others: &[Canary], reading: &Canary) -> Option<String> {
    let faults = KINDS.iter().filter_map(|kind| {
        let values: Vec<f64> = others.iter().filter_map(|canary| kind.ln(canary)).collect();
        let times = (kind.ln(reading)? - median(&values)?).exp();
        let words = || format!("{} {times:.1} times as slow (limit {})", kind.name, kind.sick);
        (times > kind.sick).then(words)
    });
    joined(faults.collect())
}

/// The reasons why a block with these readings before and after it is disturbed; empty if it is
/// not.
pub(super) fn faults(reference: &CanaryReference, block: [Option<&Canary>; 2]) -> Vec<String> {
    let slow = |when: &str, reading: Option<&Canary>| {
        Some(format!("{when} it, {}", slow(reference, reading?)?))
    };
    let [before, after] = block;
    let changed = || changed(&reference.pairs, [before?, after?]);
    [slow("before", before), slow("after", after), changed()].into_iter().flatten().collect()
}

/// The reason why `reading` is slower than the usual level of `reference`; `None` if it is not, or
/// with too few readings.
///
/// The range is the 99 % prediction interval of normal noise on logarithms, and at least as wide as
/// the floors: 15 % of spin, 25 % of memory, 3 times of fsync. From a calibration, it uses the
/// readings as they are, because the host may be like that again. From a plan's own readings, some
/// of which may be disturbed, it is around their median, with a robust standard deviation (1.4826 ×
/// median absolute deviation). It has no lower end: a faster host shows that the earlier readings
/// were disturbed.
pub(super) fn slow(reference: &CanaryReference, reading: &Canary) -> Option<String> {
    let by_calibration = reference.rule == CanaryRule::Calibration;
    let range = if by_calibration { prediction } else { around_median };
    let faults = KINDS.iter().filter_map(|kind| {
        let values: Vec<f64> =
            reference.usual.iter().filter_map(|canary| kind.ln(canary)).collect();
        let (centre, half) = range(&values)?;
        let (difference, half) = (kind.ln(reading)? - centre, half.max(kind.level_floor.ln()));
        (difference > half).then(|| {
            let [times, most] = [difference, half].map(f64::exp);
            format!("{} {times:.2} times as slow as usual (limit {most:.2})", kind.name)
        })
    });
    joined(faults.collect())
}

/// The reason why the host changed during a block, judged by its changes during the blocks of its
/// A/A calibration; `None` if it did not change, or if the calibration has too few blocks.
///
/// The range is the 99 % prediction interval of normal noise on the logarithms of after / before,
/// and at least as wide as the floors: 3 % of spin, 5 % of memory, 2 times of fsync. A host that is
/// slow or fast throughout is equal for both targets of a block, which is no fault.
fn changed(known: &[[Canary; 2]], block: [&Canary; 2]) -> Option<String> {
    let faults = KINDS.iter().filter_map(|kind| {
        let of = |[before, after]: &[Canary; 2]| kind.change([before, after]);
        let values: Vec<f64> = known.iter().filter_map(of).collect();
        let (centre, half) = prediction(&values)?;
        let (change, half) = (kind.change(block)?, half.max(kind.change_floor.ln()));
        ((change - centre).abs() > half).then(|| {
            let [times, least, most] = [change, centre - half, centre + half].map(f64::exp);
            let name = kind.name;
            format!("{name} {times:.2} times as slow as before it (limits {least:.2} to {most:.2})")
        })
    });
    joined(faults.collect())
}

fn joined(faults: Vec<String>) -> Option<String> {
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// Mean and half width of the interval that the next value lies in.
fn prediction(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, deviations(values.len())? * (squares / (n - 1.0)).sqrt()))
}

/// The level and scale by median and median absolute deviation, which a few disturbed readings do
/// not move.
fn around_median(values: &[f64]) -> Option<(f64, f64)> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    Some((centre, deviations(values.len())? * MAD_TO_SD * median(&distances)?))
}

/// The largest distance of the next value, in standard deviations estimated from `n` values: t ×
/// √(1 + 1/n). `None` below [`PAIRS_MIN`] values.
fn deviations(n: usize) -> Option<f64> {
    if n < PAIRS_MIN {
        return None;
    }
    let n = n as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    Some(t.inverse_cdf(1.0 - CHANCE / VALUES_OF_BLOCK / 2.0) * (1.0 + 1.0 / n).sqrt())
}

fn median(values: &[f64]) -> Option<f64> {
    rqps_stats::summary::median(values)
}

// Reads the canaries on the host that measures, around each block.

/// A block is not begun while the canary before it is out of range; but no longer than this many
/// pauses.
const PAUSES: usize = 3;
/// Between two readings of them.
const PAUSE: Duration = Duration::from_secs(5);
/// A canary takes a tenth of a second, and a block minutes: a disturbance must persist for this
/// long before it discards a block.
const MOMENT: Duration = Duration::from_secs(1);

/// A source of readings, and how many were taken from it.
pub(super) struct CanaryReader {
    source: CanarySource,
    readings: usize,
}

impl CanaryReader {
    /// Goes on after `readings` readings: only a script knows one from the next.
    pub(super) fn new(source: CanarySource, readings: usize) -> CanaryReader {
        CanaryReader { source, readings }
    }

    /// Readings before the first block.
    pub(super) fn first(&mut self) -> Vec<Canary> {
        (0..FIRST_READINGS).filter_map(|_| self.read()).collect()
    }

    /// The reading before a block. Waits a while if it is out of range.
    pub(super) fn before(
        &mut self,
        execution: &Execution<'_>,
        reference: &CanaryReference,
        progress: &mut Progress<'_>,
    ) -> Option<Canary> {
        let mut reading = self.read();
        let pauses = if reference.may_discard { PAUSES } else { 0 };
        for _ in 0..pauses {
            let slow = reading.as_ref().and_then(|reading| slow(reference, reading));
            let Some(fault) = slow.filter(|_| !execution.stopped()) else { break };
            progress.doing("", &format!("wait for a quieter host ({fault})"), None);
            self.rest(PAUSE);
            reading = self.read();
        }
        reading
    }

    /// The reading after a block, the second one if the first is out of range.
    pub(super) fn after(
        &mut self,
        reference: &CanaryReference,
        before: Option<&Canary>,
    ) -> Option<Canary> {
        let reading = self.read();
        let faults = faults(reference, [before, reading.as_ref()]);
        if faults.is_empty() || !reference.may_discard {
            return reading;
        }
        self.rest(MOMENT);
        self.read()
    }

    /// The reading of a node before a block, and the reason why it is sick, if it still is after a
    /// while.
    fn of_node(&mut self, others: &[Canary]) -> (Option<Canary>, Option<String>) {
        for _ in 0..PAUSES {
            let reading = self.read();
            if reading.as_ref().and_then(|reading| sick(others, reading)).is_none() {
                return (reading, None);
            }
            self.rest(PAUSE);
        }
        let reading = self.read();
        let sick = reading.as_ref().and_then(|reading| sick(others, reading));
        (reading, sick)
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
}

// The check of a node before each block that Slurm starts there. A node that is full or sick says
// why, and gets no more blocks of the plan; canaries around the block find smaller disturbances.

/// Each node leaves its last canary in this folder, below the folder that all nodes share.
const READINGS: &str = "nodes";

/// Checks that the node of this name has the room and the memory for a block, and is not much
/// slower than other nodes were. Leaves its canary in the folder `pool`, which all nodes share.
///
/// # Errors
/// The node is not fit; the text says why.
pub fn check_node(spec: &BlockSpec, node: &str, (work, pool): (&Path, &Path)) -> Result<()> {
    let plan = &spec.plan;
    let run_as = execution::unprivileged_user(plan)?;
    let bytes = cost::estimate(plan, &[]).disk_bytes;
    execution::check_space_for(work, Some(work), run_as.as_ref(), bytes)?;
    executor::check_can_keep(work)?;
    execution::check_together(plan, host::memory_bytes())?;
    if !plan.canaries {
        return Ok(());
    }
    let readings = pool.join(READINGS);
    let others = others(&readings, node)?;
    let mut reader = CanaryReader::new(source(spec, (node, work)), 0);
    let (reading, sick) = reader.of_node(&others);
    let Some(reading) = reading else { return Ok(()) };
    if let Some(why) = sick {
        bail!(
            "measure on a sick node: {why}, by the canaries of other nodes\nhint: if its hardware \
             is another, name the class of hosts with --constraint"
        );
    }
    if let Some(why) = reading.missing.get("fsync_ns") {
        bail!("write data: {why}");
    }
    let text = serde_json::to_string(&reading).context("write down the canary")?;
    safe_path::make_folder(&readings).with_context(|| format!("make {}", readings.display()))?;
    replace_whole(&file_of(&readings, node), text + "\n")?;
    Ok(())
}

fn file_of(readings: &Path, node: &str) -> std::path::PathBuf {
    readings.join(format!("{node}.json"))
}

/// The last canaries of all other nodes.
fn others(readings: &Path, node: &str) -> Result<Vec<Canary>> {
    let own = file_of(readings, node);
    if !readings.is_dir() {
        return Ok(Vec::new());
    }
    let paths = entries(readings)?.into_iter().map(|name| readings.join(name));
    let paths = paths.filter(|path| *path != own);
    let whole = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: std::path::PathBuf| {
        let what = || format!("read {}", path.display());
        let text = bounded::text(&path, bounded::WRITTEN_MAX).with_context(what)?;
        serde_json::from_str(&text).map_err(escape::fault).map_err(Error::msg).with_context(what)
    };
    whole.map(read).collect()
}

/// The canaries of the node. The fake DBMS does no work, so a script says how its nodes are.
fn source(spec: &BlockSpec, (node, work): (&str, &Path)) -> CanarySource {
    if spec.plan.targets.iter().any(|target| !target.dbms.dialect().is_scripted()) {
        return CanarySource::Host(work.to_owned());
    }
    let configs = spec.targets.iter().map(|slot| slot.config.text.as_str());
    let script = script(configs, &format!("canaries.{node}"));
    CanarySource::Script(script.unwrap_or_default())
}

// Keeps `gate.json`: decides by the canaries beside each block whether the block is discarded, and
// counts the time that the plan has taken.

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
            faults(&reference, [before.as_ref(), after.as_ref()])
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
        Some(known) if known.canary_pairs.len() >= PAIRS_MIN => CanaryRule::Calibration,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(spin_ns: f64) -> Canary {
        Canary {
            spin_ns: Some(spin_ns),
            memory_mb_s: Some(5000.0),
            fsync_ns: Some(1e6),
            ..Canary::default()
        }
    }

    fn level(rule: CanaryRule, reference: &[f64], reading: &Canary) -> Option<String> {
        let usual = reference.iter().map(|spin| canary(*spin)).collect();
        slow(&CanaryReference { rule, usual, pairs: Vec::new(), may_discard: true }, reading)
    }

    fn change(known: &[f64], before: f64, after: f64) -> Option<String> {
        let known: Vec<[Canary; 2]> =
            known.iter().map(|times| [canary(100.0), canary(100.0 * times)]).collect();
        changed(&known, [&canary(before), &canary(after)])
    }

    #[test]
    fn prediction_intervals_are_those_of_the_t_distribution() {
        // m ± t(1 - 0.01/18; 4) · std · sqrt(1 + 1/5) of 1, 2, 3, 4, 5, with the closed form of the
        // t distribution on 4 degrees of freedom.
        let (centre, half) = prediction(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((centre - 3.0).abs() < 1e-12);
        assert!((half - 14.508_231).abs() < 1e-4, "{half}");
        assert_eq!(prediction(&[1.0, 1.0]), None);
    }

    #[test]
    fn a_slow_host_is_told_and_a_fast_one_is_no_fault() {
        let steady = [100.0, 100.1, 99.9, 100.0, 100.05, 99.95];
        for rule in [CanaryRule::Own, CanaryRule::Calibration] {
            assert_eq!(level(rule, &steady, &canary(106.0)), None);
            assert_eq!(level(rule, &steady, &canary(70.0)), None);
            let fault = level(rule, &steady, &canary(130.0)).unwrap();
            assert!(fault.starts_with("spin 1.30 times as slow as usual (limit 1.15)"));
        }
    }

    #[test]
    fn what_a_host_was_in_its_calibration_it_may_be_again() {
        // Like the memory canary of a host whose last-level cache others use: now and then it takes
        // twice as long.
        let now_and_then = [100.0, 101.0, 240.0, 99.0, 100.0, 102.0, 98.0, 230.0, 100.0, 101.0];
        assert_eq!(level(CanaryRule::Calibration, &now_and_then, &canary(240.0)), None);
        assert!(level(CanaryRule::Calibration, &now_and_then, &canary(1000.0)).is_some());
        assert!(level(CanaryRule::Own, &now_and_then, &canary(240.0)).is_some());
    }

    #[test]
    fn a_change_within_a_block_is_told_whatever_the_level() {
        let steady = [1.001, 0.999, 1.0, 1.0005, 0.9995, 1.0];
        for before in [50.0, 100.0, 200.0] {
            assert_eq!(change(&steady, before, 1.02 * before), None);
            for times in [1.06, 0.94] {
                let fault = change(&steady, before, times * before).unwrap();
                assert!(
                    fault.contains(&format!("{times:.2} times as slow as before it")),
                    "{fault}"
                );
                assert!(fault.ends_with("(limits 0.97 to 1.03)"), "{fault}");
            }
        }
    }

    #[test]
    fn a_noisy_host_has_a_wide_range() {
        let noisy = [100.0, 140.0, 80.0, 120.0, 95.0, 150.0];
        assert_eq!(level(CanaryRule::Own, &noisy, &canary(160.0)), None);
        assert_eq!(change(&[1.0, 1.4, 0.8, 1.2, 0.95, 1.5], 100.0, 160.0), None);
    }

    #[test]
    fn what_could_not_be_read_has_no_say() {
        let blind = Canary { spin_ns: None, ..canary(1.0) };
        assert_eq!(level(CanaryRule::Own, &[100.0, 100.0, 100.0], &blind), None);
        assert_eq!(level(CanaryRule::Own, &[], &canary(100.0)), None);
        assert_eq!(change(&[1.0, 1.0], 100.0, 900.0), None, "two blocks tell no spread");
        let known = vec![[canary(100.0), canary(100.0)]; 3];
        assert_eq!(changed(&known, [&blind, &canary(900.0)]), None);
        let slow_disk = Canary { fsync_ns: Some(5e6), ..canary(100.0) };
        let fault = level(CanaryRule::Own, &[100.0, 100.0, 100.0], &slow_disk).unwrap();
        assert!(fault.starts_with("fsync 5.00"), "{fault}");
        let fault = changed(&known, [&canary(100.0), &slow_disk]).unwrap();
        assert!(fault.starts_with("fsync 5.00"), "{fault}");
    }
}
