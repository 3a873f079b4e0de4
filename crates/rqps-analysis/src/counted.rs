//! Counted runs: instructions per operation, and the functions that a target executes more or less
//! of than the baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::comparison::{Comparison, Relative, RunFacts, StepComparison, TargetResult};
use super::measurement::MetricValue;
use super::verdict::Explanation;
use crate::measurement::Measurement;
use rqps_model::benchmark::RateUnit;
use rqps_model::counted::{Counted, CountedProfile, ProfileFunction, ProfilePart};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;
use rqps_model::verdict::Verdict;
use rqps_stats::summary::{mean, stddev};

// Adds counts to a comparison: the change of each total with its functions, and the changes beside
// a rate.

/// Functions of other threads are compared where these execute more than this share of what the
/// thread that serves the client executes.
const BACKGROUND_LEAST: f64 = 0.01;

/// Adds the changes of a comparison whose steps are counted.
pub(crate) fn compare(comparison: &mut Comparison) {
    for step in &mut comparison.steps {
        let Some((baseline, targets)) = step.targets.split_first_mut() else { continue };
        for target in targets {
            let total = target.comparable(Metric::InstructionsPerOp).map(TotalChange::of);
            let Some(change) = total else { continue };
            let ComparedFunctions { client, background } =
                compare_functions(baseline, target, &comparison.runs);
            let other = target.comparable(Metric::BackgroundInstructionsPerOp).map(TotalChange::of);
            let is_much = |of: &FunctionComparison| {
                let most = of.baseline_total.max(of.target_total);
                client.as_ref().is_none_or(|it| most > BACKGROUND_LEAST * it.baseline_total)
            };
            let background = other.zip(background.filter(is_much));
            target.counted = Some(Box::new(CountedChange {
                change,
                functions: client,
                background: background
                    .map(|(change, functions)| BackgroundChange { change, functions }),
            }));
        }
    }
}

/// Adds the counted instructions to what moved with the rates, where they moved the same way.
pub(crate) fn explain(comparison: &mut Comparison, counts: &Comparison) {
    let baseline = comparison.baseline.clone();
    for step in comparison.steps.iter_mut().filter(|_| baseline == counts.baseline) {
        let Some(counted) = counts.steps.iter().find(|other| other.name == step.name) else {
            continue;
        };
        for target in step.targets.iter_mut().skip(1) {
            if let Some(explanation) = explanation(target, counted) {
                target.explanations.push(explanation);
            }
        }
    }
}

fn explanation(target: &TargetResult, counted: &StepComparison) -> Option<Explanation> {
    let rate = target.judgement(Metric::Rate)?.verdict;
    let counted = counted.targets.iter().find(|other| other.label == target.label)?;
    let relative = counted.relative(Metric::InstructionsPerOp)?;
    let change = counted.counted.as_ref()?;
    let verdict = match change.change {
        TotalChange::More if rate.is_worse() => Verdict::Slower,
        TotalChange::Fewer if rate.is_better() => Verdict::Faster,
        _ => return None,
    };
    Some(Explanation {
        metric: Metric::InstructionsPerOp,
        ratio: relative.ratio,
        interval: relative.interval?,
        verdict,
        detail: change.functions.as_ref().and_then(FunctionComparison::leading).map(detail),
    })
}

fn detail(change: &FunctionChange) -> String {
    format!("{} {:+.0}", change.name, change.difference())
}

// The change of a step's counted instructions, as reports show it.

/// The counted instructions of a step: target against base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedChange {
    /// The change of the total.
    pub change: TotalChange,
    /// The functions behind it; `None` without profiles of both.
    pub functions: Option<FunctionComparison>,
    /// Other threads of the process, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundChange>,
}

/// The counted instructions of the threads that do not serve the client: target against base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundChange {
    /// The change of the total.
    pub change: TotalChange,
    /// The functions behind it.
    pub functions: FunctionComparison,
}

/// The change in the instructions per operation of a target against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TotalChange {
    /// More, by more than [`SAME_WITHIN`].
    More,
    /// Fewer, by more than [`SAME_WITHIN`].
    Fewer,
    /// Within [`SAME_WITHIN`].
    Same,
    /// The interval allows several of these.
    Unclear,
}

impl TotalChange {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            TotalChange::More => "MORE",
            TotalChange::Fewer => "FEWER",
            TotalChange::Same => "SAME",
            TotalChange::Unclear => "UNCLEAR",
        }
    }
}

/// The functions of one step: target against baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionComparison {
    /// Instructions per operation of the baseline.
    pub baseline_total: f64,
    /// The total of the target.
    pub target_total: f64,
    /// The largest differences, the largest first.
    pub changes: Vec<FunctionChange>,
    /// Functions that are not listed, and the sum of their differences: with the list it is the
    /// difference of the totals.
    pub others: (usize, f64),
    /// Share of the baseline's instructions in functions that both have by name, be it without
    /// arguments.
    pub common: f64,
    /// Share of the baseline's instructions in functions that both have, but under names that agree
    /// only without arguments, arguments of templates and the marks of the compiler's copies.
    pub weakly: f64,
}

impl FunctionComparison {
    /// The function that changed most in the direction of the total.
    pub fn leading(&self) -> Option<&FunctionChange> {
        let total = self.target_total - self.baseline_total;
        // A function that only has another name explains nothing.
        let explains = |change| !matches!(change, Change::Scatter | Change::Renamed);
        let mut changes = self.changes.iter().filter(|it| explains(it.change));
        changes.find(|it| it.difference() * total > 0.0)
    }
}

/// One function in both targets, means over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionChange {
    /// Its name, in the target if it has another one there.
    #[serde(serialize_with = "text")]
    pub name: Arc<str>,
    /// Its name in the baseline, where the two agree only without arguments and the like.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    pub baseline_name: Option<Arc<str>>,
    /// In the baseline.
    pub baseline: FunctionCost,
    /// In the target.
    pub target: FunctionCost,
    /// The change.
    pub change: Change,
    /// The function that has its instructions now, or had them before.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    pub partner: Option<Arc<str>>,
}

