//! Steps of their own for the classes of statements of a replay: each has the rate at which one client
//! alone would have them, and its latencies. Run folders hold the replay as one step.

use std::sync::Arc;

use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::run::{Outcome, Role, Run, StepRecord};

/// Why a class has no costs: what the counters of host and server tell.
const OF_ALL: &str = "only told of the whole replay";

/// Adds a step for each class after the step of its replay.
pub(super) fn add(run: &mut Run) {
    let has_classes =
        |step: &Arc<StepRecord>| step.outcome.roles.values().any(|role| role.seconds.is_some());
    if !run.steps.iter().any(has_classes) {
        return;
    }
    for step in std::mem::take(&mut run.steps) {
        let roles = step.outcome.roles.iter().filter(|(_, role)| role.seconds.is_some());
        let classes: Vec<_> =
            roles.map(|(name, role)| Arc::new(of_class(&step, name, role))).collect();
        run.steps.push(step);
        run.steps.extend(classes);
    }
}

fn of_class(step: &StepRecord, name: &str, role: &Role) -> StepRecord {
    let group = if name.starts_with("write") { Group::Write } else { Group::Range };
    let own = format!("{}.{name}", step.name);
    let mut class = StepRecord {
        reported: step.reported,
        detail: step.outcome.facts.get(name).cloned().unwrap_or_default(),
        status: step.status.clone(),
        started: step.started.clone(),
        outcome: Outcome {
            seconds: role.seconds.unwrap_or_default(),
            events: role.operations,
            statements: role.operations,
            rows: role.rows,
            latency: role.latency.clone(),
            ..Outcome::default()
        },
        ..StepRecord::empty(step.index, &own, group, RateUnit::Queries)
    };
    for counter in ["disk", "server_cpu", "server_rss_bytes"] {
        class.usage.missing.insert(counter.to_owned(), OF_ALL.to_owned());
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_a_replay_has_the_rate_of_one_client() {
        let mut step = StepRecord::empty(3, "replay", Group::Write, RateUnit::Queries);
        step.outcome.facts.insert("write-01".to_owned(), "UPDATE t".to_owned());
        let role = Role { operations: 10, seconds: Some(2.0), ..Role::default() };
        let class = of_class(&step, "write-01", &role);
        assert_eq!((class.name.as_str(), class.group), ("replay.write-01", Group::Write));
        assert_eq!((class.detail.as_str(), class.index), ("UPDATE t", 3));
        assert_eq!(crate::measurement::rate(&class), Ok(5.0));
    }
}
