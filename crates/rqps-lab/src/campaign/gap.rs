//! `rqps gap`: puts what one target has into the other, measures what each change is worth, and adds
//! up.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::campaign::{self, compared, step, unless_stopped};
use crate::lab::{Event, ExecutionOptions};
use crate::plan::{Blocks, Plan, PlanDraft};
use rqps_analysis::Comparison;
use rqps_analysis::gap::{
    Candidates, Cause, Gap, GapCost, GapEnds, GapStep, LeftOut, Unknown, candidates, not_taken,
};
use rqps_dbms::{UserConfigs, config};
use rqps_model::benchmark::Phase;
use rqps_model::bisection::{GapArm, GapRequest, GapRound, Intervention};
use rqps_model::build::Target;
use rqps_model::metric::Metric;
use rqps_model::units;
use rqps_model::verdict::Rules;
use rqps_results as results;
use rqps_results::GapFolder;
use rqps_stats::Interval;
use rqps_stats::factors::{Account, Design, Effect, Finding, Screen, ScreenRules};

// The loop of a gap: the ends, what differs between them, what of that can be changed, which
// changes move the rate, and what each of these is worth.

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;
/// Blocks of a round.
const BLOCKS: u32 = 4;
/// Rounds of the ends at most.
const ENDS_ROUNDS: usize = 3;
/// Blocks of the account's first round.
const ACCOUNT_BLOCKS: u32 = 6;
/// Rounds of the account at most.
const ACCOUNT_ROUNDS: usize = 3;
/// Changes in the account at most; smaller ones share the last place.
const CAUSES_MOST: usize = 7;

/// Measures what of one target makes the other slower or faster. The plan of `options` has the two
/// as targets. `None` if the user stopped it; it can be resumed.
///
/// # Errors
/// One of the two cannot be measured; what makes every measurement impossible.
pub fn close(
    options: &ExecutionOptions,
    folder: GapFolder,
    events: &mut dyn FnMut(Event),
) -> Result<Option<Gap>> {
    unless_stopped(search(&mut Measuring::new(options, folder, events)))
}

fn search(measuring: &mut Measuring<'_>) -> Result<Gap> {
    let (ends, first) = ends(measuring)?;
    let Candidates { interventions, left_out } = found(measuring, &first)?;
    let count = interventions.len();
    let names: Vec<String> = interventions.iter().map(|change| change.name.clone()).collect();
    measuring.state =
        interventions.into_iter().map(|change| (change.name.clone(), change)).collect();
    let mut gap = Gap { candidates: count, left_out, ..begun(measuring, ends)? };
    if !ends.differ || names.is_empty() {
        gap.cost = cost(measuring);
        return Ok(gap);
    }
    measuring
        .note(format!("{count} settings differ and can be changed; trying all of them at once"));
    let mut possible = Possible::default();
    let names = possible.of(measuring, names)?;
    let survivors = screened(measuring, &names, &mut possible, &mut gap)?;
    account(measuring, survivors, &mut gap)?;
    gap.impossible = possible.refused;
    all_steps(measuring, &mut gap)?;
    gap.cost = cost(measuring);
    Ok(gap)
}

/// What is known when only the ends are.
fn begun(measuring: &Measuring<'_>, ends: GapEnds) -> Result<Gap> {
    let (base, goal) = measuring.ends()?;
    Ok(Gap {
        step: measuring.request.step.clone(),
        base: base.label.clone(),
        goal: goal.label.clone(),
        ends,
        candidates: 0,
        causes: Vec::new(),
        account: None,
        steps: Vec::new(),
        unknown: Vec::new(),
        impossible: BTreeMap::new(),
        left_out: Vec::<LeftOut>::new(),
        cost: GapCost::default(),
        least: measuring.request.least,
    })
}

/// Measures both targets as they are, until they are known to differ, or not by what matters.
fn ends(measuring: &mut Measuring<'_>) -> Result<(GapEnds, GapRound)> {
    let arms = || vec![GapArm::Base(Vec::new()), GapArm::Goal];
    let least = measuring.request.least.ln_1p();
    let (mut values, mut first) = (Vec::new(), None);
    for _ in 0..ENDS_ROUNDS {
        let round = measuring.ask(arms(), BLOCKS)?;
        if let Some(fault) = round.faults.values().next() {
            bail!("measure the two targets: {fault}");
        }
        values.extend(whole(&round.blocks).iter().map(|block| block[1] - block[0]));
        first.get_or_insert(round);
        let interval = Effect::of(&values, CONFIDENCE).and_then(|effect| effect.interval);
        let is_known =
            |it: Interval| it.low > 0.0 || it.high < 0.0 || it.low > -least && it.high < least;
        if interval.is_some_and(is_known) {
            break;
        }
    }
    match (Effect::of(&values, CONFIDENCE), first) {
        (Some(effect), Some(first)) => {
            let Effect { ln, interval } = effect;
            Ok((GapEnds { ln, interval, differ: effect.is_proven() }, first))
        }
        _ => bail!("measure the two targets: no block has both of them"),
    }
}

