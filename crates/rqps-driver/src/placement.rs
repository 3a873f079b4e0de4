//! Places clients, and the server's side of their connections, on CPUs. A failed placement becomes
//! a note; the step is measured all the same.

use std::io::Write;

use crate::Stop;
use crate::control_channel::ControlChannel;
use crate::request::StepRequest;
use crate::worker_pool::{Order, Ready, WorkerPool};
use rqps_host::affinity::{self, CpuAssignment};
use rqps_model::benchmark::Placement;
use rqps_model::dialect::{Backend, Dialect};

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
