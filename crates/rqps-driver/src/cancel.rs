//! Sessions of a load on a server of others. Their statements end when the lab goes: the server
//! would go on with a COPY or an index for hours.

use std::sync::Mutex;
use std::time::Duration;

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

/// Ends what all of them execute.
pub(super) fn all() {
    let sessions = SESSIONS.lock().map(|mut sessions| std::mem::take(&mut *sessions));
    std::thread::scope(|scope| {
        for session in sessions.iter().flatten() {
            // Whom it does not reach goes on, as before.
            scope.spawn(|| session.cancel(LIMIT).ok());
        }
    });
}
