//! Where clients and the server's side of their connections run. What cannot be placed becomes a
//! note: a step is measured all the same, and the note says that its placement is not whole.

use crate::domain::benchmark::Placement;
use crate::domain::build::Dialect;
use crate::driver::protocol::{Job, MeasureTask};
use crate::os::affinity::{self, Seat};

/// The seats of all clients, and what could not be done.
pub(crate) struct Seating {
    pub(crate) seats: Vec<Seat>,
    pub(crate) notes: Vec<String>,
}

/// Plans a seat for every client and takes old pins off the server, which an earlier step may have
/// left.
pub(crate) fn plan(task: &MeasureTask) -> Seating {
    let cpus = affinity::allowed_cpus();
    let mut notes = Vec::new();
    let seats = affinity::plan(task.placement, task.clients, &cpus).unwrap_or_else(|error| {
        notes.push(format!("nothing is pinned: failed to {error}"));
        vec![Seat::default(); task.clients as usize]
    });
    if task.placement != Placement::Os
        && let Some(pid) = task.server_pid
        && let Err(error) = affinity::pin_tree(pid, &cpus)
    {
        notes.push(format!("old pins of the server are not taken off: failed to {error}"));
    }
    Seating { seats, notes }
}

/// Pins the calling thread, which is that of a client. `Err` is a note.
pub(crate) fn seat_client(seat: &Seat) -> Result<(), String> {
    if seat.client.is_empty() {
        return Ok(());
    }
    affinity::pin_thread(&seat.client)
        .map_err(|error| format!("a client is not pinned: failed to {error}"))
}

/// One connection whose server's side is to be pinned.
pub(crate) struct Connection<'a> {
    /// Client, from 0.
    pub(crate) client: usize,
    /// What the protocol says: on Postgres the process of the backend.
    pub(crate) id: Option<u32>,
    /// Where it belongs.
    pub(crate) seat: &'a Seat,
}

/// Pins the server's side of one connection. `ping` sends some small statements on it. The error is
/// a note.
pub(crate) fn seat_server(
    job: &Job,
    task: &MeasureTask,
    connection: &Connection<'_>,
    ping: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let Connection { client, id, seat } = connection;
    if seat.server.is_empty()
        || matches!(job.dialect, Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake)
    {
        return Ok(());
    }
    let note = |why: String| format!("the server's side of client {client} is not pinned: {why}");
    let failed = |error: affinity::AffinityError| note(format!("failed to {error}"));
    let Some(server) = task.server_pid else {
        return Err(note("the process of the server is not known".to_owned()));
    };
    if let (Dialect::Postgres, Some(backend)) = (job.dialect, id) {
        return affinity::pin_process(*backend, &seat.server).map_err(failed);
    }
    match find_thread(server, ping).map_err(note)? {
        Some(thread) => affinity::pin_tid(thread, &seat.server).map_err(failed),
        None if task.clients == 1 => affinity::pin_process(server, &seat.server).map_err(failed),
        None => Err(note("its thread could not be told from others".to_owned())),
    }
}

/// The thread of `server` that answers `ping`: the one that is put on a CPU most often meanwhile.
/// It must be so twice in a row, since a background thread may happen to be busy.
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
    use crate::domain::benchmark::{Pace, RateUnit};
    use crate::domain::endpoint::{Endpoint, Login};
    use crate::domain::script::{Distribution, Script};
    use crate::driver::protocol::{Task, VERSION};

    fn task(placement: Placement, clients: u32) -> MeasureTask {
        MeasureTask {
            script: Script {
                transaction: false,
                operations: vec![],
                distribution: Distribution::Uniform,
            },
            clients,
            warmup_seconds: 0.0,
            seconds: 1.0,
            pace: Pace::Closed,
            rate: RateUnit::Queries,
            placement,
            server_pid: None,
            plans: false,
        }
    }

    #[test]
    fn every_client_has_a_seat() {
        for placement in [Placement::Together, Placement::Apart, Placement::Os] {
            assert_eq!(plan(&task(placement, 3)).seats.len(), 3);
        }
    }

    #[test]
    fn an_unknown_server_is_a_note() {
        let task = task(Placement::Together, 1);
        let job = Job {
            version: VERSION,
            dialect: Dialect::Postgres,
            endpoint: Endpoint::Fake { mean_us: 1, real_time: false },
            login: Login::default(),
            session_setup: vec![],
            seed: 1,
            tables: 1,
            rows: 1,
            task: Task::Measure(Box::new(task.clone())),
        };
        let seat = Seat { client: vec![0], server: vec![0] };
        let connection = Connection { client: 0, id: Some(1), seat: &seat };
        let note = seat_server(&job, &task, &connection, || Ok(())).unwrap_err();
        assert!(note.contains("not known"), "{note}");
    }
}
