//! Scripts and statements that a user brings may never come back: a watch over their clients ends
//! the step then, and what the server still does for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connector;
use crate::request::StepRequest;
use crate::worker_pool::{Ready, Spent, WorkerHandle, WorkerSpec};

/// An event may last as long as the step and this time more.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the clients: a step ends at most so much later.
const LOOK: Duration = Duration::from_millis(100);

/// Stack of the watching thread, bytes.
const STACK: usize = 64 << 10;

/// Counts the beginnings and ends of a client's events: odd while one is at work.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// An event begins or ends. Only its client calls this.
    #[inline]
    pub fn beat(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn is_at_work(&self) -> bool {
        self.0.load(Ordering::Relaxed) % 2 == 1
    }
}

/// The clients of a step.
#[derive(Clone)]
pub struct ClientWatch {
    /// Their work, as error messages name it.
    what: String,
    limit: Duration,
    clients: Arc<Mutex<Vec<Watched>>>,
}

/// A client, and when its pulse was seen to change.
struct Watched {
    client: u32,
    /// Id of the server's process or thread for its connection, if the protocol has one.
    session: Option<u32>,
    pulse: Pulse,
    beats: u64,
    since: Instant,
}

impl ClientWatch {
    /// A watch over the clients of `task`, who carry out `what`.
    pub fn over<B>(task: &StepRequest<B>, what: &str) -> ClientWatch {
        let limit = Duration::from_secs_f64(task.warmup_seconds + task.seconds) + PATIENCE;
        ClientWatch { what: what.to_owned(), limit, clients: Arc::default() }
    }

    /// One more client with its session, and its pulse.
    pub(super) fn join(&self, client: u32, session: Option<u32>) -> Pulse {
        let pulse = Pulse::default();
        let (beats, since) = (0, Instant::now());
        let watched = Watched { client, session, pulse: pulse.clone(), beats, since };
        self.clients.lock().expect("no client panics while it joins").push(watched);
        pulse
    }

    /// If an event lasts too long, ends the sessions of all clients at work: the server would
    /// otherwise work on beside the next steps. The error is a complete message.
    pub(super) fn end_sessions(&self, connector: &Connector) -> Result<(), String> {
        let clients = self.clients.lock().expect("no client panics while it joins");
        if !clients.iter().any(|watched| watched.lasts_too_long(self.limit)) {
            return Ok(());
        }
        let at_work = clients.iter().filter(|watched| watched.pulse.is_at_work());
        at_work.filter_map(|watched| watched.session).try_for_each(|id| connector.end_session(id))
    }

    /// Fails for a client whose event lasts too long.
    fn look(&self) -> Result<(), String> {
        for watched in &mut *self.clients.lock().expect("no client panics while it joins") {
            let beats = watched.pulse.0.load(Ordering::Relaxed);
            if beats != watched.beats {
                (watched.beats, watched.since) = (beats, Instant::now());
            } else if watched.lasts_too_long(self.limit) {
                return Err(format!(
                    "failed to execute {}: an event of client {} did not end within {} s, the \
                     seconds of the step and {} more",
                    self.what,
                    watched.client,
                    self.limit.as_secs(),
                    PATIENCE.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// The thread that looks.
    pub(super) fn member<T: Default + Send + 'static>(self) -> WorkerSpec<T> {
        let main = move |handle: &WorkerHandle<T>| {
            handle.ready(Ready::default());
            while !handle.is_over() {
                thread::sleep(LOOK);
                self.look()?;
            }
            handle.done(T::default(), Spent::default());
            Ok(())
        };
        let name = "the watch over the clients".to_owned();
        WorkerSpec { name, stack: STACK, background: true, main: Box::new(main) }
    }
}

impl Watched {
    /// True if the event that was at work at the last look is so for longer than `limit`.
    fn lasts_too_long(&self, limit: Duration) -> bool {
        let is_same = self.pulse.0.load(Ordering::Relaxed) == self.beats;
        is_same && self.pulse.is_at_work() && self.since.elapsed() > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_end_is_found_with_its_client() {
        let watch = ClientWatch {
            what: "a.sql".to_owned(),
            limit: Duration::ZERO,
            clients: Arc::default(),
        };
        let (idle, busy) = (watch.join(3, None), watch.join(4, None));
        assert_eq!(watch.look(), Ok(()));
        idle.beat();
        idle.beat();
        busy.beat();
        assert_eq!(watch.look(), Ok(()), "it has just begun");
        thread::sleep(Duration::from_millis(1));
        let fault = watch.look().unwrap_err();
        let all = "failed to execute a.sql: an event of client 4 did not end within 0 s, ";
        assert!(fault.starts_with(all), "{fault}");
        busy.beat();
        assert_eq!(watch.look(), Ok(()));
    }
}
