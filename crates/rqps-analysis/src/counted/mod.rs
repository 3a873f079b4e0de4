//! Counted runs: instructions per operation, and the functions that a target executes more or less
//! of than the baseline.

mod functions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::comparison::{Comparison, Relative, StepComparison, TargetResult};
use super::measurement::MetricValue;
use super::verdict::Explanation;
use functions::{ComparedFunctions, compare_functions};
use rqps_model::benchmark::RateUnit;
use rqps_model::counted::{Counted, CountedProfile, ProfileFunction, ProfilePart};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;
use rqps_model::verdict::Verdict;

pub use functions::plain_name;

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
    if is_bare(function) {
        functions::all_of(file_name(&function.object))
    } else {
        Arc::clone(&function.name)
    }
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
        let has_symbol = !is_bare(function) && functions::file_of(name).is_none();
        return has_symbol.then_some(if is_rust { 0.0 } else { 1.0 });
    }
    let file = file_name(object);
    let is_system = object.is_empty() || SYSTEM.iter().any(|prefix| file.starts_with(prefix));
    let is_tool = file.starts_with("vgpreload") || object == "???";
    (!is_system && !is_tool).then_some(1.0)
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
