//! Reasons to doubt a number, as data: kind, place, size, and advice.

mod comparability;
mod measuring;

pub use comparability::too_large;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::answers::{AnswerFinding, AnswerWeight};
use super::causes;
use super::comparison::{Comparison, StepComparison, TargetResult};
use super::counted::is_counted;
use super::measurement::Extension;
use rqps_model::build::Target;
use rqps_model::run::{Dataset, StepRecord};
use rqps_model::units::counted;
use rqps_stats::parallel;

// A reason for doubt as data, and the kinds there are.

/// One reason for doubt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caveat {
    /// The kind; reports print each kind's advice once.
    pub kind: CaveatKind,
    /// The target it is about; `None` for several, named in the text.
    pub target: Option<String>,
    /// The steps it is about; empty for all, or where it is about no step.
    pub steps: Vec<String>,
    /// The finding with its numbers.
    pub text: String,
}

impl Caveat {
    /// A caveat on several targets, which the text names.
    pub fn on_all(kind: CaveatKind, text: impl Into<String>) -> Caveat {
        Caveat { kind, target: None, steps: Vec::new(), text: text.into() }
    }

    /// A caveat on one target.
    pub fn of(kind: CaveatKind, target: &str, text: impl Into<String>) -> Caveat {
        Caveat { target: Some(target.to_owned()), ..Caveat::on_all(kind, text) }
    }

    /// The same in these steps alone.
    #[must_use]
    pub fn in_steps(self, steps: Vec<String>) -> Caveat {
        Caveat { steps, ..self }
    }
}

macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])*
        $kind:ident, $loud:literal, $title:literal, $advice:literal;
    )*) => {
        /// Kinds of caveats, the gravest first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum CaveatKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl CaveatKind {
            /// All, the gravest first.
            pub const ALL: &[CaveatKind] = &[$(CaveatKind::$kind),*];

            /// True if numbers may not be comparable at all: to be seen before the first of them.
            pub fn is_loud(self) -> bool {
                match self { $(CaveatKind::$kind => $loud,)* }
            }

            /// True if it may overturn a verdict. What remains says what is in a number, or that one
            /// is missing.
            pub fn is_decisive(self) -> bool {
                use CaveatKind::*;
                let aside = matches!(
                    self,
                    SeveralHosts | ClientShare | RepeatedRun | DiscardedBlock | MissingStep | SingleLoad | HarmlessAnswers
                        | PlanDiffers | DifferentSettings | Readahead | DifferentSource
                        | DifferentRqps | Unmeasured | UnreadableLatency | EmbeddedDbms
                        | DriverNote
                );
                !aside
            }

            /// The head.
            pub fn title(self) -> &'static str {
                match self { $(CaveatKind::$kind => $title,)* }
            }

            /// The meaning, and a way out.
            pub fn advice(self) -> &'static str {
                match self { $(CaveatKind::$kind => $advice,)* }
            }
        }
    };
}

