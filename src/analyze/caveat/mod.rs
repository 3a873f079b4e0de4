//! Why a number deserves doubt, as data: what, where, how much, and what to do about it.

mod comparability;
mod completeness;
mod course;
mod measuring;
mod newer;
mod planning;
mod readahead;

use std::collections::HashMap;

use serde::Serialize;

use super::compare::{Comparison, StepComparison, TargetResult};
use crate::domain::run::{Dataset, StepRecord};
use crate::parallel;

/// A client thread that used more than this share of its CPU limits the rate.
pub const CLIENT_BUSY_MAX: f64 = 0.8;
/// A client that used more than this share of the CPU of client and server hides differences
/// between servers: what both targets spend alike draws their ratio towards 1.
pub const CLIENT_SHARE_MAX: f64 = 0.2;
/// An open pace that achieved less than this share of what was due is behind.
pub const PACE_ACHIEVED_MIN: f64 = 0.99;
/// Errors below this share of the events of a step are not worth a caveat.
pub const ERROR_SHARE_MIN: f64 = 0.001;
/// Writes that met no row, from this share of a step's writes on, decide what its rate means.
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
/// An interval of fewer pairs is too wide to be of use.
pub const PAIRS_MIN: usize = 3;

/// One reason for doubt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caveat {
    /// Which kind; reports print each kind's advice once.
    pub kind: CaveatKind,
    /// The target it is about; `None` for several, named in the text.
    pub target: Option<String>,
    /// The steps it is about; empty for all, or where it is about no step.
    pub steps: Vec<String>,
    /// What was found, with its numbers.
    pub text: String,
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

            /// What it is, as a head.
            pub fn title(self) -> &'static str {
                match self { $(CaveatKind::$kind => $title,)* }
            }

            /// What it means and what to do about it.
            pub fn advice(self) -> &'static str {
                match self { $(CaveatKind::$kind => $advice,)* }
            }
        }
    };
}