impl FunctionChange {
    /// Instructions of its own per operation: target − baseline.
    pub fn difference(&self) -> f64 {
        self.target.own - self.baseline.own
    }
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn optional_text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

/// The costs of a function per operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionCost {
    /// Instructions of its own.
    pub own: f64,
    /// Instructions from its call to its return, at most those of the whole operation.
    pub inclusive: f64,
    /// Calls.
    pub calls: f64,
}

/// The change of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Only the target calls it.
    New,
    /// Only the baseline calls it.
    Gone,
    /// The number of calls differs, and each call costs the same.
    Calls,
    /// The cost of a call differs, and the number of calls is the same.
    Cost,
    /// Both differ.
    CallsAndCost,
    /// Gone or new under this name, with a partner that does the same under another.
    Renamed,
    /// Gone; the caller that is its partner took its instructions over.
    Inlined,
    /// New; the caller that is its partner lost as many.
    SplitOff,
    /// The repeats scatter as much as the targets differ.
    Scatter,
}

/// Totals that differ by no more than this share are the same: repeats of one build differ by up to
/// this much.
pub const SAME_WITHIN: f64 = 0.001;

/// Counts of two builds that differ by less than this share prove no change of the code between
/// them: to counts what tau is to rates, but without the layout of a build, which no count depends
/// on. Half of it may be the scatter of each.
pub const COUNTS_TAU: f64 = 2.0 * SAME_WITHIN;

impl TotalChange {
    /// The change that the interval of a ratio demonstrates.
    pub fn of(relative: &Relative) -> TotalChange {
        let Some(interval) = relative.interval else { return TotalChange::Unclear };
        let (least, most) = (1.0 - SAME_WITHIN, 1.0 + SAME_WITHIN);
        match interval {
            it if it.low > most => TotalChange::More,
            it if it.high < least => TotalChange::Fewer,
            it if it.low >= least && it.high <= most => TotalChange::Same,
            _ => TotalChange::Unclear,
        }
    }
}

// The work of a DBMS for its client, as a profile counted it: by function, per operation.

/// Rounds in which shares of functions that several callers use are passed on to what these call.
/// Chains of such functions are shorter.
const ROUNDS: usize = 16;

/// Prefixes of libraries of the system: the DBMS uses them as well as its client.
const SYSTEM: [&str; 9] =
    ["libc.", "libc-", "libm.", "libm-", "libpthread", "libgcc_s", "libdl", "librt", "ld-"];

/// Function → those that call it.
type Callers = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// The work of one counted step, per operation.
#[derive(Clone, Debug, Default, PartialEq)]
struct CountedWork {
    /// User-space work of the thread or process that served the client.
    client: ThreadWork,
    /// Work of all other threads of that process.
    background: ThreadWork,
}

/// The work of threads, per operation.
#[derive(Clone, Debug, Default, PartialEq)]
struct ThreadWork {
    /// Instructions.
    total: f64,
    /// By name.
    functions: BTreeMap<Arc<str>, FunctionCost>,
    /// Function → those that call it.
    callers: Callers,
    /// Results of the simulation of caches and branches; `None` without one.
    simulated: Option<SimulatedWork>,
}

/// Events of simulated caches and branches, per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SimulatedWork {
    first_level_misses: f64,
    last_level_misses: f64,
    mispredictions: f64,
}

/// True if instructions were counted instead of time.
pub fn is_counted(comparison: &Comparison) -> bool {
    let mut samples = comparison
        .steps
        .iter()
        .flat_map(|step| &step.targets)
        .flat_map(|target| &target.samples)
        .peekable();
    samples.peek().is_some() && samples.all(|sample| sample.record.counted.is_some())
}

/// The metrics of a counted step:
///
/// - `instr/o`: instructions of the thread or process that serves the client, in user space /
///   operations. An operation is a statement, or 1000 rows of `scan`.
/// - `instr_bg/o`: those of all other threads of the same process.
/// - `sim_…`: events of simulated caches and branches of the thread that serves the client.
pub(crate) fn metrics(step: &StepRecord, counted: &Counted) -> Vec<MetricValue> {
    let work = work(step, counted);
    let total = work.as_ref().map(|work| work.client.total).map_err(Clone::clone);
    let mut values = vec![(Metric::InstructionsPerOp, total)];
    let Ok(work) = work else { return values };
    if counted.thread.is_some() {
        values.push((Metric::BackgroundInstructionsPerOp, Ok(work.background.total)));
    }
    if let Some(found) = work.client.simulated {
        values.push((Metric::SimulatedFirstLevelMisses, Ok(found.first_level_misses)));
        values.push((Metric::SimulatedLastLevelMisses, Ok(found.last_level_misses)));
        values.push((Metric::SimulatedMispredictions, Ok(found.mispredictions)));
    }
    values
}

/// The work that a step's profile counted.
///
/// # Errors
/// The step has no count; the text is the reason.
fn work(step: &StepRecord, counted: &Counted) -> Result<CountedWork, String> {
    if let Some(why) = &counted.uncounted {
        return Err(format!("not counted: {why}"));
    }
    let Some(profile) = &counted.profile else {
        return Err("the file of its profile is missing".to_owned());
    };
    let outcome = &step.outcome;
    let operations = match step.rate {
        RateUnit::RowsScanned => outcome.rows_scanned as f64 / 1000.0,
        RateUnit::Transactions => outcome.events as f64,
        _ => outcome.statements as f64,
    };
    if operations <= 0.0 {
        return Err("no completed operation".to_owned());
    }
    let client = if counted.in_client { Some(client_object(profile)?) } else { None };
    let mut work = CountedWork::default();
    for part in &profile.parts {
        let serves = counted.thread.is_none() || counted.thread == part.thread;
        let work = if serves { &mut work.client } else { &mut work.background };
        let shares = client.map(|client| shares(part, client));
        add(work, part, shares.as_deref(), operations);
    }
    for work in [&mut work.client, &mut work.background] {
        for cost in work.functions.values_mut() {
            // Calls of a function within itself are in its inclusive cost more than once.
            cost.inclusive = cost.inclusive.min(work.total);
        }
    }
    if work.client.total > 0.0 { Ok(work) } else { Err("no instruction was counted".to_owned()) }
}

