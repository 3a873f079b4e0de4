//! A step with one inserter whose instructions are counted. All batches except the last ones are
//! warm-up.

use std::io::Write;

use crate::driver::make::{self, Worker};
use crate::driver::outcome::Ended;
use rqps_driver::Stop;
use rqps_driver::clock::Clock;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::worker_pool::{Events, WorkerPool};
use rqps_model::insert::InsertWork;
use rqps_model::run::Outcome;

/// Leads the inserter through its batches and returns the counts of the last ones.
pub(super) fn lead<W: Write>(
    work: &InsertWork,
    batches: u64,
    pool: &mut WorkerPool<Ended>,
    serving: Option<u32>,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let all = make::batches(work);
    let counted = batches.min(all);
    let events = Events { warm_up: all - counted, counted };
    let finished = pool.count_events(events, serving, &mut |_| Ok(()), control)?;
    let rows = counted * u64::from(work.writes.rows_per_commit.max(1));
    Ok(Outcome {
        events: counted,
        statements: rows,
        writes: counted,
        client_cpu: finished.cpu,
        ..Outcome::default()
    })
}

/// Writes the counted batches. Before each, waits until the server's `thread` of the inserter
/// sleeps.
pub(super) fn count(
    worker: &mut Worker,
    batches: u64,
    clock: &Clock,
    thread: Option<u32>,
) -> Result<(), String> {
    if let Worker::Writer(writer, _) = worker {
        writer.session.set_lull(thread);
    }
    write(worker, batches, clock)
}

/// Writes this number of batches.
pub(super) fn write(worker: &mut Worker, batches: u64, clock: &Clock) -> Result<(), String> {
    let Worker::Writer(writer, _) = worker else {
        return Err("failed to count: only inserters are counted".to_owned());
    };
    for _ in 0..batches {
        let now = clock.now();
        writer.write(now, now)?;
    }
    Ok(())
}
