//! Reasons why a driver process ends before its request is carried out.

use crate::link::LabGone;

/// A fault, or the loss of the lab.
pub enum Stop {
    /// A fault, with its message.
    Fault(String),
    /// The lab is gone.
    Gone,
    /// The request was for answers, and they are sent.
    Answered,
}

impl From<String> for Stop {
    fn from(fault: String) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<LabGone> for Stop {
    fn from(_: LabGone) -> Stop {
        Stop::Gone
    }
}
