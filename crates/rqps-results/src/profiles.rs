//! Profiles of steps: of callgrind, and sampled stacks.

use std::collections::HashMap;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::read::ResultsError;
use rqps_model::bounded;
use rqps_model::counted::{
    CallNode, CallTree, CountedProfile, ProfileCall, ProfileFunction, ProfilePart, Simulated,
};
use rqps_model::run::StepRecord;

// Reads the files of callgrind, of valgrind: `steps/NN-NAME.callgrind.gz`.
//
// A file is a list of parts, one for each thread or dump. A part has a head (`key: value`) and a
// body: lines `fn=` and `ob=` name the function that the cost lines after them belong to; `calls=`
// says that the next cost line is the inclusive cost of calls. Names are written once, as
// `(7) name`, then as `(7)`. The format: Callgrind Format Specification of the Valgrind manual.

/// Characters of a profile; no server has that many functions.
const TEXT_MAX: u64 = 512 << 20;
/// Characters of a line of it.
const LINE_MAX: u64 = 16 << 20;
/// Functions and calls of a profile, or places of functions in stacks. Each takes some 70 bytes,
/// and a byte or two of a packed file.
const PLACES_MAX: usize = 1 << 22;

/// The fault of a profile with more than that.
fn check_places(places: usize) -> Result<(), String> {
    if places > PLACES_MAX {
        return Err(format!("it has more than {PLACES_MAX} functions and calls"));
    }
    Ok(())
}

/// Name of the file in the folder of steps.
pub(super) fn callgrind_name(step: &StepRecord) -> String {
    format!("{:02}-{}.callgrind.gz", step.index, step.name)
}

/// Checks that a text is a profile, and compresses it. The error reads after "failed to".
pub(super) fn pack_callgrind(text: &str) -> Result<Vec<u8>, String> {
    let unusable = |(line, why)| format!("use what callgrind wrote: line {line}: {why}");
    parse_callgrind(text).map_err(unusable)?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
    packed.map_err(|error| format!("compress what callgrind wrote: {error}"))
}

/// Reads the profile of a counted step from the folder of steps. One whose file is gone has none.
pub(super) fn attach_callgrind(folder: &Path, step: &mut StepRecord) -> Result<(), ResultsError> {
    if step.counted.is_none() {
        return Ok(());
    }
    let path = folder.join(callgrind_name(step));
    let mut reader = Reader::default();
    let Some(lines) = each_line(&path, &mut |line| reader.line(line))? else { return Ok(()) };
    let profile =
        reader.end(lines).map_err(|(line, why)| ResultsError::malformed(&path, line, None, why))?;
    if let Some(counted) = &mut step.counted {
        counted.profile = Some(Arc::new(profile));
    }
    Ok(())
}

/// Unpacks a file, and gives each of its lines, which are never in memory all at once: a small file
/// may hold many. Returns their number, or `None` if there is no file.
fn each_line(
    path: &Path,
    take: &mut dyn FnMut(&str) -> Result<(), String>,
) -> Result<Option<usize>, ResultsError> {
    let file = match bounded::plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ResultsError::io("open", path)(error)),
    };
    let mut text = BufReader::new(MultiGzDecoder::new(file).take(TEXT_MAX + 1));
    let (mut line, mut number) = (Vec::new(), 0);
    while bounded::line(&mut text, &mut line, LINE_MAX).map_err(ResultsError::io("read", path))? > 0
    {
        number += 1;
        let bad = |why| ResultsError::malformed(path, number, None, why);
        let whole = std::str::from_utf8(&line).map_err(|error| bad(error.to_string()))?;
        take(whole.trim_end_matches(['\r', '\n'])).map_err(bad)?;
        line.clear();
    }
    if text.get_ref().limit() == 0 {
        return Err(ResultsError::io("read", path)(bounded::too_long(TEXT_MAX)));
    }
    Ok(Some(number))
}

/// Events of caches of the first level, of caches of the last level, and of branches, as callgrind
/// names them.
const SIMULATED: [&[&str]; 3] =
    [&["I1mr", "D1mr", "D1mw"], &["ILmr", "DLmr", "DLmw"], &["Bcm", "Bim"]];

