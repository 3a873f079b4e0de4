//! The host during a plan: canaries around each block, discarded and repeated blocks, disturbances
//! of steps, and the A/A calibration of the host.
//!
//! `gate.json` of a result set is a [`HostLog`] (docs/results.md). It holds facts; reports judge
//! whether the host supports a claim.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::benchmark::{Group, Idle, Placement};
use crate::build::Dbms;
use crate::host::Session;

/// The format version of `gate.json` and of calibration files that this program writes.
pub const GATE_FORMAT: u32 = 1;

/// Largest share of measured blocks that may be out of range of the canaries. Above it, every step
/// is judged with the noise of the host.
pub const OUT_OF_RANGE_MAX: f64 = 0.2;

/// `gate.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostLog {
    /// [`GATE_FORMAT`].
    pub format: u32,
    /// The rule by which canaries call a block out of range, or that none were read.
    pub canaries: CanaryRule,
    /// Readings before the first block, from which [`CanaryRule::Own`] begins.
    pub first_canaries: Vec<Canary>,
    /// The calibration of this host when this plan began; `None` if none was found for this host.
    pub calibration: Option<Calibration>,
    /// What the ledger of this host knew of the scatter between sittings when this plan began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger: Vec<SittingScatter>,
    /// Blocks in the order in which they were measured, each attempt on its own.
    pub blocks: Vec<BlockRecord>,
    /// Seconds spent on the plan so far, loading and all sittings of a resumed plan included.
    pub spent_seconds: f64,
}

/// By which rule a block is out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryRule {
    /// No canaries: the host's state between blocks is unknown.
    #[default]
    Off,
    /// By an A/A calibration of this host: slower than its canaries usually were, or changed from
    /// before to after the block by more than the 99 % range of what they did in its blocks.
    Calibration,
    /// Slower than this plan's own canaries usually are, in the absence of a calibration.
    Own,
}

/// One reading of the canaries: the same small work each time, so that what changes is the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// RFC 3339, UTC.
    pub at: String,
    /// Seconds of the whole reading.
    pub seconds: f64,
    /// A fixed computation in registers, nanoseconds: median of several. CPU speed and stolen time.
    pub spin_ns: Option<f64>,
    /// Reading a buffer larger than the caches from end to end, MB/s: median of several.
    pub memory_mb_s: Option<f64>,
    /// Writing 4 KiB to a file beside the data and fsync, nanoseconds: median of several.
    pub fsync_ns: Option<f64>,
    /// Canary → why it could not be read.
    pub missing: BTreeMap<String, String>,
}

/// The reference values for the canaries of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryReference {
    /// By which rule a reading is out of range.
    pub rule: CanaryRule,
    /// Readings that tell the usual level.
    pub usual: Vec<Canary>,
    /// Readings before and after blocks that tell the usual change; empty without a calibration.
    pub pairs: Vec<[Canary; 2]>,
    /// False if the block is kept whatever they say. Then it waits for no quieter host.
    pub may_discard: bool,
}

/// One attempt at a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Round, from 1.
    pub block: u32,
    /// The attempt, as in the keys of its runs.
    pub attempt: u32,
    /// The sitting in which it was measured; `None` if it did not come to its end, and in files of
    /// an rqps that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Before its first server was started; `None` if canaries are off, or the block was killed.
    pub before: Option<Canary>,
    /// After its last server stopped; `None` if canaries are off, or the block was interrupted.
    pub after: Option<Canary>,
    /// The reason why the canaries call the host disturbed: "after it, spin 1.31 times as slow as
    /// usual (limit 1.15)"; `None` if they are in range or off.
    pub out_of_range: Option<String>,
    /// True if its runs are marked [`crate::run::Status::Discarded`] and the block was
    /// measured again. A block that is out of range after too many were is kept: to measure it
    /// again might never end.
    pub discarded: bool,
    /// Steps that were left out, and why; only under `blocks = "auto"`.
    pub skipped: BTreeMap<String, String>,
    /// Steps that were still open after this block, and how many blocks more they were thought to
    /// need (`None`: more than the plan allows); only under `blocks = "auto"`, where `None` stands
    /// for "not decided".
    pub open: Option<BTreeMap<String, Option<u32>>>,
}

/// Other activity on the host during a step's window. Shares are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// CPU time of processes that are neither rqps nor the server, as a share of all CPUs. Kernel
    /// threads are not counted: they may work for the server.
    pub foreign_cpu: Option<f64>,
    /// Share of the window in which a task that could run waited for a CPU (PSI, some). The load
    /// itself makes it where it needs more than the CPUs there are.
    pub pressure_cpu: Option<f64>,
    /// Share of the window in which a task waited for I/O (PSI, some); the server's own waits too.
    pub pressure_io: Option<f64>,
    /// Share of the window in which a task waited for memory (PSI, some).
    pub pressure_memory: Option<f64>,
    /// Pages swapped in.
    pub swapped_in: Option<u64>,
    /// Times that a CPU or its package was slowed down because it was hot.
    pub throttled_thermal: Option<u64>,
    /// Microseconds for which the cgroup of rqps was held back by its CPU limit.
    pub throttled_cgroup_us: Option<u64>,
    /// Fact → why it could not be read.
    pub missing: BTreeMap<String, String>,
}

