//! Valgrind, a program of its own: runs another program under its tool callgrind, which counts the
//! instructions of every function, and switches that counting on and off.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use thiserror::Error;

use crate::beneath::Folder;
use crate::child::{self, ChildTask};
use crate::command_output;
use crate::perf::Symbols;
use crate::user::Identity;

/// Default time that a process under valgrind may be silent.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A process obeys within this share of that time, or not at all: one that works does so within a
/// second.
const ORDER_SHARE: u32 = 10;

/// Two levels of caches as large as those of this host, and a branch predictor.
const SIMULATE: [&str; 2] = ["--cache-sim=yes", "--branch-sim=yes"];

/// Bytes that are read of what callgrind wrote of a thread.
const LONGEST: u64 = 1 << 30;

/// An error of valgrind.
#[derive(Debug, Error)]
pub enum ValgrindError {
    /// It is not there, or does not do what it should.
    #[error("{0}")]
    Failed(String),
    /// A file that callgrind wrote, or should have written.
    #[error("read what callgrind counted in {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The programs of valgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valgrind {
    valgrind: PathBuf,
    /// Passes orders to a process under valgrind.
    vgdb: PathBuf,
    /// `valgrind-3.19.0`.
    version: String,
    patience: Duration,
}

impl Valgrind {
    /// Finds the programs in these folders, those of PATH. A process under valgrind that is silent
    /// for longer than `patience` is given up.
    ///
    /// # Errors
    /// One of them is not there, or valgrind does not tell its version.
    pub fn find(folders: &[PathBuf], patience: Duration) -> Result<Valgrind, ValgrindError> {
        let find = |program: &'static str| {
            let mut places = folders.iter().map(|folder| folder.join(program));
            let found = places.find(|place| place.is_absolute() && place.is_file());
            found.ok_or_else(|| {
                ValgrindError::Failed(format!(
                    "find {program} in PATH: it is not there; install the package valgrind \
                     (Debian: apt-get install valgrind)"
                ))
            })
        };
        let (valgrind, vgdb) = (find("valgrind")?, find("vgdb")?);
        let broken =
            |why: String| ValgrindError::Failed(format!("run {}: {why}", valgrind.display()));
        let mut command = child::command(&valgrind, ChildTask::Work);
        command.arg("--version");
        let said = command_output::run(command).map_err(|error| broken(error.to_string()))?;
        let version = said.output.trim().to_owned();
        if !said.success() || !version.starts_with("valgrind") {
            return Err(broken(format!("it ended with {} and said `{version}`", said.status)));
        }
        Ok(Valgrind { valgrind, vgdb, version, patience })
    }

    /// `valgrind-3.19.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Counts in processes of `user` with its files in `folder`, which that user can write. `None`
    /// is the user of rqps itself.
    pub fn in_folder(&self, folder: PathBuf, user: Option<Identity>) -> Callgrind {
        Callgrind { programs: self.clone(), folder, user, simulate: false }
    }
}

/// Callgrind for the processes of one DBMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callgrind {
    programs: Valgrind,
    folder: PathBuf,
    user: Option<Identity>,
    simulate: bool,
}

impl Callgrind {
    /// Simulates caches and branches, too, if `simulate` is true.
    #[must_use]
    pub fn simulating(self, simulate: bool) -> Callgrind {
        Callgrind { simulate, ..self }
    }

