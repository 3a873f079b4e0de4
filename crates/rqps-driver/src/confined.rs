//! Prepares this process for scripts that the user brought: an unprivileged user, a working folder
//! of its own, no way back to root.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use crate::Stop;
use crate::control_channel::ControlChannel;
use crate::request::{DriverRequest, StepRequest};
use crate::worker_pool::{Order, Ready, WorkerPool};
use rqps_host::affinity::{self, CpuAssignment};
use rqps_host::beneath::{self, Folder, FreshFolder};
use rqps_host::child::Keeper;
use rqps_host::confinement;
use rqps_host::user::{self, Identity, User};
use rqps_model::benchmark::Placement;
use rqps_model::dialect::{Backend, Dialect};

/// The place for everyone.
const OPEN_FOLDER: &str = "/tmp";

/// The copy of a script's folder, in the working folder.
const COPY: &str = "scripts";

/// Gives up rights, and changes to a working folder: `scratch`, which is there and empty, or a new
/// one in /tmp. The process can read `script` and the scripts beside it afterwards.
///
/// # Errors
///
/// There is no unprivileged user, or a folder or the copy cannot be made. The text is a complete
/// message.
pub fn enter(script: &Path, scratch: Option<&Path>) -> Result<ScriptPlaces, String> {
    let user = user::choose(None).map_err(|error| format!("failed to {error}"))?;
    let user = user.as_ref();
    let start = std::path::absolute(".")
        .map_err(|error| format!("failed to find the current folder: {error}"))?;
    let folder = script.parent().unwrap_or(Path::new("/")).to_owned();
    let scratch = match scratch {
        Some(scratch) => scratch.to_owned(),
        None => kept_scratch().map_err(|error| format!("failed to make a folder: {error}"))?,
    };
    let copy = prepared(&scratch, script, user)
        .map_err(|error| format!("failed to make {} for scripts: {error}", scratch.display()))?;
    if let Some(user) = user {
        user::check_reachable(&scratch, user).map_err(|error| format!("failed to {error}"))?;
    }
    rustix::process::chdir(&scratch)
        .map_err(|error| format!("failed to enter {}: {error}", scratch.display()))?;
    confinement::give_up_rights(user.map(User::identity)).map_err(|error| {
        let user = user.map_or("an unprivileged user", |user| user.name.as_str());
        format!(
            "failed to become {user} for scripts: {error}\nhint: start rqps as a user who is not \
             root"
        )
    })?;
    Ok(ScriptPlaces { start, folder, copy, scratch })
}

/// A place for everyone, with a name that nobody foresees. What is made there goes with this process,
/// which is killed if it takes too long.
fn kept_scratch() -> io::Result<PathBuf> {
    let path = Path::new(OPEN_FOLDER).join(format!("rqps-script-{}", user::name()?));
    std::mem::forget(Keeper::of(&path)?);
    Ok(path)
}

/// Gives up rights before a library under test is loaded.
///
/// # Errors
///
/// The process may not change its user, or the page of turns cannot be opened.
pub(super) fn before_library(mut request: DriverRequest) -> Result<DriverRequest, String> {
    if user::is_root() {
        keep_page(&mut request)?;
        confinement::become_unprivileged(Some(user::of_libraries().identity()))
            .map_err(|error| format!("failed to {error}"))?;
    }
    Ok(request)
}

/// As [`enter`], for a driver.
///
/// # Errors
///
/// Also if the page of turns cannot be opened.
pub(super) fn confine(mut request: DriverRequest, script: &Path) -> Result<DriverRequest, String> {
    keep_page(&mut request)?;
    request.places = Some(enter(script, request.scratch.as_deref())?);
    Ok(request)
}

/// Opens the page of turns while this process may.
fn keep_page(request: &mut DriverRequest) -> Result<(), String> {
    if let Some(turns) = &mut request.turns {
        // Its path leads through another user's process, and only works until rights are given up.
        let page = File::options().read(true).write(true).open(&turns.page).map_err(|error| {
            format!("failed to open the page of turns {}: {error}", turns.page.display())
        })?;
        turns.page = PathBuf::from(format!("/proc/self/fd/{}", page.into_raw_fd()));
    }
    Ok(())
}

/// Makes the working folder, with copies of scripts that `user` may not read, and then gives all of
/// it to `user`. Returns the folder of the copies.
fn prepared(scratch: &Path, script: &Path, user: Option<&User>) -> io::Result<Option<PathBuf>> {
    let Some(user) = user else {
        // The lab may have made it, for a process that is this user's from its start.
        return FreshFolder::take(scratch, 0o700).map(|_| None);
    };
    let made = FreshFolder::take(scratch, 0o700)?;
    let filled = filled(&made, script, user);
    if filled.is_err() {
        made.remove()?;
    }
    filled
}