/// The blocks in which every arm was measured.
fn whole(blocks: &[Vec<Option<f64>>]) -> Vec<Vec<f64>> {
    blocks.iter().filter_map(|block| block.iter().copied().collect()).collect()
}

/// The settings that differ.
fn found(measuring: &Measuring<'_>, first: &GapRound) -> Result<Candidates> {
    let dialect = measuring.ends()?.0.dbms.dialect();
    match measuring.settings(first)?.as_slice() {
        [base, goal] => Ok(candidates(dialect, base, goal)),
        _ => bail!("close the gap: no settings"),
    }
}

/// Seconds of so many runs, by what they took so far.
fn seconds(measuring: &Measuring<'_>, runs: usize) -> f64 {
    let GapCost { runs: known, seconds, .. } = cost(measuring);
    seconds / known.max(1) as f64 * runs as f64
}

fn cost(measuring: &Measuring<'_>) -> GapCost {
    let rounds = measuring.rounds();
    GapCost {
        rounds: rounds.len(),
        runs: rounds.iter().map(|round| round.blocks.len().max(1) * round.arms.len()).sum(),
        seconds: rounds.iter().map(|round| round.seconds).sum(),
    }
}

/// Pairs of arms for which the budget suffices, if the account of so many changes follows.
fn pairs_that_fit(measuring: &Measuring<'_>, found: usize) -> usize {
    let arms = Design::new(found.clamp(1, CAUSES_MOST)).arms().count() + 1;
    let account = seconds(measuring, arms * ACCOUNT_BLOCKS as usize);
    let left = measuring.request.budget_seconds - cost(measuring).seconds - account;
    (left / seconds(measuring, 2)).max(0.0) as usize
}

/// Changes that move the rate.
fn screened(
    measuring: &mut Measuring<'_>,
    names: &[String],
    possible: &mut Possible,
    gap: &mut Gap,
) -> Result<Vec<Vec<String>>> {
    let least = measuring.request.least.ln_1p();
    let mut screen = Screen::new(names.len(), ScreenRules { least, ..ScreenRules::default() });
    loop {
        let survivors = screen.survivors();
        let round = screen.next_round(pairs_that_fit(measuring, survivors.len()));
        if round.is_empty() {
            break;
        }
        measuring.note(format!(
            "{} variants of {}, each with about half of {} settings of {}; {} shown to matter so far",
            round.len(),
            gap.base,
            names.len(),
            gap.goal,
            survivors.len()
        ));
        let taken = |at: &usize| names.get(*at).filter(|it| !possible.refused.contains_key(*it));
        let arm = |on: &Vec<usize>| GapArm::Base(on.iter().filter_map(taken).cloned().collect());
        let round = measuring.ask(round.iter().map(arm).collect(), 1)?;
        possible.take_faults(measuring, &round)?;
        let none = vec![None; round.arms.len()];
        screen.record(round.blocks.first().unwrap_or(&none));
    }
    if !screen.next_round(1).is_empty() {
        measuring.note("the budget ends the search for more".to_owned());
    }
    let name = |found: &Finding| {
        names.get(found.change).filter(|name| !possible.refused.contains_key(*name)).cloned()
    };
    let (measured, unmeasured): (Vec<Finding>, Vec<Finding>) =
        screen.undecided().into_iter().partition(|it| it.interval.low.is_finite());
    let of_one =
        |it: &Finding| Some(Unknown { names: vec![name(it)?], interval: Some(it.interval) });
    gap.unknown.extend(measured.iter().filter_map(of_one));
    let unmeasured: Vec<String> = unmeasured.iter().filter_map(name).collect();
    if !unmeasured.is_empty() {
        gap.unknown.push(Unknown { names: unmeasured, interval: None });
    }
    Ok(screen.survivors().iter().filter_map(name).map(|name| vec![name]).collect())
}