/// Adds the functions of a part, each with the share of it that counts; without shares, all.
fn add(work: &mut ThreadWork, part: &ProfilePart, shares: Option<&[f64]>, operations: f64) {
    let share = |place: usize| shares.map_or(1.0, |shares| shares[place]);
    let names: Vec<Arc<str>> = part.functions.iter().map(name).collect();
    let mut costs = vec![FunctionCost::default(); part.functions.len()];
    for (place, function) in part.functions.iter().enumerate() {
        let own = function.own as f64 * share(place) / operations;
        work.total += own;
        costs[place].own += own;
        costs[place].inclusive += own;
        if part.simulated {
            let (found, each) = (function.simulated, share(place) / operations);
            let sum = work.simulated.get_or_insert_default();
            sum.first_level_misses += found.first_level_misses as f64 * each;
            sum.last_level_misses += found.last_level_misses as f64 * each;
            sum.mispredictions += found.mispredictions as f64 * each;
        }
    }
    for call in &part.calls {
        let by = share(call.caller) / operations;
        if call.caller != call.callee {
            costs[call.caller].inclusive += call.inclusive as f64 * by;
        }
        // A client calls the functions of a library, and these calls count.
        let by = by.max(share(call.callee) / operations);
        costs[call.callee].calls += call.count as f64 * by;
        if by > 0.0 && call.caller != call.callee {
            let callers = work.callers.entry(Arc::clone(&names[call.callee])).or_default();
            callers.insert(Arc::clone(&names[call.caller]));
        }
    }
    for (name, cost) in names.into_iter().zip(costs) {
        if cost.own == 0.0 && cost.calls == 0.0 {
            continue;
        }
        let sum = work.functions.entry(name).or_default();
        sum.own += cost.own;
        sum.inclusive += cost.inclusive;
        sum.calls += cost.calls;
    }
}

/// The name of a function. Those without a symbol are one in each object file, because their
/// addresses are others in each process.
fn name(function: &ProfileFunction) -> Arc<str> {
    if is_bare(function) { all_of(file_name(&function.object)) } else { Arc::clone(&function.name) }
}

/// True for an address whose file is not known.
fn is_bare(function: &ProfileFunction) -> bool {
    function.name.starts_with("0x") || &*function.name == "???"
}

fn file_name(object: &str) -> &str {
    Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or("unknown file")
}

/// The object file of the client's own program.
fn client_object(profile: &CountedProfile) -> Result<&str, String> {
    let functions = profile.parts.iter().flat_map(|part| &part.functions);
    let mut objects = functions.map(|function| &*function.object);
    let found = objects.find(|object| !object.is_empty() && profile.command.starts_with(object));
    found.ok_or_else(|| "the profile does not name the program of the client".to_owned())
}

/// For each function of a process with client and DBMS, the share of it that the DBMS used: 1 for
/// its own functions, 0 for those of the client. Functions of the system have the share of their
/// callers, weighed by the instructions of the calls.
fn shares(part: &ProfilePart, client: &str) -> Vec<f64> {
    let fixed: Vec<Option<f64>> =
        part.functions.iter().map(|function| fixed_share(function, client)).collect();
    let mut shares: Vec<f64> = fixed.iter().map(|share| share.unwrap_or(0.0)).collect();
    for _ in 0..ROUNDS {
        let mut sums = vec![(0.0, 0.0); shares.len()];
        for call in part.calls.iter().filter(|call| call.caller != call.callee) {
            let weight = call.inclusive as f64;
            sums[call.callee].0 += weight * shares[call.caller];
            sums[call.callee].1 += weight;
        }
        for (place, (used, all)) in sums.into_iter().enumerate() {
            if fixed[place].is_none() && all > 0.0 {
                shares[place] = used / all;
            }
        }
    }
    shares
}

/// The share of a function that its object file and name tell.
fn fixed_share(function: &ProfileFunction, client: &str) -> Option<f64> {
    let object = &*function.object;
    if object == client {
        // The library may be compiled in. It is C, and the client is Rust.
        let rust = ["_R", "_ZN", "__rust", "__rdl", "__rg_", "rust_", "main", "_start", "("];
        let name = &*function.name;
        let is_rust = name.contains("::") || rust.iter().any(|prefix| name.starts_with(prefix));
        let has_symbol = !is_bare(function) && file_of(name).is_none();
        return has_symbol.then_some(if is_rust { 0.0 } else { 1.0 });
    }
    let file = file_name(object);
    let is_system = object.is_empty() || SYSTEM.iter().any(|prefix| file.starts_with(prefix));
    let is_tool = file.starts_with("vgpreload") || object == "???";
    (!is_system && !is_tool).then_some(1.0)
}

// The comparison of two targets by function: which functions a target executes more or less of.

/// Differences below this share of the baseline's total are not listed one by one.
const SHARE_LEAST: f64 = 0.0005;
/// Rows of the list at most.
const ROWS_MOST: usize = 20;
/// A difference of so many standard errors is no scatter of the repeats.
const ERRORS_LEAST: f64 = 3.0;
/// Calls, or instructions of a call, that differ by less than this share are the same.
const SAME_SHARE: f64 = 0.005;

/// One repeat: result set, block and attempt, which it shares with its partner of the other
/// target, and what it executed.
type Repeat<T = ThreadWork> = ((String, u32, u32), T);

/// The functions of a step in two targets: those of the thread that serves the client, and those of
/// all other threads.
pub(super) struct ComparedFunctions {
    pub(super) client: Option<FunctionComparison>,
    pub(super) background: Option<FunctionComparison>,
}

/// Compares the functions of two targets in a step; `None` where one of them has no profile, or no
/// instructions.
pub(super) fn compare_functions(
    baseline: &TargetResult,
    target: &TargetResult,
    runs: &[RunFacts],
) -> ComparedFunctions {
    let (baseline, target) = (repeats(baseline, runs), repeats(target, runs));
    let of = |all: &[Repeat<CountedWork>], threads: fn(&CountedWork) -> &ThreadWork| {
        all.iter().map(|(pair, work)| (pair.clone(), threads(work).clone())).collect()
    };
    let compare_work = |threads: fn(&CountedWork) -> &ThreadWork| {
        compare_work(of(&baseline, threads), of(&target, threads))
    };
    ComparedFunctions {
        client: compare_work(|work| &work.client),
        background: compare_work(|work| &work.background),
    }
}

