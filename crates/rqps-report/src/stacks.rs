//! Sampled stacks for other tools: as folded text, and in the format of pprof.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::counted::shown;
use super::document::{Block, Cell, Column, Digits};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::sampled::{
    LAYOUT_SHARE, ProfileFacts, SampledChange, SampledFunction, SampledWait, WaitChange,
};
use rqps_model::counted::{CallGraph, CallTree};
use rqps_model::verdict::Rules;

/// The stacks of one target in one step, of all blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct StepStacks {
    /// The step.
    pub step: String,
    /// The target.
    pub label: String,
    /// Samples per second of CPU time.
    pub hertz: u32,
    /// Names, the outermost first → samples.
    pub stacks: BTreeMap<Vec<Arc<str>>, u64>,
}

/// All sampled stacks of a comparison, in its order.
pub fn stacks(comparison: &Comparison) -> Vec<StepStacks> {
    let mut found = Vec::new();
    let profiles = comparison.profiles.as_deref().unwrap_or(comparison);
    for step in &profiles.steps {
        for target in &step.targets {
            let sampled = target.samples.iter().filter_map(|it| it.record.sampled.as_ref());
            let mut all = StepStacks {
                step: step.name.clone(),
                label: target.label.clone(),
                hertz: 0,
                stacks: BTreeMap::new(),
            };
            for sampled in sampled {
                all.hertz = sampled.hertz;
                if let Some(tree) = &sampled.profile {
                    all.add(tree);
                }
            }
            if !all.stacks.is_empty() {
                found.push(all);
            }
        }
    }
    found
}

impl StepStacks {
    fn add(&mut self, tree: &CallTree) {
        for node in tree.nodes.iter().filter(|node| node.own > 0) {
            let mut names = vec![Arc::clone(&tree.names[node.name as usize])];
            let mut caller = node.caller;
            while let Some(at) = caller {
                let node = &tree.nodes[at as usize];
                names.push(Arc::clone(&tree.names[node.name as usize]));
                caller = node.caller;
            }
            names.reverse();
            *self.stacks.entry(names).or_default() += node.own;
        }
    }

    /// A line `outer;inner SAMPLES` for each stack.
    pub fn folded(&self) -> String {
        let line = |(names, samples): (&Vec<Arc<str>>, &u64)| {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            format!("{} {samples}\n", names.join(";"))
        };
        self.stacks.iter().map(line).collect()
    }

    /// The message `perftools.profiles.Profile`, uncompressed: samples, and nanoseconds of CPU
    /// time.
    pub fn pprof(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        let nanoseconds = 1_000_000_000 / u64::from(self.hertz.max(1));
        let mut profile = Message::default();
        for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
            profile.message(1, &value_type(&mut texts, kind, unit));
        }
        let mut functions: HashMap<&Arc<str>, u64> = HashMap::new();
        for (names, samples) in &self.stacks {
            let mut places = Vec::with_capacity(names.len());
            for name in names.iter().rev() {
                let next = functions.len() as u64 + 1;
                places.push(*functions.entry(name).or_insert(next));
            }
            let mut sample = Message::default();
            sample.numbers(1, &places);
            sample.numbers(2, &[*samples, samples * nanoseconds]);
            profile.message(2, &sample);
        }
        let mut functions: Vec<(&Arc<str>, u64)> = functions.into_iter().collect();
        functions.sort_by_key(|(_, place)| *place);
        for (name, place) in functions {
            let (mut location, mut line) = (Message::default(), Message::default());
            line.number(1, place);
            location.number(1, place);
            location.message(4, &line);
            profile.message(4, &location);
            let mut function = Message::default();
            function.number(1, place);
            function.number(2, texts.place(name));
            profile.message(5, &function);
        }
        let period = value_type(&mut texts, "cpu", "nanoseconds");
        for text in &texts.all {
            profile.bytes(6, text.as_bytes());
        }
        profile.message(11, &period);
        profile.number(12, nanoseconds);
        profile.0
    }
}

