//! Sampled stacks for other tools: as folded text, and in the format of pprof.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::sampled::SampledFunction;
use rqps_model::sampled::CallTree;

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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::sampled::CallNode;

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
