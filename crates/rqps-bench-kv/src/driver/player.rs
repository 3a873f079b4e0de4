//! A client of the RocksDB sequence while several targets take turns within a step.

use std::sync::Arc;

use crate::driver::client::{Client, Counts, Store, Until};
use rqps_driver::recorder::Recorder;
use rqps_driver::turns::TurnMember;
use rqps_model::kv::KvWork;

/// A client, with its counts over all turns.
pub(super) struct TurnClient<'a, S> {
    client: Client<S>,
    work: &'a KvWork,
    /// The window's recorder. Until the window opens, the client uses a different one.
    recorder: Arc<Recorder>,
    counts: Option<Counts>,
}

impl<'a, S> TurnClient<'a, S> {
    pub(super) fn new(mut client: Client<S>, work: &'a KvWork) -> TurnClient<'a, S> {
        let recorder = std::mem::replace(&mut client.recorder, Arc::new(Recorder::new(false)));
        TurnClient { client, work, recorder, counts: None }
    }
}

impl<S: Store> TurnMember for TurnClient<'_, S> {
    type Counts = Counts;

    fn turn(&mut self, until: u64) -> Result<(u64, u64), String> {
        let until = Until { time: until, operations: u64::MAX, least: 1 };
        let turn = self.client.run(self.work, until)?;
        if let Some(counts) = &mut self.counts {
            counts.add_turn(&turn);
            self.client.before = counts.operations;
        }
        Ok((turn.end, turn.events))
    }

    fn open_window(&mut self, _start: u64) {
        self.client.recorder = Arc::clone(&self.recorder);
        self.counts = Some(Counts::default());
    }

    fn close_window(&mut self) -> Counts {
        self.counts.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::client::tests::{reader, work};
    use rqps_driver::recorder::Snapshot;
    use rqps_model::kv::KvOperation;

    #[test]
    fn turns_count_in_the_window_only_and_without_the_gaps() {
        let work = work(KvOperation::MultiRead { batch: 10 });
        let client = reader();
        let (clock, recorder) = (client.clock.clone(), Arc::clone(&client.recorder));
        let mut player = TurnClient::new(client, &work);
        player.turn(clock.now() + 100_000).unwrap();
        assert_eq!(Snapshot::take([&*recorder]).statements, 0, "the warm-up does not count");
        player.open_window(clock.now());
        let mut own = 0;
        let mut events = 0;
        for _ in 0..3 {
            let begun = clock.now();
            // Without time left, it still makes one call.
            let (ended, calls) = player.turn(begun).unwrap();
            assert!(calls >= 1 && ended > begun);
            own += ended - begun;
            events += calls;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let counts = player.close_window();
        assert_eq!((counts.events, counts.operations), (events, 10 * events));
        assert_eq!(Snapshot::take([&*recorder]).statements, 10 * events);
        assert!(counts.end - counts.start <= own, "{counts:?}: more than {own} ns");
    }
}