/// Puts copies into the working folder, and gives it away.
fn filled(made: &FreshFolder, script: &Path, user: &User) -> io::Result<Option<PathBuf>> {
    let copied = match scripts_to_copy(script, user)? {
        scripts if scripts.is_empty() => None,
        scripts => {
            let folder = made.folder().make(OsStr::new(COPY), 0o700)?;
            for (name, mut script) in scripts {
                let mode = if script.metadata()?.mode() & 0o100 != 0 { 0o700 } else { 0o600 };
                let mut copy = folder.new_file(&name, mode)?;
                io::copy(&mut script, &mut copy)?;
                beneath::give_file(&copy, user.identity())?;
            }
            folder.give(user.identity())?;
            Some(made.folder().path().join(COPY))
        }
    };
    made.folder().give(user.identity())?;
    Ok(copied)
}

/// The script and the files of its language beside it, opened, if `user` may not read all of them.
///
/// Reading them for `user` must not open files of a third: a link, or a file that another user than
/// the owner of the script has put beside it, is left out.
fn scripts_to_copy(script: &Path, user: &User) -> io::Result<Vec<(OsString, File)>> {
    let name = script.file_name().ok_or_else(|| io::Error::other("the script has no name"))?;
    let above = script.parent().unwrap_or(Path::new("/"));
    let folder = Folder::open(above)?;
    let language = script.extension();
    let is_script = |name: &OsStr| language.is_some() && Path::new(name).extension() == language;
    let files = folder.entries()?.into_iter().filter(|entry| entry.kind == FileType::RegularFile);
    let mut beside: Vec<OsString> = files.map(|entry| entry.name).collect();
    beside.retain(|other| other != name && is_script(other));
    let can_read = |name: &OsStr| user::can_read(&above.join(name), user);
    if can_read(name) && beside.iter().all(|name| can_read(name)) {
        return Ok(Vec::new());
    }
    let named = own_script(&folder, name)?;
    let owner = Identity { uid: named.metadata()?.uid(), gid: 0 };
    let mut scripts = vec![(name.to_owned(), named)];
    for name in beside {
        if let Ok(script) = folder.read_of(&name, Some(owner)) {
            scripts.push((name, script));
        }
    }
    Ok(scripts)
}

/// Opens the script that the user named. In a folder that others can write, it must belong to the
/// owner of the folder: what they put there may lead to a file that only root may read.
fn own_script(folder: &Folder, name: &OsStr) -> io::Result<File> {
    let facts = folder.facts()?;
    let is_ours = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0;
    if !is_ours {
        return folder.read_of(name, Some(Identity { uid: facts.uid(), gid: 0 }));
    }
    let script = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(folder.path().join(name))?;
    if script.metadata()?.is_file() {
        Ok(script)
    } else {
        Err(io::Error::other("the script is no regular file"))
    }
}

/// The places of a script's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlaces {
    /// The folder in which the process was started.
    pub start: PathBuf,
    /// The folder of the script as it was named.
    pub(super) folder: PathBuf,
    /// The copy of that folder that is read instead, if the process may not read the folder itself.
    pub(super) copy: Option<PathBuf>,
    /// The working folder.
    pub(super) scratch: PathBuf,
}

impl ScriptPlaces {
    /// Where this process reads a script of the folder.
    pub fn readable(&self, script: &Path) -> PathBuf {
        swapped(script, &self.folder, self.copy.as_deref())
    }

    /// The name, before it was copied, of a file that this process reads.
    pub fn original(&self, file: &Path) -> PathBuf {
        match &self.copy {
            Some(copy) => swapped(file, copy, Some(&self.folder)),
            None => file.to_owned(),
        }
    }

    /// Removes the working folder.
    pub fn clear(&self) {
        // Whatever is left does not concern the request, which has been answered.
        let _ = beneath::remove_made(&self.scratch, None);
    }
}

/// The path with one folder in the place of another.
fn swapped(path: &Path, from: &Path, to: Option<&Path>) -> PathBuf {
    match (path.strip_prefix(from), to) {
        (Ok(rest), Some(to)) => to.join(rest),
        _ => path.to_owned(),
    }
}

// Places clients, and the server's side of their connections, on CPUs. A failed placement becomes
// a note; the step is measured all the same.

/// The CPUs of all clients, and failures.
pub struct Seating {
    /// The CPUs of each client.
    pub seats: Vec<CpuAssignment>,
    /// Failed placements, for the report.
    pub notes: Vec<String>,
}

/// Plans the CPUs of each client, and removes pins of an earlier step from the server if rqps runs
/// it (`own`).
pub fn plan<B>(task: &StepRequest<B>, own: bool) -> Seating {
    plan_seats(task.placement, task.clients, task.server_pid.filter(|_| own))
}