kinds! {
    /// Tables that hold other rows.
    DifferentData, true, "Targets that hold different data",
        "Steps that read them get no verdict, because other rows are other work: make the load \
         give the same rows everywhere (no random(), no default that the server computes), or say \
         `--data differ`.";
    /// Statements with other answers.
    DifferentAnswers, true, "Targets that answer differently",
        "These steps get no verdict, because another answer is other work: find out which answer \
         is wrong, or say `--answers ignore`.";
    /// Runs of several hosts.
    DifferentHost, true, "Different hosts",
        "A ratio between two machines says nothing about the builds: measure all targets on one \
         host.";
    /// Blocks of several hosts, each with pairs of its own.
    SeveralHosts, false, "Sessions on several hosts",
        "rqps pairs runs within a block, and so within a host. The random effect of the \
         session includes the host; the section on sessions lists each session's ratios.";
    /// A build with assertions.
    DebugBuild, true, "A debug build",
        "It spends time on checks that a release leaves out, more in some functions than in \
         others, so its rates and costs say little about the release: build it without assertions.";
    /// Servers with other settings, which no word of a target asks for.
    DifferentServers, true, "Servers are set up differently",
        "Ratios compare the settings as well as the builds: give both servers the same settings. \
         Where a commit flushes less on one side, steps that write have no verdict.";
    /// Runs of several benchmarks.
    DifferentBenchmark, true, "Different benchmarks",
        "Compare runs of one benchmark.";
    /// Runs of several scales or shapes.
    DifferentWorkload, true, "Different workloads",
        "Compare runs of one workload; give each its own results folder.";
    /// Runs with clients placed differently.
    DifferentPlacement, true, "Different placements",
        "Placement of client and server can change rates several-fold, and ratios with them: \
         measure all targets with the same --placement.";
    /// Runs with CPUs idling differently.
    DifferentIdle, true, "Different idle states",
        "Waking a halted CPU can take most of a query's time: measure all targets with the same \
         --idle.";
    /// Targets that took turns within a step on one side only.
    DifferentTurns, true, "Steps measured in turns and continuously",
        "A continuous window contains noise of seconds that short turns average out, and a target \
         in turns finds caches that others have used: measure all targets with the same \
         --interleave.";
    /// One name for two things.
    DifferentStep, true, "Steps with the same name but different contents",
        "Different versions of rqps or different sources wrote them: measure both sides with one \
         version.";
    /// One label for two builds.
    MixedBuilds, true, "Several builds under one label",
        "Give each build its own label (label=target).";
    /// One label for two configurations.
    MixedSettings, true, "Several settings under one label",
        "Give each configuration its own label (label=target:CONFIG).";
    /// Planned and not there.
    NeverMeasured, false, "Targets without a run",
        "Resume the plan: `rqps run --resume DIR`, with the result folder.";
    /// A run that is not complete.
    FailedRun, false, "Incomplete runs",
        "Their finished steps count. The run folder's logs have the reason; resume the plan: \
         `rqps run --resume DIR`.";
    /// A run that is not complete, and was measured again.
    RepeatedRun, false, "Runs that were measured again",
        "A later attempt measured all of the block; the steps that these finished count, too.";
    /// A block that was discarded.
    DiscardedBlock, false, "Discarded blocks",
        "The canaries found a disturbed host. rqps repeated these blocks and ignores their \
         discarded attempts. The other blocks are not affected.";
    /// A step that is not complete.
    FailedStep, false, "Incomplete steps",
        "No number includes them. The run folder's logs have the reason.";
    /// A step that one side lacks.
    MissingStep, false, "Steps without results of every target",
        "They have no ratio; measure them on both sides.";
    /// No block in common.
    NotPaired, false, "Not measured in the same blocks",
        "Such a ratio includes everything that changed between the runs and has no interval: \
         measure both targets in one plan.";
    /// Fewer than three pairs.
    TooFewBlocks, false, "Too few blocks",
        "One pair gives no interval, and two give one too wide to use: measure at least 4 blocks \
         (--blocks), better 6 or more.";
    /// The client is the bottleneck.
    ClientBound, false, "Client-bound",
        "The client limits the rate, not the DBMS: use more clients or more CPUs, and compare \
         server_cpu_us/o.";
    /// The client is a large part of what is measured.
    ClientShare, false, "Large client share",
        "The client costs about the same for every target, so closed-loop rates and cpu/o \
         understate the difference between the servers: compare server_cpu_us/o.";
    /// An open pace that was not kept.
    MissedPace, false, "Missed pace",
        "The target is overloaded at this rate: its latencies grow with the length of the step. \
         Compare at a lower rate.";
    /// Writers beside queries that did not keep their rate.
    MissedRate, false, "Missed write rate",
        "Fewer writes leave more of the machine for queries, so these steps are not comparable: \
         rqps gives them no verdict and leaves them out of means. Compare at a lower rate (--set \
         query_steps=).";
    /// Clients that wanted no more events.
    StoppedClients, false, "Clients that stopped early",
        "They waited until the end of the window, so the rate is that of fewer clients: the \
         script ended their threads. Measure for a shorter time (--set seconds=), or let event() \
         return nothing.";
    /// Errors.
    Errors, false, "Errors",
        "The client retries each failed event: the latency includes the time of all attempts, the \
         rate only the statements of the last.";
    /// Writes that meet no row.
    NoOps, false, "Writes that matched no row",
        "Missed lookups make up a large part of the rate: a faster target runs out of rows sooner. \
         Compare at an open pace, or with more rows.";
    /// A published column that holds nothing.
    EmptyColumn, false, "Published columns without a rate",
        "Every value is 0 or missing: the run failed, or the column holds something else.";
    /// The clients completed no operation.
    NoOperations, false, "No completed operation",
        "Use a longer step or less work per event.";
    /// The hypervisor took CPU.
    Steal, false, "Stolen CPU time",
        "Other virtual machines took it: pairs scatter more, and latencies include the wait.";
    /// Somebody else was at work.
    ForeignLoad, false, "CPU use by other processes",
        "They may take CPU and cache from one target only: stop them (see `rqps doctor`).";
    /// Tasks waited for a CPU though the load needs fewer than there are.
    CpuPressure, false, "Tasks waited for a CPU",
        "The load needs fewer CPUs than the host has, so other work took them: see `rqps doctor`.";
    /// Memory was short.
    Swapped, false, "Pages swapped in",
        "The host read swapped pages from disk during a step: use fewer rows, or swapoff -a.";
    /// The host was slowed down.
    Throttled, false, "Throttled CPUs",
        "Heat or a cgroup limit slowed the CPUs: these steps ran on a slower host.";
    /// Writes of the disk while a step only reads.
    WriteBack, false, "Writes while reading",
        "Buffer pool writeback may still be in progress, so the step pays for writes of earlier \
         steps. Let servers rest longer (--set settle_scale=), and compare wKB/o.";
    /// Seconds with almost no operations.
    Stalls, false, "Stalls",
        "Seconds below a tenth of the median rate: check the charts over time, checkpoints, \
         compaction and other users of the disk.";
    /// A warm-up that does not end.
    NotSteady, false, "Not steady",
        "The rate was still settling halfway through the window (MSER-5): measure longer, or warm \
         up longer (--set warmup_seconds=).";
    /// A rate that rises or falls.
    Drifting, false, "Drifting",
        "The rate rose or fell over the window (Mann-Kendall p < .01, more than 1 %): background \
         debt changes, a table grows or a cache fills. The mean depends on the length of the \
         window.";
    /// Mean and robust estimate are apart.
    RobustDisagrees, false, "Mean and robust estimate disagree",
        "A few blocks dominate the mean: inspect the single runs, or measure more blocks.";
    /// One load of each target.
    SingleLoad, false, "One load for each target",
        "All blocks start from copies of one load, so every ratio includes its random properties \
         (page splits, file layout, optimizer statistics). More blocks do not remove them, and no \
         interval contains them; `--loads` with as many loads as blocks makes intervals contain \
         them.";
    /// Turns of others cost one target more than the other.
    CarryOver, false, "Carry-over between turns",
        "A turn after another target's finds its caches. If that slows one target more than the \
         other, their ratio is biased. Longer turns (--set turn_ms=) shrink the bias; \
         --interleave step has none.";
    /// Answers that differ as they may.
    HarmlessAnswers, false, "Answers that may differ",
        "Targets gave other answers for a reason that says nothing against them.";
    /// Answers that were not compared.
    UncomparedAnswers, false, "Answers that were not compared",
        "Nobody knows whether the targets give the same answers here.";
    /// The optimizer chose differently.
    PlanDiffers, false, "Different query plans",
        "The optimizer's choice may explain a difference in rate: check statistics and settings. \
         The plans shown omit estimates and literals.";
    /// The optimizer chose differently from block to block.
    PlanChanges, false, "Query plans that change between blocks",
        "The target's own pairs mix two plans.";
    /// One name for two texts.
    DifferentSettings, false, "One configuration name, different settings",
        "Expected where some versions lack a setting or rqps sizes it from the data; otherwise \
         settings may explain a difference.";
    /// Durability that differs as the words of the targets ask.
    AskedDurability, false, "Durability differs as asked",
        "A part of the ratios of steps that write is what a commit flushes.";
    /// Two targets that are one program.
    SameCode, false, "The same code",
        "No measurement can tell such builds apart: what differs is noise.";
    /// Builds by different compilers.
    DifferentCompiler, false, "Compilers differ",
        "The compilers may explain part of a difference; build both sides with one compiler to \
         find out (src:DIR@REF).";
    /// Searches of one name that do not find the same share.
    DifferentRecall, false, "Searches with different recall",
        "A search with lower recall is an easier task, so ratio and verdict do not compare the \
         builds alone: compare at equal recall (steps recall=…), or give each DBMS the width with \
         the same recall.";
    /// Settings of one host that changed.
    HostChanged, false, "The host's settings changed",
        "The same machine ran with other settings or microcode, which may explain part of a \
         difference between these results. Measure all targets in one plan.";
    /// A readahead that the disk cuts into pieces.
    Readahead, false, "Readahead above the disk's request size",
        "The kernel splits each such read into several requests, which halves the compaction speed \
         of RocksDB 8.6 to 9.8 (RocksDB issue 12038): set the readahead to max_sectors_kb or less.";
    /// Counters by different means.
    DifferentSource, false, "Counters from different sources",
        "Do not compare this counter between these targets.";
    /// Several versions of the instrument.
    DifferentRqps, false, "Measured by different versions of rqps",
        "Measure all targets with one version if small differences matter.";
    /// A counter that could not be read.
    Unmeasured, false, "Unavailable counters",
        "Reports show metrics that need them as -.";
    /// A histogram that cannot be decoded.
    UnreadableLatency, false, "Unreadable latencies",
        "The step's record is damaged or from a later version; reports leave out its latencies.";
    /// No server process.
    EmbeddedDbms, false, "DBMS inside the client",
        "client_cpu_us/o covers client and DBMS together; server_cpu_us/o does not exist.";
    /// Measured by others.
    Imported, false, "Imported results",
        "rqps did not measure these results: a single published run has no interval, and absent \
         values stay missing.";
    /// A note of the driver.
    DriverNote, false, "Notes of the driver",
        "Deviations of the client from the plan.";
}