fn compare_work(mut baseline: Vec<Repeat>, mut target: Vec<Repeat>) -> Option<FunctionComparison> {
    let executes = |all: &[Repeat]| all.iter().any(|(_, work)| work.total > 0.0);
    if !executes(&baseline) || !executes(&target) {
        return None;
    }
    let works = baseline.iter_mut().chain(&mut target).map(|(_, work)| work);
    roll_up(works.collect());
    let matches = rename(
        baseline.iter_mut().map(|(_, work)| work).collect(),
        &target.iter().map(|(_, work)| work).collect::<Vec<_>>(),
    );
    let total =
        |all: &[Repeat]| mean(&all.iter().map(|(_, work)| work.total).collect::<Vec<f64>>());
    let (baseline_total, target_total) = (total(&baseline), total(&target));
    let names: BTreeSet<&Arc<str>> =
        baseline.iter().chain(&target).flat_map(|(_, work)| work.functions.keys()).collect();
    let mut changes: Vec<FunctionChange> =
        names.into_iter().map(|name| change(name, (&baseline, &target), &matches)).collect();
    changes.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    mark(&mut changes, &callers(&baseline), &callers(&target));
    let is_common = |it: &&FunctionChange| it.baseline.own > 0.0 && it.target.own > 0.0;
    let both = || changes.iter().filter(is_common);
    let share = |of: &mut dyn Iterator<Item = &FunctionChange>| {
        of.map(|it| it.baseline.own).sum::<f64>() / baseline_total
    };
    let common = share(&mut both());
    let weakly = share(&mut both().filter(|it| it.baseline_name.is_some()));
    let least = SHARE_LEAST * baseline_total;
    let listed = changes.iter().take(ROWS_MOST).take_while(|it| it.difference().abs() >= least);
    let count = listed.count();
    let rest = changes.split_off(count);
    let others = (rest.len(), rest.iter().map(FunctionChange::difference).sum());
    Some(FunctionComparison { baseline_total, target_total, changes, others, common, weakly })
}

fn repeats(target: &TargetResult, runs: &[RunFacts]) -> Vec<Repeat<CountedWork>> {
    let repeat = |sample: &Measurement| {
        let record = &sample.record;
        let work = work(record, record.counted.as_ref()?).ok()?;
        let run = &runs[sample.run];
        Some(((run.result_set.clone(), run.key.block, run.key.attempt), work))
    };
    target.samples.iter().filter_map(repeat).collect()
}

/// The callers of all repeats together.
fn callers(repeats: &[Repeat]) -> Callers {
    let mut all = Callers::new();
    for (callee, callers) in repeats.iter().flat_map(|(_, work)| &work.callers) {
        all.entry(Arc::clone(callee)).or_default().extend(callers.iter().cloned());
    }
    all
}

fn change(
    name: &Arc<str>,
    (baseline, target): (&[Repeat], &[Repeat]),
    matches: &WeakMatches,
) -> FunctionChange {
    let (before, after) = (cost(name, baseline), cost(name, target));
    let own = |work: &ThreadWork| work.functions.get(name).map_or(0.0, |cost| cost.own);
    let pairs = baseline.iter().filter_map(|(pair, before)| {
        let (_, after) = target.iter().find(|(other, _)| other == pair)?;
        Some(own(after) - own(before))
    });
    // Repeats have other keys, which scatter more than the targets of a pair.
    let differences: Vec<f64> = pairs.collect();
    let error = stddev(&differences).map(|sd| sd / (differences.len() as f64).sqrt());
    let change = class(&before, &after, error);
    FunctionChange {
        name: Arc::clone(name),
        baseline_name: matches.get(name).cloned(),
        baseline: before,
        target: after,
        change,
        partner: None,
    }
}

/// The mean of a function over the repeats.
fn cost(name: &Arc<str>, repeats: &[Repeat]) -> FunctionCost {
    let cost = |(_, work): &Repeat| work.functions.get(name).cloned().unwrap_or_default();
    let costs: Vec<FunctionCost> = repeats.iter().map(cost).collect();
    let values = |get: fn(&FunctionCost) -> f64| costs.iter().map(get).collect::<Vec<f64>>();
    FunctionCost {
        own: mean(&values(|cost| cost.own)),
        inclusive: mean(&values(|cost| cost.inclusive)),
        calls: mean(&values(|cost| cost.calls)),
    }
}

/// The change, given the standard error of the difference if it is known.
fn class(before: &FunctionCost, after: &FunctionCost, error: Option<f64>) -> Change {
    let difference = (after.own - before.own).abs();
    if error.is_some_and(|error| difference < ERRORS_LEAST * error) {
        return Change::Scatter;
    }
    let is_there = |cost: &FunctionCost| cost.own > 0.0 || cost.calls > 0.0;
    match (is_there(before), is_there(after)) {
        (false, _) => return Change::New,
        (_, false) => return Change::Gone,
        _ => {}
    }
    // Functions that began before the count have no calls: one loop serves all statements.
    if before.calls == 0.0 || after.calls == 0.0 {
        return Change::Cost;
    }
    let differs = |before: f64, after: f64| (after / before - 1.0).abs() > SAME_SHARE;
    let calls = differs(before.calls, after.calls);
    let cost = differs(before.own / before.calls, after.own / after.calls);
    match (calls, cost) {
        (true, false) => Change::Calls,
        (true, true) => Change::CallsAndCost,
        (false, _) => Change::Cost,
    }
}

// Functions that are gone or new by name, but whose work is still done or was done before:
// renamed, inlined into a caller, split off from one.

/// Two functions are one under two names if instructions and calls differ by less than this share.
const ALIKE: f64 = 0.1;
/// A caller took a function over if it gained at least this share of what is gone.
const TAKEN_LEAST: f64 = 0.5;

