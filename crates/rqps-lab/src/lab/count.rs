//! One step on one target whose instructions are counted: a fixed number of events, with callgrind
//! switched on before the first and off after the last of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::lab::block::ActiveRun;
use crate::lab::driver_team::DriverTeam;
use crate::lab::execution::Execution;
use crate::lab::prepare;
use crate::lab::progress::Progress;
use crate::lab::step_runner::{self, Silence, StepRunner};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_host::valgrind::{Callgrind, ValgrindError};
use rqps_model::benchmark::{Phase, Step};
use rqps_model::counted::{Counted, StepCount};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::Endpoint;
use rqps_model::run::{Outcome, Status, StepRecord};

/// A driver that is silent waits for a server that hangs. Each statement may take so much longer.
const PATIENCE_OF_A_STATEMENT: Duration = Duration::from_millis(50);

/// The counted process, and its thread if it also serves others.
struct CountedProcess {
    pid: u32,
    thread: Option<u32>,
}

impl StepRunner<'_> {
    /// Runs a fixed number of events of a step and counts their instructions, unless the step only
    /// warms caches. Returns its record, and what callgrind wrote.
    ///
    /// # Errors
    /// The server, the driver or valgrind fails; the user stops.
    pub(super) fn count(
        &mut self,
        (step, number): (&Step, u32),
        (seed, events): (u64, u64),
        callgrind: &Callgrind,
    ) -> Result<(StepRecord, Option<String>)> {
        let workload = self.execution.plan.workload.clone();
        let step_request = StepRequest {
            server_pid: self.control.server_pid(),
            storage_engine: self.storage_engine.map(str::to_owned),
            cache: Some(self.execution.options.cache.join("datasets")),
            ..StepRequest::of(step, &workload)
        };
        let request = self.request(seed, RequestBody::Step(Box::new(step_request)));
        let request = DriverRequest { counted_events: Some(events), ..request };
        let in_client = !matches!(request.endpoint, Endpoint::Server(_));
        if in_client && self.control.launcher().is_some() {
            bail!("this library needs the libc of its own Debian, which valgrind does not load");
        }
        callgrind
            .make_folder()
            .with_context(|| format!("make {}", callgrind.folder().display()))?;
        let mut driver = self.driver(&request, in_client.then_some(callgrind))?;
        let more = PATIENCE_OF_A_STATEMENT * u32::try_from(events).unwrap_or(1 << 20);
        let patience = callgrind.patience() + more;
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

    /// The process that serves the client.
    fn subject(
        &self,
        driver: &DriverTeam,
        serving: Option<u32>,
        in_client: bool,
        callgrind: &Callgrind,
    ) -> Result<CountedProcess> {
        if in_client {
            let pid = driver.pid().context("count in a library on another host")?;
            // Without a thread the library has none of its own, and all work is the client's.
            let Some(serving) = serving else { return Ok(CountedProcess { pid, thread: None }) };
            return thread_of(pid, serving, callgrind);
        }
        let serving = serving.context("find the thread that serves the client: it is not known")?;
        if self.dialect == Dialect::Postgres {
            return Ok(CountedProcess { pid: serving, thread: None });
        }
        let pid = self.control.server_pid().context("count in a server without a process")?;
        thread_of(pid, serving, callgrind)
    }

    /// The end of the server, if that is the reason of an error.
    fn cause(&mut self, error: anyhow::Error) -> anyhow::Error {
        step_runner::cause(self.control, error)
    }
}

/// A thread of a process, by its id of the operating system.
fn thread_of(pid: u32, serving: u32, callgrind: &Callgrind) -> Result<CountedProcess> {
    let thread = callgrind.thread_number(pid, serving)?;
    let unknown = || format!("find thread {serving} of process {pid} among those of valgrind");
    Ok(CountedProcess { pid, thread: Some(thread.with_context(unknown)?) })
}

/// The record of a counted step. Times under valgrind mean nothing, so they are left out.
fn record(step: &Step, number: u32, outcome: Outcome, counted: Option<Counted>) -> StepRecord {
    let outcome = Outcome { latency: String::new(), service: None, ..outcome };
    StepRecord { outcome, counted, ..step_runner::empty_record(step, number, Status::Complete) }
}

