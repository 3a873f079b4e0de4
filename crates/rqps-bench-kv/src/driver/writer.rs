//! The background writer of the steps while writing: it overwrites random keys at a limited rate
//! until the clients are done. Its operations count separately.

use std::sync::Arc;

use crate::driver::client::{Counts, Store};
use crate::driver::limiter::Limiter;
use crate::rows::{KeyNumbers, ValuePool, key};
use rqps_driver::clock::Clock;
use rqps_driver::recorder::Recorder;
use rqps_model::rocksdb::KEY_BYTES;

/// The writer, ready to run.
pub(super) struct Writer<S> {
    pub(super) store: S,
    pub(super) numbers: KeyNumbers,
    pub(super) values: ValuePool,
    pub(super) clock: Clock,
    pub(super) recorder: Arc<Recorder>,
    pub(super) mb_per_second: f64,
}

impl<S: Store> Writer<S> {
    /// Writes until `is_over` is true. The error is a complete message.
    pub(super) fn run(&mut self, is_over: impl Fn() -> bool) -> Result<Counts, String> {
        let Writer { store, numbers, values, clock, recorder, mb_per_second } = self;
        let start = clock.now();
        let mut limiter = Limiter::new(*mb_per_second, start);
        let mut counts = Counts { start, end: start, ..Counts::default() };
        while !is_over() {
            let key = key(numbers.after_choice());
            let value = values.next_value();
            let begun = clock.now();
            store.put(&key, value).map_err(|error| format!("failed to {error}"))?;
            counts.end = clock.now();
            counts.events += 1;
            counts.operations += 1;
            counts.entries += 1;
            let bytes = (KEY_BYTES + value.len()) as u64;
            counts.bytes += bytes;
            recorder.event(counts.end - begun, 0, counts.operations);
            limiter.take(bytes, counts.end, |time| clock.wait_until(time));
        }
        Ok(counts)
    }
}