/// Finds the partners of functions that are gone or new.
fn mark(changes: &mut [FunctionChange], before: &Callers, after: &Callers) {
    let places: BTreeMap<Arc<str>, usize> =
        (0..).zip(changes.iter()).map(|(place, it)| (Arc::clone(&it.name), place)).collect();
    let mut gained: Vec<f64> = changes.iter().map(FunctionChange::difference).collect();
    let of = |change: Change, changes: &[FunctionChange]| -> Vec<usize> {
        (0..changes.len())
            .filter(|place| changes[*place].change == change && changes[*place].difference() != 0.0)
            .collect()
    };
    for gone in of(Change::Gone, changes) {
        let new = of(Change::New, changes);
        let is_same = |new: &usize| is_renamed(&changes[gone], &changes[*new], before, after);
        if let Some(new) = new.into_iter().find(is_same) {
            pair(changes, (gone, new), Change::Renamed);
            let back = Arc::clone(&changes[gone].name);
            (changes[new].change, changes[new].partner) = (Change::Renamed, Some(back));
            continue;
        }
        let lost = changes[gone].baseline.own.max(f64::MIN_POSITIVE);
        if let Some(caller) = taker(changes, gone, (before, &places), |at| gained[at] / lost) {
            gained[caller] -= lost;
            pair(changes, (gone, caller), Change::Inlined);
        }
    }
    for new in of(Change::New, changes) {
        let got = changes[new].target.own.max(f64::MIN_POSITIVE);
        if let Some(caller) = taker(changes, new, (after, &places), |at| -gained[at] / got) {
            gained[caller] += got;
            pair(changes, (new, caller), Change::SplitOff);
        }
    }
}

fn pair(changes: &mut [FunctionChange], (place, partner): (usize, usize), change: Change) {
    let name = Arc::clone(&changes[partner].name);
    (changes[place].change, changes[place].partner) = (change, Some(name));
}

/// True if both cost the same and a caller of the one calls the other.
fn is_renamed(
    gone: &FunctionChange,
    new: &FunctionChange,
    before: &Callers,
    after: &Callers,
) -> bool {
    let alike = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.max(b);
    let none = BTreeSet::new();
    let of_gone = before.get(&gone.name).unwrap_or(&none);
    let of_new = after.get(&new.name).unwrap_or(&none);
    gone.baseline.own > 0.0
        && alike(gone.baseline.own, new.target.own)
        && alike(gone.baseline.calls, new.target.calls)
        && !of_gone.is_disjoint(of_new)
}

/// The caller of a function that has the largest share of its instructions, if that is enough.
fn taker(
    changes: &[FunctionChange],
    place: usize,
    (callers, places): (&Callers, &BTreeMap<Arc<str>, usize>),
    share: impl Fn(usize) -> f64,
) -> Option<usize> {
    let callers = callers.get(&changes[place].name)?.iter();
    let callers = callers.filter_map(|name| places.get(name).copied());
    let there = |at: &usize| changes[*at].baseline.own > 0.0 && changes[*at].target.own > 0.0;
    let taken = callers.filter(there).filter(|at| share(*at) >= TAKEN_LEAST);
    taken.max_by(|a, b| share(*a).total_cmp(&share(*b)))
}

// Functions without a name, `FILE+0x1230`: an address means something only in builds whose
// functions are at the same places.

/// Share of a file's nameless instructions at addresses that all repeats have, by which the file
/// is the same in all of them.
const SAME_FILE: f64 = 0.9;

/// Makes one function of all nameless ones of each file that is not the same in all works.
fn roll_up(mut works: Vec<&mut ThreadWork>) {
    let mut files: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    let all: Vec<BTreeSet<&Arc<str>>> =
        works.iter().map(|work| work.functions.keys().collect()).collect();
    for work in &works {
        for (name, cost) in &work.functions {
            let Some(file) = file_of(name) else { continue };
            let [everywhere, sum] = files.entry(file.to_owned()).or_default();
            *sum += cost.own;
            if all.iter().all(|names| names.contains(name)) {
                *everywhere += cost.own;
            }
        }
    }
    let differ: BTreeSet<String> = files
        .into_iter()
        .filter(|(_, [everywhere, sum])| *everywhere < SAME_FILE * sum)
        .map(|(file, _)| file)
        .collect();
    if differ.is_empty() {
        return;
    }
    let new_name = |name: &Arc<str>| match file_of(name).filter(|file| differ.contains(*file)) {
        Some(file) => all_of(file),
        None => Arc::clone(name),
    };
    for work in &mut works {
        for (name, cost) in std::mem::take(&mut work.functions) {
            let sum = work.functions.entry(new_name(&name)).or_default();
            sum.own += cost.own;
            sum.inclusive = (sum.inclusive + cost.inclusive).min(work.total);
            sum.calls += cost.calls;
        }
        let mut callers = Callers::new();
        for (callee, by) in std::mem::take(&mut work.callers) {
            let all = callers.entry(new_name(&callee)).or_default();
            all.extend(by.iter().map(new_name));
        }
        work.callers = callers;
    }
}

const NO_SYMBOL: &str = "(no symbol) ";

/// The row of all nameless functions of a file.
pub(super) fn all_of(file: &str) -> Arc<str> {
    Arc::from(format!("{NO_SYMBOL}{file}"))
}

/// True for the row of all nameless functions of a file.
fn is_all_of(name: &str) -> bool {
    name.starts_with(NO_SYMBOL)
}

/// The file of a nameless function.
pub(super) fn file_of(name: &str) -> Option<&str> {
    let (file, address) = name.rsplit_once("+0x")?;
    address.chars().all(|c| c.is_ascii_hexdigit()).then_some(file)
}

// Functions that two builds have under names that differ in form: a release changes the arguments
// of a C++ function, or its compiler makes a specialised copy. They are matched by a weaker key,
// the qualified name alone, where that is unambiguous in both builds.
//
// The last component of the name alone would match little more, and wrongly: of MySQL 5.6 and 8.0
// 1.2 % of the instructions, among them `MDL_map::remove` with `MDL_ticket_store::remove`.

/// Name in the target → name in the baseline, of functions matched by the weaker key.
type WeakMatches = BTreeMap<Arc<str>, Arc<str>>;