/// The noise of a host by an A/A run (one target against itself).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`GATE_FORMAT`].
    pub format: u32,
    /// The fingerprint of the host. A calibration counts for no other.
    pub host_fingerprint: String,
    /// RFC 3339, UTC: when it was finished.
    pub made: String,
    /// Version of rqps that made it.
    pub rqps_version: String,
    /// The target word that ran against itself.
    pub target: String,
    /// Its product: noise of one says little about that of another.
    pub dbms: Dbms,
    /// Concurrent connections.
    pub clients: u32,
    /// Placement of client and server.
    pub placement: Placement,
    /// The state of idle CPUs.
    pub idle: Idle,
    /// True if targets took turns within steps. The noise of whole steps is another one.
    pub turns: bool,
    /// Length of a read step's window, seconds. Noise falls with it.
    pub read_seconds: f64,
    /// Length of a write step's window, seconds.
    pub write_seconds: f64,
    /// Blocks that counted.
    pub blocks: u32,
    /// Each step that was measured.
    pub steps: Vec<StepNoise>,
    /// First place in a block against the second.
    pub slot: SlotEffect,
    /// Canaries before and after each block that counted.
    pub canary_pairs: Vec<[Canary; 2]>,
    /// Blocks that were out of range of the canaries, attempts included.
    pub out_of_range: u32,
}

/// The noise of one step: d = ln(rate of a-again) − ln(rate of a) over the blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepNoise {
    /// Name of the step.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// d of each block. Mean, standard deviation and p follow from them.
    pub differences: Vec<f64>,
}

/// The effect of a target's position in a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotEffect {
    /// ln(first / second) of each block, the mean over its steps.
    pub differences: Vec<f64>,
}

impl HostLog {
    /// Attempts at blocks that came to their end, out of range or not.
    pub fn measured(&self) -> usize {
        let is_off = self.canaries == CanaryRule::Off;
        self.blocks.iter().filter(|block| is_off || block.after.is_some()).count()
    }

    /// The blocks that were out of range of the canaries.
    pub fn out_of_range(&self) -> usize {
        self.blocks.iter().filter(|block| block.out_of_range.is_some()).count()
    }

    /// True if more than [`OUT_OF_RANGE_MAX`] of the measured blocks were out of range: what counts
    /// was then measured on a noisy host, too, and is judged with its noise.
    pub fn is_too_noisy(&self) -> bool {
        self.out_of_range() as f64 > OUT_OF_RANGE_MAX * self.measured() as f64
    }

    /// The readings before and after each block that counts.
    pub fn kept_canaries(&self) -> impl Iterator<Item = [&Canary; 2]> {
        let kept = self.blocks.iter().filter(|block| !block.discarded);
        kept.filter_map(|block| Some([block.before.as_ref()?, block.after.as_ref()?]))
    }
}

// The ledger: what sittings of one host differ by beyond the scatter of their blocks.

/// The first words of a ledger that this rqps reads.
pub const LEDGER_HEAD: &str = "# rqps ledger 1";

const COLUMNS: &str = "dbms,kind,host,sd,df,origin";

/// One line of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SittingScatter {
    /// The DBMS of both builds.
    pub dbms: Dbms,
    /// `reads`, `writes` or `loads`.
    pub kind: String,
    /// Class of the host, such as `c2r8`.
    pub host: String,
    /// Standard deviation of ln ratios between sittings.
    pub sd: f64,
    /// Its degrees of freedom: sittings less one, because the steps of a sitting share it.
    pub df: f64,
    /// What it was measured with.
    pub origin: String,
}

/// What is wrong with a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerFault {
    /// From 1.
    pub line: usize,
    /// The problem.
    pub why: String,
}

impl SittingScatter {
    /// True if scatter can be so: what comes from files of others may be any number.
    pub fn is_possible(&self) -> bool {
        let is_known = ["reads", "writes", "loads"].contains(&self.kind.as_str());
        is_known && (0.0..1.0).contains(&self.sd) && (1.0..1e6).contains(&self.df)
    }

    /// The line.
    pub fn line(&self) -> String {
        let SittingScatter { dbms, kind, host, sd, df, origin } = self;
        let word = |text: &str| text.replace([',', '\n', '\r'], " ");
        format!("{},{},{},{sd:.6},{df},{}\n", dbms.name(), word(kind), word(host), word(origin))
    }
}

/// A ledger without lines.
pub fn empty_ledger() -> String {
    format!("{LEDGER_HEAD}\n{COLUMNS}\n")
}