kinds! {
    /// Runs of several hosts.
    DifferentHost, true, "Different hosts",
        "A ratio of two machines says nothing about builds: measure all targets on one.";
    /// Result sets of several hosts, each with pairs of its own.
    SeveralHosts, false, "Sessions on several hosts",
        "Pairs are formed within a result set, and so within a host. The host is part of the \
         random effect of the session: the section on sessions has the ratios of each.";
    /// Runs of several benchmarks.
    DifferentBenchmark, true, "Different benchmarks",
        "Compare runs of one benchmark.";
    /// Runs of several scales or shapes.
    DifferentWorkload, true, "Different workloads",
        "Compare runs of one workload; give each its own results folder.";
    /// Runs with clients placed differently.
    DifferentPlacement, true, "Different placements",
        "Where client and server run changes rates several times over, and ratios with them: \
         measure all targets with one --placement.";
    /// Runs with CPUs idling differently.
    DifferentIdle, true, "Different idle states",
        "Waking a halted CPU can be most of a query: measure all targets with one --idle.";
    /// Targets that took turns within a step on one side only.
    DifferentTurns, true, "Steps measured in turns and in one piece",
        "A window in one piece holds seconds of the host's noise that turns of milliseconds do \
         not, and a target in turns meets caches that others have used: measure all targets with \
         one --interleave.";
    /// One name for two things.
    DifferentStep, true, "Steps of one name that differ",
        "Different versions of rqps or different sources wrote them: measure both with one.";
    /// One label for two builds.
    MixedBuilds, true, "Several builds under one label",
        "Give each build its own label (label=target).";
    /// One label for two configurations.
    MixedSettings, true, "Several settings under one label",
        "Give each configuration its own label (label=target:CONFIG).";
    /// Planned and not there.
    NeverMeasured, false, "Targets without a run",
        "Take the plan up again with `rqps run PLAN.toml --resume`.";
    /// A run that is not complete.
    FailedRun, false, "Runs that did not come to their end",
        "Their finished steps count. The reason is in the run folder's logs; take the plan up \
         again with --resume.";
    /// A block that was discarded.
    DiscardedBlock, false, "Discarded blocks",
        "The canaries were out of their range; these blocks were measured again, and nothing is \
         computed from the discarded attempt. They are no evidence against the other blocks.";
    /// A step that is not complete.
    FailedStep, false, "Steps that did not come to their end",
        "They are left out of every number. The reason is in the run folder's logs.";
    /// A step that one side lacks.
    MissingStep, false, "Steps that were not measured on every target",
        "Nothing can be said of them; measure them on both sides.";
    /// No block in common.
    NotPaired, false, "Not measured in the same blocks",
        "Such a ratio holds whatever else changed between the runs, and has no interval: measure \
         both targets in one plan.";
    /// Fewer than three pairs.
    TooFewBlocks, false, "Too few blocks",
        "One pair has no interval and that of two is too wide to use: measure more with --blocks, \
         at least 4, better 6 or more.";
    /// The client is the bottleneck.
    ClientBound, false, "Client-bound",
        "The rate is that of the client, not of the DBMS: use more clients or more CPUs, and look \
         at server_cpu_us/o.";
    /// The client is a large part of what is measured.
    ClientShare, false, "The client's part is large",
        "It is about the same for every target, so rates of a closed loop, and cpu/o, are closer \
         to each other than the servers are: look at server_cpu_us/o.";
    /// An open pace that was not kept.
    MissedPace, false, "Missed pace",
        "The target is overloaded at this rate: its latencies grow with the length of the step. \
         Compare at a lower rate.";
    /// Writers beside queries that did not keep their rate.
    MissedRate, false, "Missed write rate",
        "Fewer writes leave more of the machine for queries, so these steps are not comparable: \
         they get no verdict and enter no mean. Compare at a lower rate (--set query_steps=).";
    /// Errors.
    Errors, false, "Errors",
        "Each failed event began again, so its time is in the latency and its statements are not \
         in the rate.";
    /// Writes that meet no row.
    NoOps, false, "Writes that met no row",
        "The rate is to a large part that of missed lookups: a faster target runs out of rows \
         sooner. Compare at an open pace, or with more rows.";
    /// A published column that holds nothing.
    EmptyColumn, false, "Published columns without a rate",
        "Every value is 0 or missing: its run failed, or the column is something else.";
    /// Nothing was done.
    NoOperations, false, "No operation was completed",
        "Use a longer step or less work in an event.";
    /// The hypervisor took CPU.
    Steal, false, "CPU time was stolen",
        "Another virtual machine took it: the pairs spread more, and latencies are not the \
         DBMS's own.";
    /// Somebody else was at work.
    ForeignLoad, false, "Other processes used the CPUs",
        "They take CPU and cache from one target and not from the other: stop them, see \
         `rqps doctor`.";
    /// Tasks waited for a CPU though the load needs fewer than there are.
    CpuPressure, false, "Tasks waited for a CPU",
        "The load needs fewer CPUs than there are, so somebody else took them: see `rqps doctor`.";
    /// Memory was short.
    Swapped, false, "Memory was swapped in",
        "Pages came back from disk in the middle of a step: use fewer rows, or swapoff -a.";
    /// The host was slowed down.
    Throttled, false, "CPUs were held back",
        "For heat, or by a limit of the cgroup: rates of such steps are those of a slower host.";
    /// Writes of the disk while a step only reads.
    WriteBack, false, "Writes while reading",
        "Perhaps buffer pool writeback was still in progress: the step pays for writes of steps \
         before it. Let servers rest longer (--set settle_scale=), and compare wKB/o.";
    /// Seconds in which next to nothing was done.
    Stalls, false, "Stalls",
        "Seconds with less than a tenth of the median rate: look at the charts over time, and at \
         checkpoints, compaction and other tenants of the disk.";
    /// A warm-up that does not end.
    NotSteady, false, "Not steady",
        "The rate was still settling half way through the window (MSER-5): measure longer, or \
         warm up longer with --set warmup_seconds=.";
    /// A rate that rises or falls.
    Drifting, false, "Drifting",
        "The rate rose or fell over the window (Mann-Kendall p < .01, more than 1 %): a debt \
         that grows or is worked off, a table that grows, a cache that fills. The mean depends \
         on the length of the window.";
    /// Mean and robust estimate are apart.
    RobustDisagrees, false, "Mean and robust estimate disagree",
        "A few blocks decide the mean: look at the runs one by one, or measure more blocks.";
    /// One load of each target.
    SingleLoad, false, "One load for each target",
        "All blocks start from copies of that load, so what it happened to give (page splits, the \
         order in files, statistics of the optimizer) is in every ratio, and more blocks do not \
         take it out.";
    /// The optimizer chose differently.
    PlanDiffers, false, "Different query plans",
        "A difference in rate may be one of the optimizer's choice: look at statistics and \
         settings. Numbers are left out of the plans shown.";
    /// The optimizer chose differently from block to block.
    PlanChanges, false, "Query plans that change between blocks",
        "The target's own pairs mix two plans.";
    /// One name for two texts.
    DifferentSettings, false, "One configuration name, different settings",
        "Expected where a setting is not known to every version or is sized from the data; \
         otherwise a difference may be one of settings.";
    /// Builds by different compilers.
    DifferentCompiler, false, "Built by different compilers",
        "Part of a difference may be the compilers'; build both sides with one to tell.";
    /// Searches of one name that do not find the same share.
    DifferentRecall, false, "Searches that find different shares of the neighbours",
        "Such a rate is of an easier task where less is found, so its ratio and verdict are not of \
         builds alone: compare at equal recall (steps recall=…), or give each DBMS the width that \
         finds as much.";
    /// Settings of one host that changed.
    HostChanged, false, "The host's settings changed",
        "It is the same machine with other settings or microcode: part of a difference between \
         these results may be theirs. Measure all targets in one plan.";
    /// A readahead that the disk cuts into pieces.
    Readahead, false, "Readahead larger than a request to the disk",
        "Each such read is cut into several requests, which RocksDB 8.6 to 9.8 paid for with half \
         of their compaction speed (RocksDB issue 12038): set the readahead to max_sectors_kb, or \
         less.";
    /// Counters by different means.
    DifferentSource, false, "Counters read by different means",
        "Do not compare this counter between these targets.";
    /// Several versions of the instrument.
    DifferentRqps, false, "Measured by different versions of rqps",
        "Measure all targets with one version where small differences matter.";
    /// A counter that could not be read.
    Unmeasured, false, "Counters that could not be read",
        "Metrics that need them are shown as -.";
    /// A histogram that cannot be decoded.
    UnreadableLatency, false, "Latencies that cannot be read",
        "The step's record is damaged or of a later version; its latencies are left out.";
    /// No server process.
    EmbeddedDbms, false, "DBMS inside the client",
        "client_cpu_us/o is client and DBMS together, and there is no server's.";
    /// A newer rqps wrote more than this one knows.
    NewerFacts, false, "Facts of a newer rqps",
        "They are kept, shown as they are and never judged: report with the rqps that measured.";
    /// Measured by others.
    Imported, false, "Imported results",
        "They say what was published, not what was done: a published single run has no interval, \
         and what is not in the files is missing.";
    /// What the driver said.
    DriverNote, false, "Notes of the driver",
        "What the client could not do as planned.";
}

