//! The counters that the DBMS keeps of itself, before and after a step.

use std::collections::BTreeMap;

use crate::lab::observe::observer::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_model::run::Counter;

/// Reads them before the clients begin and when they are gone. Without a server there are none, and
/// nothing is missing.
#[derive(Default)]
pub(crate) struct DbmsCounterObserver {
    before: Option<BTreeMap<String, f64>>,
    moved: Vec<Counter>,
}

impl StepObserver for DbmsCounterObserver {
    fn name(&self) -> &'static str {
        "dbms_counters"
    }

    fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) -> Result<(), String> {
        match (edge, &self.before) {
            (Edge::Prepared, _) => self.before = Some(control.counters(false)?),
            (Edge::Disconnected(outcome), Some(_)) if outcome.cut.is_some() => {
                return Err("the step reached its time limit".to_owned());
            }
            (Edge::Disconnected(_), Some(before)) => {
                self.moved = moved(before, control.counters(true)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.counters = self.moved;
    }
}

/// Counters that are not what they were. One that is new began at zero.
fn moved(before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) -> Vec<Counter> {
    let counter = |(name, after): (String, f64)| {
        let before = before.get(&name).copied().unwrap_or(0.0);
        (before != after).then_some(Counter { name, before, after })
    };
    after.into_iter().filter_map(counter).collect()
}
