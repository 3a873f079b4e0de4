//! The data of a server that somebody else runs: each block loads its own. What a target is asked
//! at the end of a block.

use std::path::Path;

use anyhow::Result;

use super::{ActiveRun, restore};
use crate::lab::execution::Execution;
use crate::lab::fault;
use crate::lab::prepare::{self, Asked};
use crate::lab::progress::Progress;
use crate::plan::cost;
use rqps_model::answers::{AnswerReply, StepAnswers};

impl ActiveRun<'_> {
    /// Creates the tables, and asks what they hold in the first block of a load.
    pub(super) fn load_external(
        &mut self,
        execution: &Execution<'_>,
        logs: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let is_first = self.is_first_of_load(execution);
        let control = self.control.as_mut();
        let number = execution.options.plan.load_of(self.record.key.block);
        let loaded = prepare::load(execution, self.state, control, (logs, number), progress)?;
        if loaded.is_some() {
            prepare::settle(execution, self.state, control, progress)?;
        }
        let asked = if is_first {
            prepare::ask(execution, self.state, control, (logs, number), progress)?
        } else {
            Asked::default()
        };
        self.load = prepare::keep(execution, loaded, asked);
        self.record.load = self.load.load.clone();
        Ok(())
    }

    /// True in the first block that starts from its load.
    pub(super) fn is_first_of_load(&self, execution: &Execution<'_>) -> bool {
        execution.options.plan.is_first_of_load(self.record.key.block)
    }

    /// Asks the first statements of each step once more, in the first block of a load: every block
    /// begins with the same data.
    pub(super) fn ask_again(&mut self, execution: &Execution<'_>, progress: &mut Progress<'_>) {
        let load = execution.options.plan.load_of(self.record.key.block);
        if !self.is_first_of_load(execution) || self.load.answers.is_empty() {
            return;
        }
        let task = cost::ask(&execution.options.plan, &self.state.target);
        progress.begin(task);
        progress.doing(&self.record.key.label, "ask the first statements once more", None);
        let phases = self.state.phases.clone();
        let mut asked = || {
            self.control.resume()?;
            // What commands have changed, they would change twice.
            self.runner(execution, None).ask_steps(&phases, load, |step| !step.runs_commands())
        };
        match asked() {
            Ok(mut answers) => {
                answers.retain(|number, after| {
                    let Some(before) = self.load.answers.get_mut(number) else { return false };
                    let all = before.answers.iter_mut().chain(&mut after.answers);
                    all.for_each(|answer| answer.plan = None);
                    // After writes, only errors can be compared.
                    let refused = |answers: &StepAnswers| {
                        let replies = answers.answers.iter().map(|answer| &answer.reply);
                        replies.filter(|reply| matches!(reply, AnswerReply::Refused { .. })).count()
                    };
                    if self.wrote { refused(before) != refused(after) } else { before != after }
                });
                self.record.answers_after = answers;
            }
            Err(error) => {
                let text = fault::text(&error);
                progress.note(&format!("{}: ask once more: {text}", self.record.key.folder()));
            }
        }
        progress.end(task);
    }
}

impl ActiveRun<'_> {
    /// Gives the target its data back as they were loaded.
    pub(super) fn start_afresh(
        &mut self,
        execution: &Execution<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let label = self.record.key.label.clone();
        let number = execution.options.plan.load_of(self.record.key.block);
        if self.state.is_external() {
            let logs = self.folder.folder().join("logs");
            let control = self.control.as_mut();
            if prepare::load(execution, self.state, control, (&logs, number), progress)?.is_some() {
                prepare::settle(execution, self.state, control, progress)?;
            }
            return Ok(());
        }
        progress.doing(&label, "restore the snapshot and start again", None);
        self.control.stop()?;
        execution.folders.remove(&self.data)?;
        restore(execution, self.state, number, &self.data)?;
        self.control.start()?;
        Ok(())
    }
}
