//! Measures single versions and pairs for a bisection, and remembers what was measured: a search
//! that is resumed asks for the same again, and gets it from the log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::benchmarks;
use crate::campaign::{self, Stopped};
use crate::lab::{self, Event, ExecutionOptions};
use crate::plan::file::PlanError;
use crate::plan::{Blocks, CountingPass, Plan, PlanDraft};
use rqps_analysis::VerdictOptions;
use rqps_analysis::comparison::{Comparison, StepComparison};
use rqps_builds::{self as obtain, ObtainError, PackageClients, Reason, Said};
use rqps_model::bisection::{
    BisectionEntry, BisectionMeasurement, BisectionPass, BisectionRequest,
};
use rqps_model::metric::Metric;
use rqps_results::{self as results, BisectionFolder};

/// The metrics that a bisection may search by.
pub fn searched() -> impl Iterator<Item = Metric> {
    let is_searched = |metric: &Metric| {
        counts_of(*metric).is_some()
            || matches!(metric, Metric::Rate | Metric::ServerCpuPerOp | Metric::ClientCpuPerOp)
    };
    Metric::ALL.iter().copied().filter(is_searched)
}

/// Counts of a version by a counted metric; `None` for metrics that are measured in blocks. What
/// other threads execute depends on when they run, so one count of it does not decide.
pub(super) fn counts_of(metric: Metric) -> Option<u32> {
    match metric {
        Metric::InstructionsPerOp => Some(1),
        Metric::BackgroundInstructionsPerOp => Some(3),
        _ => None,
    }
}

/// Statements of a step that are counted.
const COUNTED_STATEMENTS: u64 = 1000;

/// The result of a requested measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// Values, and the result folder.
    Values(BisectionMeasurement),
    /// This version cannot be measured.
    Lost(usize),
}

/// Measures, and keeps the log.
pub(super) struct Measuring<'a> {
    options: &'a ExecutionOptions,
    folder: BisectionFolder,
    pub(super) request: BisectionRequest,
    /// Number of log entries that were requested again.
    used: usize,
    /// Versions that do not build, with the reason: what failed once is not built again.
    unbuilt: BTreeMap<usize, String>,
    events: &'a mut dyn FnMut(Event),
}