    /// The user of the counted processes; `None` for that of rqps itself.
    pub fn user(&self) -> Option<Identity> {
        self.user
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder for the user of the counted processes, unless it is there. It lies in one
    /// that only the user of rqps can write.
    ///
    /// # Errors
    /// It cannot be made, or something else is there.
    pub fn make_folder(&self) -> io::Result<()> {
        let (above, name) = self.place()?;
        match (above.make(name, 0o700), self.user) {
            (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            (made, Some(user)) => made?.give(user),
            (made, None) => made.map(drop),
        }
    }

    fn place(&self) -> io::Result<(Folder, &OsStr)> {
        let (above, name) = Folder::above(&self.folder)?;
        above.check_own()?;
        Ok((above, name))
    }

    /// Time that a process under valgrind may be silent.
    pub fn patience(&self) -> Duration {
        self.programs.patience
    }

    /// The version of valgrind.
    pub fn version(&self) -> &str {
        self.programs.version()
    }

    /// The program and arguments that run `program` with `args` under callgrind, not counting yet.
    /// Processes that it forks and programs that it executes are under callgrind, too.
    pub fn wrap(&self, program: &Path, args: Vec<String>) -> (PathBuf, Vec<String>) {
        let files = self.folder.join("out.%p");
        let mut all = vec![
            // A source tree may bring a .valgrindrc with names of files to write.
            "--command-line-only=yes".to_owned(),
            "--tool=callgrind".to_owned(),
            "-q".to_owned(),
            "--instr-atstart=no".to_owned(),
            // A forked process takes orders only if children are traced, and a build of another
            // Debian release is executed by a script of its own.
            "--trace-children=yes".to_owned(),
            // Threads apart: what works in the background is no part of a statement.
            "--separate-threads=yes".to_owned(),
            // Functions are enough, and the files a tenth of the size.
            "--dump-line=no".to_owned(),
            format!("--callgrind-out-file={}", files.display()),
            format!("--vgdb-prefix={}", self.pipes().display()),
            program.display().to_string(),
        ];
        if self.simulate {
            all.splice(2..2, SIMULATE.map(str::to_owned));
        }
        all.extend(args);
        (self.programs.valgrind.clone(), all)
    }

    fn pipes(&self) -> PathBuf {
        self.folder.join("vgdb")
    }

    /// Begins to count in a process.
    ///
    /// # Errors
    /// It is not under valgrind, or does not obey.
    pub fn begin(&self, pid: u32) -> Result<(), ValgrindError> {
        self.order(pid, "begin to count in", &["instrumentation on"]).map(|_| ())
    }

    /// Ends counting in a process, and returns what was counted since [`Callgrind::begin`]: the
    /// text of callgrind's files, one for each thread.
    ///
    /// # Errors
    /// It does not obey, or wrote nothing.
    pub fn end(&self, pid: u32) -> Result<String, ValgrindError> {
        const DOING: &str = "end the count of";
        self.order(pid, DOING, &["dump", "instrumentation off"])?;
        let own = format!("out.{pid}.");
        let fault = |path: &Path| {
            let path = path.to_owned();
            |source| ValgrindError::Io { path, source }
        };
        // The folder is the counted process's, which could put a link in the place of a file.
        let opened = self.place().and_then(|(above, name)| above.below(Path::new(name)));
        let folder = opened.map_err(fault(&self.folder))?;
        let entries = folder.entries().map_err(fault(&self.folder))?;
        let mut files: Vec<OsString> = entries.into_iter().map(|entry| entry.name).collect();
        files.retain(|name| name.to_string_lossy().starts_with(&own));
        files.sort();
        let mut text = String::new();
        for name in files {
            let path = self.folder.join(&name);
            // Names of functions may be in any encoding.
            text.push_str(&folder.text_of(&name, self.user, LONGEST).map_err(fault(&path))?);
            text.push('\n');
            folder.remove(&name).map_err(fault(&path))?;
        }
        if text.is_empty() {
            let why = format!("no file {own}* in {}", self.folder.display());
            return Err(order_fault(DOING, pid, &why));
        }
        Ok(text)
    }

    /// The number by which callgrind's files know a thread, given its id of the operating system;
    /// `None` if the process has no such thread.
    ///
    /// # Errors
    /// The process does not answer.
    pub fn thread_number(&self, pid: u32, thread: u32) -> Result<Option<u32>, ValgrindError> {
        let orders = ["v.set gdb_output", "v.info scheduler"];
        let said = self.order(pid, "ask for the threads", &orders)?;
        Ok(number_of(&said, thread))
    }

    /// Gives orders to a process and returns what it said.
    fn order(
        &self,
        pid: u32,
        doing: &'static str,
        orders: &[&str],
    ) -> Result<String, ValgrindError> {
        let fault = |why: String| order_fault(doing, pid, &why);
        let mut command = child::command(&self.programs.vgdb, ChildTask::Work);
        command.arg(format!("--pid={pid}"));
        command.arg(format!("--vgdb-prefix={}", self.pipes().display()));
        for order in orders {
            command.arg("-c").args(order.split(' '));
        }
        if let Some(user) = self.user {
            // A process does not answer to anybody else, root included.
            child::become_user(&mut command, user);
        }
        let patience = self.programs.patience / ORDER_SHARE;
        let said = command_output::run_with(command, Stdio::null(), patience)
            .map_err(|error| fault(format!("{}: {error}", self.programs.vgdb.display())))?;
        if said.success() {
            Ok(said.said())
        } else {
            Err(fault(said.said().trim().replace('\n', "; ")))
        }
    }
}

/// The number in `Thread 12: status = VgTs_WaitSys syscall 7 (lwpid 4711)`.
fn number_of(said: &str, thread: u32) -> Option<u32> {
    let own = format!("(lwpid {thread})");
    let line = said.lines().find(|line| line.contains(&own))?;
    let (_, rest) = line.split_once("Thread ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

// Names for the functions of a callgrind file that valgrind did not name: those of stripped
// programs and libraries.

/// Reads symbols once for each file.
#[derive(Debug, Default)]
pub struct ProfileNames {
    debug_folders: Vec<PathBuf>,
    files: HashMap<String, Symbols>,
}

impl ProfileNames {
    /// Looks for debug files in these folders, by build id.
    pub fn new(debug_folders: Vec<PathBuf>) -> ProfileNames {
        ProfileNames { debug_folders, files: HashMap::new() }
    }

    /// The text of callgrind with a name in the place of each bare address.
    pub fn put_into(&mut self, text: &str) -> String {
        let mut objects: HashMap<&str, &str> = HashMap::new();
        let (mut object, mut called) = ("", None);
        let mut named = String::with_capacity(text.len());
        for line in text.lines() {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match key {
                "ob" => object = known(&mut objects, value),
                "cob" => called = Some(known(&mut objects, value)),
                _ => {}
            }
            let of = match key {
                "fn" => Some(object),
                // Without an object of its own, a called function is in that of its caller.
                "cfn" => Some(called.take().unwrap_or(object)),
                _ => None,
            };
            match of.and_then(|object| self.name(object, value)) {
                Some(name) => named.extend([key, "=", &name]),
                None => named.push_str(line),
            }
            named.push('\n');
        }
        named
    }

    /// `(12) 0x00051234` with the name of the function at that address; `None` if it has a name.
    fn name(&mut self, object: &str, value: &str) -> Option<String> {
        let (number, name) = match value.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((number, name)) => (format!("({number}) "), name),
            None => (String::new(), value),
        };
        let address = u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()?;
        if !Path::new(object).is_absolute() {
            return None;
        }
        if !self.files.contains_key(object) {
            // A file that is gone, or that is no file, leaves the address as it is.
            let symbols = Symbols::read(Path::new(object), &self.debug_folders).ok()?;
            self.files.insert(object.to_owned(), symbols);
        }
        Some(format!("{number}{}", self.files.get(object)?.name(address)))
    }
}

/// The file that `(3) /bin/db` names and `(3)` means from then on.
fn known<'t>(objects: &mut HashMap<&'t str, &'t str>, value: &'t str) -> &'t str {
    match value.split_once(") ") {
        Some((number, name)) => {
            objects.insert(number, name);
            name
        }
        None => objects.get(value.trim_end_matches(')')).copied().unwrap_or(value),
    }
}

fn order_fault(doing: &str, pid: u32, why: &str) -> ValgrindError {
    ValgrindError::Failed(format!("{doing} of process {pid} under valgrind: {why}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn threads_are_found_by_their_number() {
        let said = "==7== Thread 1: status = VgTs_WaitSys syscall 232 (lwpid 7)\n\
                    ==7==    at 0x1: epoll_wait (epoll_wait.c:30)\n\
                    ==7== Thread 12: status = VgTs_Runnable (lwpid 77)\n";
        let check = |thread, number| assert_eq!(number_of(said, thread), number);
        check(7, Some(1));
        check(77, Some(12));
        check(1, None);
    }

    #[test]
    fn options_in_the_current_folder_do_not_count() {
        let Ok(found) = Valgrind::find(&["/usr/bin".into()], PATIENCE) else { return };
        let folder = tempfile::tempdir().unwrap();
        let planted = folder.path().join("planted");
        let options = format!("--log-file={}\n-v\n", planted.display());
        fs::write(folder.path().join(".valgrindrc"), options).unwrap();
        let callgrind = found.in_folder(folder.path().to_owned(), None);
        let (program, args) = callgrind.wrap(Path::new("/bin/true"), Vec::new());
        let mut command = std::process::Command::new(program);
        let ran = command.args(args).current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        assert!(!planted.exists());
    }

    #[test]
    fn a_missing_valgrind_names_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let error = Valgrind::find(&folders, PATIENCE).unwrap_err().to_string();
        assert!(error.contains("find valgrind in PATH"), "{error}");
        assert!(error.contains("apt-get install valgrind"), "{error}");
        fs::write(folder.path().join("valgrind"), "").unwrap();
        let error = Valgrind::find(&folders, PATIENCE).unwrap_err().to_string();
        assert!(error.contains("find vgdb in PATH"), "{error}");
    }

    #[test]
    fn addresses_are_named_by_their_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let [db, lib] = ["db", "lib.so"].map(|name| folder.path().join(name));
        for file in [&db, &lib] {
            std::fs::write(file, "no functions").unwrap();
        }
        let (db, lib) = (db.display(), lib.display());
        let text = format!(
            "events: Ir\n\nob=(1) {db}\nfl=(1) ???\nfn=(1) 0x00001230\n5 7\ncob=(2) {lib}\n\
             cfn=(2) 0x0000000000000040\ncalls=1 0\n0 9\ncfn=(3) 0x50\ncalls=1 0\n0 1\n\
             ob=(2)\nfn=(2)\n0 9\nfn=(4) main\n1 1\ncob=(1)\ncfn=(5) 0x10\ncalls=1 0\n0 1\n\
             ob=(3) ???\nfn=(6) 0x99\n0 1\ntotals: 18\n"
        );
        let named = ProfileNames::default().put_into(&text);
        let names: Vec<&str> = named.lines().filter(|line| line.contains("fn=")).collect();
        let expected = [
            "fn=(1) db+0x1230", "cfn=(2) lib.so+0x40", "cfn=(3) db+0x50", "fn=(2)", "fn=(4) main",
            "cfn=(5) db+0x10", "fn=(6) 0x99",
        ];
        assert_eq!(names, expected);
        let others = |text: &str| {
            text.lines().filter(|line| !line.contains("fn=")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(others(&named), others(&text));
    }
}
