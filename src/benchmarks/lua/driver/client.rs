//! What a client does per event: it calls the script's event().

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::host::SqlHost;
use super::state::{Surroundings, load_script};
use crate::domain::lua::LuaWork;
use crate::driver::attempt::{AfterError, ClientEvent, StatementError, Tally};
use crate::driver::connection::Connection;
use crate::embed::lua::{EventEnd, LuaState};
use crate::wire::WireError;

/// Counts the events of a client: odd while one is at work.
pub(super) type Pulse = Arc<AtomicU64>;

/// The script of one client.
pub(super) struct ScriptClient {
    state: LuaState<SqlHost>,
    /// Name of the script, for faults.
    name: String,
    pulse: Pulse,
    beats: u64,
}

impl ScriptClient {
    /// Opens the state of client `client`, loads the script and lets it connect. The error is a
    /// whole fault.
    pub(super) fn begin(
        surroundings: &Surroundings,
        work: &LuaWork,
        (client, pulse): (u32, Pulse),
        session: &mut Connection,
    ) -> Result<ScriptClient, String> {
        let name = work.script.name.clone();
        let fault = |what: String| format!("failed to prepare {name}: {what}");
        let mut state = surroundings.open(work, client, "run")?;
        state.host().borrow(session);
        let begun = load_script(&mut state, &work.script.path)
            .and_then(|()| state.command("call", "thread_init").map(|_| ()))
            .and_then(|()| state.keep_event());
        state.host().give_back(session);
        begun.map_err(fault)?;
        state.host().tally = Tally::default();
        Ok(ScriptClient { state, name, pulse, beats: 0 })
    }

    fn beat(&mut self) {
        self.beats += 1;
        self.pulse.store(self.beats, Ordering::Relaxed);
    }

    #[cold]
    fn failed(&self, said: String) -> StatementError {
        StatementError { kind: self.name.clone(), error: WireError::Protocol(said) }
    }

    /// An event that begins again: the script puts its connection in order first.
    #[cold]
    fn restart(&mut self) -> StatementError {
        let error = self.state.host().last.take();
        if let Err(said) = self.state.command("restart", "") {
            return self.failed(said);
        }
        let of_script = || WireError::Server {
            code: "restart".to_owned(),
            message: "the script asked for the event again".to_owned(),
        };
        StatementError { kind: self.name.clone(), error: error.unwrap_or_else(of_script) }
    }
}

impl ClientEvent for ScriptClient {
    #[inline]
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        self.beat();
        self.state.host().borrow(session);
        let ended = match self.state.event() {
            EventEnd::Done => Ok(()),
            EventEnd::Restart => Err(self.restart()),
            EventEnd::Failed(said) => Err(self.failed(said)),
            EventEnd::Stopped => Err(self.failed(
                "event() returned a value, which ends its thread in sysbench; rqps measures for a \
                 time and needs event() to return nothing"
                    .to_owned(),
            )),
        };
        let host = self.state.host();
        if ended.is_ok() {
            host.event_ended();
        }
        host.give_back(session);
        tally.add(&std::mem::take(&mut host.tally));
        self.beat();
        ended
    }

    fn after_error(&self, _: &str) -> Option<AfterError> {
        // Only errors that begin the event again come as those of a server.
        Some(AfterError::Repeat)
    }

    fn own_errors(&mut self) -> u64 {
        std::mem::take(&mut self.state.host().own_errors)
    }

    fn finish(&mut self, session: &mut Connection) -> Result<(), String> {
        self.state.host().borrow(session);
        let ended = self.state.command("call", "thread_done");
        self.state.host().give_back(session);
        ended.map(|_| ()).map_err(|said| format!("failed to end {}: {said}", self.name))
    }
}
