//! Sessions of a load on a server of others. Their statements end when the lab goes: the server
//! would go on with a COPY or an index for hours. Statements that are asked for their answers also
//! end when they take too long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rqps_wire::cancel::Canceller;

/// Sessions that are remembered; a load has few.
const MOST: usize = 1000;

/// The time for each.
const LIMIT: Duration = Duration::from_secs(3);

static SESSIONS: Mutex<Vec<Canceller>> = Mutex::new(Vec::new());

/// Remembers a session. One that is closed by then does no harm: no number comes twice.
pub(super) fn remember(session: Canceller) {
    if let Ok(mut sessions) = SESSIONS.lock()
        && sessions.len() < MOST
    {
        sessions.push(session);
    }
}

/// Time between two looks at how long a statement takes.
const LOOK: Duration = Duration::from_millis(100);

/// Number of statements begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A statement begins.
pub(super) fn begin() {
    BEGUN.fetch_add(1, Ordering::Relaxed);
}

/// As long as the value lives, ends statements that take longer than `most`.
pub(super) fn limit(most: Duration) -> Arc<()> {
    let alive = Arc::new(());
    let watched = Arc::downgrade(&alive);
    std::thread::spawn(move || {
        let (mut known, mut since) = (BEGUN.load(Ordering::Relaxed), Instant::now());
        while watched.strong_count() > 0 {
            std::thread::sleep(LOOK);
            let now = BEGUN.load(Ordering::Relaxed);
            if now == known && since.elapsed() > most {
                all();
            }
            if now != known || since.elapsed() > most {
                (known, since) = (now, Instant::now());
            }
        }
    });
    alive
}

/// Ends what all of them execute.
pub(super) fn all() {
    let sessions = SESSIONS.lock().map(|sessions| sessions.clone());
    std::thread::scope(|scope| {
        for session in sessions.iter().flatten() {
            // Whom it does not reach goes on, as before.
            scope.spawn(|| session.cancel(LIMIT).ok());
        }
    });
}
