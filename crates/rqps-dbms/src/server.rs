//! Code shared by all servers that rqps runs: folders, programs, the warden, waiting until a query
//! is answered, and errors that end in the last lines of the log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::{DbmsError, Interrupt, Site};
use crate::kept_data::KeptData;
use crate::log::{self, Words};
use crate::sql_server::first_query;
use rqps_host::beneath::{self, Folder, FreshFolder};
use rqps_host::command_output;
use rqps_host::process::{CLEAN_EXIT, ProcessSpec, StopOrder, StopSignal, Warden};
use rqps_host::user::{User, check_reachable};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_model::safe_path;
use rqps_wire::WireError;

/// Other users may pass through the folder with control files, and not look around.
const PASSABLE: u32 = 0o711;

/// What programs print that make a data folder.
const INIT_LOG: &str = "init.log";

/// Bytes of a socket's path: `sun_path` of sockaddr_un without its final zero.
const SOCKET_PATH_LIMIT: usize = 107;

/// Between two questions whether a starting server answers.
const READY_POLL: Duration = Duration::from_millis(20);

/// Time limit for one such query.
const READY_QUESTION: Duration = Duration::from_secs(5);

/// SQLSTATE cannot_connect_now of Postgres.
const STARTING_UP: &str = "57P03";

/// Time limit for a regular shutdown: a checkpoint of a large cache onto a slow disk.
const STOP_TIMEOUT: Duration = Duration::from_secs(600);

/// Time limit for the shutdown of a server of which a process has crashed: a Postgres that starts
/// anew may miss the order.
const CRASHED_STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for the end of a server under valgrind. Its data are not used afterwards.
const VALGRIND_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A server under a warden, or the place for one.
pub struct Server {
    /// Its paths, address and options.
    pub(super) site: Site,
    warden: Option<Warden>,
    log_start: u64,
    paused: bool,
    /// The way to end it if rqps is gone.
    on_loss: StopOrder,
    /// What its log says when one of its processes has crashed, and it goes on.
    pub(super) crash_words: Option<&'static str>,
}

impl Server {
    pub(super) fn new(site: Site) -> Server {
        let (warden, log_start, paused, on_loss) = (None, 0, false, StopOrder::HARD);
        Server { site, warden, log_start, paused, on_loss, crash_words: None }
    }

    /// `postgres 17.2.0`.
    pub(super) fn name(&self) -> String {
        let manifest = &self.site.build.manifest;
        format!("{} {}", manifest.dbms, manifest.version)
    }

    /// The folder that holds `bin/`.
    pub(super) fn root(&self) -> Result<&Path, DbmsError> {
        self.site.build.root.as_deref().ok_or_else(|| {
            DbmsError::Unsupported(format!(
                "start {}: rqps does not run this server, so it has no program folder",
                self.name()
            ))
        })
    }

