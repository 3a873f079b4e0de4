//! Repeats each measured step per client count: `--clients 1,4,16`.

use crate::domain::benchmark::{ClientCount, Group, Phase, Step, Workload};
use crate::units::counted;

/// The phases of a workload, in which each reported step runs once per client count, from the
/// fewest to the most. Loads and warm-up steps run once, with the most clients. With a single
/// count, these are the benchmark's own phases.
///
/// `phases` makes the phases for one count; it must make the same ones for each count.
pub fn at_each_count(workload: &Workload, phases: impl Fn(&Workload) -> Vec<Phase>) -> Vec<Phase> {
    let of_count = |clients: &u32| {
        let clients = *clients;
        let single = Workload { clients, client_counts: Vec::new(), ..workload.clone() };
        (clients, phases(&single))
    };
    let counted: Vec<(u32, Vec<Phase>)> = workload.client_counts.iter().map(of_count).collect();
    let Some((_, largest)) = counted.last().cloned() else { return phases(workload) };
    let at_place = |(place, phase): (usize, Phase)| match phase {
        Phase::Measure(step) if step.reported && step.group != Group::Load => {
            let at = |(clients, phases): &(u32, Vec<Phase>)| match phases.get(place) {
                Some(Phase::Measure(step)) => Some(counted_step(step, *clients)),
                _ => None,
            };
            counted.iter().filter_map(at).collect()
        }
        once => vec![once],
    };
    largest.into_iter().enumerate().flat_map(at_place).collect()
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