// All caveats of a comparison, in the order of reports.

/// All caveats, the gravest first; those of one kind in the order of targets and steps.
pub(crate) fn find(
    dataset: &Dataset,
    comparison: &Comparison,
    extensions: &[&Extension],
) -> Vec<Caveat> {
    let evidence = Evidence::of(dataset, comparison);
    if is_counted(comparison) {
        return of_count(&evidence, extensions);
    }
    let of_benchmarks = extensions.iter().flat_map(|own| (own.caveats)(&evidence));
    let mut caveats: Vec<Caveat> = of_benchmarks.collect();
    caveats.extend(comparison.answers.iter().map(of_answers));
    caveats.extend(comparability::find(&evidence, extensions));
    caveats.extend(measuring::find_missing(&evidence));
    caveats.extend(measuring::find(&evidence));
    caveats.extend(measuring::courses(&evidence));
    caveats.extend(causes::caveats(&evidence));
    caveats.extend(comparability::readahead(&evidence));
    caveats.sort_by_key(|caveat| caveat.kind);
    together(caveats)
}

fn of_answers(found: &AnswerFinding) -> Caveat {
    let kind = match found.weight {
        AnswerWeight::Data => CaveatKind::DifferentData,
        AnswerWeight::Answer => CaveatKind::DifferentAnswers,
        AnswerWeight::Harmless => CaveatKind::HarmlessAnswers,
        AnswerWeight::Uncompared => CaveatKind::UncomparedAnswers,
    };
    let AnswerFinding { target, steps, text, .. } = found.clone();
    Caveat { kind, target: Some(target), steps, text }
}

