//! The number of events after which a step ends, all clients together: `--events=N` of sysbench.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rqps_driver::request::DriverRequest;
use rqps_model::lua::LuaWork;

/// Counts the events of a window down, if there is a limit.
#[derive(Clone)]
pub(super) struct EventCap(Option<Arc<AtomicU64>>);

impl EventCap {
    /// For the clients of this driver among those of all hosts. A count of instructions has its own
    /// number of events.
    pub(super) fn of(request: &DriverRequest, work: &LuaWork, clients: u32) -> EventCap {
        let all = u64::from(request.all_clients(clients).max(1));
        let own = work.events.filter(|_| request.counted_events.is_none());
        let own = own.map(|events| (events * u64::from(clients)).div_ceil(all));
        EventCap(own.map(|events| Arc::new(AtomicU64::new(events))))
    }

    /// True if no more events are to begin. Those in flight still count.
    #[inline]
    pub(super) fn is_reached(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// One event has ended in the window.
    #[inline]
    pub(super) fn count(&self) {
        if let Some(left) = &self.0 {
            let fewer = |left: u64| left.checked_sub(1);
            // At 0 it stays.
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::request::{AwayClients, RequestBody};

    #[test]
    fn a_cap_is_shared_and_divided_among_hosts() {
        let text = r#"{"script":{"name":"a","path":"/a.lua"},"commands":[],"clients":4,
            "seconds":1.0,"rights":"full","random":{},"ignored_errors":[],
            "plain_statements":false,"events":5}"#;
        let work: LuaWork = serde_json::from_str(text).unwrap();
        let mut request = DriverRequest::fake(RequestBody::LoadFiles(Default::default()));
        let cap = EventCap::of(&request, &work, 4);
        let other = cap.clone();
        for _ in 0..4 {
            other.count();
        }
        assert!(!cap.is_reached());
        other.count();
        other.count();
        assert!(cap.is_reached());
        request.away = Some(AwayClients { first: 0, of: 4 });
        let share = EventCap::of(&request, &work, 1);
        share.count();
        assert!(!share.is_reached(), "two of five for a quarter of the clients");
        share.count();
        assert!(share.is_reached());
        request.counted_events = Some(1);
        let none = EventCap::of(&request, &work, 4);
        none.count();
        assert!(!none.is_reached());
    }
}
