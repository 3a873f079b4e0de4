//! What a step executed, instruction by instruction: how it was counted, and the functions of the
//! profile that callgrind wrote.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a step was counted. The counts are in a file beside the step's record.
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
    /// The counts, once they are read.
    #[serde(skip)]
    pub profile: Option<Arc<CountedProfile>>,
}

/// What one dump of callgrind holds: a part for each thread.
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
    /// Functions with instructions of their own, or with calls.
    pub functions: Vec<ProfileFunction>,
    /// Who called whom; places are those in `functions`.
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
}

/// All calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileCall {
    /// Place of the calling function.
    pub caller: usize,
    /// Place of the called function.
    pub callee: usize,
    /// How often.
    pub count: u64,
    /// Instructions between call and return, those of further calls included.
    pub inclusive: u64,
}
