//! A run whose instructions are counted: which steps are, and when the server goes under valgrind.

use anyhow::Result;

use super::ActiveRun;
use crate::lab::count::{counts, uncounted};
use crate::lab::execution::Execution;
use crate::lab::prepare;
use crate::lab::progress::Progress;
use crate::lab::step_runner::{self, Silence};
use rqps_host::valgrind::{Callgrind, ValgrindError};
use rqps_model::benchmark::Step;
use rqps_model::counted::StepCount;
use rqps_model::run::{Status, StepRecord};

impl ActiveRun<'_> {
    /// Counts a step, or writes down why it is left out. Returns false if it is to be carried out
    /// without a count.
    pub(super) fn count_or_leave_out(
        &mut self,
        execution: &Execution<'_>,
        (step, index): (&Step, usize),
        seed: u64,
        callgrind: &Callgrind,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        let number = index as u32 + 1;
        match execution.options.plan.counted(step) {
            StepCount::Events(events) => {
                self.go_under(execution, callgrind, progress)?;
                let how = (seed, events);
                self.count(execution, (step, number), how, callgrind, progress)?;
            }
            StepCount::CarriedOut(why) => {
                let later = self.state.phases.get(index + 1..).unwrap_or_default();
                if later.iter().any(|phase| counts(execution, phase)) {
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
        execution: &Execution<'_>,
        (step, number): (&Step, u32),
        how: (u64, u64),
        callgrind: &Callgrind,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let counted = self.runner(execution, None).count((step, number), how, callgrind);
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
            Err(error) => self.conclude(execution, (step, number), Err(error), progress),
        }
    }

    /// Starts the server again under callgrind, unless it runs there already.
    fn go_under(
        &mut self,
        execution: &Execution<'_>,
        callgrind: &Callgrind,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        // A library runs in the driver, which each step starts anew.
        if self.is_under || self.state.target.dbms.is_embedded() {
            return Ok(());
        }
        progress.doing(&self.record.key.label, "stop and start under valgrind", None);
        self.control.stop()?;
        let logs = self.folder.folder().join("logs");
        let group = self.group.as_ref().map(|group| group.path().to_owned());
        let under = Some(callgrind.clone());
        self.control = self.state.control(execution, self.data.clone(), logs, group, under)?;
        self.control.start()?;
        self.is_under = true;
        prepare::read_all(execution, self.state, self.control.as_mut(), progress)
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