/// Callgrind around the server of a run, or around the driver with a library, if the run is
/// counted.
pub(super) fn callgrind(execution: &Execution<'_>, data: &Path) -> Option<Callgrind> {
    let plan = execution.plan;
    let user = execution.folders.run_as.as_ref().map(|user| user.identity());
    let folder = execution.folders.counts(data);
    let callgrind = execution.options.valgrind.as_ref()?.in_folder(folder, user);
    Some(callgrind.simulating(plan.workload.simulated_caches))
}

/// True if the first step that is carried out is counted.
pub(super) fn counts_next(execution: &Execution<'_>, phases: &[Phase]) -> bool {
    let is_carried_out = |phase: &&Phase| match phase {
        Phase::Measure(step) => !matches!(execution.plan.counted(step), StepCount::LeftOut(_)),
        _ => false,
    };
    phases.iter().find(is_carried_out).is_some_and(|phase| counts(execution, phase))
}

/// True if the phase is a step that is counted.
pub(super) fn counts(execution: &Execution<'_>, phase: &Phase) -> bool {
    let Phase::Measure(step) = phase else { return false };
    matches!(execution.plan.counted(step), StepCount::Events(_))
}

/// The record's reason for a step that a counted run does not count.
pub(super) fn uncounted(step: &Step, why: String) -> Option<Counted> {
    step.reported.then(|| Counted { uncounted: Some(why), ..Counted::default() })
}

// A run whose instructions are counted: which steps are, and when the server goes under valgrind.

impl ActiveRun<'_> {
    /// Counts a step, or writes down why it is left out. Returns false if it is to be carried out
    /// without a count.
    pub(super) fn count_or_leave_out(
        &mut self,
        (step, index): (&Step, usize),
        seed: u64,
        callgrind: &Callgrind,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        let number = index as u32 + 1;
        match self.execution.plan.counted(step) {
            StepCount::Events(events) => {
                self.go_under(callgrind, progress)?;
                let how = (seed, events);
                self.count((step, number), how, callgrind, progress)?;
            }
            StepCount::CarriedOut(why) => {
                let later = self.state.phases.get(index + 1..).unwrap_or_default();
                if later.iter().any(|phase| counts(self.execution, phase)) {
                    return Ok(false);
                }
                self.leave_out((step, number), why)?;
            }
            StepCount::LeftOut(why) => self.leave_out((step, number), why)?,
        }
        Ok(true)
    }

    /// Counts the instructions of a step. A server or a valgrind that was silent for too long may
    /// never answer again: then the run ends.
    fn count(
        &mut self,
        (step, number): (&Step, u32),
        how: (u64, u64),
        callgrind: &Callgrind,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let counted = self.runner(None).count((step, number), how, callgrind);
        match counted {
            Ok((record, profile)) => {
                if let Some(profile) = profile {
                    let named = self.names.put_into(&profile);
                    self.folder.write_profile(&record, &named)?;
                }
                Ok(self.folder.write_step(&record, &[])?)
            }
            Err(error) if error.is::<Silence>() || error.is::<ValgrindError>() => {
                Err(error.context(format!("count {}", step.name)))
            }
            Err(error) => self.conclude((step, number), Err(error), progress),
        }
    }

    /// Starts the server again under callgrind, unless it runs there already.
    fn go_under(&mut self, callgrind: &Callgrind, progress: &mut Progress<'_>) -> Result<()> {
        // A library runs in the driver, which each step starts anew.
        if self.is_under || self.state.target.dbms.is_embedded() {
            return Ok(());
        }
        progress.doing(&self.record.key.label, "stop and start under valgrind", None);
        self.control.stop()?;
        let logs = self.folder.folder().join("logs");
        let group = self.group.as_ref().map(|group| group.path().to_owned());
        let under = Some(callgrind.clone());
        self.control = self.state.control(self.execution, self.data.clone(), logs, group, under)?;
        self.control.start()?;
        self.is_under = true;
        prepare::read_all(self.execution, self.state, self.control.as_mut(), progress)
    }

    /// Writes down a step that a counted run leaves out.
    fn leave_out(&self, (step, number): (&Step, u32), why: String) -> Result<()> {
        let record = StepRecord {
            counted: uncounted(step, why),
            ..step_runner::empty_record(step, number, Status::Complete)
        };
        Ok(self.folder.write_step(&record, &[])?)
    }
}