    /// The first of `names` that is a file in one of the usual folders.
    pub(super) fn program(&self, names: &[&'static str]) -> Result<PathBuf, DbmsError> {
        let root = self.root()?;
        for name in names {
            for folder in ["bin", "sbin", "libexec", "scripts"] {
                let path = root.join(folder).join(name);
                if path.is_file() {
                    return Ok(path);
                }
            }
        }
        let (dbms, root) = (self.site.build.manifest.dbms, root.display());
        let program = names.first().copied().unwrap_or("the server");
        Err(DbmsError::Unsupported(format!(
            "find {program} of {dbms}: not in {root}/bin, sbin, libexec or scripts; name the \
             folder that holds bin/, as in {dbms}=PATH"
        )))
    }

    /// The folder that the server knows as its data folder.
    pub(super) fn db_folder(&self) -> PathBuf {
        self.site.data.join("db")
    }

    /// For files that live as long as a statement.
    pub(super) fn temporary_folder(&self) -> PathBuf {
        self.site.data.join("tmp")
    }

    /// Makes the data folder, for the user of the server: `tmp/`, and `db/`, which `make` fills, and
    /// which has the empty folders `inside` before. Where the cache has a copy of what `make` would
    /// make, it takes that: `made_with` is all that the content depends on beside build and user.
    pub(super) fn fill_data_folder(
        &self,
        inside: &[&str],
        made_with: &str,
        make: impl FnOnce() -> Result<(), DbmsError>,
    ) -> Result<(), DbmsError> {
        let data = self.make_data_folder()?;
        let made_with = format!("{made_with}\n{:?}", self.site.run_as.as_ref().map(User::identity));
        let kept = KeptData::of(&self.site.build, &made_with);
        if let Some(kept) = &kept
            && self.copy_kept(kept, &data)?
        {
            return Ok(());
        }
        let doing = DbmsError::io(format!("make {}", self.db_folder().display()));
        let made = self.hand_over(data.folder(), "db", inside).map_err(doing).and_then(|()| make());
        if made.is_err() {
            // The next attempt refuses and names a file that cannot be removed.
            data.discard().ok();
        } else if let Some(kept) = kept
            && let Err(error) = kept.keep(&self.db_folder())
        {
            self.tell(&format!("the next one is made anew, too: {error}"))?;
        }
        made
    }

    /// Fills the folder from the cache, if it has what is needed.
    fn copy_kept(&self, kept: &KeptData, data: &FreshFolder) -> Result<bool, DbmsError> {
        let db = self.db_folder();
        let from = kept.path();
        match kept.copy_to(&db) {
            Ok(true) => {
                self.tell(&format!("a copy of {}; without it, one is made anew", from.display()))?;
                return Ok(true);
            }
            Ok(false) => {}
            Err(error) => self.tell(&format!("made anew: {error}"))?,
        }
        let gone = match data.folder().below(Path::new("db")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => data.discard().and_then(|()| self.hand_over(data.folder(), "tmp", &[])),
        };
        gone.map_err(DbmsError::io(format!("remove {}", db.display())))?;
        Ok(false)
    }

    /// Writes a line to the log of what makes data folders.
    fn tell(&self, line: &str) -> Result<(), DbmsError> {
        let log = self.site.logs.join(INIT_LOG);
        let told = beneath::to_append(&log).and_then(|mut file| writeln!(file, "rqps: {line}"));
        told.map_err(DbmsError::io(format!("write {}", log.display())))
    }

    /// Makes the data folder with `tmp/`.
    fn make_data_folder(&self) -> Result<FreshFolder, DbmsError> {
        refuse_used(&self.site.data)?;
        make_folder(&self.site.logs)?;
        let doing = || DbmsError::io(format!("make {}", self.site.data.display()));
        // Control files lie beside the data, where the server cannot change them.
        let data = FreshFolder::take(&self.site.data, PASSABLE).map_err(doing())?;
        self.hand_over(data.folder(), "tmp", &[]).map_err(doing())?;
        self.check_reach()?;
        Ok(data)
    }

    /// Makes a folder with folders in it, and then gives all of it to the user of the server, who
    /// has it to himself from there on.
    fn hand_over(&self, data: &Folder, name: &str, inside: &[&str]) -> io::Result<()> {
        let folder = data.make(OsStr::new(name), 0o700)?;
        let user = self.site.run_as.as_ref().map(User::identity);
        for name in inside {
            let below = folder.make(OsStr::new(name), 0o700)?;
            user.map_or(Ok(()), |user| below.give(user))?;
        }
        user.map_or(Ok(()), |user| folder.give(user))
    }

    /// Checks that the user of the server can reach the data folder and the build.
    fn check_reach(&self) -> Result<(), DbmsError> {
        if let Some(user) = &self.site.run_as {
            check_reachable(&self.site.data, user)?;
            if let Some(root) = &self.site.build.root {
                check_reachable(root, user)?;
            }
        }
        Ok(())
    }

    /// Writes a control file that the server can read and not change. Returns its path.
    pub(super) fn write_config(&self, name: &str, text: &str) -> Result<PathBuf, DbmsError> {
        let path = self.site.data.join(name);
        let written = Folder::open(&self.site.data).and_then(|data| {
            data.check_own()?;
            data.replace(OsStr::new(name), text.as_bytes(), 0o644)
        });
        written.map_err(DbmsError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Runs a program of the DBMS to its end, with `input` on standard input.
    pub(super) fn run_tool(
        &self,
        program: &Path,
        args: Vec<String>,
        input: Option<&str>,
    ) -> Result<(), DbmsError> {
        let log = self.site.logs.join(INIT_LOG);
        let short = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let doing = format!("make a data folder for {} with {short}", self.name());
        let stdin = match input {
            Some(text) => Some(self.write_config("init.sql", text)?),
            None => None,
        };
        self.site.check_build().map_err(DbmsError::io(doing.clone()))?;
        let log_start = log::end(&log);
        let job = ProcessSpec { stdin, ..self.job(program, args, log.clone(), StopOrder::HARD) };
        let mut warden = Warden::spawn(&job, &self.site.warden_program)
            .map_err(DbmsError::process(doing.clone()))?;
        let ended = |what: String| {
            let Words { tail, hint } = log::read(&log, log_start);
            DbmsError::Ended { doing: doing.clone(), what, tail, hint }
        };
        let deadline = Instant::now() + self.site.start_timeout;
        loop {
            self.site.interrupt.check()?;
            match warden.wait(READY_POLL) {
                Some(status) if status == CLEAN_EXIT => return Ok(()),
                Some(status) => return Err(ended(how(&status))),
                None if Instant::now() > deadline => {
                    let seconds = self.site.start_timeout.as_secs();
                    return Err(ended(format!("not finished after {seconds} s")));
                }
                // If one of its processes aborts, nobody can see any more what it had.
                None => warden.look_at_memory(),
            }
        }
    }

    /// Starts the server; it is not ready when this returns.
    pub(super) fn launch(
        &mut self,
        program: &Path,
        args: Vec<String>,
        on_loss: StopOrder,
    ) -> Result<(), DbmsError> {
        let log = self.log();
        make_folder(&self.site.logs)?;
        let (program, args) = match &self.site.callgrind {
            Some(callgrind) => {
                let made = callgrind.make_folder();
                made.map_err(DbmsError::io(format!("make {}", callgrind.folder().display())))?;
                callgrind.wrap(program, args)
            }
            None => (program.to_owned(), args),
        };
        self.check_reach()?;
        let mut above = self.site.sockets.ancestors().skip(1);
        if let (Some(user), Some(there)) = (&self.site.run_as, above.find(|path| path.exists())) {
            check_reachable(there, user)?;
        }
        self.site.check_build().map_err(DbmsError::io(format!("start {}", self.name())))?;
        self.log_start = log::end(&log);
        let job = ProcessSpec {
            memory_group: self.site.memory_group.clone(),
            private_folder: Some(self.site.sockets.clone()),
            ..self.job(&program, args, log, on_loss)
        };
        let warden = Warden::spawn(&job, &self.site.warden_program)
            .map_err(DbmsError::process(format!("start {}", self.name())))?;
        self.warden = Some(warden);
        self.paused = false;
        self.on_loss = on_loss;
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.site.logs.join("server.log")
    }

    /// A job with what all programs have in common: nothing of the shell that started rqps.
    fn job(
        &self,
        program: &Path,
        args: Vec<String>,
        log: PathBuf,
        on_loss: StopOrder,
    ) -> ProcessSpec {
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.to_owned());
        set("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        set("LC_ALL", "C");
        set("TZ", "UTC");
        set("HOME", &self.temporary_folder().to_string_lossy());
        set("TMPDIR", &self.temporary_folder().to_string_lossy());
        ProcessSpec {
            program: program.to_owned(),
            args,
            env,
            folder: self.db_folder(),
            stdin: None,
            log,
            run_as: self.site.run_as.as_ref().map(|user| user.identity()),
            memory_group: None,
            private_folder: None,
            on_loss,
        }
    }

    /// Waits for a file that the server makes when it is ready; for one that answers no queries.
    pub(super) fn wait_for_file(&mut self, path: &Path) -> Result<(), DbmsError> {
        while !path.exists() {
            self.site.interrupt.check()?;
            self.check()?;
            thread::sleep(READY_POLL);
        }
        Ok(())
    }

    /// Asks a first query until it is answered. An end of the server, a refusal, or too long a
    /// silence is an error.
    pub(super) fn wait_ready(
        &mut self,
        dialect: Dialect,
        address: &Address,
        login: &Login,
    ) -> Result<(), DbmsError> {
        let doing = format!("start {}", self.name());
        let deadline = Instant::now() + self.site.start_timeout;
        loop {
            let stopped = self.site.interrupt.check();
            if stopped.is_err() {
                self.warden = None;
                return stopped;
            }
            self.check_while(&doing)?;
            let Err(answer) = first_query(dialect, address, login, READY_QUESTION) else {
                if let Some(warden) = &mut self.warden {
                    warden.look_at_memory();
                }
                return Ok(());
            };
            if is_final(&answer) {
                self.warden = None;
                return Err(self.ended(&doing, format!("it rejects the first query: {answer}")));
            }
            if Instant::now() > deadline {
                let seconds = self.site.start_timeout.as_secs();
                let what = format!("it does not answer after {seconds} s ({answer})");
                // Ended first, so that its last words are in the log.
                self.warden = None;
                return Err(self.ended(&doing, what));
            }
            thread::sleep(READY_POLL);
        }
    }

    /// An error if the server is gone.
    pub(super) fn check(&mut self) -> Result<(), DbmsError> {
        self.check_while(&format!("keep {} running", self.name()))
    }

    fn check_while(&mut self, doing: &str) -> Result<(), DbmsError> {
        let status = match &self.warden {
            None => "it is not running".to_owned(),
            Some(warden) => match warden.has_exited() {
                None => return Ok(()),
                Some(status) => how(&status),
            },
        };
        self.warden = None;
        Err(self.ended(doing, status))
    }

    fn ended(&self, doing: &str, what: String) -> DbmsError {
        let Words { tail, hint } = log::read(&self.log(), self.log_start);
        DbmsError::Ended { doing: doing.to_owned(), what, tail, hint }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.warden.as_ref().map(Warden::server_pid)
    }

    pub(super) fn pause(&mut self) -> Result<(), DbmsError> {
        let doing = format!("pause {}", self.name());
        if let Some(warden) = &self.warden {
            self.paused = true;
            warden.pause().map_err(DbmsError::process(doing))?;
        }
        Ok(())
    }

    pub(super) fn resume(&mut self) -> Result<(), DbmsError> {
        let doing = format!("resume {}", self.name());
        if let Some(warden) = &self.warden
            && self.paused
        {
            warden.resume().map_err(DbmsError::process(doing))?;
            self.paused = false;
        }
        Ok(())
    }

    /// Shuts down by `signal`. It is an error if the server did not end well by itself. One under
    /// valgrind ends as fast as it can, since its data are not copied.
    pub(super) fn stop(&mut self, signal: StopSignal) -> Result<(), DbmsError> {
        let doing = format!("stop {}", self.name());
        let Some(mut warden) = self.warden.take() else {
            return Ok(());
        };
        self.paused = false;
        if self.site.callgrind.is_some() {
            let ended = warden.stop(self.on_loss.signal, VALGRIND_STOP_TIMEOUT);
            return ended.map(drop).map_err(DbmsError::process(doing));
        }
        let has_crashed =
            self.crash_words.is_some_and(|words| log::says(&self.log(), self.log_start, words));
        let (patience, harder) = if has_crashed {
            (CRASHED_STOP_TIMEOUT, self.on_loss)
        } else {
            (STOP_TIMEOUT, StopOrder::HARD)
        };
        let (status, is_forced) =
            warden.stop_or(signal, patience, harder).map_err(DbmsError::process(doing.clone()))?;
        let what = match (is_forced, status.as_str()) {
            (false, CLEAN_EXIT) => return Ok(()),
            (false, status) => how(status),
            (true, _) if has_crashed => format!(
                "after a crash of one of its processes it did not end within {} s, so rqps ended \
                 it at once",
                patience.as_secs()
            ),
            (true, _) => format!("it did not end within {} s", patience.as_secs()),
        };
        Err(self.ended(&doing, format!("{what}, so its data folder cannot be copied")))
    }
}

/// The end of a server in words, from the status that its warden gives.
fn how(status: &str) -> String {
    if status.starts_with("killed") {
        format!("it was {status}")
    } else {
        format!("it ended with {status}")
    }
}

/// True for a refusal that will not pass. "The database system is starting up" will.
fn is_final(error: &WireError) -> bool {
    error.code().is_some_and(|code| code != STARTING_UP)
}

/// A socket in the private folder, checked to be short enough and free.
pub(super) fn socket(folder: &Path, name: &str) -> Result<PathBuf, DbmsError> {
    let path = folder.join(name);
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_LIMIT {
        return Err(DbmsError::Unsupported(format!(
            "listen on {}: the path has {length} bytes but a socket path can have at most \
             {SOCKET_PATH_LIMIT}; choose a shorter folder for temporary files",
            path.display()
        )));
    }
    if UnixStream::connect(&path).is_ok() {
        return Err(DbmsError::Unsupported(format!(
            "listen on {}: another server uses this socket; stop it or choose another folder for \
             temporary files",
            path.display()
        )));
    }
    Ok(path)
}

/// An error unless a folder is empty or not there.
fn refuse_used(data: &Path) -> Result<(), DbmsError> {
    let mut entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            let doing = format!("read the data folder {}", data.display());
            return Err(DbmsError::Io { doing, source });
        }
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(DbmsError::DataNotEmpty(data.to_owned())),
    }
}

/// Makes the data folder of a library, and gives it to the user who runs the library: all that
/// works in it from there on runs as that user.
pub(super) fn hand_over_data(site: &Site) -> Result<FreshFolder, DbmsError> {
    refuse_used(&site.data)?;
    let taken = FreshFolder::take(&site.data, 0o700).and_then(|data| {
        let user = site.run_as.as_ref().map(User::identity);
        user.map_or(Ok(()), |user| data.folder().give(user))?;
        Ok(data)
    });
    taken.map_err(DbmsError::io(format!("make the folder {}", site.data.display())))
}

/// Checks that the user who runs a library can reach it and its data.
pub(super) fn check_library(site: &Site) -> Result<(), DbmsError> {
    let places = site.build.root.iter().chain([&site.data]);
    for (place, user) in places.zip(site.run_as.iter().cycle()) {
        check_reachable(place, user)?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), DbmsError> {
    let made = safe_path::make_folder(path).map(drop);
    made.map_err(DbmsError::io(format!("make the folder {}", path.display())))
}

// Questions to a DBMS that is a library: a process of its own loads it, answers one, and ends.

/// Starts the process and asks it. It says at most `most` bytes, and ends when the user stops rqps.
pub(super) fn ask<A: DeserializeOwned>(
    mut command: Command,
    question: &impl Serialize,
    most: u64,
    interrupt: &Interrupt,
) -> io::Result<Result<A, String>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&serde_json::to_vec(question)?)?;
    }
    let (said, status) = command_output::output_of(child, most, &interrupt.0)?;
    serde_json::from_slice(&said).map_err(|_| {
        io::Error::other(format!("the process that loads the library ended with {status}"))
    })
}

/// Answers the question on `input`. Ends with the process that asks.
pub(super) fn answer<Q: DeserializeOwned, A: Serialize>(
    mut input: impl Read,
    mut output: impl Write,
    work: impl FnOnce(&Q) -> Result<A, String>,
) -> ExitCode {
    let signal = rustix::process::Signal::KILL;
    let _ = rustix::process::set_parent_process_death_signal(Some(signal));
    let mut text = String::new();
    let answer = input
        .read_to_string(&mut text)
        .map_err(|error| format!("read the request: {error}"))
        .and_then(|_| {
            serde_json::from_str(&text).map_err(|error| format!("parse the request: {error}"))
        })
        .and_then(|question| work(&question));
    match serde_json::to_writer(&mut output, &answer).map(|()| output.flush()) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_refuses_a_login_need_not_be_waited_for() {
        let server =
            |code: &str| WireError::Server { code: code.to_owned(), message: String::new() };
        let password = WireError::NoPassword { code: "1045", words: String::new() };
        let silence = WireError::Io {
            doing: "connect".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        let finals =
            [server("28P01"), password, server(STARTING_UP), silence].map(|e| is_final(&e));
        assert_eq!(finals, [true, true, false, false]);
    }
}