/// Gives functions of the baseline the name that they have in the target, where only the weaker key
/// says that they are the same.
fn rename(mut baseline: Vec<&mut ThreadWork>, target: &[&ThreadWork]) -> WeakMatches {
    let matches = {
        let before: Vec<&ThreadWork> = baseline.iter().map(|work| &**work).collect();
        matches(&before, target)
    };
    let back: BTreeMap<&Arc<str>, &Arc<str>> =
        matches.iter().map(|(target, baseline)| (baseline, target)).collect();
    let new_name = |name: Arc<str>| match back.get(&name) {
        Some(other) => Arc::clone(other),
        None => name,
    };
    for work in baseline.iter_mut().filter(|_| !back.is_empty()) {
        // Each name stands for one key, so no two functions become one.
        let functions = std::mem::take(&mut work.functions).into_iter();
        work.functions = functions.map(|(name, cost)| (new_name(name), cost)).collect();
        let callers = std::mem::take(&mut work.callers).into_iter();
        let renamed = |by: BTreeSet<Arc<str>>| by.into_iter().map(&new_name).collect();
        work.callers = callers.map(|(name, by)| (new_name(name), renamed(by))).collect::<Callers>();
    }
    matches
}

/// The functions whose key stands for one name in the baseline and for another one in the target.
fn matches(baseline: &[&ThreadWork], target: &[&ThreadWork]) -> WeakMatches {
    let (before, after) = (by_key(baseline), by_key(target));
    let mut found = WeakMatches::new();
    for (key, names) in before {
        let others = after.get(&key);
        if let ([name], Some([other])) = (&*names, others.map(Vec::as_slice))
            && name != other
        {
            found.insert(Arc::clone(other), Arc::clone(name));
        }
    }
    found
}

fn by_key(works: &[&ThreadWork]) -> BTreeMap<String, Vec<Arc<str>>> {
    let names: BTreeSet<&Arc<str>> = works.iter().flat_map(|work| work.functions.keys()).collect();
    let mut all: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
    for name in names.into_iter().filter(|name| file_of(name).is_none() && !is_all_of(name)) {
        all.entry(plain_name(name)).or_default().push(Arc::clone(name));
    }
    all
}

/// Copies of a function that compilers make end with these words and numbers.
const COPIES: [&str; 6] = ["constprop", "isra", "part", "cold", "lto_priv", "llvm"];