/// Places of some events in the line `events:`.
fn places_of(line: &str, events: &[&str]) -> Vec<usize> {
    let all = line.split_whitespace().enumerate();
    all.filter(|(_, event)| events.contains(event)).map(|(place, _)| place).collect()
}

/// A fault in a profile: line from 1, and problem.
type Fault = (usize, String);

/// Reads a profile.
///
/// # Errors
/// A line that is none of the format; a part whose functions do not add up to its total, or that
/// has no total because its end is missing.
pub(super) fn parse_callgrind(text: &str) -> Result<CountedProfile, Fault> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(line).map_err(|why| (number, why))?;
    }
    reader.end(text.lines().count())
}

/// The next cost line.
#[derive(Clone, Copy, Default, PartialEq)]
enum NextCost {
    /// Instructions of the current function itself.
    #[default]
    Own,
    /// Inclusive instructions of so many calls of that function.
    Calls { callee: usize, count: u64 },
    /// The place of a jump, which costs nothing.
    Jump,
}

/// Names that are written once: object files and functions have numbers of their own.
#[derive(Default)]
struct Names {
    objects: HashMap<u32, Arc<str>>,
    functions: HashMap<u32, Arc<str>>,
}

#[derive(Default)]
struct Reader {
    profile: CountedProfile,
    /// Functions and calls of the parts before, and those parts.
    kept: usize,
    part: ProfilePart,
    /// True once the current part has a body.
    in_body: bool,
    total: Option<u64>,
    names: Names,
    /// Words of a cost line before the costs.
    positions: Option<usize>,
    /// Place of the instructions among the costs.
    instructions: Option<usize>,
    /// Places of what is simulated, of each kind; empty without a simulation.
    simulated: [Vec<usize>; 3],
    object: Arc<str>,
    /// Place of the function that cost lines belong to.
    function: Option<usize>,
    called_object: Option<Arc<str>>,
    called: Option<Arc<str>>,
    next: NextCost,
    places: HashMap<(Arc<str>, Arc<str>), usize>,
    edges: HashMap<(usize, usize), usize>,
}

impl Reader {
    /// The profile, after its last line.
    fn end(mut self, lines: usize) -> Result<CountedProfile, Fault> {
        self.end_part().map_err(|why| (lines, why))?;
        if self.profile.parts.is_empty() {
            return Err((lines, "it holds no part with a total".to_owned()));
        }
        Ok(self.profile)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (part, names) = (&self.part, &self.names);
        let named = names.objects.len() + names.functions.len();
        check_places(self.kept + part.functions.len() + part.calls.len() + named)?;
        let line = line.trim_end();
        let Some(first) = line.chars().next() else { return Ok(()) };
        match first {
            '#' => Ok(()),
            '0'..='9' | '+' | '-' | '*' => self.cost(line),
            _ => {
                let end = line.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(line.len());
                let (key, rest) = line.split_at(end);
                match (rest.chars().next(), rest.get(1..)) {
                    (Some(':'), Some(value)) => self.head(key, value.trim()),
                    (Some('='), Some(value)) => self.body(key, value.trim()),
                    _ => Err(format!("`{line}` is no line of callgrind")),
                }
            }
        }
    }

