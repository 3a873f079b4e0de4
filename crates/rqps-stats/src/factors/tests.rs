use rqps_model::datagen::rng::Rng;

use super::{Account, Design, Screen, ScreenRules};

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// A server whose rate depends on settings, some of them in pairs.
struct World {
    settings: usize,
    /// Setting → its effect.
    effects: Vec<(usize, f64)>,
    /// Two settings, and what they do only together.
    pairs: Vec<(usize, usize, f64)>,
    /// What no setting explains.
    rest: f64,
    noise: f64,
}

impl World {
    fn level(&self, on: &[usize]) -> f64 {
        let alone = self.effects.iter().filter(|(at, _)| on.contains(at)).map(|(_, by)| by);
        let both = self.pairs.iter().filter(|(a, b, _)| on.contains(a) && on.contains(b));
        alone.sum::<f64>() + both.map(|(_, _, by)| by).sum::<f64>()
    }

    /// Blocks of arms; the noise of a block is common to all of them.
    fn blocks(&self, levels: &[f64], count: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let block = |_| {
            let shift = 0.05 * normal(rng);
            levels.iter().map(|level| level + shift + self.noise * normal(rng)).collect()
        };
        (0..count).map(block).collect()
    }

    fn screened(&self, rng: &mut Rng) -> Vec<Vec<usize>> {
        self.screen(usize::MAX, rng).survivors().iter().map(|it| vec![it.change]).collect()
    }

    /// A screening with so many pairs at most.
    fn screen(&self, pairs: usize, rng: &mut Rng) -> Screen {
        let mut screen = Screen::new(self.settings, ScreenRules::default());
        let mut left = pairs;
        loop {
            let arms = screen.next_round(left);
            if arms.is_empty() {
                return screen;
            }
            left -= arms.len() / 2;
            let levels: Vec<f64> = arms.iter().map(|arm| self.level(arm)).collect();
            let block = self.blocks(&levels, 1, rng).remove(0);
            screen.record(&block.into_iter().map(Some).collect::<Vec<_>>());
        }
    }

    fn account(&self, factors: &[Vec<usize>], blocks: usize, rng: &mut Rng) -> Account {
        let design = Design::new(factors.len());
        let on = |arm: Vec<usize>| -> Vec<usize> {
            arm.into_iter().flat_map(|at| factors[at].clone()).collect()
        };
        let mut levels: Vec<f64> = design
            .arms()
            .map(|arm| {
                self.level(&{
                    let on: Vec<usize> = on(arm);
                    on
                })
            })
            .collect();
        let all: Vec<usize> = (0..self.settings).collect();
        levels.push(self.level(&all) + self.rest);
        let blocks = self.blocks(&levels, blocks, rng);
        Account::of(&design, &blocks, 0.95).expect("blocks")
    }
}

/// 40 settings in some order, of which the first five matter, and the first two more together.
fn five_of_forty(noise: f64, rng: &mut Rng) -> (Vec<usize>, World) {
    let mut order: Vec<usize> = (0..40).collect();
    for at in (1..40).rev() {
        order.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let effects = order.iter().copied().zip([0.10, 0.06, -0.04, 0.03, 0.025]).collect();
    let pairs = vec![(order[0], order[1], 0.05)];
    (order, World { settings: 40, effects, pairs, rest: 0.02, noise })
}

#[test]
fn five_of_forty_are_found_and_the_sum_is_the_whole() {
    let (campaigns, mut found, mut wrong, mut covered) = (60, 0, 0, 0);
    for seed in 0..campaigns {
        let mut rng = Rng::new(seed);
        let (order, world) = five_of_forty(0.004, &mut rng);
        let survivors = world.screened(&mut rng);
        let account = world.account(&survivors, 6, &mut rng);
        for (members, effect) in survivors.iter().zip(&account.effects) {
            let real = members.iter().filter(|at| order[..5].contains(at)).count();
            found += real;
            wrong += usize::from(real == 0 && effect.is_proven());
        }
        let sum: f64 = account.effects.iter().map(|effect| effect.ln).sum();
        assert!((sum + account.higher.ln - account.together.ln).abs() < 1e-12);
        let rest = account.rest.interval.expect("several blocks");
        let explained: Vec<usize> = survivors.concat();
        let all: Vec<usize> = (0..40).collect();
        let truth = world.level(&all) + world.rest - world.level(&explained);
        covered += usize::from(rest.low <= truth && truth <= rest.high);
    }

    assert_eq!(found, 300);
    assert!(wrong <= 3, "{wrong} settings without effect in {campaigns} campaigns");
    assert!(covered >= 51, "the interval of the rest covers in {covered} of {campaigns}");
}

/// On a busy host a run scatters by 2 %, and the budget is about 100 runs.
#[test]
fn five_of_forty_are_found_on_a_busy_host() {
    let (mut found, mut others) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (order, world) = five_of_forty(0.02, &mut rng);
        let survivors = world.screen(48, &mut rng).survivors();
        let real = survivors.iter().filter(|it| order[..5].contains(&it.change)).count();
        (found, others) = (found + real, others + survivors.len() - real);
    }
    assert!(found >= 297, "{found} of 300 settings found");
    assert!(others <= 18, "{others} of 2100 settings without effect, before the account");
}