/// Measures the survivors alone, without each, and all together, beside both ends.
fn account(
    measuring: &mut Measuring<'_>,
    mut survivors: Vec<Vec<String>>,
    gap: &mut Gap,
) -> Result<()> {
    if survivors.is_empty() {
        return Ok(());
    }
    if survivors.len() > CAUSES_MOST {
        let rest = survivors.split_off(CAUSES_MOST - 1).concat();
        survivors.push(rest);
    }
    let design = Design::new(survivors.len());
    let arms = arms_of(&design, &survivors);
    measuring.note(format!(
        "measuring what moves the rate alone and together: {}",
        units::counted(survivors.iter().map(Vec::len).sum(), "setting")
    ));
    let least = measuring.request.least.ln_1p();
    let mut blocks = Vec::new();
    for number in 0..ACCOUNT_ROUNDS {
        let count = if number == 0 { ACCOUNT_BLOCKS } else { BLOCKS };
        let needed = seconds(measuring, arms.len() * count as usize);
        let is_over = cost(measuring).seconds + needed > measuring.request.budget_seconds;
        if number > 0 && is_over {
            break;
        }
        let round = measuring.ask(arms.clone(), count)?;
        if let Some(fault) = round.faults.values().next() {
            bail!("measure settings together that were fine in other groups: {fault}");
        }
        blocks.extend(whole(&round.blocks));
        let account = Account::of(&design, &blocks, CONFIDENCE);
        let wide =
            |effect: &Effect| effect.interval.is_none_or(|it| it.high - it.low > 2.0 * least);
        let Some(account) = account else { continue };
        let is_wide = wide(&account.rest) || account.effects.iter().any(wide);
        gap.account = Some(account);
        if !is_wide {
            break;
        }
    }
    let cause = |names: &Vec<String>| -> Cause {
        let changes = names.iter().filter_map(|name| measuring.state.get(name).cloned());
        Cause { changes: changes.collect::<Vec<Intervention>>() }
    };
    gap.causes = survivors.iter().map(cause).collect();
    sort(gap);
    Ok(())
}

/// The targets of a design in which these groups of changes are its factors, and the goal.
fn arms_of(design: &Design, groups: &[Vec<String>]) -> Vec<GapArm> {
    let on = |arm: Vec<usize>| -> Vec<String> {
        arm.into_iter().flat_map(|at| groups.get(at).cloned().unwrap_or_default()).collect()
    };
    design.arms().map(|arm| GapArm::Base(on(arm))).chain([GapArm::Goal]).collect()
}

/// Measures what was found in all steps, if that was asked for.
fn all_steps(measuring: &mut Measuring<'_>, gap: &mut Gap) -> Result<()> {
    if !measuring.request.all_steps || gap.causes.is_empty() {
        return Ok(());
    }
    let names = |cause: &Cause| cause.changes.iter().map(|change| change.name.clone()).collect();
    let groups: Vec<Vec<String>> = gap.causes.iter().map(names).collect();
    let design = Design::new(groups.len());
    let arms = arms_of(&design, &groups);
    let labels = (1..).zip(&arms).map(|(number, arm)| measuring.label(arm, number));
    let labels = labels.collect::<Result<Vec<String>>>()?;
    measuring.note(format!("measuring {} targets in all steps, {BLOCKS} blocks", arms.len()));
    let round = measuring.measured(arms, BLOCKS, true)?;
    if let Some(fault) = round.faults.values().next() {
        gap.impossible.insert("all steps".to_owned(), last_words(fault));
    }
    let comparison = compared(&measuring.read(&round.folder)?, Rules::default())?;
    let phases = measuring.options.plan.phases(measuring.ends()?.0)?;
    let measured = phases.iter().filter_map(|phase| match phase {
        Phase::Measure(step) if step.reported => Some(&step.name),
        _ => None,
    });
    let of_step = |name: &String| {
        let blocks = whole(&rates_in(&comparison, name, &labels));
        GapStep { name: name.clone(), account: Account::of(&design, &blocks, CONFIDENCE) }
    };
    gap.steps = measured.map(of_step).collect();
    Ok(())
}

/// The largest effect first.
fn sort(gap: &mut Gap) {
    let Some(account) = &mut gap.account else { return };
    let mut order: Vec<usize> = (0..gap.causes.len()).collect();
    order.sort_by(|a, b| account.effects[*b].ln.abs().total_cmp(&account.effects[*a].ln.abs()));
    gap.causes = order.iter().map(|at| gap.causes[*at].clone()).collect();
    account.effects = order.iter().map(|at| account.effects[*at]).collect();
    account.interactions = order.iter().map(|at| account.interactions[*at]).collect();
}

