//! Measures a target with some settings of another, and remembers what was measured: a search that
//! is resumed asks for the same again, and gets it from the log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::benchmarks;
use crate::campaign;
use crate::campaign::bisect::step;
use crate::lab::{Event, ExecutionOptions};
use crate::plan::{Blocks, Plan, PlanDraft};
use rqps_analysis::VerdictOptions;
use rqps_dbms::{UserConfigs, config};
use rqps_model::bisection::{GapArm, GapRequest, GapRound, Intervention};
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;
use rqps_model::target::Target;
use rqps_results::{self as results, GapFolder};

/// Name → value of what a server says that it has.
type Settings = BTreeMap<String, String>;

/// Measures, and keeps the log.
pub(super) struct Measuring<'a> {
    options: &'a ExecutionOptions,
    folder: GapFolder,
    pub(super) request: GapRequest,
    /// Rounds of the log that were asked for again.
    used: usize,
    /// The known changes, by name.
    pub(super) changes: BTreeMap<String, Intervention>,
    events: &'a mut dyn FnMut(Event),
}

impl<'a> Measuring<'a> {
    pub(super) fn new(
        options: &'a ExecutionOptions,
        folder: GapFolder,
        events: &'a mut dyn FnMut(Event),
    ) -> Measuring<'a> {
        let request = folder.log().request.clone();
        Measuring { options, folder, request, used: 0, changes: BTreeMap::new(), events }
    }

    /// The rounds that were asked for so far.
    pub(super) fn rounds(&self) -> &[GapRound] {
        &self.folder.log().rounds[..self.used]
    }

    /// Says something that stays.
    pub(super) fn note(&mut self, text: String) {
        (self.events)(Event::Note(text));
    }

    /// The target that is changed, and the one that it is to become like.
    pub(super) fn ends(&self) -> Result<(&Target, &Target)> {
        match self.options.plan.targets.as_slice() {
            [a, b] if self.request.from_b => Ok((a, b)),
            [a, b] => Ok((b, a)),
            _ => bail!("close a gap: its plan has not two targets"),
        }
    }

    /// Measures targets beside each other, or finds in the log what was measured of them.
    ///
    /// # Errors
    /// [`Stopped`]; what makes every measurement impossible; a log of another search.
    pub(super) fn ask(&mut self, arms: Vec<GapArm>, blocks: u32) -> Result<GapRound> {
        if let Some(known) = self.folder.log().rounds.get(self.used) {
            if known.arms != arms {
                bail!(
                    "resume the gap in {}: round {} of its log belongs to another search; begin \
                     anew with another --out",
                    self.folder.path().display(),
                    self.used + 1
                );
            }
            self.used += 1;
            return Ok(known.clone());
        }
        let began = Instant::now();
        let folder = format!("round-{:02}", self.used + 1);
        let out = self.folder.path().join(&folder);
        let (plan, configs, shared_loads) = self.plan(&arms, blocks)?;
        let labels: Vec<String> = plan.targets.iter().map(|target| target.label.clone()).collect();
        let options = ExecutionOptions { plan, out, configs, shared_loads, ..self.options.clone() };
        let faults = campaign::measured(&options, &folder, self.events)?;
        let blocks = self.rates(&folder, &labels)?;
        let seconds = began.elapsed().as_secs_f64();
        let round = GapRound { folder, seconds, arms, blocks, faults };
        self.folder.add(round.clone())?;
        self.used += 1;
        Ok(round)
    }

    /// The plan of a round, the configs that it needs, and which targets start from which load.
    fn plan(
        &self,
        arms: &[GapArm],
        blocks: u32,
    ) -> Result<(Plan, UserConfigs, BTreeMap<String, String>)> {
        let (base, goal) = self.ends()?;
        let mut configs = self.options.configs.clone();
        let (name, text) = config::written(base.dbms, &base.config, &configs)?;
        let (mut targets, mut shared) = (Vec::new(), BTreeMap::new());
        // What loads depend on → the first one that has just that.
        let mut lenders: BTreeMap<Vec<&str>, String> = BTreeMap::new();
        for (number, arm) in (1..).zip(arms) {
            let GapArm::Base(names) = arm else {
                targets.push(goal.clone());
                continue;
            };
            let mut target = Target { label: self.label(arm, number)?, ..base.clone() };
            let changes: Vec<&Intervention> =
                names.iter().filter_map(|name| self.changes.get(name)).collect();
            if !changes.is_empty() {
                target.config = format!("{name}+{number}");
                configs.add(base.dbms, &target.config, changed(&text, &changes));
            }
            let of_loads = changes.iter().filter(|change| change.loads_anew);
            match lenders.entry(of_loads.map(|change| change.name.as_str()).collect()) {
                Entry::Occupied(lender) => {
                    shared.insert(target.label.clone(), lender.get().clone());
                }
                Entry::Vacant(place) => {
                    place.insert(target.label.clone());
                }
            }
            targets.push(target);
        }
        let base = self.options.plan.draft();
        let seed = base.seed.wrapping_add(self.used as u64);
        let (blocks, loads) = (Blocks::Fixed(blocks), base.loads.min(blocks));
        let draft = PlanDraft { targets, blocks, loads, seed, gate: None, count: None, ..base };
        Ok((Plan::build(draft)?, configs, shared))
    }

    /// Logarithms of rates, by block in the order of labels; `None` where a target has none.
    fn rates(&self, folder: &str, labels: &[String]) -> Result<Vec<Vec<Option<f64>>>> {
        let dataset = self.read(folder)?;
        if dataset.runs.is_empty() {
            return Ok(Vec::new());
        }
        let comparison = benchmarks::compare(&dataset, &VerdictOptions::default());
        let comparison = comparison.context("compare the runs")?;
        let Ok(step) = step(&comparison, &self.request.step) else { return Ok(Vec::new()) };
        let mut blocks: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
        for target in &step.targets {
            for sample in &target.samples {
                let rate = sample.get(Metric::Rate).filter(|rate| *rate > 0.0);
                let block = comparison.runs.get(sample.run).map(|run| run.key.block);
                if let (Some(rate), Some(block)) = (rate, block) {
                    blocks.entry(block).or_default().insert(&target.label, rate.ln());
                }
            }
        }
        let row = |rates: BTreeMap<&str, f64>| {
            labels.iter().map(|label| rates.get(label.as_str()).copied()).collect()
        };
        Ok(blocks.into_values().map(row).collect())
    }

    fn read(&self, folder: &str) -> Result<Dataset> {
        let folder: PathBuf = self.folder.path().join(folder);
        results::read(&[folder]).context("read the results")
    }

    /// What the servers of a round said that they have, in the order of its arms; where a DBMS
    /// tells nothing, what its config says.
    pub(super) fn settings(&self, round: &GapRound) -> Result<Vec<Settings>> {
        let dataset = self.read(&round.folder)?;
        let labels = (1..).zip(&round.arms).map(|(number, arm)| self.label(arm, number));
        let of = |label: Result<String>| -> Result<Settings> {
            let label = label?;
            let Some(run) = dataset.runs.iter().find(|run| run.record.key.label == label) else {
                return Ok(Settings::new());
            };
            let said = results::settings_of(run)?;
            Ok(if said.is_empty() { of_config(&run.record.config.text) } else { said })
        };
        labels.map(of).collect()
    }

    /// The label of an arm.
    pub(super) fn label(&self, arm: &GapArm, number: usize) -> Result<String> {
        let (base, goal) = self.ends()?;
        Ok(match arm {
            GapArm::Goal => goal.label.clone(),
            GapArm::Base(names) if names.is_empty() && number == 1 => base.label.clone(),
            GapArm::Base(_) => label_of(base, number),
        })
    }
}