    /// A line of a part's head, or its total.
    fn head(&mut self, key: &str, value: &str) -> Result<(), String> {
        let is_first = matches!(key, "version" | "creator" | "pid" | "part" | "thread" | "cmd");
        if is_first && self.in_body {
            self.end_part()?;
        }
        match key {
            // A new file: its numbers of names are its own.
            "version" => self.names = Names::default(),
            "pid" => self.part.pid = Some(number(value)?),
            "thread" => self.part.thread = Some(number(value)?),
            "cmd" => value.clone_into(&mut self.profile.command),
            "positions" => self.positions = Some(value.split_whitespace().count()),
            "events" => {
                let place = value.split_whitespace().position(|event| event == "Ir");
                let place = place.ok_or_else(|| format!("no instructions among `{value}`"))?;
                self.instructions = Some(place);
                self.simulated = SIMULATED.map(|events| places_of(value, events));
                self.part.simulated = self.simulated.iter().any(|places| !places.is_empty());
            }
            "totals" => {
                let costs: Vec<&str> = value.split_whitespace().collect();
                self.total = Some(self.instructions_of(&costs)?);
                self.in_body = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// A line that names something.
    fn body(&mut self, key: &str, value: &str) -> Result<(), String> {
        self.in_body = true;
        match key {
            "ob" => self.object = name(&mut self.names.objects, value)?,
            "fn" => {
                let name = name(&mut self.names.functions, value)?;
                self.function = Some(self.place(Arc::clone(&self.object), name));
                self.next = NextCost::Own;
            }
            "cob" => self.called_object = Some(name(&mut self.names.objects, value)?),
            "cfn" => self.called = Some(name(&mut self.names.functions, value)?),
            "calls" => {
                let count = value.split_whitespace().next().unwrap_or_default();
                let callee = self.called.take().ok_or("`calls=` without `cfn=`")?;
                let object = self.called_object.take();
                let object = object.unwrap_or_else(|| Arc::clone(&self.object));
                let callee = self.place(object, callee);
                self.next = NextCost::Calls { callee, count: number(count)? };
            }
            "jump" | "jcnd" => self.next = NextCost::Jump,
            // Files of sources: a function is known by its name and its object file.
            "fl" | "fi" | "fe" | "cfl" | "cfi" | "jfi" | "jfn" | "frfn" | "rcalls" => {}
            _ => return Err(format!("unknown key `{key}`")),
        }
        Ok(())
    }

    /// A line of positions and costs.
    fn cost(&mut self, line: &str) -> Result<(), String> {
        self.in_body = true;
        let words: Vec<&str> = line.split_whitespace().collect();
        let positions = self.positions.unwrap_or(1);
        if words.len() < positions || !words[..positions].iter().all(|word| is_position(word)) {
            return Err(format!("`{line}` does not begin with {positions} positions"));
        }
        let next = std::mem::take(&mut self.next);
        if next == NextCost::Jump {
            return Ok(());
        }
        let cost = self.instructions_of(&words[positions..])?;
        let function = self.function.ok_or("a cost before the first function")?;
        match next {
            NextCost::Calls { callee, count } => self.call(function, callee, count, cost),
            NextCost::Own | NextCost::Jump => {
                let [first_level, last_level, branches] = self.simulated_of(&words[positions..])?;
                let function = &mut self.part.functions[function];
                let total = function.own.checked_add(cost);
                function.own = total.ok_or("costs that are too large")?;
                let found = &mut function.simulated;
                found.first_level_misses = found.first_level_misses.saturating_add(first_level);
                found.last_level_misses = found.last_level_misses.saturating_add(last_level);
                found.mispredictions = found.mispredictions.saturating_add(branches);
            }
        }
        Ok(())
    }

    /// Instructions among costs; costs that are left out at the end are 0.
    fn instructions_of(&self, costs: &[&str]) -> Result<u64, String> {
        let place = self.instructions.ok_or("a cost before the line `events:`")?;
        costs.get(place).map_or(Ok(0), |cost| number(cost))
    }

    /// The simulated costs by kind.
    fn simulated_of(&self, costs: &[&str]) -> Result<[u64; 3], String> {
        let mut sums = [0u64; 3];
        for (sum, places) in sums.iter_mut().zip(&self.simulated) {
            for cost in places.iter().filter_map(|place| costs.get(*place)) {
                *sum = sum.saturating_add(number(cost)?);
            }
        }
        Ok(sums)
    }

    /// Place of a function in the part.
    fn place(&mut self, object: Arc<str>, name: Arc<str>) -> usize {
        let functions = &mut self.part.functions;
        *self.places.entry((object, name)).or_insert_with_key(|(object, name)| {
            let (object, name) = (Arc::clone(object), Arc::clone(name));
            let simulated = Simulated::default();
            functions.push(ProfileFunction { object, name, own: 0, simulated });
            functions.len() - 1
        })
    }

    fn call(&mut self, caller: usize, callee: usize, count: u64, inclusive: u64) {
        // Callgrind takes the jumps within a function without a name for calls.
        if caller == callee && self.part.functions[caller].name.contains("+0x") {
            return;
        }
        let calls = &mut self.part.calls;
        let place = *self.edges.entry((caller, callee)).or_insert_with(|| {
            calls.push(ProfileCall { caller, callee, count: 0, inclusive: 0 });
            calls.len() - 1
        });
        calls[place].count = calls[place].count.saturating_add(count);
        // A call that began before the count may end below zero, which callgrind writes as a number
        // near 2^64. Such a call tells nothing of its cost.
        let known = i64::try_from(inclusive).map_or(0, i64::cast_unsigned);
        calls[place].inclusive = calls[place].inclusive.saturating_add(known);
    }

    /// Keeps the current part, if it has a body, and begins the next.
    fn end_part(&mut self) -> Result<(), String> {
        if !self.in_body {
            return Ok(());
        }
        let Some(total) = self.total.take() else {
            return Err("a part ends without its `totals:`".to_owned());
        };
        let mut own = self.part.functions.iter().map(|function| function.own);
        let sum = own.try_fold(0, u64::checked_add).ok_or("costs that are too large")?;
        if sum != total {
            return Err(format!("its functions have {sum} instructions, its total is {total}"));
        }
        let mut part = std::mem::take(&mut self.part);
        // The next part may be of the same process, with a head of its own for the rest.
        self.part.pid = part.pid;
        self.part.simulated = part.simulated;
        part.total = total;
        self.kept += part.functions.len() + part.calls.len() + 1;
        self.profile.parts.push(part);
        self.in_body = false;
        self.function = None;
        self.object = Arc::default();
        (self.called_object, self.called, self.next) = (None, None, NextCost::Own);
        self.places.clear();
        self.edges.clear();
        Ok(())
    }
}

/// `(7) name` defines number 7, `(7)` is that name again, and anything else is a name itself.
fn name(known: &mut HashMap<u32, Arc<str>>, value: &str) -> Result<Arc<str>, String> {
    let numbered = value.strip_prefix('(').and_then(|rest| {
        let (id, name) = rest.split_once(')')?;
        Some((id.parse::<u32>().ok()?, name.trim()))
    });
    match numbered {
        None => Ok(Arc::from(value)),
        Some((id, "")) => match known.get(&id) {
            Some(name) => Ok(Arc::clone(name)),
            None => Err(format!("`({id})` was not given a name before")),
        },
        Some((id, name)) => {
            let name: Arc<str> = Arc::from(name);
            known.insert(id, Arc::clone(&name));
            Ok(name)
        }
    }
}

/// An address or a line: absolute, relative to the one before, or the same.
fn is_position(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let hex = digits.strip_prefix("0x");
    let is_number = |text: &str, radix| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    word == "*" || hex.map_or_else(|| is_number(digits, 10), |hex| is_number(hex, 16))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

// The sampled stacks of a step: `steps/NN-NAME.folded.gz`, a line `outer;inner;innermost SAMPLES`
// for each stack, as tools for flame graphs read it.

/// Name of the file in the folder of steps.
pub(super) fn folded_name(step: &StepRecord) -> String {
    format!("{:02}-{}.folded.gz", step.index, step.name)
}

/// Stacks with their samples, compressed. The same stacks give the same bytes.
pub(super) fn pack_folded(folded: &HashMap<String, u64>) -> std::io::Result<Vec<u8>> {
    let mut stacks: Vec<(&String, &u64)> = folded.iter().collect();
    stacks.sort_unstable();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    for (stack, samples) in stacks {
        writeln!(packer, "{stack} {samples}")?;
    }
    packer.finish()
}

/// Reads the stacks of a sampled step from the folder of steps. One whose file is gone has none.
pub(super) fn attach_folded(folder: &Path, step: &mut StepRecord) -> Result<(), ResultsError> {
    if step.sampled.is_none() {
        return Ok(());
    }
    let path = folder.join(folded_name(step));
    let mut folded = Folded::default();
    if each_line(&path, &mut |line| folded.line(line))?.is_none() {
        return Ok(());
    }
    if let Some(sampled) = &mut step.sampled {
        sampled.profile = Some(Arc::new(folded.tree));
    }
    Ok(())
}

/// Joins folded stacks to a tree.
#[derive(Default)]
pub(super) struct Folded {
    tree: CallTree,
    names: HashMap<Arc<str>, u32>,
    places: HashMap<(Option<u32>, u32), u32>,
    total: u64,
}

impl Folded {
    /// A stack with its samples.
    ///
    /// # Errors
    /// It is none, or there are too many.
    pub(super) fn line(&mut self, line: &str) -> Result<(), String> {
        let Folded { tree, names, places, total } = self;
        let parts = line.rsplit_once(' ');
        let parts = parts.and_then(|(stack, samples)| Some((stack, samples.parse::<u64>().ok()?)));
        let (stack, samples) = parts.ok_or("it is no stack with a number of samples")?;
        // So no sum of them overflows.
        *total = total.checked_add(samples).ok_or("its samples are too many")?;
        let mut caller = None;
        for word in stack.split(';') {
            let name = names.get(word).copied().unwrap_or_else(|| {
                let (word, number) = (Arc::<str>::from(word), tree.names.len() as u32);
                tree.names.push(Arc::clone(&word));
                names.insert(word, number);
                number
            });
            let place = *places.entry((caller, name)).or_insert_with(|| {
                tree.nodes.push(CallNode { caller, name, own: 0 });
                tree.nodes.len() as u32 - 1
            });
            check_places(tree.nodes.len())?;
            caller = Some(place);
        }
        if let Some(node) = caller.and_then(|place| tree.nodes.get_mut(place as usize)) {
            node.own += samples;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n\
                        cmd: /bin/db -D x\npart: 1\nthread: 1\n\ndesc: Trigger: Client Request\n\n\
                        positions: line\nevents: Ir\nsummary: 160\n\n";

    /// `object/name own` of all functions, then `caller>callee count inclusive` of all calls.
    fn words(part: &ProfilePart) -> Vec<String> {
        let name = |place: usize| &part.functions[place].name;
        let functions = part.functions.iter();
        let own = functions.map(|f| format!("{}/{} {}", f.object, f.name, f.own));
        let calls = part.calls.iter().map(|call| {
            let ProfileCall { caller, callee, count, inclusive } = *call;
            format!("{}>{} {count} {inclusive}", name(caller), name(callee))
        });
        own.chain(calls).collect()
    }

    fn check(text: &str, expected: &[&str]) -> CountedProfile {
        let profile = parse_callgrind(text).unwrap();
        let all: Vec<String> = profile.parts.iter().flat_map(words).collect();
        assert_eq!(all, expected, "{text}");
        profile
    }

    #[test]
    fn names_are_written_once() {
        let body = "ob=(1) /bin/db\nfl=(1) a.c\nfn=(1) main\n16 20\n\
                    cfn=(2) work\ncalls=3 50\n16 120\n\
                    cob=(2) /lib/libc.so\ncfi=(2) string.c\ncfn=(3) memcpy\ncalls=1 0\n+1 10\n\
                    fn=(2)\n51 60\nfi=(3) inline.h\n+4 50\nfe=(1)\n* 10\n-2 5\n\
                    cfn=(2)\ncalls=1 51\n* 7\n\
                    ob=(2)\nfl=(2)\nfn=(3)\n0 15\n\ntotals: 160\n";
        let profile = check(
            &format!("{HEAD}{body}"),
            &[
                "/bin/db/main 20", "/bin/db/work 125", "/lib/libc.so/memcpy 15", "main>work 3 120",
                "main>memcpy 1 10", "work>work 1 7",
            ],
        );
        let part = &profile.parts[0];
        assert_eq!(profile.command, "/bin/db -D x");
        assert_eq!((part.pid, part.thread, part.total), (Some(7), Some(1), 160));
    }

    #[test]
    fn names_of_operators_and_names_with_parentheses_are_names() {
        let body = "fn=(1) operator==(A const&)\n1 4\nfn=(anonymous namespace)::f()\n1 6\n\
                    totals: 10\n";
        check(
            &format!("{HEAD}{body}"),
            &["/operator==(A const&) 4", "/(anonymous namespace)::f() 6"],
        );
    }

    #[test]
    fn a_call_that_ends_below_zero_costs_nothing() {
        let body = "fn=f\n1 4\ncfn=g\ncalls=1 0\n1 18446744073709551615\ncalls=1 0\n";
        assert!(parse_callgrind(&format!("{HEAD}{body}totals: 4\n")).is_err(), "a call of nothing");
        let body = "fn=f\n1 4\ncfn=g\ncalls=1 0\n1 18446744073709551615\n\
                    cfn=g\ncalls=1 0\n1 7\ntotals: 4\n";
        check(&format!("{HEAD}{body}"), &["/f 4", "/g 0", "f>g 2 7"]);
    }

    #[test]
    fn simulated_events_are_summed_by_kind() {
        let text = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\nfn=f\n\
                    1 9 4 3 1 2 3 1 1 0 5 2 1 1\n+1 2 1 0 1\ntotals: 11\n";
        let profile = check(text, &["/f 11"]);
        let part = &profile.parts[0];
        let expected = Simulated { first_level_misses: 7, last_level_misses: 2, mispredictions: 3 };
        assert_eq!((part.simulated, part.functions[0].simulated), (true, expected));
        assert!(!check("events: Ir\nfn=f\n1 2\ntotals: 2\n", &["/f 2"]).parts[0].simulated);
    }

    #[test]
    fn several_events_and_positions() {
        let text = "positions: instr line\nevents: Dr Ir Dw\n\nfn=f\n0x400 12 1 5 1\n+0x3 * 9\n\
                    * +1 0 6\njcnd=1/2 +8 13\n* 13\njump=4 0x9 3\n0x1 3\n+2 -1 1 2\n\
                    totals: 11 13 1\n";
        check(text, &["/f 13"]);
    }

    #[test]
    fn parts_of_threads_and_of_several_files() {
        let one = format!("{HEAD}ob=(1) db\nfn=(1) f\n1 160\ntotals: 160\n");
        let again = "part: 2\nthread: 2\npositions: line\nevents: Ir\nsummary: 4\n\nob=(1)\n\
                     fn=(1)\n1 4\ntotals: 4\n";
        let profile = check(&format!("{one}{again}"), &["db/f 160", "db/f 4"]);
        let threads: Vec<_> = profile.parts.iter().map(|part| (part.pid, part.thread)).collect();
        assert_eq!(threads, [(Some(7), Some(1)), (Some(7), Some(2))]);
        let other = "version: 1\npid: 8\npart: 1\nthread: 3\nevents: Ir\nob=(1) lib\nfn=(1) g\n\
                     2 1\ntotals: 1\n";
        let profile = check(&format!("{one}{other}"), &["db/f 160", "lib/g 1"]);
        assert_eq!(profile.parts[1].pid, Some(8));
        // A thread that did nothing.
        let idle = format!("{HEAD}totals: 0\n");
        assert_eq!(parse_callgrind(&idle).unwrap().parts[0].total, 0);
    }

    #[test]
    fn costs_that_no_program_has_are_refused() {
        let body = format!("fn=a\n1 {}\nfn=b\n1 1\ntotals: {}\n", u64::MAX, u64::MAX);
        let (_, why) = parse_callgrind(&format!("{HEAD}{body}")).unwrap_err();
        assert_eq!(why, "costs that are too large");
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        let check = |text: &str, line: usize, part: &str| {
            let (at, why) = parse_callgrind(text).unwrap_err();
            assert!(at == line && why.contains(part), "{text}: {at}: {why}");
        };
        check("", 0, "no part");
        check("events: Ir\nfn=f\n1 2\n", 3, "without its `totals:`");
        check("events: Ir\nfn=f\n1 2\ntotals: 3\n", 4, "have 2 instructions, its total is 3");
        check("events: Dr\n", 1, "no instructions among `Dr`");
        check("fn=f\n1 2\n", 2, "before the line `events:`");
        check("events: Ir\n1 2\n", 2, "before the first function");
        check("events: Ir\nfn=(3)\n", 2, "not given a name");
        check("events: Ir\nfn=f\ncalls=1 2\n", 3, "without `cfn=`");
        check("events: Ir\nfn=f\n1 x\n", 3, "`x` is no number");
        check("events: Ir\nfn=f\n1x 2\n", 3, "positions");
        check("events: Ir\nfg=f\n", 2, "unknown key `fg`");
        check("<html>\n", 1, "no line of callgrind");
    }

    proptest! {
        /// The total of a part is the sum of what its functions have, however they are written.
        #[test]
        fn functions_add_up_to_the_total(
            lines in proptest::collection::vec((0u32..9, 0u64..1000, 0u64..3), 0..60),
        ) {
            let mut text = format!("{HEAD}ob=(1) db\n");
            let mut known = std::collections::BTreeSet::new();
            let mut own = HashMap::new();
            let mut total = 0;
            for (function, cost, calls) in lines {
                text += &if known.insert(function) { format!("fn=({function}) f{function}\n") } else { format!("fn=({function})\n") };
                text += &format!("+1 {cost}\n");
                *own.entry(format!("f{function}")).or_insert(0) += cost;
                total += cost;
                if calls > 0 {
                    text += &format!("cfn=({function})\ncalls={calls} 1\n* {cost}\n");
                }
            }
            text += &format!("totals: {total}\n");
            let profile = parse_callgrind(&text).unwrap();
            let part = &profile.parts[0];
            prop_assert_eq!(part.total, total);
            let found: HashMap<String, u64> =
                part.functions.iter().map(|f| (f.name.to_string(), f.own)).collect();
            prop_assert_eq!(found, own);
            let (right, wrong) = (format!("totals: {total}"), format!("totals: {}", total + 1));
            let text = text.replace(&right, &wrong);
            prop_assert!(parse_callgrind(&text).is_err());
        }
    }

    #[test]
    fn stacks_with_a_common_beginning_are_joined() {
        let stacks = [("main;run;read it", 3), ("main;run", 2), ("main;write", 1)];
        let folded = stacks.map(|(stack, samples)| (stack.to_owned(), samples)).into();
        let packed = pack_folded(&folded).unwrap();
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "main;run 2\nmain;run;read it 3\nmain;write 1\n");
        let parsed = |text: &str| {
            let mut folded = Folded::default();
            text.lines().try_for_each(|line| folded.line(line)).map(|()| folded.tree)
        };
        let tree = parsed(&text).unwrap();
        let nodes: Vec<(Option<u32>, &str, u64)> = tree
            .nodes
            .iter()
            .map(|node| (node.caller, &*tree.names[node.name as usize], node.own))
            .collect();
        let expected = [
            (None, "main", 0),
            (Some(0), "run", 2),
            (Some(1), "read it", 3),
            (Some(0), "write", 1),
        ];
        assert_eq!(nodes, expected);
        let refused = |text: &str, why: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("main;run 2\nmain;run\n", "no stack");
        refused("main;run 2\nmain;run 18446744073709551615\n", "too many");
        // As few bytes pack these as those of one line.
        refused(&format!("{} 1", "a;".repeat(PLACES_MAX + 1)), "more than 4194304 functions");
        let mut reader = Reader { kept: PLACES_MAX - 1, ..Reader::default() };
        let mut lines = "events: Ir\nfn=(1) f\nfn=g\nfn=h\n".lines();
        let why = lines.try_for_each(|line| reader.line(line)).unwrap_err();
        assert!(why.contains("more than 4194304 functions"), "{why}");
    }
}
