//! A client's event: a call of the script's event().

use std::sync::Arc;

use super::event_cap::EventCap;
use super::host::SqlHost;
use super::reports::Figures;
use super::state::{Surroundings, load_script};
use rqps_driver::attempt::{AfterError, ClientEvent, ClientStop, StatementError, Tally};
use rqps_driver::connection::Connection;
use rqps_embed::lua::{EventEnd, LuaState};
use rqps_model::lua::LuaWork;
use rqps_wire::WireError;

/// The script of one client.
pub(super) struct ScriptClient {
    state: LuaState<SqlHost>,
    /// Name of the script, for faults.
    name: String,
    client: u32,
    /// Sums for the script's own reports.
    figures: Arc<Figures>,
    /// True if the script has reports.
    reports: bool,
    /// Statements of the last event, for the reports.
    last: Tally,
    /// The events that all clients together may carry out.
    cap: EventCap,
    /// Set once event() has returned a value, thread_run() has ended before its time, or there are
    /// no more events.
    stopped: Option<ClientStop>,
}

impl ScriptClient {
    /// Opens the state of client `client`, loads the script and connects. The error is a complete
    /// message.
    pub(super) fn begin(
        surroundings: &Surroundings,
        work: &LuaWork,
        client: u32,
        (figures, cap): (&Arc<Figures>, &EventCap),
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
        let reports = !state.command("hooks", "").map_err(fault)?.is_empty();
        if reports {
            figures.want();
        }
        let figures = Arc::clone(figures);
        let last = Tally::default();
        let cap = cap.clone();
        Ok(ScriptClient { state, name, client, figures, reports, last, cap, stopped: None })
    }

    #[cold]
    fn failed(&self, said: String) -> StatementError {
        StatementError { kind: self.name.clone(), error: WireError::Protocol(said) }
    }

    /// Repeats an event after the script has restored its connection.
    #[cold]
    fn restart(&mut self) -> StatementError {
        let error = self.state.host().last.take();
        if self.reports {
            self.figures.error(self.client);
        }
        if let Err(said) = self.state.command("restart", "") {
            return self.failed(said);
        }
        let of_script = || WireError::Server {
            code: "restart".to_owned(),
            message: "the script restarted the event".to_owned(),
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
        if self.cap.is_reached() {
            self.stopped = Some(ClientStop::Together);
            return Ok(());
        }
        self.state.host().borrow(session);
        let ended = match self.state.event() {
            EventEnd::Done => Ok(()),
            EventEnd::Restart => Err(self.restart()),
            EventEnd::Failed(said) => Err(self.failed(said)),
            EventEnd::Stopped => {
                self.stopped = Some(ClientStop::Alone);
                Ok(())
            }
        };
        let host = self.state.host();
        if ended.is_ok() {
            host.event_ended();
        }
        host.give_back(session);
        let of_event = std::mem::take(&mut host.tally);
        tally.add(&of_event);
        if self.reports {
            self.last = of_event;
        }
        ended
    }

    #[inline]
    fn stopped(&self) -> Option<ClientStop> {
        self.stopped
    }

    fn after_error(&self, _: &str) -> Option<AfterError> {
        // Only errors after which the event begins again have the form of a server's error.
        Some(AfterError::Repeat)
    }

    #[inline]
    fn recorded(&mut self, latency_ns: u64) {
        self.cap.count();
        if self.reports {
            self.figures.event(self.client, &self.last, latency_ns);
        }
    }

    fn own_errors(&mut self) -> u64 {
        std::mem::take(&mut self.state.host().own_errors)
    }

    fn finish(&mut self, session: &mut Connection) -> Result<(), String> {
        self.state.host().borrow(session);
        let ended = self.state.command("finish", "");
        self.state.host().give_back(session);
        let said = ended.map_err(|said| format!("failed to end {}: {said}", self.name))?;
        if !said.is_empty() {
            self.figures.note_default();
        }
        Ok(())
    }
}
