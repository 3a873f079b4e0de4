//! A target that begins again in the middle of a block.

use anyhow::Result;

use super::{ActiveRun, restore};
use crate::lab::execution::Execution;
use crate::lab::prepare;
use crate::lab::progress::Progress;

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