/// What the detectors look at.
struct Evidence<'a> {
    dataset: &'a Dataset,
    comparison: &'a Comparison,
    /// For each step of the comparison and each target: the records behind its samples.
    records: Vec<Vec<Vec<&'a StepRecord>>>,
}

/// All caveats, the gravest first; those of one kind in the order of targets and steps.
pub(super) fn find(dataset: &Dataset, comparison: &Comparison) -> Vec<Caveat> {
    let evidence = Evidence { dataset, comparison, records: records(comparison) };
    let mut caveats = comparability::find(&evidence);
    caveats.extend(completeness::find(&evidence));
    caveats.extend(measuring::find(&evidence));
    caveats.extend(course::find(&evidence));
    caveats.extend(planning::find(&evidence));
    caveats.extend(readahead::find(&evidence));
    caveats.extend(newer::find(&evidence));
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

fn records(comparison: &Comparison) -> Vec<Vec<Vec<&StepRecord>>> {
    fn of_target(target: &TargetResult) -> Vec<&StepRecord> {
        target.samples.iter().map(|sample| &*sample.record).collect()
    }
    fn of_step(step: &StepComparison) -> Vec<Vec<&StepRecord>> {
        match step.is_choice() {
            // What is wrong with them is told of the steps that they were measured as.
            true => vec![Vec::new(); step.targets.len()],
            false => step.targets.iter().map(of_target).collect(),
        }
    }
    comparison.steps.iter().map(of_step).collect()
}

impl<'a> Evidence<'a> {
    /// For one target, a value of each step where `judge` finds one: name and value.
    fn each_step<T>(
        &self,
        target: usize,
        judge: impl Fn(&[&'a StepRecord]) -> Option<T>,
    ) -> Vec<(String, T)> {
        let steps = self.comparison.steps.iter().zip(&self.records);
        steps
            .filter_map(|(step, records)| Some((step.name.clone(), judge(&records[target])?)))
            .collect()
    }

    /// What `find` finds on each target, given its place and label; in the order of targets.
    fn by_target(&self, find: impl Fn(usize, &'a str) -> Vec<Caveat> + Sync) -> Vec<Caveat> {
        let targets = self.targets().collect();
        parallel::map(targets, |(target, label)| find(target, label))
            .into_iter()
            .flatten()
            .collect()
    }

    /// Places and labels of all targets.
    fn targets(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let targets = self.comparison.targets.iter();
        targets.map(|target| target.label.as_str()).enumerate()
    }

    /// True if others measured a target.
    fn is_imported(&self, target: usize) -> bool {
        self.comparison.is_imported(target)
    }

    /// True if the DBMS of a target runs inside the client.
    fn is_embedded(&self, target: usize) -> bool {
        let facts = &self.comparison.targets[target];
        facts.target.as_ref().is_some_and(|target| target.dbms.is_embedded())
    }
}

/// One caveat of the steps that were found, with the largest value of all in its text; none if
/// there are none.
fn worst(
    kind: CaveatKind,
    target: &str,
    found: Vec<(String, f64)>,
    text: impl Fn(f64) -> String,
) -> Option<Caveat> {
    let worst = found.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let steps = found.into_iter().map(|(step, _)| step).collect();
    Some(Caveat { kind, target: Some(target.to_owned()), steps, text: text(worst) })
}

/// `12.3 %`, with more digits for small shares.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// The distinct ones of a list that has few, in the order of their first appearance.
fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
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
    for (name, value) in pairs {
        let place = values.iter().position(|(other, _)| *other == value).unwrap_or(values.len());
        if place == values.len() {
            values.push((value, Vec::new()));
        }
        let names = &mut values[place].1;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if values.len() > 1 { values } else { Vec::new() }
}

/// `A (x, y); B (z)`.
fn spell(values: &[(String, Vec<String>)]) -> String {
    let parts = values.iter().map(|(value, names)| format!("{value} ({})", names.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}
