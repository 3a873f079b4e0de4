//! The program perf: samples the stacks of running processes, and names their functions.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustix::process::{Pid, Signal};
use thiserror::Error;

use crate::child::{self, ChildTask};
use crate::command_output::{self, gather, joined};
use rqps_model::counted::CallGraph;
use rqps_model::{bounded, safe_path, units};

/// The sampled event: CPU time. A hardware event would be more exact, but not comparable between
/// hosts with and without it.
pub const EVENT: &str = "cpu-clock";

/// Bytes of a stack that are copied for a sample, where frame pointers do not tell.
const STACK_BYTES: &str = "dwarf,8192";

/// Time limit for perf to write its data and end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time that the clients wait for perf before they begin without it.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at a process that is to end.
const LOOK: Duration = Duration::from_millis(10);

/// An error of perf.
#[derive(Debug, Error)]
pub enum PerfError {
    /// No such program in any folder of PATH.
    #[error(
        "find perf in PATH: it is not there; install the package linux-perf (Debian: apt-get \
         install linux-perf)"
    )]
    Missing,
    /// The kernel does not let this user sample.
    #[error(
        "sample with {}: the kernel forbids it ({why}); kernel.perf_event_paranoid is {paranoid}: \
         run rqps as root, or `sysctl kernel.perf_event_paranoid=1`",
        program.display()
    )]
    Forbidden {
        /// The program.
        program: PathBuf,
        /// The setting of the kernel.
        paranoid: String,
        /// The message of perf.
        why: String,
    },
    /// It does not do what it was asked for.
    #[error("{doing} with {}: {why}", program.display())]
    Broken {
        /// The action.
        doing: &'static str,
        /// The program.
        program: PathBuf,
        /// The message of perf, or the reason why it could not be started.
        why: String,
    },
}

/// The program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    program: PathBuf,
    /// `perf version 6.1.187`.
    version: String,
    /// True if it may sample all processes of the host.
    whole_host: bool,
}

impl Perf {
    /// Finds the program in these folders, those of PATH, and tries whether it may sample.
    ///
    /// # Errors
    /// It is not there, does not work, or may not.
    pub fn find(folders: &[PathBuf]) -> Result<Perf, PerfError> {
        let mut places = folders.iter().map(|folder| folder.join("perf"));
        let program = places.find(|place| place.is_absolute() && place.is_file());
        let program = program.ok_or(PerfError::Missing)?;
        let perf = Perf { program, version: String::new(), whole_host: false };
        let version = perf.say("tell the version", &["--version"])?;
        let perf = Perf { version: version.trim().to_owned(), ..perf };
        let trial = |scope: &[&str]| {
            let words = ["record", "-q", "-e", EVENT, "-o", "/dev/null"];
            perf.say("sample", &[&words, scope, &["--", "true"]].concat())
        };
        match trial(&[]) {
            Err(PerfError::Broken { program, why, .. }) => {
                let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                let paranoid = setting.map_or("unknown".to_owned(), |it| it.trim().to_owned());
                Err(PerfError::Forbidden { program, paranoid, why })
            }
            Err(error) => Err(error),
            Ok(_) => Ok(Perf { whole_host: trial(&["-a"]).is_ok(), ..perf }),
        }
    }

    /// `perf version 6.1.187`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// perf, in the root folder: it takes symbols from files in its current one, which may be a source
    /// tree of somebody.
    fn command(&self) -> Command {
        let mut command = child::command(&self.program, ChildTask::Work);
        command.current_dir("/");
        command
    }

    /// Runs it for a moment and returns what it wrote to standard output.
    fn say(&self, doing: &'static str, words: &[&str]) -> Result<String, PerfError> {
        let mut command = self.command();
        command.args(words);
        let said =
            command_output::run(command).map_err(|error| self.broken(doing, error.to_string()))?;
        if said.success() {
            Ok(said.output)
        } else {
            Err(self.broken(doing, first_words(&said.errors, &said.status.to_string())))
        }
    }

    fn broken(&self, doing: &'static str, why: String) -> PerfError {
        PerfError::Broken { doing, program: self.program.clone(), why }
    }

