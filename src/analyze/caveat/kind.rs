//! A reason for doubt as data, and the kinds there are.

use serde::Serialize;

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