/// A name with its namespaces and classes, without return type, arguments, arguments of templates,
/// version of the symbol and the marks of copies: `void ns::sort<int>(int*) [clone .part.0]` is
/// `ns::sort`.
///
/// The row of all nameless functions of a file keeps its name: its parentheses hold no arguments.
pub fn plain_name(name: &str) -> String {
    if is_all_of(name) {
        return name.to_owned();
    }
    let name = without_marks(name);
    let mut rest = name;
    let mut plain = String::with_capacity(name.len());
    while let Some(first) = rest.chars().next() {
        let begins_word = !plain.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let taken = match first {
            '(' if rest.starts_with(ANONYMOUS) => copied(&mut plain, ANONYMOUS),
            'o' if begins_word && rest.starts_with(OPERATOR) => {
                copied(&mut plain, &rest[..operator_end(rest)])
            }
            '(' | '<' => bracket_end(rest),
            // `operator< <int>`
            ' ' if rest.starts_with(" <") => 1,
            ' ' => match QUALIFIERS.iter().find(|word| rest.starts_with(**word)) {
                Some(word) => word.len(),
                None => {
                    // The text before was the return type.
                    plain.clear();
                    1
                }
            },
            other => {
                plain.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    if plain.is_empty() { name.to_owned() } else { plain }
}

const ANONYMOUS: &str = "(anonymous namespace)";
const OPERATOR: &str = "operator";
/// Qualifiers that may follow arguments.
const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];

fn copied(plain: &mut String, text: &str) -> usize {
    plain.push_str(text);
    text.len()
}

/// Without `[clone .isra.0]`, `.constprop.1`, `@@GLIBC_2.34`.
fn without_marks(name: &str) -> &str {
    let name = name.split(" [clone ").next().unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let mut short = name;
    while let Some((before, last)) = short.rsplit_once('.') {
        if COPIES.contains(&last) {
            return without_marks(before);
        }
        if last.is_empty() || !last.chars().all(|c| c.is_ascii_digit()) {
            break;
        }
        short = before;
    }
    name
}

/// The end of an operator's name: `operator()`, `operator<<`, `operator new`, `operator bool`.
fn operator_end(text: &str) -> usize {
    let after = &text[OPERATOR.len()..];
    let symbols = match after {
        call if call.starts_with("()") => 2,
        _ => after.find(|c: char| !"<>=!+-*/%^&|~,[]".contains(c)).unwrap_or(after.len()),
    };
    let length = match symbols {
        // A word: the name of a type, `new` or `delete`; or a function whose name begins like this.
        0 if after.starts_with(' ') => after.find('(').unwrap_or(after.len()),
        symbols => symbols,
    };
    OPERATOR.len() + length
}

/// The length of what the brackets at the beginning enclose, with them.
fn bracket_end(text: &str) -> usize {
    let (mut depth, mut last) = (0_usize, ' ');
    for (place, c) in text.char_indices() {
        match c {
            '(' | '<' => depth += 1,
            '>' if last == '-' => {}
            ')' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return place + c.len_utf8();
        }
        last = c;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::counted::{ProfileCall, Simulated};
    use rqps_stats::Interval;

    #[test]
    fn an_interval_must_lie_on_one_side() {
        let check = |interval: Option<(f64, f64)>, expected| {
            let interval = interval.map(|(low, high)| Interval { low, high });
            let relative = Relative { interval, ..Relative::of_medians(1.0, 3) };
            assert_eq!(TotalChange::of(&relative), expected, "{interval:?}");
        };
        check(Some((1.01, 1.02)), TotalChange::More);
        check(Some((0.9, 0.95)), TotalChange::Fewer);
        check(Some((0.9995, 1.0004)), TotalChange::Same);
        check(Some((0.9995, 1.004)), TotalChange::Unclear);
        check(None, TotalChange::Unclear);
    }

    fn part(functions: &[(&str, &str, u64)], calls: &[(usize, usize, u64, u64)]) -> ProfilePart {
        let functions = functions.iter().map(|(object, name, own)| ProfileFunction {
            object: Arc::from(*object),
            name: Arc::from(*name),
            own: *own,
            simulated: Simulated { mispredictions: *own / 10, ..Simulated::default() },
        });
        let calls = calls.iter().map(|(caller, callee, count, inclusive)| ProfileCall {
            caller: *caller,
            callee: *callee,
            count: *count,
            inclusive: *inclusive,
        });
        let (functions, calls): (Vec<_>, Vec<_>) = (functions.collect(), calls.collect());
        let total = functions.iter().map(|function| function.own).sum();
        let simulated = true;
        ProfilePart { pid: None, thread: None, total, simulated, functions, calls }
    }

    #[test]
    fn the_client_of_a_library_does_not_count() {
        let part = part(
            &[
                ("/x/rqps", "rqps::driver::run", 700),
                ("/x/rqps", "sqlite3_step", 200),
                ("/lib/libc.so.6", "memcpy", 90),
                ("/lib/libc.so.6", "memcpy_inner", 10),
                ("/lib/libsqlite3.so", "balance", 5),
                ("/lib/libc.so.6", "malloc", 50),
            ],
            &[
                (0, 1, 10, 300),
                // Three quarters of memcpy are the DBMS's, and of what memcpy calls.
                (0, 2, 1, 25),
                (1, 2, 3, 75),
                (2, 3, 4, 10),
                (0, 5, 1, 50),
            ],
        );
        assert_eq!(shares(&part, "/x/rqps"), [0.0, 1.0, 0.75, 0.75, 1.0, 0.0]);
        let mut work = ThreadWork::default();
        add(&mut work, &part, Some(&shares(&part, "/x/rqps")), 10.0);
        assert_eq!(work.total, 20.0 + 6.75 + 0.75 + 0.5);
        let names: Vec<&str> = work.functions.keys().map(|name| &**name).collect();
        assert_eq!(names, ["balance", "memcpy", "memcpy_inner", "sqlite3_step"]);
        let step = &work.functions["sqlite3_step"];
        assert_eq!((step.own, step.inclusive, step.calls), (20.0, 27.5, 1.0));
        let simulated = work.simulated.unwrap();
        assert_eq!(simulated.first_level_misses, 0.0);
        assert!((simulated.mispredictions - 2.75).abs() < 1e-9, "{simulated:?}");
    }

    #[test]
    fn functions_without_a_symbol_are_one() {
        let part = part(
            &[("/bin/db", "0x00012", 30), ("/bin/db", "0x00034", 10), ("", "???", 1)],
            &[(0, 1, 2, 10), (1, 1, 5, 99)],
        );
        let mut work = ThreadWork::default();
        add(&mut work, &part, None, 1.0);
        let names: Vec<&str> = work.functions.keys().map(|name| &**name).collect();
        assert_eq!(names, ["(no symbol) db", "(no symbol) unknown file"]);
        let cost = &work.functions["(no symbol) db"];
        assert_eq!((cost.own, cost.inclusive, cost.calls), (40.0, 50.0, 7.0));
    }
}

#[cfg(test)]
mod functions_functions_tests {
    use super::*;

    fn cost(own: f64, calls: f64) -> FunctionCost {
        FunctionCost { own, inclusive: own, calls }
    }

    #[test]
    fn what_changed_about_a_function() {
        let check = |before: (f64, f64), after: (f64, f64), error, expected| {
            let found = class(&cost(before.0, before.1), &cost(after.0, after.1), error);
            assert_eq!(found, expected, "{before:?} {after:?}");
        };
        let exact = Some(0.01);
        check((0.0, 0.0), (50.0, 2.0), exact, Change::New);
        check((50.0, 2.0), (0.0, 0.0), exact, Change::Gone);
        check((50.0, 2.0), (75.0, 3.0), exact, Change::Calls);
        check((50.0, 2.0), (75.0, 2.0), exact, Change::Cost);
        check((50.0, 2.0), (90.0, 3.0), exact, Change::CallsAndCost);
        check((50.0, 0.0), (90.0, 0.0), exact, Change::Cost);
        check((50.0, 2.0), (51.0, 2.0), Some(0.5), Change::Scatter);
        // One repeat tells nothing of scatter.
        check((50.0, 2.0), (51.0, 2.0), None, Change::Cost);
    }

    fn target(works: &[&[(&str, f64, f64)]]) -> Vec<Repeat> {
        let work = |functions: &&[(&str, f64, f64)]| ThreadWork {
            total: functions.iter().map(|function| function.1).sum(),
            functions: functions
                .iter()
                .map(|(name, own, calls)| (Arc::from(*name), cost(*own, *calls)))
                .collect(),
            ..ThreadWork::default()
        };
        let pair = |block| (String::new(), block, 1);
        (1..).map(pair).zip(works.iter().map(work)).collect()
    }

    #[test]
    fn differences_are_means_over_the_repeats() {
        let before = target(&[&[("f", 10.0, 1.0)], &[("f", 12.0, 1.0), ("g", 4.0, 2.0)]]);
        let after = target(&[&[("f", 21.0, 2.0)], &[("f", 23.0, 2.0)]]);
        let f = change(&Arc::from("f"), (&before, &after), &WeakMatches::new());
        assert_eq!((f.baseline.own, f.target.own, f.difference()), (11.0, 22.0, 11.0));
        assert_eq!(f.change, Change::Calls);
        let g = change(&Arc::from("g"), (&before, &after), &WeakMatches::new());
        assert_eq!((g.baseline.calls, g.difference(), g.change), (1.0, -2.0, Change::Scatter));
    }
}

#[cfg(test)]
mod functions_moved_tests {
    use super::FunctionCost;
    use super::*;

    fn function(name: &str, before: f64, after: f64) -> FunctionChange {
        let cost = |own: f64| FunctionCost { own, inclusive: own, calls: own / 10.0 };
        let change = match (before > 0.0, after > 0.0) {
            (true, false) => Change::Gone,
            (false, true) => Change::New,
            _ => Change::Cost,
        };
        FunctionChange {
            name: Arc::from(name),
            baseline_name: None,
            baseline: cost(before),
            target: cost(after),
            change,
            partner: None,
        }
    }

    fn callers(edges: &[(&str, &str)]) -> Callers {
        let mut all = Callers::new();
        for (caller, callee) in edges {
            all.entry(Arc::from(*callee)).or_default().insert(Arc::from(*caller));
        }
        all
    }

    #[test]
    fn work_under_another_name_is_found() {
        let mut changes = vec![
            function("run", 1000.0, 1090.0),
            function("old_name", 300.0, 0.0),
            function("new_name", 0.0, 310.0),
            function("helper", 100.0, 0.0),
            function("another", 80.0, 0.0),
            function("big", 500.0, 420.0),
            function("part_of_big", 0.0, 85.0),
            function("feature", 0.0, 305.0),
        ];
        let before =
            callers(&[("run", "old_name"), ("run", "helper"), ("run", "another"), ("main", "big")]);
        let after = callers(&[("run", "new_name"), ("big", "part_of_big"), ("main", "feature")]);
        mark(&mut changes, &before, &after);
        let found = changes.iter().map(|it| (&*it.name, it.change, it.partner.as_deref()));
        let expected = [
            ("run", Change::Cost, None),
            ("old_name", Change::Renamed, Some("new_name")),
            ("new_name", Change::Renamed, Some("old_name")),
            ("helper", Change::Inlined, Some("run")),
            // The gain of the caller is used up.
            ("another", Change::Gone, None),
            ("big", Change::Cost, None),
            ("part_of_big", Change::SplitOff, Some("big")),
            ("feature", Change::New, None),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[cfg(test)]
mod functions_nameless_tests {
    use super::FunctionCost;
    use super::*;

    fn work(functions: &[(&str, f64)]) -> ThreadWork {
        let cost = |own| FunctionCost { own, inclusive: own, calls: 1.0 };
        let named = functions.iter().map(|(name, own)| (Arc::from(*name), cost(*own)));
        let callers = functions.iter().map(|(name, _)| {
            (Arc::from(*name), BTreeSet::from([Arc::from("db+0x7f"), Arc::from("main")]))
        });
        ThreadWork {
            total: functions.iter().map(|function| function.1).sum(),
            functions: named.collect(),
            callers: callers.collect(),
            simulated: None,
        }
    }

    fn names(work: &ThreadWork) -> Vec<&str> {
        work.functions.keys().map(|name| &**name).collect()
    }

    #[test]
    fn addresses_of_one_build_stay_and_those_of_two_are_one_function() {
        let (mut one, mut again) =
            (work(&[("db+0x10", 50.0), ("main", 5.0)]), work(&[("db+0x10", 51.0), ("main", 5.0)]));
        roll_up(vec![&mut one, &mut again]);
        assert_eq!(names(&one), ["db+0x10", "main"]);
        let mut other = work(&[("db+0x20", 60.0), ("db+0x30", 7.0), ("f+0xyz", 1.0)]);
        roll_up(vec![&mut one, &mut other]);
        assert_eq!(names(&one), ["(no symbol) db", "main"]);
        assert_eq!(names(&other), ["(no symbol) db", "f+0xyz"]);
        let sum = &other.functions["(no symbol) db"];
        assert_eq!((sum.own, sum.calls), (67.0, 2.0));
        let by: Vec<&str> = other.callers["(no symbol) db"].iter().map(|by| &**by).collect();
        assert_eq!(by, ["(no symbol) db", "main"]);
    }
}

#[cfg(test)]
mod functions_weaker_tests {
    use super::FunctionCost;
    use super::*;

    #[test]
    fn names_without_what_a_release_changes() {
        for (name, plain) in [
            ("alloc_root", "alloc_root"),
            ("JOIN::optimize(bool)", "JOIN::optimize"),
            ("Item::save(Field*, bool) const", "Item::save"),
            ("void enter<Policy<Mutex<int> > >(Policy<Mutex<int> >*, ut::Location)", "enter"),
            ("Buf_fetch<Buf_fetch_normal>::lookup()", "Buf_fetch::lookup"),
            ("cache_constant(THD*, Item**) [clone .isra.0]", "cache_constant"),
            (
                "TrxInInnoDB::enter(trx_t*, bool) [clone .part.0] [clone .cold]",
                "TrxInInnoDB::enter",
            ),
            ("balance.constprop.0.isra.1", "balance"),
            ("version.12", "version.12"),
            ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
            ("(anonymous namespace)::read(int)", "(anonymous namespace)::read"),
            ("bool operator< <int>(List<int> const&)", "operator<"),
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator->() const", "A::operator->"),
            ("operator new(unsigned long)", "operator new"),
            (
                "run(int)::{lambda(int, A<b>)#2}::operator()(int) const",
                "run::{lambda#2}::operator()",
            ),
            ("std::enable_if<(1 > 0), int>::type f<int>(int)", "f"),
            ("my_operator(int)", "my_operator"),
            ("?", "?"),
            ("(below main)", "(below main)"),
            ("(no symbol) postgres.elf", "(no symbol) postgres.elf"),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
    }

    fn work(names: &[&str]) -> ThreadWork {
        let cost = FunctionCost { own: 10.0, inclusive: 10.0, calls: 1.0 };
        let callers =
            names.iter().map(|name| (Arc::from(*name), BTreeSet::from([names[0].into()])));
        ThreadWork {
            total: 10.0 * names.len() as f64,
            functions: names.iter().map(|name| (Arc::from(*name), cost.clone())).collect(),
            callers: callers.collect(),
            simulated: None,
        }
    }

    #[test]
    fn only_what_is_unambiguous_is_matched() {
        let mut before = work(&["run(int)", "add(int)", "sort(A*)", "sort(B*)", "f", "db+0x10"]);
        let after = work(&["run(long)", "add(int)", "sort(C*)", "f", "f.part.0", "db+0x20"]);
        let found = rename(vec![&mut before], &[&after]);
        let pairs: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(pairs, [("run(long)", "run(int)")]);
        let names: Vec<&str> = before.functions.keys().map(|name| &**name).collect();
        assert_eq!(names, ["add(int)", "db+0x10", "f", "run(long)", "sort(A*)", "sort(B*)"]);
        assert_eq!(before.callers["f"], BTreeSet::from([Arc::from("run(long)")]));
        assert_eq!(before.functions["run(long)"].own, 10.0);
    }
}