/// Caveats of counts. Counts are not timed, so the state of the host does not matter.
fn of_count(evidence: &Evidence<'_>, extensions: &[&Extension]) -> Vec<Caveat> {
    let mut caveats = comparability::find(evidence, extensions);
    caveats.extend(measuring::find_missing(evidence));
    caveats.extend(causes::caveats(evidence));
    caveats.sort_by_key(|caveat| caveat.kind);
    together(caveats)
}

/// Caveats of several steps that say the same are one.
fn together(caveats: Vec<Caveat>) -> Vec<Caveat> {
    let mut all: Vec<Caveat> = Vec::with_capacity(caveats.len());
    let mut known: HashMap<(CaveatKind, Option<String>, String), usize> = HashMap::new();
    for caveat in caveats {
        let place = (caveat.kind, caveat.target.clone(), caveat.text.clone());
        match known.get(&place).filter(|_| !caveat.steps.is_empty()) {
            Some(first) => {
                let new = caveat.steps.into_iter().filter(|step| !all[*first].steps.contains(step));
                let new: Vec<String> = new.collect();
                all[*first].steps.extend(new);
            }
            None => {
                known.insert(place, all.len());
                all.push(caveat);
            }
        }
    }
    all
}

// Input of the detectors of caveats, and the form of their findings.

