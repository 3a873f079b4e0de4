//! The comparison of two targets by function: which functions a target executes more or less of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    Callers, Change, CountedWork, FunctionChange, FunctionComparison, FunctionCost, ThreadWork,
    work,
};
use crate::comparison::{RunFacts, TargetResult};
use crate::measurement::Measurement;
use rqps_stats::summary::{mean, stddev};

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
    let compare = |threads: fn(&CountedWork) -> &ThreadWork| {
        compare(of(&baseline, threads), of(&target, threads))
    };
    ComparedFunctions {
        client: compare(|work| &work.client),
        background: compare(|work| &work.background),
    }
}

fn compare(mut baseline: Vec<Repeat>, mut target: Vec<Repeat>) -> Option<FunctionComparison> {
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
pub(super) fn rename(mut baseline: Vec<&mut ThreadWork>, target: &[&ThreadWork]) -> WeakMatches {
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
mod functions_tests {
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
mod moved_tests {
    use super::super::FunctionCost;
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
mod nameless_tests {
    use super::super::FunctionCost;
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
mod weaker_tests {
    use super::super::FunctionCost;
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
