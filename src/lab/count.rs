//! One step on one target whose instructions are counted: a fixed number of events, with callgrind
//! switched on before the first and off after the last of them.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::domain::benchmark::{RateUnit, Step};
use crate::domain::counted::Counted;
use crate::domain::dialect::Dialect;
use crate::domain::endpoint::Endpoint;
use crate::domain::run::{Outcome, Status, StepRecord};
use crate::domain::script::{Parameter, Script};
use crate::driver::event::DriverEvent;
use crate::driver::request::{DriverRequest, RequestBody, StepRequest};
use crate::lab::driver_process::DriverProcess;
use crate::lab::step_runner::{self, StepRunner};
use crate::os::valgrind::Callgrind;

/// A driver that is silent for so long waits for a server that hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// Each statement may take so much longer.
const PATIENCE_OF_A_STATEMENT: Duration = Duration::from_millis(50);
/// Rows that all events of a step read, for each statement asked for: long scans and ranges are
/// carried out fewer times, or they would take hours under valgrind.
const ROWS_PER_STATEMENT: u64 = 200;
/// Events of a step at least.
const EVENTS_LEAST: u64 = 3;

/// What is counted: a process, and its thread if it serves others, too.
struct CountedProcess {
    pid: u32,
    thread: Option<u32>,
}

impl StepRunner<'_> {
    /// Carries out a step and counts its instructions, unless it only warms caches. Returns its
    /// record, and what callgrind wrote.
    ///
    /// # Errors
    /// The server, the driver or valgrind fails; the user stops.
    pub(super) fn count(
        &mut self,
        step: &Step,
        number: u32,
        seed: u64,
        callgrind: &Callgrind,
    ) -> Result<(StepRecord, Option<String>)> {
        let workload = self.execution.options.plan.workload.clone();
        let Some(script) = step.script() else { bail!("its work is no script of statements") };
        let statements = workload.counted_statements.unwrap_or_default();
        let events = events(script, step.rate, statements, workload.rows);
        let request = StepRequest {
            server_pid: self.control.server_pid(),
            storage_engine: self.storage_engine.map(str::to_owned),
            cache: Some(self.execution.options.cache.join("datasets")),
            ..StepRequest::of(step, &workload)
        };
        let job = self.job(seed, RequestBody::Step(Box::new(request)));
        let job = DriverRequest { counted_events: Some(events), ..job };
        let in_client = !matches!(job.endpoint, Endpoint::Server(_));
        if in_client && self.control.launcher().is_some() {
            bail!("this library needs the libc of its own Debian, which valgrind does not load");
        }
        fs::create_dir_all(callgrind.folder())
            .with_context(|| format!("make {}", callgrind.folder().display()))?;
        let mut driver = self.driver(&job, in_client.then_some(callgrind))?;
        let patience =
            PATIENCE + PATIENCE_OF_A_STATEMENT * u32::try_from(events).unwrap_or(1 << 20);
        let mut counted = step.reported.then(|| Counted {
            tool: callgrind.version().to_owned(),
            in_client,
            changed: self.control.valgrind_args(),
            ..Counted::default()
        });
        let (mut subject, mut profile) = (None, None);
        loop {
            match self.next(&mut driver, patience)? {
                DriverEvent::Warming | DriverEvent::Waiting { .. } => {}
                DriverEvent::Prepared => driver.go_on()?,
                DriverEvent::BeforeCount { serving } => {
                    if let Some(counted) = &mut counted {
                        let found = self.subject(&driver, serving, in_client, callgrind);
                        let found = found.map_err(|error| self.cause(error))?;
                        counted.thread = found.thread;
                        callgrind.begin(found.pid).map_err(|error| self.cause(error.into()))?;
                        subject = Some(found);
                    }
                    driver.go_on()?;
                }
                DriverEvent::AfterCount => {
                    if let Some(subject) = &subject {
                        let text = callgrind.end(subject.pid);
                        profile = Some(text.map_err(|error| self.cause(error.into()))?);
                    }
                    driver.go_on()?;
                }
                DriverEvent::Measured(outcome) => {
                    return Ok((record(step, number, *outcome, counted), profile));
                }
                other => bail!("expected a count from the driver, got {other:?}"),
            }
        }
    }

    /// Who serves the client.
    fn subject(
        &self,
        driver: &DriverProcess,
        serving: Option<u32>,
        in_client: bool,
        callgrind: &Callgrind,
    ) -> Result<CountedProcess> {
        if in_client {
            return Ok(CountedProcess { pid: driver.pid(), thread: None });
        }
        let serving = serving.context("find the thread that serves the client: it is not known")?;
        if self.dialect == Dialect::Postgres {
            return Ok(CountedProcess { pid: serving, thread: None });
        }
        let pid = self.control.server_pid().context("count in a server without a process")?;
        let thread = callgrind.thread_number(pid, serving)?;
        let unknown = || format!("find thread {serving} of process {pid} among those of valgrind");
        Ok(CountedProcess { pid, thread: Some(thread.with_context(unknown)?) })
    }

    /// The end of the server, if that is the reason of an error.
    fn cause(&mut self, error: anyhow::Error) -> anyhow::Error {
        step_runner::cause(self.control, error)
    }
}

/// Events of which the statements are counted.
fn events(script: &Script, rate: RateUnit, statements: u64, rows: u64) -> u64 {
    let events = statements / script.statements_per_event().max(1);
    let spans = script.operations().map(|operation| {
        let spans = operation.parameters.iter().map(|parameter| match parameter {
            Parameter::RangeEnd { span } => u64::from(*span),
            Parameter::Id | Parameter::HotId { .. } => 1,
            _ => 0,
        });
        u64::from(operation.repeat) * spans.sum::<u64>()
    });
    let of_event = match rate {
        RateUnit::RowsScanned => rows,
        _ => spans.sum(),
    };
    let affordable = statements * ROWS_PER_STATEMENT / of_event.max(1);
    events.min(affordable).max(EVENTS_LEAST)
}

/// The record of a counted step. Times under valgrind mean nothing, so they are left out.
fn record(step: &Step, number: u32, outcome: Outcome, counted: Option<Counted>) -> StepRecord {
    let outcome = Outcome { latency: String::new(), service: None, ..outcome };
    StepRecord { outcome, counted, ..step_runner::empty_record(step, number, Status::Complete) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::script::{Distribution, Operation};

    #[test]
    fn long_ranges_are_carried_out_fewer_times() {
        let check = |transaction, parameters: &[Parameter], rate, expected| {
            let operation = Operation {
                kind: "read".to_owned(),
                sql: "SELECT 1".to_owned(),
                parameters: parameters.to_vec(),
                repeat: 2,
                ..Operation::PLAIN
            };
            let script = Script::of(transaction, vec![operation], Distribution::Uniform);
            assert_eq!(events(&script, rate, 1000, 100_000), expected);
        };
        let range = |span| [Parameter::RangeStart, Parameter::RangeEnd { span }];
        check(false, &[Parameter::Id], RateUnit::Queries, 500);
        check(true, &[Parameter::Id], RateUnit::Queries, 250);
        check(false, &range(99), RateUnit::Queries, 500);
        check(false, &range(9999), RateUnit::Queries, 10);
        check(false, &range(99_999), RateUnit::Queries, 3);
        check(false, &[], RateUnit::RowsScanned, 3);
    }
}