/// Reads a ledger.
///
/// # Errors
/// Another version, or a line that is none of a ledger.
pub fn parse_ledger(text: &str) -> Result<Vec<SittingScatter>, LedgerFault> {
    let fault = |line: usize, why: String| LedgerFault { line, why };
    let head = text.lines().next().unwrap_or_default();
    let rest = head.strip_prefix(LEDGER_HEAD).filter(|rest| !rest.starts_with(char::is_numeric));
    if rest.is_none() {
        let why = format!("it does not begin with `{LEDGER_HEAD}`: damaged, or of another rqps");
        return Err(fault(1, why));
    }
    if text.lines().nth(1) != Some(COLUMNS) {
        return Err(fault(2, format!("its columns are not {COLUMNS}")));
    }
    let lines = text.lines().enumerate().skip(2).filter(|(_, line)| !line.is_empty());
    let read = |(at, line): (usize, &str)| {
        scatter(line).ok_or_else(|| fault(at + 1, format!("it is not {COLUMNS}")))
    };
    lines.map(read).collect()
}

fn scatter(line: &str) -> Option<SittingScatter> {
    let cells: Vec<&str> = line.splitn(6, ',').collect();
    let [dbms, kind, host, sd, df, origin] = cells.as_slice() else { return None };
    let scatter = SittingScatter {
        dbms: Dbms::from_name(dbms)?,
        kind: (*kind).to_owned(),
        host: (*host).to_owned(),
        sd: sd.parse().ok()?,
        df: df.parse().ok()?,
        origin: (*origin).to_owned(),
    };
    scatter.is_possible().then_some(scatter)
}

// The layout noise of a DBMS on a host: rates of one source whose functions are linked in several
// orders. It holds what was measured; τ follows from it.

/// The format version of layout files that this program writes.
pub const LAYOUT_FORMAT: u32 = 1;

/// Rates of relinked builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRates {
    /// [`LAYOUT_FORMAT`].
    pub format: u32,
    /// The fingerprint of the host. The rates count for no other.
    pub host_fingerprint: String,
    /// RFC 3339, UTC: when the last run was finished.
    pub made: String,
    /// Version of rqps that measured.
    pub rqps_version: String,
    /// The target word without its order of linking.
    pub target: String,
    /// The DBMS that was built.
    pub dbms: Dbms,
    /// Number of orders of linking.
    pub layouts: u32,
    /// Each step that was measured.
    pub steps: Vec<LayoutStep>,
}

/// Rates of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutStep {
    /// Name of the step.
    pub step: String,
    /// ln(rate in 1/s): a list for each order of linking, with a value for each block.
    pub rates: Vec<Vec<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fault: bool) -> BlockRecord {
        let canary = Some(Canary::default());
        let out_of_range = fault.then(|| "spin".to_owned());
        BlockRecord { before: canary.clone(), after: canary, out_of_range, ..Default::default() }
    }

    #[test]
    fn one_block_of_five_may_be_out_of_range_and_not_two_of_six() {
        let canaries = CanaryRule::Own;
        let mut gate = HostLog { canaries, blocks: vec![block(false); 4], ..HostLog::default() };
        assert!(!gate.is_too_noisy());
        gate.blocks.push(block(true));
        assert!(!gate.is_too_noisy());
        gate.blocks.push(block(true));
        assert!(gate.is_too_noisy());
        // One that was broken off was not measured, and says nothing.
        let broken = BlockRecord { after: None, ..block(false) };
        gate.blocks.extend([broken.clone(), broken.clone(), broken.clone(), broken]);
        assert_eq!((gate.measured(), gate.out_of_range()), (6, 2));
    }

    #[test]
    fn a_line_survives_and_what_is_none_is_named() {
        let one = SittingScatter {
            dbms: Dbms::from_name("postgres").unwrap(),
            kind: "reads".to_owned(),
            host: "c2r8".to_owned(),
            sd: 0.011,
            df: 4.0,
            origin: "five sittings".to_owned(),
        };
        let text = empty_ledger() + &one.line();
        assert_eq!(parse_ledger(&text), Ok(vec![one]));
        for (wrong, line) in [
            ("", 1),
            ("# rqps ledger 12\n", 1),
            ("# rqps ledger 2\n", 1),
            ("# rqps ledger 1\ndbms,sd\n", 2),
        ] {
            assert_eq!(parse_ledger(wrong).unwrap_err().line, line, "{wrong}");
        }
        for line in [
            "postgres,reads,c2r8,NaN,4,x", "postgres,reads,c2r8,-0.1,4,x",
            "postgres,reads,c2r8,0.01,0,x", "postgres,reads,c2r8,inf,4,x",
            "oracle,reads,c2r8,0.01,4,x", "postgres,scans,c2r8,0.01,4,x", "postgres,reads",
        ] {
            assert_eq!(parse_ledger(&format!("{text}{line}\n")).unwrap_err().line, 4, "{line}");
        }
    }
}