/// Plans the CPUs for `connections`, each with a thread of its own.
pub fn plan_seats(placement: Placement, connections: u32, server_pid: Option<u32>) -> Seating {
    let cpus = affinity::allowed_cpus();
    let mut notes = Vec::new();
    let seats = affinity::plan(placement, connections, &cpus).unwrap_or_else(|error| {
        notes.push(format!("no CPU pinning: failed to {error}"));
        vec![CpuAssignment::default(); connections as usize]
    });
    if placement != Placement::Os
        && let Some(pid) = server_pid
        && let Err(error) = affinity::pin_tree(pid, &cpus)
    {
        notes.push(format!("the server keeps old CPU pins: failed to {error}"));
    }
    Seating { seats, notes }
}

/// Plans the CPUs for `threads` clients of a library in this process. The library's own threads
/// inherit the CPUs of the thread that opens it, which is pinned until [`rise`].
pub fn plan_library(placement: Placement, threads: u32) -> Seating {
    let mut notes = Vec::new();
    let cpus = affinity::allowed_cpus();
    let seats = affinity::plan(placement, threads, &cpus).unwrap_or_else(|error| {
        notes.push(format!("no CPU pinning: failed to {error}"));
        vec![CpuAssignment::default(); threads as usize]
    });
    if let (Placement::Apart, Some(seat)) = (placement, seats.first())
        && !seat.server.is_empty()
        && let Err(error) = affinity::pin_thread(&seat.server)
    {
        notes.push(format!("no CPU pinning of the library's threads: failed to {error}"));
    }
    Seating { seats, notes }
}

/// Lets the calling thread run on `cpus` again, its CPUs from before [`plan_library`].
pub fn rise(cpus: &[usize]) {
    // Without a set of CPUs, nothing was pinned.
    let _ = affinity::pin_thread(cpus);
}

/// Pins the calling thread, a client's. The error is a note.
pub fn seat_client(seat: &CpuAssignment) -> Result<(), String> {
    if seat.client.is_empty() {
        return Ok(());
    }
    affinity::pin_thread(&seat.client)
        .map_err(|error| format!("no CPU pinning of a client: failed to {error}"))
}

/// A connection whose server side is to be pinned.
pub struct SeatedConnection<'a> {
    /// Number of the client or connection, from 0.
    pub client: usize,
    /// The id in the protocol: on Postgres, the process of the backend.
    pub id: Option<u32>,
    /// The CPU to pin to.
    pub seat: &'a CpuAssignment,
}

/// The server of connections to be pinned.
#[derive(Clone, Copy)]
pub struct SeatedServer {
    /// Decides how rqps finds its processes and threads.
    pub dialect: Dialect,
    /// Its root process, if it runs on this host.
    pub pid: Option<u32>,
    /// True if there is only one connection.
    pub alone: bool,
    /// True if rqps runs it. On any other server, rqps pins nothing that outlives a connection.
    pub own: bool,
}

impl SeatedServer {
    /// Pins the server's side of each connection, one at a time while the others are idle. Returns
    /// a note for each failure.
    pub fn seat_all<T: Send + 'static, W: Write>(
        self,
        pool: &mut WorkerPool<T>,
        ready: &[Ready],
        seats: &[CpuAssignment],
        control: &ControlChannel<W>,
    ) -> Result<Vec<String>, Stop> {
        let mut notes = Vec::new();
        for (client, (ready, seat)) in ready.iter().zip(seats).enumerate() {
            let connection = SeatedConnection { client, id: ready.connection_id, seat };
            let mut stop = None;
            let seated = self.seat(&connection, || {
                pool.ask(client, Order::Ping, control).unwrap_or_else(|end| {
                    stop = Some(end);
                    Err("the job ends".to_owned())
                })
            });
            if let Some(stop) = stop {
                return Err(stop);
            }
            notes.extend(seated.err());
        }
        Ok(notes)
    }

    /// The server's process or thread of the only client; `None` if the DBMS is a library, or if
    /// the thread cannot be identified.
    pub fn serving<T: Send + 'static, W: Write>(
        self,
        pool: &mut WorkerPool<T>,
        ready: &[Ready],
        control: &ControlChannel<W>,
    ) -> Result<Option<u32>, Stop> {
        let Some(server) = self.pid else { return Ok(None) };
        if self.dialect == Dialect::Postgres {
            return Ok(ready.first().and_then(|ready| ready.connection_id));
        }
        if let Some(thread) = ready.first().and_then(|ready| ready.thread) {
            return Ok(Some(thread));
        }
        let mut stop = None;
        let found = find_thread(server, || {
            pool.ask(0, Order::Ping, control).unwrap_or_else(|end| {
                stop = Some(end);
                Err("the job ends".to_owned())
            })
        });
        match stop {
            Some(stop) => Err(stop),
            None => Ok(found?),
        }
    }

    /// Pins the server's side of one connection. `ping` sends some small statements on it. The
    /// error is a note.
    fn seat(
        self,
        connection: &SeatedConnection<'_>,
        ping: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let SeatedConnection { client, id, seat } = connection;
        let protocol = self.dialect.spec().server.as_ref();
        let Some(protocol) = protocol.filter(|_| !seat.server.is_empty()) else { return Ok(()) };
        let note =
            |why: String| format!("no CPU pinning of the server side of client {client}: {why}");
        let failed = |error: affinity::AffinityError| note(format!("failed to {error}"));
        let Some(server) = self.pid else {
            return Err(note("unknown server process".to_owned()));
        };
        if let (Backend::Process, Some(backend)) = (protocol.backend, id) {
            return affinity::pin_process(*backend, &seat.server).map_err(failed);
        }
        if !self.own {
            // The thread may serve other connections afterwards.
            return Err(note("rqps does not run that server".to_owned()));
        }
        match find_thread(server, ping).map_err(note)? {
            Some(thread) => affinity::pin_tid(thread, &seat.server).map_err(failed),
            None if self.alone => affinity::pin_process(server, &seat.server).map_err(failed),
            None => Err(note("its thread cannot be identified".to_owned())),
        }
    }
}

