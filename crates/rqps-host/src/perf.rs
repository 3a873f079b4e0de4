//! The program perf: samples the stacks of running processes, and names their functions.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use thiserror::Error;

use crate::child::{self, ChildTask};
use crate::command_output::{self, gather, joined};
use crate::perf_script::{ScriptReader, Stacks};
use rqps_model::sampled::CallGraph;

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

    /// Runs it for a moment and returns what it wrote to standard output.
    fn say(&self, doing: &'static str, words: &[&str]) -> Result<String, PerfError> {
        let mut command = child::command(&self.program, ChildTask::Work);
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
        let log = File::create(&said).map_err(|error| self.broken(DOING, error.to_string()))?;
        let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
        let stacks = match call_graph {
            CallGraph::FramePointers => "fp",
            CallGraph::Dwarf => STACK_BYTES,
        };
        let pids = pids.join(",");
        let scope = if self.whole_host { vec!["-a"] } else { vec!["-p", pids.as_str()] };
        let child = child::command(&self.program, ChildTask::Work)
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
        let mut child = child::command(&self.perf.program, ChildTask::Work)
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

#[cfg(test)]
mod tests {
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
            let script = format!("#!/bin/sh\ncase \"$*\" in *' -a '*) exit {of_host};; esac\n");
            fs::write(&fake, script).unwrap();
            fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
            let perf = Perf::find(&[folder.path().to_owned()]).unwrap();
            assert_eq!(perf.whole_host, expected);
        };
        check("0", true);
        check("255", false);
    }
}
