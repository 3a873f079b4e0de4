//! Observes waits of the server's threads in the window while they are on no CPU.

use crate::lab::observe::observer::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::waits::{Looking, Waits};
use rqps_model::sampled::Waited;

/// Looks at the threads that serve clients.
pub(crate) struct WaitObserver {
    /// Until the window begins.
    waits: Option<Waits>,
    looking: Option<Looking>,
    waited: Option<Waited>,
}

impl WaitObserver {
    /// For these processes.
    pub(crate) fn new(waits: Waits) -> WaitObserver {
        WaitObserver { waits: Some(waits), looking: None, waited: None }
    }
}

impl StepObserver for WaitObserver {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        match edge {
            // All clients are connected and idle: who waits now serves them.
            Edge::Prepared => self.waits.iter_mut().for_each(Waits::search),
            Edge::WindowStart => {
                if let Some(mut waits) = self.waits.take() {
                    waits.search();
                    self.looking = Some(Looking::begin(waits));
                }
            }
            Edge::WindowEnd | Edge::Measured(_) => {
                if let Some(looking) = self.looking.take() {
                    self.waited = Some(looking.end()?);
                }
            }
            Edge::Second | Edge::Disconnected(_) => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.waited = self.waited;
    }
}
