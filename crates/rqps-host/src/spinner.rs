//! Keeps CPUs from halting while something is measured.
//!
//! Waking a halted CPU of a virtual machine can cost more than a query (docs/measuring.md). The
//! spinner is a process of its own, so that its CPU time can be told from everyone else's: one
//! thread per CPU in the idle scheduling class, which gives way at once to any other thread. It
//! also holds /dev/cpu_dma_latency at 0 where that can be opened, which keeps bare metal out of
//! deep idle states. It ends when its standard input closes, so it cannot outlive its parent.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use thiserror::Error;

use crate::affinity;
use crate::child::{self, ChildTask};

/// First word of the line by which a spinner says that it spins.
const READY: &str = "spinning:";

/// The reason why CPUs could not be kept awake.
#[derive(Debug, Error)]
pub enum SpinnerError {
    /// The process could not be started.
    #[error("start the spinner: {0}; use --idle os to do without it")]
    Start(io::Error),
    /// It ended before it said that it spins.
    #[error("start the spinner: it ended at once with {0:?}; use --idle os to do without it")]
    Ended(String),
    /// The scheduler does not let it be idle, and so it must not spin.
    #[error("enter the idle scheduling class: {0}")]
    Class(io::Error),
}

/// A spinner process; dropped, it is stopped.
#[derive(Debug)]
pub struct Spinner {
    child: Child,
    description: String,
}

impl Spinner {
    /// Starts `program spinner` and waits until it spins.
    pub fn start(program: &Path) -> Result<Spinner, SpinnerError> {
        let mut command = child::command(program, ChildTask::Work);
        command.arg("spinner");
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Result<Spinner, SpinnerError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(SpinnerError::Start)?;
        // From here on, dropping it ends the process.
        let mut spinner = Spinner { child, description: String::new() };
        let mut said = String::new();
        if let Some(out) = spinner.child.stdout.take() {
            for line in BufReader::new(out).lines() {
                let line = line.map_err(SpinnerError::Start)?;
                if let Some((_, told)) = line.split_once(READY) {
                    spinner.description = told.trim().to_string();
                    return Ok(spinner);
                }
                said.push_str(&line);
                said.push('\n');
            }
        }
        Err(SpinnerError::Ended(said))
    }

    /// Its process id, for [`crate::sample::CounterSampler`].
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A description: `1 thread on each of 2 CPUs, cpu_dma_latency held`.
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may hang or be gone; both are well after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The spinner process itself: spins until `input` ends or the parent is gone. Writes one line to
/// `output` when it spins.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), SpinnerError> {
    let parent = rustix::process::getppid();
    let cpus = affinity::allowed_cpus();
    let latency = hold_latency();
    // Threads inherit both. Niced, its time shows as `nice` and not as `user` in /proc/stat.
    rustix::process::setpriority_process(None, 19).map_err(|e| SpinnerError::Class(e.into()))?;
    enter_idle_class().map_err(SpinnerError::Class)?;
    for &cpu in &cpus {
        std::thread::spawn(move || {
            // Not pinned, two might share a CPU and leave another one to halt; better than none.
            let _ = affinity::pin_thread(&[cpu]);
            loop {
                // The pause instruction, which leaves the core to a sibling thread.
                std::hint::spin_loop();
            }
        });
    }
    let held = if latency.is_some() { "held" } else { "unavailable" };
    let line = format!("{READY} 1 thread on each of {} CPUs, cpu_dma_latency {held}", cpus.len());
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(SpinnerError::Start)?;
    wait_for_end(input, parent);
    Ok(())
}

/// The end of `input` is the parent's end, however it came. Asking for the parent as well covers a
/// pipe that somebody else holds open.
fn wait_for_end(mut input: impl Read + Send + 'static, parent: Option<rustix::process::Pid>) {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = ended.send(());
    });
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(Duration::from_secs(1)) {
        if rustix::process::getppid() != parent {
            return;
        }
    }
}

/// The wish for no latency holds as long as the file is open.
fn hold_latency() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(file)
}

fn enter_idle_class() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the struct outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    /// Not a test of its own: the other tests start it as the spinner process.
    #[test]
    #[ignore = "started by the other tests"]
    fn as_a_process() {
        serve(io::stdin(), &mut io::stdout()).unwrap();
    }

    fn spinner() -> Spinner {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "spinner::tests::as_a_process"]);
        Spinner::start_command(command).unwrap()
    }

    #[test]
    fn it_spins_on_every_cpu_in_the_idle_class_and_ends_when_dropped() {
        let spinner = spinner();
        let pid = spinner.pid();
        let cpus = affinity::allowed_cpus().len();
        assert!(spinner.description().contains(&format!("each of {cpus} CPUs")));
        let mut idle = 0;
        for tid in tree::threads(pid).unwrap() {
            // SAFETY: the call takes a number and returns one.
            let class = unsafe { libc::sched_getscheduler(i32::try_from(tid).unwrap()) };
            idle += usize::from(class == libc::SCHED_IDLE);
        }
        assert!(idle >= cpus, "{idle} threads in the idle class, {cpus} CPUs");
        // It gives way to everyone, so this may take a while on a busy machine, but not for ever.
        let before = tree::process_clock_ns(pid).unwrap();
        while tree::process_clock_ns(pid).unwrap() <= before {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(spinner);
        assert_eq!(tree::stat_of(pid), Err(tree::TreeError::Gone(pid)));
    }

    #[test]
    fn it_ends_with_its_input() {
        let mut spinner = spinner();
        assert_eq!(spinner.child.try_wait().unwrap(), None);
        drop(spinner.child.stdin.take());
        // Without an end of its own it would spin, and this would wait, for ever. How it ended says
        // nothing: the harness around it may miss the standard output that nobody reads any more.
        spinner.child.wait().unwrap();
    }

    #[test]
    fn a_program_that_is_no_spinner_is_told() {
        let fault = Spinner::start(Path::new("/bin/true")).unwrap_err();
        assert!(matches!(fault, SpinnerError::Ended(_)), "{fault}");
        let fault = Spinner::start(Path::new("/no/such/program")).unwrap_err().to_string();
        assert!(fault.contains("--idle os"), "{fault}");
    }
}