    /// Begins to sample these processes and all that they start from now on, into `file`; where the
    /// kernel lets it, the whole host.
    ///
    /// The kernel sets a timer anew whenever a sampled process gets a CPU. On a virtual machine
    /// that costs microseconds, tens of thousands of times a second for a server of short
    /// statements. The timers of a whole host run on.
    ///
    /// # Errors
    /// perf cannot be started.
    pub fn record(
        &self,
        processes: &[u32],
        hertz: u32,
        call_graph: CallGraph,
        file: PathBuf,
    ) -> Result<Recording, PerfError> {
        const DOING: &str = "begin to sample";
        let said = file.with_extension("said");
        let log =
            safe_path::create_file(&said).map_err(|error| self.broken(DOING, error.to_string()))?;
        let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
        let stacks = match call_graph {
            CallGraph::FramePointers => "fp",
            CallGraph::Dwarf => STACK_BYTES,
        };
        let pids = pids.join(",");
        let scope = if self.whole_host { vec!["-a"] } else { vec!["-p", pids.as_str()] };
        let file =
            std::path::absolute(file).map_err(|error| self.broken(DOING, error.to_string()))?;
        let child = self
            .command()
            .args(["record", "-e", EVENT, "-F", &hertz.to_string(), "--call-graph", stacks])
            .args(scope)
            // Times that tell whether a sample is of the window; no caches of anything.
            .args(["-k", "CLOCK_MONOTONIC", "--no-buildid", "--no-buildid-cache", "-o"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| self.broken(DOING, error.to_string()))?;
        Ok(Recording { perf: self.clone(), child, file, said })
    }
}

/// perf at work. Dropping it ends the process.
#[derive(Debug)]
pub struct Recording {
    perf: Perf,
    child: Child,
    file: PathBuf,
    /// File with what it says.
    said: PathBuf,
}

impl Recording {
    /// Waits until perf has begun to write, but not for long: a busy host takes its time.
    pub fn wait_for_start(&mut self) {
        let deadline = Instant::now() + START_PATIENCE;
        let is_empty = |file: &Path| fs::metadata(file).map_or(0, |facts| facts.len()) == 0;
        while is_empty(&self.file) && self.is_at_work() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
    }

    /// True while perf samples. It ends at once where one of its processes is gone already.
    pub fn is_at_work(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends sampling.
    ///
    /// # Errors
    /// perf ended before, or does not end now.
    pub fn end(mut self) -> Result<Recorded, PerfError> {
        const DOING: &str = "sample";
        let broken = |recording: &Recording, why: String| {
            let said = fs::read_to_string(&recording.said).unwrap_or_default();
            recording.perf.broken(DOING, first_words(&said, &why))
        };
        match self.child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(broken(&self, format!("it ended early ({status})"))),
            Err(error) => return Err(broken(&self, error.to_string())),
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let told = pid.map(|pid| rustix::process::kill_process(pid, Signal::INT));
        if let Some(Err(error)) = told {
            return Err(broken(&self, error.to_string()));
        }
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let why = format!("it does not end within {} s", PATIENCE.as_secs());
                return Err(broken(&self, why));
            }
            thread::sleep(LOOK);
        }
        match fs::metadata(&self.file) {
            Ok(facts) if facts.len() > 0 => {
                Ok(Recorded { perf: self.perf.clone(), file: self.file.clone() })
            }
            _ => Err(broken(&self, "it wrote nothing".to_owned())),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_file(&self.said).ok();
    }
}

/// A file of samples. Dropping it removes the file.
#[derive(Debug)]
pub struct Recorded {
    perf: Perf,
    file: PathBuf,
}

impl Recorded {
    /// The stacks of samples of these processes in a window: from and to, seconds of the monotonic
    /// clock.
    ///
    /// # Errors
    /// perf cannot read its own file.
    pub fn stacks(&self, processes: &[u32], window: (f64, f64)) -> Result<Stacks, PerfError> {
        const DOING: &str = "name the functions of samples";
        let broken = |why: String| self.perf.broken(DOING, why);
        let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
        // What was sampled by its process has no other samples.
        let of = self.perf.whole_host.then(|| format!("--pid={}", pids.join(",")));
        let mut child = self
            .perf
            .command()
            .args(["script", "--no-inline", "--show-lost-events", "--ns"])
            .args(["-F", "pid,tid,time,event,ip,sym,dso", "-i"])
            .arg(&self.file)
            .args(of)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| broken(error.to_string()))?;
        let errors = gather(child.stderr.take());
        let mut script = ScriptReader::new(window);
        let mut lines = BufReader::new(child.stdout.take().ok_or_else(|| broken("?".to_owned()))?);
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => script.line(&String::from_utf8_lossy(&line)),
                Err(error) => return Err(broken(error.to_string())),
            }
        }
        let status = child.wait().map_err(|error| broken(error.to_string()))?;
        let said = joined(errors);
        if status.success() {
            Ok(script.end())
        } else {
            Err(broken(first_words(&said, &status.to_string())))
        }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |facts| facts.len())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // It is in a folder that is removed anyway.
        fs::remove_file(&self.file).ok();
    }
}

/// The first words that tell something, else `otherwise`.
fn first_words(said: &str, otherwise: &str) -> String {
    let tells = |line: &&str| line.len() > "Error:".len() && !line.starts_with("[ perf record:");
    let line = said.lines().map(str::trim).find(tells);
    line.unwrap_or(otherwise).to_owned()
}