// Which changes a server takes: it may refuse to start with one, or start and keep what it had.

/// Changes that a server does not take.
#[derive(Debug, Default)]
struct Possible {
    /// Name → the reason, in the server's words where it has some.
    refused: BTreeMap<String, String>,
}

impl Possible {
    /// Those of the changes that the server takes together.
    ///
    /// # Errors
    /// What makes every measurement impossible.
    fn of(&mut self, measuring: &mut Measuring<'_>, mut names: Vec<String>) -> Result<Vec<String>> {
        while !names.is_empty() {
            let round = measuring.ask(vec![GapArm::Base(names.clone())], 1)?;
            let Some(words) = round.faults.values().next() else {
                self.keep_taken(measuring, &round)?;
                names.retain(|name| !self.refused.contains_key(name));
                return Ok(names);
            };
            let guilty = named_in(words, &names);
            match (guilty.is_empty(), names.len()) {
                (true, 1) => self.refuse(measuring, &names[0], last_words(words)),
                (true, count) => {
                    let second = names.split_off(count / 2);
                    let mut both = self.of(measuring, names)?;
                    both.extend(self.of(measuring, second)?);
                    return Ok(both);
                }
                (false, _) => {
                    for (name, line) in guilty {
                        self.refuse(measuring, &name, line);
                    }
                }
            }
            names.retain(|name| !self.refused.contains_key(name));
        }
        Ok(names)
    }

    /// Looks again at the groups of a round that a server did not start with.
    ///
    /// # Errors
    /// As [`Possible::of`].
    fn take_faults(&mut self, measuring: &mut Measuring<'_>, round: &GapRound) -> Result<()> {
        for (number, arm) in (1..).zip(&round.arms) {
            let label = measuring.label(arm, number)?;
            let GapArm::Base(names) = arm else { continue };
            let Some(words) = round.faults.get(&label) else { continue };
            if let [only] = names.as_slice() {
                self.refuse(measuring, only, last_words(words));
            } else {
                self.of(measuring, names.clone())?;
            }
        }
        Ok(())
    }

