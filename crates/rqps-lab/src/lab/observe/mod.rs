//! Observers of a step: counters of host, server and CPU, who else is at work, the server's log,
//! the counters of the DBMS, its stacks and waits. One file for each [`StepObserver`].

mod host_counters;
mod profile;
mod server;

pub(super) use host_counters::{CounterObserver, CpuEventObserver, DisturbanceObserver};
pub(super) use profile::{ProfileObserver, WaitObserver};
pub(super) use server::{DbmsCounterObserver, ServerLogObserver};

use std::collections::{BTreeMap, HashMap};

use rqps_dbms::ControlPlane;
use rqps_model::gate::Disturbance;
use rqps_model::run::{Counter, Outcome, ServerEvent, Usage};
use rqps_model::sampled::{Profiled, Waited};

/// A moment of a step, in this order. A second may come after the end of the window, where work
/// went on.
#[derive(Clone, Copy)]
pub(crate) enum Edge<'a> {
    /// The clients are connected and have not begun. Only clients of servers stop here.
    Prepared,
    /// The window begins now.
    WindowStart,
    /// A second of the window has ended.
    Second,
    /// The window has ended, and work goes on.
    WindowEnd,
    /// The clients are done, and this is what they counted.
    Measured(&'a Outcome),
    /// The clients are gone, and servers know what they did.
    Disconnected(&'a Outcome),
}

/// Observes a step without taking part in it.
pub(crate) trait StepObserver {
    /// Its key in the step's `missing` if it observed nothing.
    fn name(&self) -> &'static str;

    /// Reads what it wants of this moment.
    ///
    /// # Errors
    /// It cannot, for this reason. The step goes on without it.
    fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) -> Result<(), String>;

    /// Puts what it has seen beside what others have.
    fn end(self: Box<Self>, observed: &mut Observed);
}

/// The observations of a step.
#[derive(Default)]
pub(crate) struct Observed {
    /// Changes of the counters of host and server in the window.
    pub(crate) usage: Usage,
    /// Changes of these counters by second.
    pub(crate) seconds: Vec<Usage>,
    pub(crate) disturbance: Option<Disturbance>,
    pub(crate) server_log: Vec<ServerEvent>,
    /// Counters of the DBMS that moved.
    pub(crate) counters: Vec<Counter>,
    /// Its stacks, if they were sampled.
    pub(crate) stacks: Option<SampledStacks>,
    /// Waits of the server's threads, if they were observed.
    pub(crate) waited: Option<Waited>,
}

/// Stacks of the server's processes.
pub(crate) struct SampledStacks {
    pub(crate) sampled: Profiled,
    /// `outer;inner;innermost` → samples.
    pub(crate) folded: HashMap<String, u64>,
}

/// The observers of one step.
pub(crate) struct Observers {
    all: Vec<Box<dyn StepObserver>>,
    /// Observer → why it has nothing to tell.
    missing: BTreeMap<String, String>,
}

impl Observers {
    /// These observers, which see each moment in this order.
    pub(crate) fn new(all: Vec<Box<dyn StepObserver>>) -> Observers {
        Observers { all, missing: BTreeMap::new() }
    }

    /// One more, which sees each moment after the others.
    pub(crate) fn add(&mut self, observer: Box<dyn StepObserver>) {
        self.all.push(observer);
    }

    /// Lets all see a moment. One that cannot is left out from then on.
    pub(crate) fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) {
        let missing = &mut self.missing;
        self.all.retain_mut(|observer| match observer.edge(edge, control) {
            Ok(()) => true,
            Err(reason) => {
                missing.insert(observer.name().to_owned(), reason);
                false
            }
        });
    }

    /// Ends the observers and returns their observations.
    pub(crate) fn end(self) -> Observed {
        let mut observed = Observed::default();
        for observer in self.all {
            observer.end(&mut observed);
        }
        observed.usage.missing.extend(self.missing);
        if let Some(stacks) = &mut observed.stacks {
            stacks.sampled.waited = observed.waited.take();
        }
        observed
    }
}
