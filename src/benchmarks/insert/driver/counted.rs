//! A step of one inserter whose instructions are counted: all batches but the last ones warm up.

use std::io::Write;
use std::time::Duration;

use crate::benchmarks::insert::driver::make::{self, Worker};
use crate::benchmarks::insert::driver::outcome::Ended;
use crate::domain::insert::InsertWork;
use crate::domain::run::Outcome;
use crate::driver::Stop;
use crate::driver::clock::Clock;
use crate::driver::crew::{Crew, Events};
use crate::driver::link::LabLink;

/// Before each counted batch, so that the server waits for it.
const LULL: Duration = Duration::from_millis(1);

/// Leads the inserter through its batches and returns what those that count did.
pub(super) fn lead<W: Write>(
    work: &InsertWork,
    batches: u64,
    crew: &mut Crew<Ended>,
    serving: Option<u32>,
    link: &mut LabLink<W>,
) -> Result<Outcome, Stop> {
    let all = make::batches(work);
    let counted = batches.min(all);
    let events = Events { warm_up: all - counted, counted };
    let finished = crew.count_events(events, serving, &mut |_| Ok(()), link)?;
    let rows = counted * u64::from(work.writes.rows_per_commit.max(1));
    Ok(Outcome {
        events: counted,
        statements: rows,
        writes: counted,
        client_cpu: finished.cpu,
        ..Outcome::default()
    })
}

/// Writes so many batches, one after the other; `lull` has the server wait for each.
pub(super) fn write(
    worker: &mut Worker,
    batches: u64,
    clock: &Clock,
    lull: bool,
) -> Result<(), String> {
    let Worker::Writer(writer, _) = worker else {
        return Err("failed to count: only inserters are counted".to_owned());
    };
    if lull {
        writer.session.set_lull(LULL);
    }
    for _ in 0..batches {
        let now = clock.now();
        writer.write(now, now)?;
    }
    Ok(())
}