    fn keep_taken(&mut self, measuring: &mut Measuring<'_>, round: &GapRound) -> Result<()> {
        let settings = measuring.settings(round)?;
        let (Some(GapArm::Base(names)), Some(settings)) = (round.arms.first(), settings.first())
        else {
            return Ok(());
        };
        for name in names {
            let kept = measuring.state.get(name).and_then(|change| not_taken(change, settings));
            if let Some(kept) = kept {
                self.refuse(measuring, name, kept);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, measuring: &mut Measuring<'_>, name: &str, why: String) {
        measuring.note(format!("{name} cannot be changed: {why}"));
        self.refused.insert(name.to_owned(), why);
    }
}

/// The changes that lines with an error name, each with its line.
fn named_in(words: &str, names: &[String]) -> Vec<(String, String)> {
    const OF_ERRORS: [&str; 7] =
        ["error", "fatal", "unknown", "unrecognized", "invalid", "refuse", "cannot"];
    let lines = words.lines().filter(|line| {
        let line = line.to_lowercase();
        OF_ERRORS.iter().any(|word| line.contains(word))
    });
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in lines {
        let spelled = line.to_lowercase().replace('-', "_");
        let is_named = |name: &&String| {
            let setting = name.split(' ').next().unwrap_or_default().to_lowercase();
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            spelled.match_indices(&setting).any(|(at, _)| {
                let before = spelled[..at].trim_end_matches("loose_").chars().next_back();
                !is_word(before) && !is_word(spelled[at + setting.len()..].chars().next())
            })
        };
        for name in names.iter().filter(is_named) {
            found.entry(name.clone()).or_insert_with(|| words_of(line).to_owned());
        }
    }
    found.into_iter().collect()
}

/// What a server said last, in one line.
fn last_words(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    words_of(line.unwrap_or_default()).to_owned()
}

/// A line of a log without its time, its marks and the path of the program.
fn words_of(line: &str) -> &str {
    const BEFORE: [&str; 6] =
        ["mysqld: ", "mariadbd: ", "[Server] ", "[ERROR] ", "FATAL:  ", "FATAL: "];
    let found = BEFORE.iter().find_map(|mark| line.split_once(mark));
    found.map_or(line, |(_, words)| words).trim().trim_start_matches('|').trim()
}

/// Name → value of what a server says that it has.
type Settings = BTreeMap<String, String>;

/// Remembers the known changes, by name.
type Measuring<'a> = campaign::Measuring<'a, GapRequest, BTreeMap<String, Intervention>>;

impl Measuring<'_> {
    /// The target that is changed, and the one that it is to become like.
    fn ends(&self) -> Result<(&Target, &Target)> {
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
    fn ask(&mut self, arms: Vec<GapArm>, blocks: u32) -> Result<GapRound> {
        self.measured(arms, blocks, false)
    }

    /// As [`Measuring::ask`], or in all steps of the plan.
    ///
    /// # Errors
    /// As there.
    fn measured(&mut self, arms: Vec<GapArm>, blocks: u32, all_steps: bool) -> Result<GapRound> {
        let is_asked = |round: &GapRound| round.arms == arms && round.all_steps == all_steps;
        if let Some(known) = self.known(|round| is_asked(round).then(|| round.clone()))? {
            return Ok(known);
        }
        let began = Instant::now();
        let folder = format!("round-{:02}", self.used + 1);
        let out = self.folder.path().join(&folder);
        let (plan, configs, shared_loads) = self.plan(&arms, blocks, all_steps)?;
        let labels: Vec<String> = plan.targets.iter().map(|target| target.label.clone()).collect();
        let options = ExecutionOptions { plan, out, configs, shared_loads, ..self.options.clone() };
        let faults = campaign::measured(&options, &folder, self.events)?;
        let blocks = self.rates(&folder, &labels)?;
        let seconds = began.elapsed().as_secs_f64();
        let round = GapRound { folder, seconds, arms, blocks, all_steps, faults };
        self.keep(round.clone())?;
        Ok(round)
    }

    /// The plan of a round, the configs that it needs, and which targets start from which load.
    fn plan(
        &self,
        arms: &[GapArm],
        blocks: u32,
        all_steps: bool,
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
                names.iter().filter_map(|name| self.state.get(name)).collect();
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
        let steps = if all_steps { base.steps.clone() } else { vec![self.request.step.clone()] };
        let draft =
            PlanDraft { targets, steps, blocks, loads, seed, gate: None, count: None, ..base };
        Ok((Plan::build(draft)?, configs, shared))
    }

    /// Logarithms of rates, by block in the order of labels; `None` where a target has none.
    fn rates(&self, folder: &str, labels: &[String]) -> Result<Vec<Vec<Option<f64>>>> {
        let dataset = self.read(folder)?;
        if dataset.runs.is_empty() {
            return Ok(Vec::new());
        }
        let comparison = compared(&dataset, Rules::default())?;
        Ok(rates_in(&comparison, &self.request.step, labels))
    }

    /// What the servers of a round said that they have, in the order of its arms; where a DBMS
    /// tells nothing, what its config says.
    fn settings(&self, round: &GapRound) -> Result<Vec<Settings>> {
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
    fn label(&self, arm: &GapArm, number: usize) -> Result<String> {
        let (base, goal) = self.ends()?;
        Ok(match arm {
            GapArm::Goal => goal.label.clone(),
            GapArm::Base(names) if names.is_empty() && number == 1 => base.label.clone(),
            GapArm::Base(_) => label_of(base, number),
        })
    }
}

/// Logarithms of rates in a step, by block in the order of labels; none without that step.
fn rates_in(comparison: &Comparison, name: &str, labels: &[String]) -> Vec<Vec<Option<f64>>> {
    let Ok(step) = step(comparison, name) else { return Vec::new() };
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
    blocks.into_values().map(row).collect()
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
    fn a_server_names_what_it_refuses() {
        let names = ["work_mem", "mem", "io-x", "optimizer_switch mrr"].map(str::to_owned);
        let words = "start: ended\n[ERROR] unknown variable 'io_x=5'\nFATAL: invalid value for \
                     parameter \"work_mem\": \"a\"\nnote: optimizer_switch is fine";
        let found = named_in(words, &names);
        let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, ["work_mem"]);
        assert_eq!(last_words("a\n  | b \n\n"), "b");
        let line = "| 2026-11-27T04:19:08Z 0 [ERROR] [MY-1] [Server] /x/bin/mysqld: Empty value.";
        assert_eq!(words_of(line), "Empty value.");
    }
}

#[cfg(test)]
mod measuring_tests {
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
