//! Results that a resumed plan already has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use rqps_model::run::{RunRecord, Status};
use rqps_results::{ResultSet, read_run};

/// The started blocks.
pub(super) struct History {
    done: BTreeSet<u32>,
    attempts: BTreeMap<u32, u32>,
    started: BTreeMap<u32, String>,
    /// Notes about the found results.
    pub(super) notes: Vec<String>,
}

impl History {
    /// True if every target of the block was measured to its end, and the block was not discarded.
    pub(super) fn is_done(&self, block: u32) -> bool {
        self.done.contains(&block)
    }

    /// The attempt at a block that is to come next.
    pub(super) fn next_attempt(&self, block: u32) -> u32 {
        self.attempts.get(&block).copied().unwrap_or(0) + 1
    }

    /// When the first run of a block was started: RFC 3339, UTC.
    pub(super) fn started(&self, block: u32) -> Option<&str> {
        self.started.get(&block).map(String::as_str)
    }

    /// The last block that is done; 0 for none.
    pub(super) fn last_done(&self) -> u32 {
        self.done.last().copied().unwrap_or(0)
    }
}

/// Looks at the runs that are there. A block in which every target was measured to its end is done;
/// one that was interrupted or discarded, or in which a run or a step failed, is done again as the
/// next attempt: a user who resumes after a failure has mended its cause. The steps that
/// it did finish stay and count. A step that fails again and again is no reason, or a long plan
/// would be measured anew for it.
///
/// # Errors
/// The result folder cannot be read.
pub(super) fn history(results: &ResultSet, targets: usize) -> Result<History> {
    let mut blocks: BTreeMap<u32, Vec<RunRecord>> = BTreeMap::new();
    for record in results.runs()? {
        blocks.entry(record.key.block).or_default().push(record);
    }
    let mut history = History {
        done: BTreeSet::new(),
        attempts: BTreeMap::new(),
        started: BTreeMap::new(),
        notes: Vec::new(),
    };
    let fates = Fates::read(results, blocks.values().flatten())?;
    for (block, mut runs) in blocks {
        let last = runs.iter().map(|run| run.key.attempt).max().unwrap_or(1);
        history.attempts.insert(block, last);
        let started = runs.iter().map(|run| run.started.clone()).min();
        history.started.extend(started.map(|started| (block, started)));
        runs.retain(|run| run.key.attempt == last);
        let why = runs
            .iter()
            .find_map(|run| fates.reason_to_repeat(run))
            .or_else(|| (runs.len() < targets).then(|| "interrupted".to_owned()));
        history.notes.push(match why {
            Some(why) => format!("repeating block {block}: {why}"),
            None => {
                history.done.insert(block);
                format!("block {block} is already measured; keeping its results")
            }
        });
    }
    Ok(history)
}

/// Number of failures and completions of each step of a target, in all blocks and attempts.
struct Fates {
    failed: BTreeMap<(String, String), u32>,
    complete: BTreeSet<(String, String)>,
    /// Failed steps of each run.
    of_runs: BTreeMap<String, Vec<String>>,
}

impl Fates {
    fn read<'a>(
        results: &ResultSet,
        records: impl Iterator<Item = &'a RunRecord>,
    ) -> Result<Fates> {
        let mut fates =
            Fates { failed: BTreeMap::new(), complete: BTreeSet::new(), of_runs: BTreeMap::new() };
        for record in records {
            let run = read_run(results.run(&record.key)?.folder(), "")?;
            for step in run.steps {
                let place = (record.key.label.clone(), step.name.clone());
                match step.status {
                    Status::Failed(_) => {
                        *fates.failed.entry(place).or_default() += 1;
                        let of_run = fates.of_runs.entry(record.key.folder()).or_default();
                        of_run.push(step.name.clone());
                    }
                    Status::Complete => drop(fates.complete.insert(place)),
                    _ => {}
                }
            }
        }
        Ok(fates)
    }

    /// The reason for repeating a run; `None` if it stands.
    fn reason_to_repeat(&self, run: &RunRecord) -> Option<String> {
        let label = &run.key.label;
        match &run.status {
            Status::Discarded(_) => Some("discarded".to_owned()),
            Status::Failed(_) => Some(format!("{label} failed")),
            Status::Complete => {
                let failed = self.of_runs.get(&run.key.folder())?;
                let step = failed.iter().find(|step| !self.always_fails(label, step))?;
                Some(format!("{step} of {label} failed"))
            }
            _ => Some("interrupted".to_owned()),
        }
    }

    fn always_fails(&self, label: &str, step: &str) -> bool {
        let place = (label.to_owned(), step.to_owned());
        !self.complete.contains(&place) && self.failed.get(&place).is_some_and(|&times| times > 1)
    }
}
