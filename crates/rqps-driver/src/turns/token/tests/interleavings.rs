//! All interleavings of the moments at which several processes see that a phase is over, tried by
//! loom on a model of the page.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::SeqCst;
use loom::thread;

use super::super::*;

/// The few numbers that the model needs, and a clock that advances with each look.
struct ModelPage {
    numbers: Vec<AtomicU64>,
    clock: AtomicU64,
}

const PLACES: [usize; 11] = [
    STATE,
    ALIVE,
    GATHERED,
    SAMPLED,
    SLICE,
    BEGUN,
    FIRST,
    WARMUP_OWN,
    WARMUP_OWN + 1,
    WINDOW_OWN,
    WINDOW_OWN + 1,
];

impl ModelPage {
    fn number(&self, index: usize) -> &AtomicU64 {
        // Lengths of events are the same for all.
        let place = PLACES.iter().position(|place| *place == index).unwrap_or(PLACES.len());
        &self.numbers[place]
    }
}

impl SharedNumbers for ModelPage {
    fn load(&self, index: usize) -> u64 {
        self.number(index).load(SeqCst)
    }

    fn store(&self, index: usize, value: u64) {
        self.number(index).store(value, SeqCst);
    }

    fn add(&self, index: usize, value: u64) {
        self.number(index).fetch_add(value, SeqCst);
    }

    fn set_bits(&self, index: usize, bits: u64) {
        self.number(index).fetch_or(bits, SeqCst);
    }

    fn clear_bits(&self, index: usize, bits: u64) {
        self.number(index).fetch_and(!bits, SeqCst);
    }

    fn replace(&self, index: usize, from: u64, to: u64) -> bool {
        self.number(index).compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }

    fn wake(&self, _: usize) {}

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst) + 1
    }
}

/// Two targets whose warm-up is one round, and whose window is two.
fn token() -> TurnToken<ModelPage> {
    let rules = TurnRules { order: vec![0, 1], round: 2, turn_ns: 5, warmup_ns: 10, window_ns: 20 };
    let numbers = (0..=PLACES.len()).map(|_| AtomicU64::new(0)).collect();
    let page = ModelPage { numbers, clock: AtomicU64::new(0) };
    let token = TurnToken::new(page, rules).unwrap();
    token.begin();
    token
}

/// Takes the turn of `place` if it is its turn in the window; returns when it began.
fn turn_in_window(token: &TurnToken<ModelPage>, place: usize) -> Option<u64> {
    let state = token.state();
    let is_mine = state.phase == TurnPhase::Window && token.holder() == Some(place);
    let began = token.page.now();
    (is_mine && token.pass(place, state, 10, 1)).then_some(began)
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn no_turn_is_lost_when_two_open_the_window() {
    explore(|| {
        let token = Arc::new(token());
        (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
        (0..2).for_each(|place| assert!(token.pass(place, token.state(), 10, 1)));
        assert_eq!(token.state(), TurnState { phase: TurnPhase::Sample, turn: 2 });
        let other = token.clone();
        let other = thread::spawn(move || {
            other.arrive_at_barrier(1, TurnPhase::Sample);
            turn_in_window(&other, 1)
        });
        token.arrive_at_barrier(0, TurnPhase::Sample);
        let turns = [turn_in_window(&token, 0), other.join().unwrap()];
        let state = token.state();
        assert_eq!((state.phase, token.first()), (TurnPhase::Window, 2));
        for (place, turn) in turns.into_iter().enumerate() {
            let own = token.page.load(WINDOW_OWN + place);
            assert_eq!(own, if turn.is_some() { 10 } else { 0 }, "target {place}");
            assert!(turn.is_none_or(|turn| token.window_began_ns() < turn), "target {place}");
        }
        let taken = turns.iter().flatten().count() as u32;
        assert_eq!(state.turn, 2 + taken, "each turn moves the token once");
    });
}

#[test]
fn a_removal_in_the_last_turn_of_the_warm_up_moves_on_once() {
    explore(|| {
        let token = Arc::new(token());
        (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
        assert!(token.pass(0, token.state(), 20, 1));
        let last = token.state();
        let other = token.clone();
        let other = thread::spawn(move || other.pass(1, last, 20, 1));
        token.remove_target(1);
        other.join().unwrap();
        let state = token.state();
        assert_eq!(state, TurnState { phase: TurnPhase::Sample, turn: 2 });
        token.arrive_at_barrier(0, TurnPhase::Sample);
        assert_eq!((token.first(), token.holder()), (2, Some(0)));
        assert_eq!(token.page.load(WINDOW_OWN), 0);
    });
}
