//! Observes other activity on the host during a step.

use crate::lab::observe::observer::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::noise::disturbance::Watch;
use rqps_model::endpoint::Endpoint;
use rqps_model::gate::Disturbance;

/// Watches from before the clients start until they are done.
pub(crate) struct DisturbanceObserver {
    watch: Option<Watch>,
    is_server: bool,
    seen: Option<Disturbance>,
}

impl DisturbanceObserver {
    /// Begins to watch; `None` where nothing real is measured.
    pub(crate) fn begin(
        endpoint: &Endpoint,
        server_pid: Option<u32>,
    ) -> Option<DisturbanceObserver> {
        if matches!(endpoint, Endpoint::Fake { .. }) {
            return None;
        }
        let ours: Vec<u32> = server_pid.into_iter().chain([std::process::id()]).collect();
        let is_server = matches!(endpoint, Endpoint::Server(_));
        Some(DisturbanceObserver { watch: Some(Watch::begin(&ours)), is_server, seen: None })
    }

    /// The disturbance. A server that rqps does not run may be on this host unrecognised; its CPU
    /// would then count as that of a stranger.
    fn seen(&self, watch: Watch) -> Disturbance {
        let known = watch.knows_server();
        let mut seen = watch.end();
        if self.is_server && !known {
            seen.foreign_cpu = None;
            let reason = "unknown server processes, which may be among the others";
            seen.missing.insert("foreign_cpu".to_owned(), reason.to_owned());
        }
        seen
    }
}

impl StepObserver for DisturbanceObserver {
    fn name(&self) -> &'static str {
        "disturbance"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        if let Edge::Measured(_) = edge
            && let Some(watch) = self.watch.take()
        {
            self.seen = Some(self.seen(watch));
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.disturbance = self.seen;
    }
}
