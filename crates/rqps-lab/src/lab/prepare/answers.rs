//! Asks a target, after its load, what its tables hold and what it answers to the first statements
//! of each step: facts by which a report tells whether targets do the same work.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lab::execution::Execution;
use crate::lab::fault;
use crate::lab::progress::Progress;
use crate::lab::step_runner::{self, Silence, StepRunner};
use crate::lab::target_state::TargetState;
use rqps_dbms::ControlPlane;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, TableRead};
use rqps_model::answers::{StepAnswers, TableRecord};
use rqps_model::benchmark::{Phase, Step};
use rqps_model::dialect::Dialect;

/// A driver is silent for this long only if a statement takes too long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a table up to which its rows are read.
const TABLE_BYTES: u64 = 256 << 20;

/// What a target answered.
#[derive(Default)]
pub(in crate::lab) struct Asked {
    pub(in crate::lab) tables: Vec<TableRecord>,
    pub(in crate::lab) answers: BTreeMap<u32, StepAnswers>,
}

/// Reads the tables and asks the first statements of each step. A step that cannot be asked says
/// why; it is measured all the same.
///
/// # Errors
/// The server dies; the user stops.
pub(in crate::lab) fn ask(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    (logs, load): (&Path, u32),
    progress: &mut Progress<'_>,
) -> Result<Asked> {
    let dialect = state.target.dbms.dialect();
    let has_answers = matches!(dialect, Dialect::Postgres | Dialect::Mysql | Dialect::Sqlite);
    if !has_answers || execution.options.valgrind.is_some() {
        return Ok(Asked::default());
    }
    let mut runner = StepRunner::new(execution, &state.target, control, logs.to_owned());
    progress.doing(&state.target.label, "read the tables to compare them", None);
    let plan = &execution.options.plan;
    let mut asked = Asked::default();
    if plan.load_request(&state.target).is_some() {
        let names = state.is_external().then(|| plan.names_made(&state.target));
        asked.tables = runner.read_tables(TableRead { names, bytes_most: TABLE_BYTES })?;
    }
    progress.doing(&state.target.label, "ask the first statements of each step", None);
    asked.answers = runner.ask_steps(&state.phases, load, |_| true)?;
    Ok(asked)
}

impl StepRunner<'_> {
    /// Asks the first statements of each of these steps.
    ///
    /// # Errors
    /// The server dies; the user stops.
    pub(in crate::lab) fn ask_steps(
        &mut self,
        phases: &[Phase],
        load: u32,
        is_asked: impl Fn(&Step) -> bool,
    ) -> Result<BTreeMap<u32, StepAnswers>> {
        let seed = self.execution.options.plan.seed;
        let (mut known, mut all): (Vec<(&Step, StepAnswers)>, _) = (Vec::new(), BTreeMap::new());
        for (index, phase) in phases.iter().enumerate() {
            let Phase::Measure(step) = phase else { continue };
            if !is_asked(step) {
                continue;
            }
            let number = index as u32 + 1;
            // The same step with more clients begins as it does with one.
            let same = known.iter().find(|(other, _)| other.work == step.work);
            let answers = match same {
                Some((_, answers)) => answers.clone(),
                None => self.ask(step, step_runner::seed_of(seed, load, number))?,
            };
            known.push((step, answers.clone()));
            all.insert(number, answers);
        }
        Ok(all)
    }

    /// Asks the first statements of a step.
    fn ask(&mut self, step: &Step, seed: u64) -> Result<StepAnswers> {
        let workload = self.execution.options.plan.workload.clone();
        let task = StepRequest {
            plans: false,
            storage_engine: self.storage_engine.map(str::to_owned),
            ..StepRequest::of(step, &workload)
        };
        let request = self.request(seed, RequestBody::Step(Box::new(task)));
        let request = DriverRequest { asks: true, pause: false, ..request };
        let mut found = StepAnswers::default();
        let ended = self.converse(&request, &mut |event| match event {
            DriverEvent::Answer(more) => {
                found.answers.extend(more.answers);
                found.statements.extend(more.statements);
                Ok(None)
            }
            DriverEvent::Answered(note) => Ok(Some(note)),
            other => bail!("expected an answer from the driver, got {other:?}"),
        })?;
        found.note = ended.unwrap_or_else(Some);
        Ok(found)
    }

    /// Reads the tables.
    fn read_tables(&mut self, task: TableRead) -> Result<Vec<TableRecord>> {
        let request = self.request(0, RequestBody::ReadTables(task));
        let request = DriverRequest { pause: false, ..request };
        let mut tables = Vec::new();
        let ended = self.converse(&request, &mut |event| match event {
            DriverEvent::Table(table) => {
                tables.push(*table);
                Ok(None)
            }
            DriverEvent::TablesRead => Ok(Some(())),
            other => bail!("expected a table from the driver, got {other:?}"),
        })?;
        if let Err(why) = ended {
            // Tables after this one are missing on one target alone: the report says so.
            let note = Some(format!("the tables after this one were not read: {why}"));
            let last = tables.pop();
            tables.extend(last.map(|last| TableRecord { note, ..last }));
        }
        Ok(tables)
    }

    /// Takes the messages of a driver up to the last. The inner error says why it ended early.
    ///
    /// # Errors
    /// The server is gone; the user stops.
    fn converse<T>(
        &mut self,
        request: &DriverRequest,
        take: &mut dyn FnMut(DriverEvent) -> Result<Option<T>>,
    ) -> Result<Result<T, String>> {
        let mut driver = self.driver(request, None)?;
        loop {
            let taken = self.next(&mut driver, PATIENCE).and_then(&mut *take);
            match taken {
                Ok(Some(last)) => return Ok(Ok(last)),
                Ok(None) => {}
                Err(error) if self.execution.stopped() => return Err(error),
                Err(error) if error.is::<Silence>() => {
                    let seconds = PATIENCE.as_secs();
                    return Ok(Err(format!("a statement took longer than {seconds} s")));
                }
                Err(error) => {
                    self.control.check()?;
                    return Ok(Err(fault::text(&error)));
                }
            }
        }
    }
}
