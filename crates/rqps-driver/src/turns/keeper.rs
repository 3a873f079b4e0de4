//! Keeps the page of turns on the host of the clients if the lab is on another one. The lab's words
//! come as lines; its questions are answered once a second, unasked.
//!
//! The page goes with this process and with the drivers that have opened it, so nothing stays
//! behind however they end.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::Stop;
use crate::control_channel::ControlChannel;
use crate::event::DriverEvent;
use crate::request::DriverCommand;
use crate::turns::token::{Heartbeat, TurnPhase, TurnRules, TurnToken};

/// Between two reports of the state.
const REPORT: Duration = Duration::from_secs(1);

/// Keeps a page until the lab goes.
pub fn keep<W: Write>(rules: &TurnRules, control: &mut ControlChannel<W>) -> Result<(), Stop> {
    let token = TurnToken::create(rules.targets(), rules.clone())?;
    control.send(&DriverEvent::TurnPage(token.path().to_owned()))?;
    let mut signs: Vec<Heartbeat> = (0..token.targets()).map(Heartbeat::of).collect();
    let mut next = Instant::now() + REPORT;
    loop {
        let left = next.saturating_duration_since(Instant::now());
        if let Some(line) = control.line(left)? {
            obey(&token, &line)?;
        }
        if Instant::now() >= next {
            control.send(&state(&token, &mut signs))?;
            next = Instant::now() + REPORT;
        }
    }
}

/// Carries out a word of the lab.
fn obey(token: &TurnToken, line: &str) -> Result<(), String> {
    let place = |place: u32| {
        let known = usize::try_from(place).ok().filter(|place| *place < token.targets());
        known.ok_or_else(|| format!("failed to obey `{line}`: there is no such target"))
    };
    match line.parse::<DriverCommand>()? {
        DriverCommand::Sampled(target) => {
            token.arrive_at_barrier(place(target)?, TurnPhase::Sample)
        }
        DriverCommand::Leave(target) => token.remove_target(place(target)?),
        DriverCommand::GoOn
        | DriverCommand::Clock
        | DriverCommand::StartAt(_)
        | DriverCommand::Met(_) => {
            return Err(format!("failed to obey `{line}`: this driver only keeps turns"));
        }
    }
    Ok(())
}

fn state(token: &TurnToken, signs: &mut [Heartbeat]) -> DriverEvent {
    let waiting = (0..token.targets()).filter(|place| token.is_others(*place));
    let waiting = waiting.fold(0, |places, place| places | 1 << place);
    let stuck = signs.iter_mut().map(|signs| signs.is_gone(token)).collect::<Vec<bool>>();
    let stuck = stuck.iter().position(|stuck| *stuck).map(|place| place as u32);
    DriverEvent::TurnState { waiting, stuck }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn rules() -> TurnRules {
        TurnRules {
            order: vec![0, 1, 1, 0],
            round: 4,
            turn_ns: 1_000,
            warmup_ns: 4_000,
            window_ns: 40_000,
        }
    }

    #[test]
    fn the_words_of_the_lab_open_the_gate_and_remove_targets() {
        let token = TurnToken::create(2, rules()).unwrap();
        (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
        while let Some(holder) = token.holder() {
            assert!(token.pass(holder, token.state(), 10_000, 100));
        }
        assert_eq!(token.state().phase, TurnPhase::Sample);
        obey(&token, "sampled 1").unwrap();
        let state_now = |token: &TurnToken| state(token, &mut [Heartbeat::of(0), Heartbeat::of(1)]);
        assert_eq!(state_now(&token), DriverEvent::TurnState { waiting: 0b10, stuck: None });
        obey(&token, "leave 0").unwrap();
        assert_eq!((token.state().phase, token.holder()), (TurnPhase::Window, Some(1)));
        for (line, part) in [
            ("leave 2", "no such target"),
            ("sampled 4294967295", "no such target"),
            ("clock", "only keeps turns"),
            ("", "only keeps turns"),
            ("stop", "only rqps starts drivers"),
        ] {
            let fault = obey(&token, line).unwrap_err();
            assert!(fault.contains(part), "{line}: {fault}");
        }
    }

    #[test]
    fn the_page_is_named_first_and_kept_until_the_lab_goes() {
        let kept = |input: &'static str| {
            let mut said = Vec::new();
            let end = {
                let mut control =
                    ControlChannel::watching(&mut said, Cursor::new(input.as_bytes()));
                keep(&rules(), &mut control)
            };
            let said = String::from_utf8(said).unwrap();
            let first: DriverEvent = serde_json::from_str(said.lines().next().unwrap()).unwrap();
            assert!(matches!(first, DriverEvent::TurnPage(_)), "{first:?}");
            end
        };
        assert!(matches!(kept("leave 1\nsampled 0\n"), Err(Stop::Gone)));
        assert!(matches!(kept("leave 9\n"), Err(Stop::Fault(fault)) if fault.contains("leave 9")));
    }
}