fn value_type(texts: &mut Texts, kind: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message.number(1, texts.place(kind));
    message.number(2, texts.place(unit));
    message
}

/// The table of texts, whose first is empty.
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts { all: vec![String::new()], places: HashMap::new() }
    }
}

impl Texts {
    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// A message of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn numbers(&mut self, field: u64, numbers: &[u64]) {
        let mut packed = Message::default();
        numbers.iter().for_each(|number| packed.varint(*number));
        self.message(field, &packed);
    }
}

// The flame graph of a step: the sampled call stacks of a target and the baseline in one picture.

/// Frames with a smaller share of the time, in both targets, are narrower than a pixel or two.
const SHARE_LEAST: f64 = 0.002;

/// Call stacks of two targets, with CPU microseconds per operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flame {
    /// Title.
    pub title: String,
    /// Label of the baseline.
    pub baseline: String,
    /// Label of the target.
    pub target: String,
    /// Names of functions.
    pub names: Vec<String>,
    /// A caller comes before those that it calls.
    pub frames: Vec<Frame>,
}

/// A function in the place where it was called, with all that it calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Place of its caller among the frames; `None` for where a thread began.
    pub caller: Option<usize>,
    /// Place of its name.
    pub name: usize,
    /// Microseconds per operation of the baseline.
    pub baseline: f64,
    /// Value of the target.
    pub target: f64,
    /// The difference of the function over all its callers: log2 of target / baseline, at most 1 in
    /// size; 0 if it was not shown to differ.
    pub change: f64,
}

/// The flame graph of a target; `None` without samples, and where stacks do not lead to callers.
pub(super) fn of_target(baseline: &str, step: &str, target: &TargetResult) -> Option<Flame> {
    let change = target.sampled.as_ref()?;
    let tree = &change.tree;
    let changes: BTreeMap<&str, f64> =
        change.functions.iter().map(|it| (&*it.name, of_function(it))).collect();
    let mut flame = Flame {
        title: format!("{step}: CPU time per operation, {} and {baseline}", target.label),
        baseline: baseline.to_owned(),
        target: target.label.clone(),
        ..Flame::default()
    };
    let mut places: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut names: Vec<Option<usize>> = vec![None; tree.names.len()];
    for (place, (baseline, target)) in tree.inclusive().into_iter().enumerate() {
        let least = (SHARE_LEAST * change.baseline_total, SHARE_LEAST * change.target_total);
        if baseline < least.0 && target < least.1 {
            continue;
        }
        let node = tree.nodes[place];
        // A caller has at least the time of those that it calls, so it is there.
        let caller = node.caller.and_then(|caller| places[caller as usize]);
        let text = &*tree.names[node.name as usize];
        let name = *names[node.name as usize].get_or_insert_with(|| {
            flame.names.push(text.to_owned());
            flame.names.len() - 1
        });
        places[place] = Some(flame.frames.len());
        let change = changes.get(text).copied().unwrap_or(0.0);
        flame.frames.push(Frame { caller, name, baseline, target, change });
    }
    (!flame.frames.is_empty()).then_some(flame)
}

/// The change of a function that was shown to differ: of its own time, or if that was not shown to,
/// with those that it calls.
fn of_function(it: &SampledFunction) -> f64 {
    let (before, after) = if it.q_own.is_some_and(|q| q <= it.q_inclusive.unwrap_or(1.0)) {
        (it.baseline.own, it.target.own)
    } else {
        (it.baseline.inclusive, it.target.inclusive)
    };
    match (before > 0.0, after > 0.0) {
        (true, true) => (after / before).log2().clamp(-1.0, 1.0),
        (false, _) => 1.0,
        (true, false) => -1.0,
    }
}

// Sampled time in reports: the functions of a step that differ, and what its threads wait for.

