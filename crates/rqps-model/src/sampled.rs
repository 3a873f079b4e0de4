//! CPU time of a step by stack: the method of sampling its server, and the stacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
