mod interleavings;

use super::*;

const MS: u64 = 1_000_000;

fn rules(order: &[u32], round: u32) -> TurnRules {
    TurnRules {
        order: order.to_vec(),
        round,
        turn_ns: 20 * MS,
        warmup_ns: 40 * MS,
        window_ns: 400 * MS,
    }
}

fn started(order: &[u32], round: u32, targets: usize) -> TurnToken {
    let token = TurnToken::create(targets, rules(order, round)).unwrap();
    (0..targets).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
    token
}

/// Takes turns of 20 ms until the phase changes; returns the targets of the turns.
fn take(token: &TurnToken) -> Vec<usize> {
    let phase = token.state().phase;
    let mut turns = Vec::new();
    while let (Some(place), true) = (token.holder(), token.state().phase == phase) {
        assert!(token.pass(place, token.state(), 20 * MS, MS / 10));
        turns.push(place);
    }
    turns
}

#[test]
fn the_token_goes_round_from_gate_to_gate() {
    let token = TurnToken::create(2, rules(&[0, 1, 1, 0], 4)).unwrap();
    let other = TurnToken::open(token.path(), token.rules()).unwrap();
    token.arrive_at_barrier(0, TurnPhase::Gather);
    assert_eq!((token.state().phase, token.holder()), (TurnPhase::Gather, None));
    assert!(token.is_others(0) && !token.is_others(1));
    other.arrive_at_barrier(1, TurnPhase::Gather);
    assert_eq!(token.state(), TurnState { phase: TurnPhase::WarmUp, turn: 0 });
    assert_eq!(take(&other), [0, 1, 1, 0]);
    assert_eq!(token.state(), TurnState { phase: TurnPhase::Sample, turn: 4 });
    token.arrive_at_barrier(1, TurnPhase::Sample);
    assert_eq!(token.wait(0, TurnState { phase: TurnPhase::WarmUp, turn: 3 }), Some(token.state()));
    token.arrive_at_barrier(0, TurnPhase::Sample);
    assert_eq!((token.first(), take(&token)), (4, [0, 1, 1, 0].repeat(10)));
    assert_eq!(other.state(), TurnState { phase: TurnPhase::Over, turn: 44 });
}

#[test]
fn only_the_holder_passes_and_only_once() {
    let token = started(&[0, 1], 2, 2);
    let first = token.state();
    assert!(!token.pass(1, first, MS, MS));
    assert!(token.pass(0, first, MS, MS));
    assert!(!token.pass(0, first, MS, MS));
    assert_eq!(token.wait(1, first), Some(TurnState { phase: TurnPhase::WarmUp, turn: 1 }));
    assert_eq!(token.news(0, first), None);
}

#[test]
fn the_dead_hold_nobody_up() {
    let token = TurnToken::create(3, rules(&[0, 1, 2, 2, 1, 0], 6)).unwrap();
    token.arrive_at_barrier(0, TurnPhase::Gather);
    token.arrive_at_barrier(2, TurnPhase::Gather);
    token.remove_target(1);
    assert_eq!(token.state().phase, TurnPhase::WarmUp, "before it came");
    assert_eq!(take(&token), [0, 2, 2, 0]);
    assert_eq!(token.state(), TurnState { phase: TurnPhase::Sample, turn: 6 });
    token.arrive_at_barrier(0, TurnPhase::Sample);
    token.remove_target(2);
    assert_eq!(token.state().phase, TurnPhase::Window, "before its counters were read");
    assert_eq!(take(&token), [0; 20]);
    token.remove_target(0);
    let token = started(&[0, 1, 1, 0], 4, 2);
    let state = token.state();
    token.remove_target(0);
    assert_eq!(token.holder(), Some(1), "in its turn");
    assert!(!token.pass(0, state, MS, MS), "too late");
    token.remove_target(1);
    assert_eq!(token.state().phase, TurnPhase::WarmUp, "nobody is left");
}

#[test]
fn a_window_shorter_than_a_round_ends_when_all_had_as_many_turns() {
    let rules = TurnRules { warmup_ns: 0, window_ns: 20 * MS, ..rules(&[0, 1, 1, 0], 4) };
    let token = TurnToken::create(2, rules).unwrap();
    (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
    assert_eq!(take(&token), [0, 1]);
    assert_eq!(token.state(), TurnState { phase: TurnPhase::Sample, turn: 4 });
    (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Sample));
    assert_eq!(take(&token), [0, 1]);
}

#[test]
fn slices_hold_many_events_or_one() {
    let rules = rules(&[0, 1], 2);
    for (event, want) in
        [(0, 20 * MS), (MS / 2, 20 * MS), (2 * MS, 40 * MS), (3 * MS, 20 * MS), (u64::MAX, 20 * MS)]
    {
        assert_eq!(slice(&rules, event), want, "{event}");
    }
}

#[test]
fn orders_that_are_none_are_refused() {
    for (order, round, targets) in
        [(&[][..], 2, 0), (&[0, 1], 0, 2), (&[0, 1, 1], 2, 2), (&[0, 1], 2, 3), (&[64], 1, 65)]
    {
        assert!(TurnToken::create(targets, rules(order, round)).is_err(), "{order:?}");
    }
}

#[test]
fn threads_take_turns() {
    let rules = TurnRules { window_ns: 2_000, warmup_ns: 10, ..rules(&[0, 1, 1, 0], 4) };
    let lab = TurnToken::create(2, rules).unwrap();
    let turns = |place: usize| {
        let token = TurnToken::open(lab.path(), lab.rules()).unwrap();
        token.arrive_at_barrier(place, TurnPhase::Gather);
        let mut seen = TurnState { phase: TurnPhase::Gather, turn: 0 };
        let mut turns = 0;
        loop {
            let Some(state) = token.wait(place, seen) else { continue };
            seen = state;
            match state.phase {
                TurnPhase::Over => return turns,
                TurnPhase::Sample => token.arrive_at_barrier(place, TurnPhase::Sample),
                TurnPhase::Window | TurnPhase::WarmUp => {
                    turns += u32::from(state.phase == TurnPhase::Window);
                    // Without it, the other would wait for ever.
                    if !token.pass(place, state, 10, 1) {
                        std::process::abort();
                    }
                }
                TurnPhase::Gather => {}
            }
        }
    };
    let counts = std::thread::scope(|scope| {
        let all = [0, 1].map(|place| scope.spawn(move || turns(place)));
        all.map(|thread| thread.join().unwrap())
    });
    assert_eq!(counts, [200, 200]);
}