fn label_of(base: &Target, number: usize) -> String {
    format!("{}+{number}", base.label)
}

/// A config with changes in place of what it says about their settings.
fn changed(text: &str, changes: &[&Intervention]) -> String {
    // Each line of them would set all others to their defaults.
    let switch = |line: &str| {
        let (name, value) = line.split_once('=')?;
        (name.trim().replace('-', "_") == SWITCHES).then(|| value.trim().to_owned())
    };
    let lines = changes.iter().flat_map(|change| &change.lines);
    let (switches, mut lines): (Vec<&String>, Vec<&String>) =
        lines.partition(|line| switch(line).is_some());
    let all: Vec<String> =
        text.lines().chain(switches.iter().map(|line| line.as_str())).filter_map(switch).collect();
    let all = format!("{SWITCHES} = {}", all.join(","));
    if !switches.is_empty() {
        lines.push(&all);
    }
    config::replaced(text, &lines.into_iter().cloned().collect::<Vec<_>>())
}

/// The setting that is many.
const SWITCHES: &str = "optimizer_switch";

/// Name → value of a config's lines.
fn of_config(text: &str) -> Settings {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_takes_the_place_of_what_was_there() {
        let change = |name: &str, line: &str| Intervention {
            name: name.to_owned(),
            from: String::new(),
            to: String::new(),
            lines: vec![line.to_owned()],
            effective: Settings::from([(name.to_owned(), String::new())]),
            loads_anew: false,
            about: String::new(),
        };
        let text = "[mysqld]\nskip-log-bin  # since 5.7\na = 1\nab = 2\noptimizer_switch = x=on\n";
        let changes = [
            change("log_bin", "log_bin = binlog"),
            change("a", "loose_a = 3"),
            change("optimizer_switch", "optimizer_switch = mrr=off"),
            change("optimizer_switch", "optimizer_switch = icp=off"),
        ];
        assert_eq!(
            changed(text, &changes.iter().collect::<Vec<_>>()),
            "[mysqld]\nab = 2\nlog_bin = binlog\nloose_a = 3\noptimizer_switch = \
             x=on,mrr=off,icp=off\n"
        );
    }
}
