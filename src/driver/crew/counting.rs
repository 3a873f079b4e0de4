//! The coordinator of a step whose instructions are counted: events instead of seconds.

use std::io::Write;
use std::sync::atomic::Ordering;

use super::{Crew, Finished, Order};
use crate::driver::Stop;
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::os::tree;

impl<T: Send + 'static> Crew<T> {
    /// Sends all members through `events` events each, twice: to warm up, and to be counted, with a
    /// pause before and after in which the lab switches the counting on and off.
    pub(crate) fn count_events<W: Write>(
        &mut self,
        events: u64,
        serving: Option<u32>,
        link: &mut LabLink<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::WarmUpEvents(events));
        self.answers(link)?;
        link.pause_at(&DriverEvent::BeforeCount { serving })?;
        let cpu_start = tree::own_cpu();
        self.order(Order::MeasureEvents(events));
        while self.is_working() {
            self.hear(None, link)?;
        }
        let cpu = tree::own_cpu().since(cpu_start);
        let end = self.clock.now();
        link.pause_at(&DriverEvent::AfterCount)?;
        self.over.store(true, Ordering::Relaxed);
        Ok(Finished { done: std::mem::take(&mut self.done), cpu, end, limited: false })
    }
}