/// A log that the disk must have doubles the time of each write; there is time for 15 pairs.
#[test]
fn one_large_effect_is_found_long_before_the_design_is_whole() {
    let (mut found, mut others) = (0, 0);
    for seed in 0..60 {
        let effects = vec![(seed as usize % 28, 0.72)];
        let world = World { settings: 28, effects, pairs: Vec::new(), rest: 0.0, noise: 0.2 };
        let survivors = world.screen(15, &mut Rng::new(seed)).survivors();
        let real = survivors.iter().filter(|it| it.change == seed as usize % 28).count();
        (found, others) = (found + real, others + survivors.len() - real);
    }
    assert!(found >= 57, "{found} of 60");
    assert!(others <= 18, "{others} of 1620 settings without effect");
}

#[test]
fn two_that_matter_only_together_are_found() {
    let pairs = vec![(3, 4, 0.08)];
    let world = World { settings: 20, effects: Vec::new(), pairs, rest: 0.0, noise: 0.003 };
    let mut survivors = world.screened(&mut Rng::new(5));
    survivors.sort();
    assert_eq!(survivors, [[3], [4]]);
}

#[test]
fn equal_servers_have_no_factor() {
    let (mut survivors, mut proven) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (effects, pairs) = (Vec::new(), Vec::new());
        let world = World { settings: 30, effects, pairs, rest: 0.0, noise: 0.005 };
        let found = world.screened(&mut rng);
        survivors += found.len();
        let account = world.account(&found, 6, &mut rng);
        proven += account.effects.iter().filter(|effect| effect.is_proven()).count();
    }
    assert!(survivors <= 15, "{survivors} in 60 campaigns, before they are confirmed");
    assert!(proven <= 3, "{proven} of {survivors} confirmed in 60 campaigns");
}

#[test]
fn shapley_values_are_averages_over_all_orders() {
    let check = |factors: usize| {
        let design = Design::new(factors);
        let singles: Vec<Vec<usize>> = (0..factors).map(|at| vec![at]).collect();
        let effects = (0..factors).map(|at| (at, 0.01 * (at + 1) as f64)).collect();
        let pairs = vec![(0, 1, 0.04)];
        let world = World { settings: factors, effects, pairs, rest: 0.5, noise: 0.0 };
        let account = world.account(&singles, 3, &mut Rng::new(1));
        for (at, effect) in account.effects.iter().enumerate() {
            let expected = 0.01 * (at + 1) as f64 + if at < 2 { 0.02 } else { 0.0 };
            assert!((effect.ln - expected).abs() < 1e-9, "{at} of {factors}: {effect:?}");
            let more = if at < 2 { 0.04 } else { 0.0 };
            assert!((account.interactions[at].ln - more).abs() < 1e-9, "{at} of {factors}");
        }
        assert!((account.rest.ln - 0.5).abs() < 1e-9 && account.higher.ln.abs() < 1e-9);
        assert!((account.gap.ln - account.rest.ln - account.together.ln).abs() < 1e-9);
        assert_eq!(design.arms().next(), Some(Vec::new()));
    };
    (2..=7).for_each(check);
    assert_eq!(
        (1..=7).map(|n| Design::new(n).arms().count()).collect::<Vec<_>>(),
        [2, 4, 8, 10, 12, 14, 16]
    );
}

#[test]
fn what_time_does_not_suffice_for_is_named() {
    let effects = vec![(7, 0.1)];
    let world = World { settings: 40, effects, pairs: Vec::new(), rest: 0.0, noise: 0.003 };
    let screen = world.screen(2, &mut Rng::new(3));
    assert!(screen.survivors().is_empty());
    assert_eq!(screen.undecided().len(), 40);
    assert!(Screen::new(0, ScreenRules::default()).next_round(9).is_empty());
}

#[test]
fn arms_that_could_not_be_measured_say_nothing() {
    let mut screen = Screen::new(3, ScreenRules::default());
    let mut rounds = 0;
    while !screen.next_round(9).is_empty() {
        screen.record(&[Some(1.0), None, None, Some(1.0)]);
        rounds += 1;
    }
    assert!((2..100).contains(&rounds), "{rounds}");
    assert!(screen.undecided().iter().all(|it| it.interval.high == f64::INFINITY));
}