/// The input of detectors.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// All runs.
    pub dataset: &'a Dataset,
    /// The comparison of the runs, with its verdicts.
    pub comparison: &'a Comparison,
    /// For each step of the comparison and each target: the records behind its samples.
    pub records: Vec<Vec<Vec<&'a StepRecord>>>,
}

fn records(comparison: &Comparison) -> Vec<Vec<Vec<&StepRecord>>> {
    fn of_target(target: &TargetResult) -> Vec<&StepRecord> {
        target.samples.iter().map(|sample| &*sample.record).collect()
    }
    fn of_step(step: &StepComparison) -> Vec<Vec<&StepRecord>> {
        match step.is_choice() {
            // The steps that they were measured as have their caveats.
            true => vec![Vec::new(); step.targets.len()],
            false => step.targets.iter().map(of_target).collect(),
        }
    }
    comparison.steps.iter().map(of_step).collect()
}

impl<'a> Evidence<'a> {
    /// The evidence that a comparison of a dataset gives.
    pub(super) fn of(dataset: &'a Dataset, comparison: &'a Comparison) -> Evidence<'a> {
        Evidence { dataset, comparison, records: records(comparison) }
    }

    /// For one target, a value of each step where `judge` finds one: name and value.
    pub fn each_step<T>(
        &self,
        target: usize,
        judge: impl Fn(&[&'a StepRecord]) -> Option<T>,
    ) -> Vec<(String, T)> {
        let steps = self.comparison.steps.iter().zip(&self.records);
        steps
            .filter_map(|(step, records)| Some((step.name.clone(), judge(&records[target])?)))
            .collect()
    }

    /// The caveats that `find` returns for each target, given its index and label; in the order of
    /// targets.
    pub fn by_target(&self, find: impl Fn(usize, &'a str) -> Vec<Caveat> + Sync) -> Vec<Caveat> {
        let targets = self.targets().collect();
        parallel::map(targets, |(target, label)| find(target, label))
            .into_iter()
            .flatten()
            .collect()
    }

    /// Places and labels of all targets.
    pub fn targets(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let targets = self.comparison.targets.iter();
        targets.map(|target| target.label.as_str()).enumerate()
    }

    /// True if others measured a target.
    pub fn is_imported(&self, target: usize) -> bool {
        self.comparison.is_imported(target)
    }

    /// True if the DBMS of a target runs inside the client.
    pub fn is_embedded(&self, target: usize) -> bool {
        let facts = &self.comparison.targets[target];
        facts.target.as_ref().is_some_and(Target::is_in_client)
    }
}

/// One caveat of the steps that were found, with the largest value of all in its text; none if
/// there are none.
pub fn worst(
    kind: CaveatKind,
    target: &str,
    found: Vec<(String, f64)>,
    text: impl Fn(f64) -> String,
) -> Option<Caveat> {
    let worst = found.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let steps = found.into_iter().map(|(step, _)| step).collect();
    Some(Caveat::of(kind, target, text(worst)).in_steps(steps))
}

/// The largest of a step's runs, if it is more than `limit`.
pub fn most(
    records: &[&StepRecord],
    limit: f64,
    get: impl Fn(&StepRecord) -> Option<f64>,
) -> Option<f64> {
    let most = records.iter().filter_map(|record| get(record)).max_by(f64::total_cmp);
    most.filter(|most| *most > limit)
}

/// `up to 3 pages`, of the largest number of several; `1 page` where that is one.
fn up_to(most: f64, noun: &str) -> String {
    let counted = counted(most as usize, noun);
    if most > 1.0 { format!("up to {counted}") } else { counted }
}

/// `12.3 %`, with more digits for small shares.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// The distinct ones of a list that has few, in the order of their first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Distinct values in the order of their first appearance, each with the distinct names that have
/// it; empty if all agree.
type Disagreement = Vec<(String, Vec<String>)>;

/// The names that disagree, from pairs of name and value.
fn disagreement(pairs: impl IntoIterator<Item = (String, String)>) -> Disagreement {
    let mut values = Disagreement::new();
    let mut known: HashSet<(usize, String)> = HashSet::new();
    for (name, value) in pairs {
        let place = values.iter().position(|(other, _)| *other == value).unwrap_or(values.len());
        if place == values.len() {
            values.push((value, Vec::new()));
        }
        if known.insert((place, name.clone())) {
            values[place].1.push(name);
        }
    }
    if values.len() > 1 { values } else { Vec::new() }
}

/// `A (x, y); B (z)`.
pub(super) fn spell(values: &[(String, Vec<String>)]) -> String {
    let parts = values.iter().map(|(value, names)| format!("{value} ({})", names.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

/// A client thread that used more than this share of its CPU limits the rate.
pub const CLIENT_BUSY_MAX: f64 = 0.8;
/// A client host that used more than this share of its CPUs limits the rate.
pub const CLIENT_HOST_BUSY_MAX: f64 = 0.8;
/// A client that used more than this share of the CPU of client and server hides differences
/// between servers: what both targets spend alike draws their ratio towards 1.
pub const CLIENT_SHARE_MAX: f64 = 0.2;
/// An open pace that achieves less than this share of the scheduled events is behind.
pub const PACE_ACHIEVED_MIN: f64 = 0.99;
/// Errors below this share of the events of a step are not worth a caveat.
pub const ERROR_SHARE_MIN: f64 = 0.001;
/// Writes that matched no row, from this share of a step's writes on, decide what its rate means.
pub const NO_OP_SHARE_MIN: f64 = 0.1;
/// More CPU time than this share taken by the hypervisor.
pub const STEAL_SHARE_MAX: f64 = 0.01;
/// More CPU time than this share used by processes that are neither rqps nor the server.
pub const FOREIGN_SHARE_MAX: f64 = 0.02;
/// KiB/s that a disk writes in a step that only reads, and that are worth a word: a server without
/// dirty pages writes some KiB/s of logs and statistics.
pub const WRITE_BACK_MIN_KB: f64 = 256.0;
/// Tasks that waited for a CPU for more than this share of a window, where the load itself leaves
/// CPUs free.
pub const PRESSURE_SHARE_MAX: f64 = 0.05;
/// Carry-over of two targets that differs by more than this share and by so many standard errors.
pub const CARRY_OVER_MIN: f64 = 0.005;
/// See [`CARRY_OVER_MIN`].
pub const CARRY_OVER_ERRORS: f64 = 3.0;
/// An interval of fewer pairs is too wide to be of use.
pub const PAIRS_MIN: usize = 3;
