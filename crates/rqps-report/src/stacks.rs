//! Sampled stacks for other tools: as folded text, and in the format of pprof.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rqps_analysis::Comparison;
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
