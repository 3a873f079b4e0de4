//! Instruction counts of a step: the method, and the functions of the profile that callgrind wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The method of a count. The counts are in a file beside the step's record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The program that counted: `valgrind-3.19.0`.
    pub tool: String,
    /// Number of the thread that served the client, as the profile numbers threads; `None` if all
    /// threads of the process count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// True if the DBMS is a library in the process of the client: then what the client's own
    /// program executed does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_client: bool,
    /// Arguments that the server got beyond its config, because it cannot run under valgrind
    /// without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The reason why this step was not counted; there is no profile then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<String>,
    /// The counts, once they are read.
    #[serde(skip)]
    pub profile: Option<Arc<CountedProfile>>,
}

/// The treatment of a step in a counted run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCount {
    /// Counts the instructions of so many events.
    Events(u64),
    /// Carries it out and counts nothing, because steps after it need it. Why it is not counted, as
    /// a clause.
    CarriedOut(String),
    /// Leaves it out. Why, as a clause.
    LeftOut(String),
}

impl StepCount {
    /// The reason why the step is not counted; `None` if it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            StepCount::Events(_) => None,
            StepCount::CarriedOut(why) | StepCount::LeftOut(why) => Some(why),
        }
    }
}

/// One dump of callgrind: a part per thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedProfile {
    /// The command line of the process.
    pub command: String,
    /// In the order of the file.
    pub parts: Vec<ProfilePart>,
}

/// The functions of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfilePart {
    /// Process id.
    pub pid: Option<u32>,
    /// Number of the thread, from 1, if threads are counted apart.
    pub thread: Option<u32>,
    /// Instructions of all functions: the `totals:` of the part.
    pub total: u64,
    /// True if caches and branches were simulated, too.
    pub simulated: bool,
    /// Functions with instructions of their own, or with calls.
    pub functions: Vec<ProfileFunction>,
    /// Calls between functions, by their indexes in `functions`.
    pub calls: Vec<ProfileCall>,
}

/// A function of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileFunction {
    /// The file of the program or library that holds it.
    pub object: Arc<str>,
    /// Its name; an address where the file has no symbol.
    pub name: Arc<str>,
    /// Instructions of its own, without those of the functions that it called.
    pub own: u64,
    /// Simulated cache misses and mispredictions of its own instructions; 0 without a simulation.
    pub simulated: Simulated,
}

/// Events of callgrind's simulated processor: two levels of caches and a branch predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    /// Accesses to instructions and data that the first level of caches did not hold.
    pub first_level_misses: u64,
    /// Accesses that the last level did not hold, either.
    pub last_level_misses: u64,
    /// Conditional branches and indirect jumps that were predicted wrongly.
    pub mispredictions: u64,
}

/// All calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileCall {
    /// Place of the calling function.
    pub caller: usize,
    /// Place of the called function.
    pub callee: usize,
    /// Number of calls.
    pub count: u64,
    /// Instructions between call and return, those of further calls included.
    pub inclusive: u64,
}

// CPU time of a step by stack: the method of sampling its server, and the stacks.

/// The method of sampling. The stacks are in a file beside the step's record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    /// The program that sampled: `perf version 6.1.187`.
    pub tool: String,
    /// The event of the kernel that a sample stands for.
    pub event: String,
    /// Samples that were asked for, per second of CPU time.
    pub hertz: u32,
    /// The method of unwinding stacks.
    pub call_graph: CallGraph,
    /// True if the DBMS is a library in the process of the client: then samples are of both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_client: bool,
    /// Samples in the measured window.
    pub samples: u64,
    /// Samples that the kernel or the program lost.
    pub lost: u64,
    /// Samples whose stack does not go back to where a thread began.
    pub broken: u64,
    /// Samples whose own function has no symbol.
    pub nameless: u64,
    /// The waits of the threads that serve clients, if they could be observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Waited>,
    /// The stacks, once they are read.
    #[serde(skip)]
    pub profile: Option<Arc<CallTree>>,
}

/// The states of the threads that serve clients, observed many times a second. Waits for the client
/// are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// Looks per second that were meant.
    pub hertz: u32,
    /// Looks.
    pub looks: u64,
    /// Seconds of them.
    pub seconds: f64,
    /// Threads that serve clients, at the end.
    pub serving: u32,
    /// Number of times that a thread was running or ready to run.
    pub running: u64,
    /// Wait, such as `IO: fsync` → how often a thread was seen in it.
    pub seen: BTreeMap<String, u64>,
    /// Seconds that these threads were ready to run and had no CPU, all together.
    pub queued_seconds: f64,
}

/// The method of unwinding the stack of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// By the chain of frame pointers, where the compiler kept them.
    #[default]
    FramePointers,
    /// By a copy of the stack and the tables that exceptions use.
    Dwarf,
}

impl CallGraph {
    /// Words for a reader.
    pub fn words(self) -> &'static str {
        match self {
            CallGraph::FramePointers => "frame pointers",
            CallGraph::Dwarf => "DWARF unwinding",
        }
    }
}

/// All stacks of a profile, those with a common beginning joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTree {
    /// Names of functions.
    pub names: Vec<Arc<str>>,
    /// A caller comes before those that it calls.
    pub nodes: Vec<CallNode>,
}

/// A function in the place where it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// Place of its caller among the nodes; `None` for where a thread began.
    pub caller: Option<u32>,
    /// Place of its name.
    pub name: u32,
    /// Samples that it was itself at work in.
    pub own: u64,
}