/// The samples of a target in a step: a sentence, and the functions that differ.
pub(super) fn functions_of_target(target: &TargetResult) -> Vec<Block> {
    let Some(change) = &target.sampled else { return Vec::new() };
    let mut blocks = vec![Block::Paragraph(sentence(&target.label, change))];
    if !change.functions.is_empty() {
        let rows = change.functions.iter().map(|it| cells(change, it)).collect();
        let caption = format!("{}: functions whose CPU time per operation differs", target.label);
        blocks.push(Block::table(caption, columns(), rows));
    }
    blocks
}

/// `B: 48.20 us of server CPU per operation, 1.85 more than the baseline's 46.35 (+4.0 %); 3 of 214
/// functions differ`.
fn sentence(label: &str, change: &SampledChange) -> String {
    let SampledChange { baseline_total: before, target_total: after, .. } = change;
    let who = if change.facts[1].in_client { "the client with the library" } else { "the server" };
    let differ = match change.functions.len() {
        0 => format!("none of {} functions is shown to differ", change.tested),
        1 => format!("1 of {} functions differs", change.tested),
        count if count < change.differing => {
            format!(
                "{} of {} functions ({count} are listed) differ",
                change.differing, change.tested
            )
        }
        count => format!("{count} of {} functions differ", change.tested),
    };
    let pairs = if change.pairs == 1 { "pair" } else { "pairs" };
    format!(
        "{label}: {after:.2} us of CPU per operation in {who}, {:+.2} ({:+.1} %) from the \
         baseline's {before:.2}, by samples in {} {pairs} of blocks; {differ} by more than {:.1} % \
         of the operation.",
        after - before,
        100.0 * (after / before - 1.0),
        change.pairs,
        100.0 * LAYOUT_SHARE,
    )
}

fn columns() -> Vec<Column> {
    vec![
        Column::numbers("difference")
            .with_legend("own CPU us per operation, target - baseline; 95 %"),
        Column::numbers("%").with_legend("difference / all CPU time per operation of the baseline"),
        Column::numbers("baseline").with_legend("own CPU us per operation"),
        Column::numbers("target").with_legend("own CPU us per operation"),
        Column::numbers("incl.").with_legend("with the functions that it calls, baseline"),
        Column::numbers("incl. target").with_legend("with the functions that it calls, target"),
        Column::numbers("q").with_legend("of its own time"),
        Column::numbers("q incl.").with_legend("of its time with the functions that it calls"),
        Column::of_row("function"),
    ]
}

fn cells(change: &SampledChange, it: &SampledFunction) -> Vec<Cell> {
    let time = |value: f64| Cell::number(value, Digits::Fixed(3), "us/op");
    let q = |q: Option<f64>| Cell::probability(q, "too few samples");
    vec![
        time(it.difference()).within(it.interval),
        Cell::text(format!("{:+.2} %", 100.0 * it.difference() / change.baseline_total)),
        time(it.baseline.own),
        time(it.target.own),
        time(it.baseline.inclusive),
        time(it.target.inclusive),
        q(it.q_own),
        q(it.q_inclusive),
        Cell::text(shown(&it.name)),
    ]
}

/// Facts about the samples, in sentences; empty without samples.
pub(super) fn honesty(comparison: &Comparison, targets: &[TargetResult]) -> String {
    let mut parts = Vec::new();
    for target in targets {
        let Some(change) = &target.sampled else { continue };
        if parts.is_empty() {
            parts.push(facts(&comparison.baseline, &change.facts[0]));
        }
        parts.push(facts(&target.label, &change.facts[1]));
    }
    if parts.is_empty() {
        return missing(comparison, targets);
    }
    let overhead = comparison.overhead.map_or_else(String::new, |overhead| {
        let ratio = Cell::number(overhead.ratio, Digits::Fixed(3), "ratio");
        format!(
            " Rates of blocks with the profiler were {} times those of blocks without.",
            ratio.within(overhead.interval).plain()
        )
    });
    let all: Vec<&ProfileFacts> =
        targets.iter().filter_map(|it| it.sampled.as_ref()).flat_map(|it| &it.facts).collect();
    format!("Samples of CPU time: {}.{overhead}{}", parts.join("; "), ways_out(&all))
}

