//! Coordinates a step of counted instructions: it has events instead of seconds.

use std::io::Write;
use std::sync::atomic::Ordering;

use super::{Finished, Order, WorkerPool};
use crate::Stop;
use crate::event::DriverEvent;
use crate::link::ControlChannel;
use rqps_host::tree;

/// Events of each member of a counted step.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Events before the count begins.
    pub warm_up: u64,
    /// Events that count.
    pub counted: u64,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Sends all members through the events of the warm-up and then the counted ones. Pauses before
    /// and after the latter, so that the lab switches the counting on and off. `settle` runs before
    /// each pause and completes work that the events left.
    pub fn count_events<W: Write>(
        &mut self,
        Events { warm_up, counted }: Events,
        serving: Option<u32>,
        settle: &mut dyn FnMut(&mut ControlChannel<W>) -> Result<(), Stop>,
        link: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::WarmUpEvents(warm_up));
        self.answers(link)?;
        settle(link)?;
        link.pause_at(&DriverEvent::BeforeCount { serving })?;
        let cpu_start = tree::own_cpu();
        self.order(Order::MeasureEvents(counted));
        while self.is_working() {
            self.hear(None, link)?;
        }
        settle(link)?;
        let cpu = tree::own_cpu().since(cpu_start);
        let end = self.clock.now();
        link.pause_at(&DriverEvent::AfterCount)?;
        self.over.store(true, Ordering::Relaxed);
        Ok(Finished { done: std::mem::take(&mut self.done), cpu, end, limited: false })
    }
}