/// The thread of `server` that answers `ping`: the one that runs most often meanwhile. It must win
/// twice in a row, because a background thread may happen to be busy.
fn find_thread(
    server: u32,
    mut ping: impl FnMut() -> Result<(), String>,
) -> Result<Option<u32>, String> {
    const TRIES: u32 = 4;
    let snapshot =
        || affinity::thread_snapshot(server).map_err(|error| format!("failed to {error}"));
    let mut found = None;
    for _ in 0..TRIES {
        let before = snapshot()?;
        ping()?;
        let busiest = affinity::busiest_thread(&before, &snapshot()?);
        if busiest.is_some() && busiest == found {
            return Ok(found);
        }
        found = busiest;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_script_keeps_the_name_that_the_user_knows() {
        let places = |copy: Option<&str>| ScriptPlaces {
            start: "/".into(),
            folder: "/closed/bench".into(),
            copy: copy.map(PathBuf::from),
            scratch: "/tmp/s".into(),
        };
        let check = |copy, script: &str, read: &str| {
            let places = places(copy);
            assert_eq!(places.readable(Path::new(script)), Path::new(read));
            assert_eq!(places.original(Path::new(read)), Path::new(script));
        };
        check(Some("/tmp/s/scripts"), "/closed/bench/a.lua", "/tmp/s/scripts/a.lua");
        check(Some("/tmp/s/scripts"), "/usr/share/b.lua", "/usr/share/b.lua");
        check(None, "/closed/bench/a.lua", "/closed/bench/a.lua");
    }
}

#[cfg(test)]
mod placement_tests {
    use super::*;
    use rqps_model::benchmark::{Pace, RateUnit};

    fn task(placement: Placement, clients: u32) -> StepRequest<()> {
        StepRequest {
            work: (),
            clients,
            warmup_seconds: 0.0,
            seconds: 1.0,
            pace: Pace::Closed,
            rate: RateUnit::Queries,
            placement,
            server_pid: None,
            plans: false,
            storage_engine: None,
            cache: None,
        }
    }

    #[test]
    fn every_client_has_a_seat() {
        for placement in [Placement::Together, Placement::Apart, Placement::Os] {
            assert_eq!(plan(&task(placement, 3), true).seats.len(), 3);
        }
    }

    #[test]
    fn an_unknown_server_is_a_note() {
        let seat = CpuAssignment { client: vec![0], server: vec![0] };
        let connection = SeatedConnection { client: 0, id: Some(1), seat: &seat };
        let dialect = Dialect::Postgres;
        let server = SeatedServer { dialect, pid: None, alone: true, own: true };
        let note = server.seat(&connection, || Ok(())).unwrap_err();
        assert!(note.contains("unknown server process"), "{note}");
    }

    #[test]
    fn nothing_of_a_server_that_rqps_does_not_run_stays_pinned() {
        let seat = CpuAssignment { client: vec![0], server: vec![0] };
        let connection = SeatedConnection { client: 0, id: Some(1), seat: &seat };
        let (dialect, pid) = (Dialect::Mysql, Some(std::process::id()));
        let server = SeatedServer { dialect, pid, alone: true, own: false };
        let note = server.seat(&connection, || Ok(())).unwrap_err();
        assert!(note.contains("rqps does not run that server"), "{note}");
    }
}