/// The reason why a profiled step has no samples; empty if it was not profiled.
fn missing(comparison: &Comparison, targets: &[TargetResult]) -> String {
    if comparison.profiles.is_none() {
        return String::new();
    }
    let records = targets.iter().flat_map(|target| &target.samples).map(|sample| &sample.record);
    let mut reasons = records.filter_map(|record| record.usage.missing.get("profile"));
    let why = reasons.next().map_or("no block has samples of both targets", String::as_str);
    format!("Where time goes is not known: {why}.")
}

/// Ways to improve the samples.
fn ways_out(all: &[&ProfileFacts]) -> String {
    let worst = |of: fn(&ProfileFacts) -> u64| {
        all.iter().map(|facts| facts.share(of(facts))).fold(0.0, f64::max)
    };
    let ways = [
        (
            worst(|facts| facts.nameless),
            0.1,
            " Functions without a symbol get names from a build that is not stripped; those of the \
             kernel, if kernel.kptr_restrict is 0 or rqps runs as root.",
        ),
        (
            worst(|facts| facts.broken),
            0.2,
            " Where stacks are broken, inclusive times and the flame graph lack callers: a build \
             with -fno-omit-frame-pointer has them.",
        ),
        (
            worst(|facts| facts.lost),
            0.01,
            " The samples that were lost may not be like the others: a smaller `hertz` in \
             `[profile]` of the plan loses fewer.",
        ),
    ];
    ways.iter().filter(|(share, many, _)| share > many).map(|(_, _, way)| *way).collect()
}

/// `A: 81,000, 0.2 % without a symbol, 3.1 % of stacks broken (frame pointers)`.
fn facts(label: &str, facts: &ProfileFacts) -> String {
    let percent = |samples: u64| format!("{:.1} %", 100.0 * facts.share(samples));
    let how = if facts.call_graphs.contains(&CallGraph::Dwarf) {
        CallGraph::Dwarf
    } else {
        CallGraph::FramePointers
    };
    let lost = match facts.lost {
        0 => String::new(),
        lost => format!(", {lost} lost"),
    };
    format!(
        "{label} {}{lost}, {} without a symbol, {} of stacks broken ({})",
        facts.samples,
        percent(facts.nameless),
        percent(facts.broken),
        how.words()
    )
}

// Off-CPU time in reports: what the threads that serve clients wait for.

/// Waits of a smaller share of both targets' time are not listed, unless they differ.
const WAIT_SHARE_LEAST: f64 = 0.002;

/// The waits of a target in a step: a sentence, and a table.
pub(super) fn waits_of_target(target: &TargetResult, rules: &Rules) -> Vec<Block> {
    let Some(change) = target.sampled.as_ref().and_then(|it| it.waits.as_ref()) else {
        return Vec::new();
    };
    let total = |of: fn(&SampledWait) -> f64, running: f64| {
        running + change.waits.iter().map(of).sum::<f64>()
    };
    let (before, after) =
        (total(|it| it.baseline, change.running[0]), total(|it| it.target, change.running[1]));
    let differs = |it: &SampledWait| it.test.is_some_and(|test| test.q <= rules.q);
    let is_much = |it: &SampledWait| {
        it.baseline > WAIT_SHARE_LEAST * before
            || it.target > WAIT_SHARE_LEAST * after
            || differs(it)
    };
    let rows: Vec<Vec<Cell>> =
        change.waits.iter().filter(|it| is_much(it)).map(waits_cells).collect();
    let differing = change.waits.iter().filter(|it| differs(it)).count();
    let mut blocks = vec![Block::Paragraph(waits_sentence(&target.label, change, differing))];
    if !rows.is_empty() {
        let caption = format!("{}: off-CPU time per operation, by wait", target.label);
        blocks.push(Block::table(caption, waits_columns(), rows));
    }
    blocks
}

