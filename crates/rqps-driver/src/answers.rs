//! Carries out the first events of a step by its first client, and sends the answers to what they
//! read.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::answer_keeper::AnswerKeeper;
use crate::attempt::{ClientEvent, StatementError, Tally};
use crate::cancel;
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, LabGone, Stop};
use crate::event::DriverEvent;
use crate::request::DriverRequest;
use rqps_wire::WireError;

/// Most events.
const EVENTS: u32 = 10;

/// The longest time of a statement.
const LONGEST: Duration = Duration::from_secs(10);

/// No event begins later than this.
const LATEST: Duration = Duration::from_secs(2);

/// Asks the events that `make` prepares.
pub fn ask<W: Write, E: ClientEvent>(
    request: &DriverRequest,
    connector: &Connector,
    make: &dyn Fn(&DriverRequest, u32, &mut Connection) -> Result<E, String>,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let mut session = connector.open(0)?;
    let _limit = cancel::limit(LONGEST);
    let mut event = make(request, 0, &mut session)?;
    around(&mut session, AnswerKeeper::end_event).map_err(|error| error.to_string())?;
    if let Connection::Recorded(recorded) = &mut session {
        recorded.begin();
    }
    let mut note = None;
    let began = Instant::now();
    for number in 0..EVENTS {
        around(&mut session, AnswerKeeper::begin_event).map_err(|error| error.to_string())?;
        let attempt = event.attempt(&mut session, &mut Tally::default());
        let is_over = pass_on(&mut session, control)? || event.stopped().is_some();
        if let Err(StatementError { kind, error }) = attempt {
            note = Some(format!("event {} of {kind}: {error}", number + 1));
            if !matches!(error, WireError::Server { .. }) {
                break;
            }
            // There may be no transaction; then this fails.
            session.simple("ROLLBACK").ok();
            event.give_up();
        }
        around(&mut session, AnswerKeeper::end_event).map_err(|error| error.to_string())?;
        if is_over || began.elapsed() > LATEST {
            break;
        }
    }
    Ok(control.send(&DriverEvent::Answered(note))?)
}

/// Has the session begin or end the transaction around an event.
fn around(
    session: &mut Connection,
    edge: fn(&mut AnswerKeeper) -> Result<(), WireError>,
) -> Result<(), WireError> {
    match session {
        Connection::Recorded(recorded) => edge(recorded),
        _ => Ok(()),
    }
}

/// Sends the answers since the last time. True if no more are kept.
fn pass_on<W: Write>(
    session: &mut Connection,
    control: &mut ControlChannel<W>,
) -> Result<bool, LabGone> {
    let Connection::Recorded(recorded) = session else { return Ok(true) };
    let found = recorded.take();
    if !(found.answers.is_empty() && found.statements.is_empty()) {
        control.send(&DriverEvent::Answer(Box::new(found)))?;
    }
    Ok(recorded.is_full())
}
