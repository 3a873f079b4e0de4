//! Reads what `perf script` prints: for each sample a line with its time, then a line for each
//! frame of its stack, the innermost first, then an empty line.

use std::collections::HashMap;

/// The first functions of threads. A stack that does not lead there is broken.
const BEGINNINGS: [&str; 13] = [
    "_start", "main", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone",
    "clone3", "__clone", "__clone3", "thread_start", "ret_from_fork", "ret_from_fork_asm",
    "kthread",
];
/// Number of outermost frames that may come before the beginning: stripped libraries do not name
/// theirs.
const FRAMES_BEFORE: usize = 3;

/// The stacks that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// `outer;inner;innermost` → samples. Functions of the kernel end with `_[k]`.
    pub folded: HashMap<String, u64>,
    /// Samples.
    pub samples: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// Samples whose stack is broken.
    pub broken: u64,
    /// Samples whose innermost function has no name.
    pub nameless: u64,
}

/// Reads line by line.
#[derive(Debug)]
pub(crate) struct ScriptReader {
    window: (f64, f64),
    stacks: Stacks,
    /// True while the lines are those of a sample that counts.
    counts: bool,
    /// Names of the current sample, the innermost first, and whether it is a name.
    frames: Vec<(String, bool)>,
}

impl ScriptReader {
    /// Samples count from the first to the second time, in seconds.
    pub(crate) fn new(window: (f64, f64)) -> ScriptReader {
        ScriptReader { window, stacks: Stacks::default(), counts: false, frames: Vec::new() }
    }

    /// The next line.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        match line.chars().next() {
            None => self.sample(),
            Some('\t') if self.counts => self.frames.push(frame(line.trim_start())),
            Some('\t') => {}
            Some(_) => {
                self.sample();
                self.head(line);
            }
        }
    }

    /// The stacks found.
    pub(crate) fn end(mut self) -> Stacks {
        self.sample();
        self.stacks
    }

    /// `1234/1234  5678.123456789:   cpu-clock:pppH:`, or a record of losses.
    fn head(&mut self, line: &str) {
        if line.contains("PERF_RECORD_LOST") {
            let number = line.rsplit(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
            self.stacks.lost += number.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            return;
        }
        let mut words = line.split_whitespace().filter_map(|word| word.strip_suffix(':'));
        let time = words.find_map(|word| word.parse::<f64>().ok());
        self.counts = time.is_some_and(|time| time >= self.window.0 && time <= self.window.1);
    }

    /// Ends the current sample. One without a stack has no function either.
    fn sample(&mut self) {
        if !self.counts {
            return;
        }
        self.counts = false;
        let frames = std::mem::take(&mut self.frames);
        self.stacks.samples += 1;
        let outermost = frames.iter().rev().take(FRAMES_BEFORE);
        if !outermost.clone().any(|(name, _)| BEGINNINGS.contains(&plain(name))) {
            self.stacks.broken += 1;
        }
        if frames.first().is_none_or(|(_, is_named)| !is_named) {
            self.stacks.nameless += 1;
        }
        let names: Vec<&str> = frames.iter().rev().map(|(name, _)| name.as_str()).collect();
        let folded = if names.is_empty() { "(no stack)".to_owned() } else { names.join(";") };
        *self.stacks.folded.entry(folded).or_default() += 1;
    }
}

/// Without the version of the symbol and the mark of the kernel.
fn plain(name: &str) -> &str {
    let name = name.strip_suffix("_[k]").unwrap_or(name);
    name.split('@').next().unwrap_or(name)
}

/// `ffffffff8100 name (file)` → the name, and whether it is one.
fn frame(line: &str) -> (String, bool) {
    let rest = line.split_once(' ').map_or("", |(_, rest)| rest);
    let (name, file) = match rest.rsplit_once(" (") {
        Some((before, "deleted))")) => before.rsplit_once(" (").unwrap_or((before, "")),
        Some((name, file)) => (name, file.strip_suffix(')').unwrap_or(file)),
        None => (rest, ""),
    };
    let is_kernel =
        file.starts_with("[kernel") || file.starts_with("[guest") || file.ends_with(".ko");
    let mark = if is_kernel { "_[k]" } else { "" };
    match name.trim() {
        "" | "[unknown]" => {
            let file = file.rsplit('/').next().filter(|file| !file.is_empty());
            (format!("(no symbol) {}", file.unwrap_or("unknown file")), false)
        }
        name => (format!("{}{mark}", name.replace(';', ":")), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_the_window_are_folded() {
        let text = "\
 100/100   10.000000000:  cpu-clock:pppH: \n\
\t    5581 too_early (/bin/db)\n\
\n\
 100/100   20.500000000:  cpu-clock:pppH: \n\
\tffffffff8100 do_syscall_64 ([kernel.kallsyms])\n\
\t    5581 std::map<int, int>::find (/opt/my db/bin/db)\n\
\t    5580 main (/bin/db)\n\
\t    7f00 __libc_start_main@@GLIBC_2.34 (/lib/libc.so.6)\n\
\n\
 100/101   20.600000000:  cpu-clock:pppH: \n\
\t    7f11 [unknown] (/lib/libstripped.so (deleted))\n\
\t    7f12 [unknown] ([unknown])\n\
\n\
   0/0     20.700000000: PERF_RECORD_LOST lost 12\n\
 100/101   20.800000000:  cpu-clock:pppH: \n\
\n";
        let mut script = ScriptReader::new((20.0, 30.0));
        text.lines().for_each(|line| script.line(line));
        let found = script.end();
        assert_eq!((found.samples, found.lost, found.broken, found.nameless), (3, 12, 2, 2));
        let mut folded: Vec<(&str, u64)> =
            found.folded.iter().map(|(stack, count)| (stack.as_str(), *count)).collect();
        folded.sort_unstable();
        let expected = [
            ("(no stack)", 1),
            ("(no symbol) [unknown];(no symbol) libstripped.so", 1),
            ("__libc_start_main@@GLIBC_2.34;main;std::map<int, int>::find;do_syscall_64_[k]", 1),
        ];
        assert_eq!(folded, expected);
    }
}