fn waits_sentence(label: &str, change: &WaitChange, differing: usize) -> String {
    let tested = change.waits.iter().filter(|it| it.test.is_some()).count();
    let [before, after] = change.running;
    let differ = match (tested, differing) {
        (0, _) => "waits are too rare to be tested".to_owned(),
        (tested, 0) => format!("none of {tested} waits is shown to differ"),
        (tested, 1) => format!("1 of {tested} waits differs"),
        (tested, count) => format!("{count} of {tested} waits differ"),
    };
    format!(
        "{label}: the threads that serve clients run, or are ready to run, for {after:.2} us per \
         operation (baseline {before:.2}); {differ}. Waiting for the client does not count."
    )
}

fn waits_columns() -> Vec<Column> {
    vec![
        Column::numbers("difference").with_legend("us per operation, target - baseline; 95 %"),
        Column::numbers("baseline").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("target").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("q").with_legend("of the difference"),
        Column::of_row("wait"),
    ]
}

fn waits_cells(it: &SampledWait) -> Vec<Cell> {
    let time = |value: f64| Cell::number(value, Digits::Fixed(2), "us/op");
    vec![
        time(it.difference()).within(it.test.map(|test| test.interval)),
        time(it.baseline),
        time(it.target),
        Cell::probability(it.test.map(|test| test.q), "too rarely seen"),
        Cell::text(it.name.clone()),
    ]
}

/// The method of observing waits, or the reason why they are unknown; empty without a profile.
pub(super) fn waits_honesty(targets: &[TargetResult]) -> String {
    let found: Vec<&WaitChange> =
        targets.iter().filter_map(|target| target.sampled.as_ref()?.waits.as_ref()).collect();
    let Some(first) = found.first() else {
        let records = targets.iter().flat_map(|target| &target.samples);
        let mut reasons = records.filter_map(|sample| sample.record.usage.missing.get("waits"));
        return reasons.next().map_or_else(String::new, |why| {
            format!(" What threads wait for is not known: {why}.")
        });
    };
    let looks: u64 = found.iter().map(|change| change.looks).sum();
    format!(
        " Waits are by {looks} looks at {} and {} threads (system call in /proc), without stacks \
         and without background threads; the run queue is the kernel's own measure and part of \
         being ready to run.",
        first.serving[0], first.serving[1]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::counted::CallNode;

    fn made() -> StepStacks {
        let node = |caller, name, own| CallNode { caller, name, own };
        let tree = CallTree {
            names: ["main", "run"].map(Arc::from).to_vec(),
            nodes: vec![node(None, 0, 1), node(Some(0), 1, 300)],
        };
        let (step, label) = ("point-query".to_owned(), "A".to_owned());
        let mut stacks = StepStacks { step, label, hertz: 1000, stacks: BTreeMap::new() };
        stacks.add(&tree);
        stacks
    }

    #[test]
    fn folded_lines() {
        assert_eq!(made().folded(), "main 1\nmain;run 300\n");
    }

    #[test]
    fn a_message_that_other_tools_read() {
        let bytes = made().pprof();
        // Sample types, then the sample of `main`: location 1; 1 sample, 1,000,000 ns.
        let head = [0x0a, 4, 8, 1, 16, 2, 0x0a, 4, 8, 3, 16, 4];
        assert_eq!(bytes[..12], head);
        assert_eq!(bytes[12..24], [0x12, 9, 0x0a, 1, 1, 0x12, 4, 1, 0xc0, 0x84, 0x3d, 0x12]);
        let texts = ["", "samples", "count", "cpu", "nanoseconds", "main", "run"];
        let mut table = Message::default();
        texts.iter().for_each(|text| table.bytes(6, text.as_bytes()));
        assert!(bytes.windows(table.0.len()).any(|part| part == table.0), "{bytes:?}");
    }
}