/// The file of the samples of NAME: `folder/NAME.perf`.
pub fn file_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.perf"))
}

// Reads what `perf script` prints: for each sample a line with its time, then a line for each
// frame of its stack, the innermost first, then an empty line.

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

// Names of functions of programs and libraries, by their addresses in the file: from a debug file
// of the same build, else by the place where the function begins.

/// The table of functions in `.eh_frame_hdr` that all linkers write: version 1, a count of 4
/// bytes, and pairs of 4 bytes relative to the section.
const TABLE_FORMAT: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Most bytes of a file with symbols, which a process under test had mapped and which may be anything
/// by now: debug files of MySQL have some 500 MB.
const FILE_BYTES: u64 = 4 << 30;

/// Most bytes of a function's name as it is in the source.
const PLAIN_BYTES: usize = 8192;
/// Most bytes of a name as it is in the file. All names of a file may end at the same place.
const MANGLED_BYTES: usize = 4096;

/// The functions of one file.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Name of the file, for functions without a name of their own.
    file: String,
    /// First address, address after the last, name; ascending.
    named: Vec<(u64, u64, String)>,
    /// Start addresses of functions, ascending; stripped files keep them for unwinding.
    starts: Vec<u64>,
}

impl Symbols {
    /// Reads those of `path`, and the names in its debug file if one of the folders has it:
    /// `FOLDER/.build-id/ab/cdef….debug` or `FOLDER/ab/cdef….debug`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path, debug_folders: &[PathBuf]) -> io::Result<Symbols> {
        let bytes = bounded::bytes(path, FILE_BYTES)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file that is no ELF, such as a script, has no functions.
        let Ok(elf) = object::File::parse(&*bytes) else {
            return Ok(Symbols { file, ..Symbols::default() });
        };
        let mut named = names(&elf);
        let build_id = elf.build_id().ok().flatten();
        let debug = build_id.and_then(|id| debug_file(id, debug_folders));
        if let Some(debug) = debug {
            let bytes = bounded::bytes(&debug, FILE_BYTES)?;
            if let Ok(elf) = object::File::parse(&*bytes) {
                named.extend(names(&elf));
            }
        }
        named.sort();
        Ok(Symbols { file, named, starts: starts(&elf) })
    }

    /// The name of the function at an address, or `FILE+0x51230` with the address at which it
    /// begins.
    pub fn name(&self, address: u64) -> String {
        let before = self.named.partition_point(|(first, ..)| *first <= address);
        if let Some((_, end, name)) = before.checked_sub(1).and_then(|place| self.named.get(place))
            && address < *end
        {
            return name.clone();
        }
        let before = self.starts.partition_point(|start| *start <= address);
        let start = before.checked_sub(1).map_or(address, |place| self.starts[place]);
        format!("{}+{start:#x}", self.file)
    }
}

/// Whether the ELF file `path` names a function like this.
///
/// # Errors
/// The file cannot be read.
pub fn has_function(path: &Path, name: &str) -> io::Result<bool> {
    let bytes = bounded::bytes(path, FILE_BYTES)?;
    let elf = object::File::parse(&*bytes).map_err(io::Error::other)?;
    let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
    Ok(symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name)))
}

/// Named functions with a size.
fn names(elf: &object::File<'_>) -> Vec<(u64, u64, String)> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let function = |symbol: object::Symbol<'_, '_>| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let name = symbol.name().ok().filter(|name| is_function && !name.is_empty())?;
        let (first, size) = (symbol.address(), symbol.size());
        Some((first, first.saturating_add(size), readable(name)))
    };
    symbols.filter_map(function).collect()
}

/// A name as it is in the source; the beginning of the name in the file if that is too long. A
/// short name may stand for one that fills the memory: its parts may be pairs of its other parts.
fn readable(name: &str) -> String {
    let mut plain = Limited { text: String::new() };
    let shown = cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.structured_demangle(&mut plain, &Default::default()).ok());
    match shown {
        Some(()) => plain.text,
        None => name[..name.floor_char_boundary(MANGLED_BYTES)].to_owned(),
    }
}

/// A text that takes no more than [`PLAIN_BYTES`].
struct Limited {
    text: String,
}

impl fmt::Write for Limited {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len() + piece.len() > PLAIN_BYTES {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

fn debug_file(build_id: &[u8], folders: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let file = Path::new(&units::hex(&[*first])).join(format!("{}.debug", units::hex(rest)));
    let places = folders
        .iter()
        .flat_map(|folder| [folder.join(".build-id").join(&file), folder.join(&file)]);
    places.into_iter().find(|place| place.is_file())
}

/// Start addresses of functions, from the unwinding table.
fn starts(elf: &object::File<'_>) -> Vec<u64> {
    let Some(section) = elf.section_by_name(".eh_frame_hdr") else { return Vec::new() };
    let Ok(table) = section.data() else { return Vec::new() };
    if !table.starts_with(&TABLE_FORMAT) {
        return Vec::new();
    }
    let rows = table.get(12..).unwrap_or_default().chunks_exact(8);
    let start = |row: &[u8]| {
        let relative = i32::from_le_bytes([row[0], row[1], row[2], row[3]]);
        section.address().wrapping_add_signed(i64::from(relative))
    };
    let mut starts: Vec<u64> = rows.map(start).collect();
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_missing_perf_names_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let error = Perf::find(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("apt-get install linux-perf"), "{error}");
    }