impl<'a> Measuring<'a> {
    pub(super) fn new(
        options: &'a ExecutionOptions,
        folder: BisectionFolder,
        events: &'a mut dyn FnMut(Event),
    ) -> Measuring<'a> {
        let request = folder.log().request.clone();
        Measuring { options, folder, request, used: 0, unbuilt: BTreeMap::new(), events }
    }

    /// All entries that were asked for so far.
    pub(super) fn entries(&self) -> &[BisectionEntry] {
        &self.folder.log().entries[..self.used]
    }

    /// The reasons why a version could not be measured; none for one that could.
    pub(super) fn lost(&self, place: usize) -> impl DoubleEndedIterator<Item = &str> {
        self.entries().iter().filter_map(move |entry| match entry {
            BisectionEntry::Lost { place: at, reason } if *at == place => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Says something that stays.
    pub(super) fn note(&mut self, text: String) {
        (self.events)(Event::Note(text));
    }

    /// The reason why versions cannot be counted; `None` if they can.
    pub(super) fn count_fault(&self) -> Option<String> {
        if self.options.valgrind.is_none() {
            return Some("valgrind is not installed".to_owned());
        }
        self.plan(BisectionPass::Count, &[0], 1).err().map(|error| error.to_string())
    }

    /// Measures versions, or finds in the log what was measured of them.
    ///
    /// # Errors
    /// [`Stopped`]; what makes every measurement impossible; a log of another search.
    pub(super) fn ask(
        &mut self,
        what: BisectionPass,
        places: &[usize],
        repeats: u32,
    ) -> Result<Asked> {
        if let Some(entry) = self.folder.log().entries.get(self.used) {
            let asked = match entry {
                BisectionEntry::Measured(known) if known.what == what && known.places == places => {
                    Asked::Values(known.clone())
                }
                BisectionEntry::Lost { place, .. } if places.contains(place) => Asked::Lost(*place),
                _ => bail!(
                    "resume the bisection in {}: entry {} of its log belongs to another search; \
                     begin anew with another --out",
                    self.folder.path().display(),
                    self.used + 1
                ),
            };
            self.used += 1;
            return Ok(asked);
        }
        let began = Instant::now();
        for place in places {
            if let Some(reason) = self.unbuilt.get(place).cloned() {
                return self.lose(*place, reason);
            }
            if let Some(reason) = self.build_fault(*place)? {
                self.unbuilt.insert(*place, reason.clone());
                self.note_lost(*place, &reason);
                return self.lose(*place, reason);
            }
        }
        let labels: Vec<&str> =
            places.iter().map(|at| self.request.versions[*at].target.label.as_str()).collect();
        let mut name = format!("{:02}-{}-{}", self.used + 1, what.word(), labels.join("-vs-"));
        name.truncate(name.floor_char_boundary(120));
        let values = match self.carried_out(what, places, repeats, &name)? {
            Ok(values) => values,
            Err((place, reason)) => {
                self.note_lost(place, &reason);
                return self.lose(place, reason);
            }
        };
        let measured = BisectionMeasurement {
            what,
            places: places.to_vec(),
            folder: name,
            seconds: began.elapsed().as_secs_f64(),
            values,
        };
        self.folder.add(BisectionEntry::Measured(measured.clone()))?;
        self.used += 1;
        Ok(Asked::Values(measured))
    }

    fn note_lost(&mut self, place: usize, reason: &str) {
        let label = &self.request.versions[place].target.label;
        self.note(format!("{label} cannot be measured: {}", first_line(reason)));
    }

    fn lose(&mut self, place: usize, reason: String) -> Result<Asked> {
        self.folder.add(BisectionEntry::Lost { place, reason })?;
        self.used += 1;
        Ok(Asked::Lost(place))
    }

    /// Makes a build available. Returns why there is none, if that is the build's own fault.
    fn build_fault(&mut self, place: usize) -> Result<Option<String>> {
        let target = &self.request.versions[place].target;
        let cache = lab::open_cache(&self.options.cache)?;
        let stop = Arc::clone(&self.options.stop);
        let clients = PackageClients { stop, ..PackageClients::default() };
        let label = target.label.clone();
        let mut say = |said: Said<'_>| (self.events)(Event::of_fetch(&label, said));
        let built = obtain::obtain_with(&clients, target.dbms, &target.source, &cache, &mut say);
        match built {
            Ok(_) => Ok(None),
            Err(ObtainError::Build { reason, .. }) if matches!(*reason, Reason::Stopped) => {
                Err(Stopped.into())
            }
            Err(ObtainError::Build { reason, .. }) if reason.is_of_the_build() => {
                Ok(Some(reason.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Measures. The inner error names a version that cannot be measured, and why.
    fn carried_out(
        &mut self,
        what: BisectionPass,
        places: &[usize],
        repeats: u32,
        name: &str,
    ) -> Result<Result<Values, (usize, String)>> {
        let out = self.folder.path().join(name);
        let plan = self.plan(what, places, repeats)?;
        let valgrind = self.options.valgrind.clone().filter(|_| what == BisectionPass::Count);
        let options = ExecutionOptions { plan, out, valgrind, ..self.options.clone() };
        let summary = campaign::run_plan(&options, None, self.events)
            .with_context(|| format!("measure {name}"))?;
        if summary.interrupted {
            return Err(Stopped.into());
        }
        if let Some(fault) = summary.faults.first() {
            let names =
                |place: &&usize| is_fault_of(fault, &self.request.versions[**place].target.label);
            // A fault without a label is taken to be of the newer version.
            let named = places.iter().find(names);
            let place = named.or(places.last()).copied().unwrap_or_default();
            return Ok(Err((place, fault.clone())));
        }
        let comparison = self.read(name)?;
        Ok(Ok(values(step(&comparison, &self.request.step)?)))
    }

    /// The plan of a measurement: that of the request with other targets.
    fn plan(&self, what: BisectionPass, places: &[usize], repeats: u32) -> Result<Plan, PlanError> {
        let targets = places.iter().map(|at| self.request.versions[*at].target.clone()).collect();
        let base = PlanDraft { targets, gate: None, count: None, ..self.options.plan.draft() };
        if what == BisectionPass::Count {
            // All versions get the same statements: counts differ by the version alone.
            let count =
                Some(CountingPass { statements: COUNTED_STATEMENTS, repeats, simulate: false });
            let whole = Plan::build(PlanDraft { count, ..base })?;
            return Ok(whole.counting()?.unwrap_or(whole));
        }
        // Each measurement has another order and other keys.
        let seed = base.seed.wrapping_add(1 + self.used as u64);
        let loads = base.loads.min(repeats);
        Plan::build(PlanDraft { blocks: Blocks::Fixed(repeats), loads, seed, ..base })
    }

    /// The comparison in a result folder.
    pub(super) fn read(&self, name: &str) -> Result<Comparison> {
        let folder: PathBuf = self.folder.path().join(name);
        let dataset = results::read(&[folder]).context("read the results")?;
        let options = VerdictOptions { rules: self.request.rules, ..VerdictOptions::default() };
        benchmarks::compare(&dataset, &options).context("compare the runs")
    }
}

/// Name of a metric → its values.
type Values = BTreeMap<String, Vec<f64>>;

/// A step of a comparison by its name.
pub(in crate::campaign) fn step<'a>(
    comparison: &'a Comparison,
    name: &str,
) -> Result<&'a StepComparison> {
    let found = comparison.steps.iter().find(|step| step.name == name);
    found.with_context(|| format!("find the step {name} in the results"))
}

/// The measurements of a step: ln(second / first) by block, or the values of the only target.
fn values(step: &StepComparison) -> Values {
    let of = |metric: Metric| {
        let values: Vec<f64> = match step.targets.as_slice() {
            [only] => only.samples.iter().filter_map(|sample| sample.get(metric)).collect(),
            all => {
                let relative = all.last().and_then(|target| target.comparable(metric));
                relative.map(|it| it.differences.clone()).unwrap_or_default()
            }
        };
        (!values.is_empty()).then(|| (metric.name().to_owned(), values))
    };
    searched().filter_map(of).collect()
}

/// True if a fault is of the target with this label: it begins with the whole label, because one
/// label may be the beginning of another.
pub(in crate::campaign) fn is_fault_of(fault: &str, label: &str) -> bool {
    fault.strip_prefix(label).is_some_and(|rest| rest.starts_with(": "))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_of_the_version_with_its_whole_label() {
        let fault = "mysql-8.0.15: b01-1-mysql-8.0.15: point-query: the server is gone";
        assert!(is_fault_of(fault, "mysql-8.0.15"));
        assert!(!is_fault_of(fault, "mysql-8.0.1"));
        assert!(!is_fault_of("prepare: mysql-8.0.15", "mysql-8.0.15"));
    }
}
