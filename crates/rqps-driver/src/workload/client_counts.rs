//! Repeats each measured step per client count: `--clients 1,4,16`.

use rqps_model::benchmark::{ClientCount, Group, Phase, Step, Workload};
use rqps_model::units::counted;

/// The phases of a workload, in which each reported step runs once per client count, from the
/// fewest to the most. Loads and warm-up steps run once, with the most clients. With a single
/// count, these are the benchmark's own phases.
///
/// A step behind a [`Phase::Restore`] has one before each of its counts. One before the first step
/// is left out: a block begins on a copy anyway.
///
/// `phases` makes the phases for one count; it must make the same ones for each count.
pub fn at_each_count(workload: &Workload, phases: impl Fn(&Workload) -> Vec<Phase>) -> Vec<Phase> {
    let of_count = |clients: &u32| {
        let clients = *clients;
        let single = Workload { clients, client_counts: Vec::new(), ..workload.clone() };
        (clients, phases(&single))
    };
    let counted: Vec<(u32, Vec<Phase>)> = workload.client_counts.iter().map(of_count).collect();
    let Some((_, largest)) = counted.last() else { return begun_on_a_copy(phases(workload)) };
    let is_restored = |place: usize| matches!(largest.get(place), Some(Phase::Restore));
    let mut all = Vec::new();
    for (place, phase) in largest.iter().enumerate() {
        match phase {
            Phase::Measure(step) if step.reported && step.group != Group::Load => {
                let is_fresh = place > 0 && is_restored(place - 1);
                for (number, (clients, phases)) in counted.iter().enumerate() {
                    let Some(Phase::Measure(step)) = phases.get(place) else { continue };
                    if number > 0 && is_fresh {
                        all.push(Phase::Restore);
                    }
                    all.push(counted_step(step, *clients));
                }
            }
            once => all.push(once.clone()),
        }
    }
    begun_on_a_copy(all)
}

/// The phases of a block, which begins on a copy of the loaded data.
fn begun_on_a_copy(mut phases: Vec<Phase>) -> Vec<Phase> {
    if matches!(phases.first(), Some(Phase::Restore)) {
        phases.remove(0);
    }
    phases
}

fn counted_step(step: &Step, clients: u32) -> Phase {
    let count = ClientCount { step: step.name.clone(), clients };
    Phase::Measure(Box::new(Step {
        name: count.name(),
        detail: format!("{}; {}", step.detail, counted(clients as usize, "client")),
        client_count: Some(count),
        ..step.clone()
    }))
}