    #[test]
    fn a_perf_that_may_not_sample_tells_the_way_out() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("perf");
        let script = "#!/bin/sh\n[ \"$1\" = --version ] && { echo perf version 9; exit 0; }\n\
                      echo 'Error:' >&2; echo 'Access to performance monitoring is limited.' >&2\n\
                      exit 255\n";
        fs::write(&fake, script).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Perf::find(&[folder.path().to_owned()]).unwrap_err().to_string();
        for part in ["Access to performance", "perf_event_paranoid is ", "run rqps as root"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn the_whole_host_is_sampled_where_the_kernel_lets_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("perf");
        let check = |of_host: &str, expected: bool| {
            let of_host = format!("*' -a '*) exit {of_host};;");
            let script = format!("#!/bin/sh\ncase \"$*\" in {of_host} *version) pwd;; esac\n");
            fs::write(&fake, script).unwrap();
            fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
            let perf = Perf::find(&[folder.path().to_owned()]).unwrap();
            assert_eq!(perf.whole_host, expected);
            assert_eq!(perf.version, "/", "no symbols from files in the folder of the user");
        };
        check("0", true);
        check("255", false);
    }

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

    fn symbols() -> Symbols {
        Symbols {
            file: "db".to_owned(),
            named: vec![(100, 120, "first".to_owned()), (130, 140, "second".to_owned())],
            starts: vec![100, 120, 130, 200],
        }
    }

    #[test]
    fn what_is_mapped_may_be_no_file_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, huge] = ["pipe", "huge"].map(|name| folder.path().join(name));
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RUSR, 0).unwrap();
        fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
        assert!(Symbols::read(&pipe, &[]).is_err() && Symbols::read(&huge, &[]).is_err());
    }

    #[test]
    fn an_address_belongs_to_the_function_around_it() {
        let symbols = symbols();
        let check = |address, name: &str| assert_eq!(symbols.name(address), name, "{address}");
        check(100, "first");
        check(119, "first");
        check(120, "db+0x78");
        check(129, "db+0x78");
        check(139, "second");
        check(250, "db+0xc8");
        check(7, "db+0x7");
        assert_eq!(Symbols::default().name(5), "+0x5");
    }

    #[test]
    fn this_program_has_functions() {
        // A test is run from a file whose functions have symbols.
        let path = std::env::current_exe().unwrap();
        let symbols = Symbols::read(&path, &[]).unwrap();
        assert!(symbols.starts.len() > 1000, "{}", symbols.starts.len());
        let (first, ..) = symbols.named.iter().find(|named| named.2.contains("Symbols")).unwrap();
        assert!(symbols.starts.binary_search(first).is_ok());
        assert!(symbols.name(*first).contains("Symbols"));
        let text = tempfile::NamedTempFile::new().unwrap();
        let none = Symbols::read(text.path(), &[]).unwrap();
        assert!(none.name(16).ends_with("+0x10"));
        assert!(Symbols::read(Path::new("/no/such/file"), &[]).is_err());
    }

    #[test]
    fn a_short_name_for_an_endless_one_stays_as_it_is() {
        assert_eq!(readable("_ZN3foo3barEv"), "foo::bar()");
        // A pair of ints, a pair of two of these, and so on: 2^30 ints.
        let digit = |n| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
        let pair = |n| format!("S_IS{0}_S{0}_E", digit(n));
        let pairs: String = (0..30).map(pair).collect();
        let bomb = format!("_Z1fSt4pairIiiE{pairs}");
        assert_eq!(readable(&bomb), bomb);
        assert_eq!(readable(&"x".repeat(5000)).len(), MANGLED_BYTES);
    }

    #[test]
    fn a_debug_file_is_found_by_its_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(".build-id/ab");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("cd01.debug"), "").unwrap();
        let folders = [folder.path().to_owned()];
        let found = debug_file(&[0xab, 0xcd, 0x01], &folders);
        assert_eq!(found, Some(place.join("cd01.debug")));
        assert_eq!(debug_file(&[0xab, 0xcd, 0x02], &folders), None);
        let inner = [folder.path().join(".build-id")];
        assert!(debug_file(&[0xab, 0xcd, 0x01], &inner).is_some());
        assert_eq!(debug_file(&[], &folders), None);
    }
}
