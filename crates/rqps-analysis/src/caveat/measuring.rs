//! Caveats on failures and unusual events while measuring.

use std::collections::BTreeMap;

use super::{
    CARRY_OVER_ERRORS, CARRY_OVER_MIN, CLIENT_BUSY_MAX, CLIENT_HOST_BUSY_MAX, CLIENT_SHARE_MAX,
    Caveat, CaveatKind, ERROR_SHARE_MIN, Evidence, FOREIGN_SHARE_MAX, NO_OP_SHARE_MIN,
    PACE_ACHIEVED_MIN, PAIRS_MIN, PRESSURE_SHARE_MAX, STEAL_SHARE_MAX, WRITE_BACK_MIN_KB,
    disagreement, distinct, most, percent, spell, up_to, worst,
};
use crate::comparison::{RunFacts, StepComparison};
use crate::{causes, pairing};
use rqps_model::benchmark::{Group, Placement};
use rqps_model::metric::Metric;
use rqps_model::run::{Status, StepRecord};
use rqps_model::units::counted;
use rqps_stats::stability::Stability;
use rqps_stats::summary::median;

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = evidence.by_target(|target, label| of_target(evidence, target, label));
    caveats.extend(no_ops(evidence));
    caveats.extend(sources(evidence));
    caveats.extend(single_loads(evidence));
    caveats
}

/// Targets that rqps loaded once, where they are compared.
fn single_loads(evidence: &Evidence) -> Option<Caveat> {
    let targets = &evidence.comparison.targets;
    let once: Vec<&str> = (0..targets.len())
        .filter(|place| !evidence.is_imported(*place) && targets[*place].loads.len() == 1)
        .map(|place| targets[place].label.as_str())
        .collect();
    let who = match once.len() {
        all if all == targets.len() => "each target was".to_owned(),
        1 => format!("{} was", once[0]),
        _ => format!("{} were", once.join(", ")),
    };
    let told = targets.len() > 1 && !once.is_empty();
    told.then(|| {
        Caveat::on_all(
            CaveatKind::SingleLoad,
            format!("{who} loaded once: every ratio includes the difference between single loads"),
        )
    })
}

fn of_target(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if evidence.is_imported(target) {
        caveats.extend(imported(evidence, target, label));
        caveats.extend(empty_column(evidence, target, label));
    } else if evidence.is_embedded(target) {
        let text = "no server process; the DBMS runs inside the driver".to_owned();
        let kind = CaveatKind::EmbeddedDbms;
        caveats.push(Caveat::of(kind, label, text));
    } else {
        caveats.extend(OF_CLIENTS.iter().filter_map(|it| it.find(evidence, target, label)));
        caveats.extend(client_host_bound(evidence, target, label));
    }
    caveats.extend(OF_RECORDS.iter().filter_map(|it| it.find(evidence, target, label)));
    caveats.extend(missed_rate(evidence, target, label));
    caveats.extend(stopped(evidence, target, label));
    caveats.extend(errors(evidence, target, label));
    caveats.extend(no_operations(evidence, target, label));
    caveats.extend(pressure(evidence, target, label));
    caveats.extend(unmeasured(evidence, target, label));
    caveats.extend(unreadable(evidence, target, label));
    caveats.extend(notes(evidence, target, label));
    caveats
}

/// Doubts about a target where a number of a record is too large in some step.
struct Detector {
    kind: CaveatKind,
    /// The largest that raises no doubt.
    limit: f64,
    number: fn(&StepRecord) -> Option<f64>,
    /// What the largest number says.
    text: fn(f64) -> String,
}

impl Detector {
    fn find(&self, evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
        let found = evidence.each_step(target, |records| most(records, self.limit, self.number));
        worst(self.kind, label, found, self.text)
    }
}

/// Where clients are processes of their own.
const OF_CLIENTS: [Detector; 2] = [
    Detector {
        kind: CaveatKind::ClientBound,
        limit: CLIENT_BUSY_MAX,
        number: |record| Some(record.outcome.client_busiest),
        text: |share| format!("a client thread used up to {} of its CPU", percent(share)),
    },
    Detector {
        kind: CaveatKind::ClientShare,
        limit: CLIENT_SHARE_MAX,
        number: |record| {
            let client = record.outcome.client_cpu.total_us();
            let both = client + record.usage.server_cpu?.total_us();
            (both > 0.0).then_some(client / both)
        },
        text: |share| {
            let share = percent(share);
            format!("up to {share} of the CPU time of client and server belongs to the client")
        },
    },
];

const OF_RECORDS: [Detector; 6] = [
    Detector {
        kind: CaveatKind::MissedPace,
        limit: 1.0 - PACE_ACHIEVED_MIN,
        number: |record| {
            let due = record.outcome.open?.due as f64;
            (due > 0.0).then(|| 1.0 - record.outcome.events as f64 / due)
        },
        text: |missed| format!("only {} of the scheduled events completed", percent(1.0 - missed)),
    },
    Detector {
        kind: CaveatKind::Steal,
        limit: STEAL_SHARE_MAX,
        number: |record| {
            let all = f64::from(record.usage.host.cpus) * record.usage.seconds;
            (all > 0.0).then(|| record.usage.host.steal / all)
        },
        text: of_host,
    },
    Detector {
        kind: CaveatKind::ForeignLoad,
        limit: FOREIGN_SHARE_MAX,
        number: |record| record.usage.disturbance.as_ref()?.foreign_cpu,
        text: of_host,
    },
    Detector {
        kind: CaveatKind::Swapped,
        limit: 0.0,
        number: |record| Some(record.usage.disturbance.as_ref()?.swapped_in? as f64),
        text: |pages| format!("{} in a step", up_to(pages, "page")),
    },
    Detector {
        kind: CaveatKind::Throttled,
        limit: 0.0,
        number: |record| {
            let seen = record.usage.disturbance.as_ref()?;
            let counts = [seen.throttled_thermal, seen.throttled_cgroup_us];
            Some(counts.into_iter().flatten().sum::<u64>() as f64)
        },
        text: |_| "the heat or quota counters increased".to_owned(),
    },
    Detector {
        kind: CaveatKind::WriteBack,
        limit: WRITE_BACK_MIN_KB,
        number: |record| {
            let disk = record.usage.disk.filter(|_| only_reads(record))?;
            (record.usage.seconds > 0.0).then(|| disk.write_kb / record.usage.seconds)
        },
        text: |kb| format!("up to {kb:.0} KB/s written to the disk in read-only steps"),
    },
];

fn of_host(share: f64) -> String {
    format!("up to {} of the host's CPU time in a step", percent(share))
}

/// True for steps whose clients write nothing.
fn only_reads(record: &StepRecord) -> bool {
    let (outcome, writers) = (&record.outcome, ["inserts", "deletes", "writer"]);
    matches!(record.group, Group::Point | Group::Range)
        && outcome.writes + outcome.no_ops == 0
        && !writers.iter().any(|role| outcome.roles.contains_key(*role))
}

/// Client hosts that were busy as a whole, by clients or by others.
fn client_host_bound(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let hosts = |record: &StepRecord| -> Vec<(String, f64)> {
        let hosts = record.outcome.client_hosts.iter();
        hosts.filter_map(|host| Some((host.host.clone(), host.host_busy?))).collect()
    };
    let found = evidence.each_step(target, |records| {
        let all = records.iter().flat_map(|record| hosts(record));
        let busy = all.filter(|(_, share)| *share > CLIENT_HOST_BUSY_MAX);
        busy.max_by(|(_, one), (_, two)| one.total_cmp(two))
    });
    let (host, share) =
        found.iter().map(|(_, busy)| busy).max_by(|one, two| one.1.total_cmp(&two.1))?;
    Some(
        Caveat::of(
            CaveatKind::ClientBound,
            label,
            format!(
                "up to {} of the CPU time of the client host {host} was in use",
                percent(*share)
            ),
        )
        .in_steps(found.iter().map(|(step, _)| step.clone()).collect()),
    )
}

/// The origin of imported numbers. rqps did not measure them.
fn imported(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let records = evidence.records.iter().flat_map(|records| &records[target]);
    let mut formats: Vec<&str> =
        records.filter_map(|record| Some(record.imported.as_ref()?.format.as_str())).collect();
    formats.sort_unstable();
    formats.dedup();
    (!formats.is_empty()).then(|| {
        Caveat::of(
            CaveatKind::Imported,
            label,
            format!("published by others, imported as {}", formats.join(", ")),
        )
    })
}

/// A column whose values are all 0 or missing: one finding for all its steps.
fn empty_column(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let own = |step: &'_ StepComparison| step.targets[target].absolute(Metric::Rate);
    let mut steps = evidence.comparison.measured_steps();
    let some = steps.any(|step| own(step).is_some_and(|rate| rate > 0.0));
    (!some).then(|| {
        Caveat::of(
            CaveatKind::EmptyColumn,
            label,
            format!("no rate above 0 on any of {} steps", evidence.comparison.steps.len()),
        )
    })
}

/// Writers of query steps that did not keep their rate: the lowest share of it.
fn missed_rate(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let steps = evidence.comparison.steps.iter();
    let found = steps.filter_map(|step| {
        let missed = step.targets[target].missed_rate.as_ref()?;
        Some((step.name.clone(), missed.loss()))
    });
    worst(CaveatKind::MissedRate, label, found.collect(), |loss| {
        format!("only {} of the requested rows inserted", percent(1.0 - loss))
    })
}

/// Clients that wanted no more events: the most of one run, and the first to stop.
fn stopped(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let found = evidence.each_step(target, |records| {
        most(records, 0.0, |record| Some(record.outcome.stopped.len() as f64))
    });
    let all = evidence.records.iter().flat_map(|records| &records[target]);
    let first = all.flat_map(|record| &record.outcome.stopped).min_by_key(|(_, events)| **events);
    let (client, events) = first?;
    worst(CaveatKind::StoppedClients, label, found, |clients| {
        let (clients, events) = (up_to(clients, "client"), counted(*events as usize, "event"));
        format!("{clients} of a run; client {client} stopped after {events}")
    })
}

fn errors(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let share = |record: &StepRecord| {
        let errors: u64 = record.outcome.errors.values().sum();
        let tries = (record.outcome.events + errors) as f64;
        (tries > 0.0).then(|| errors as f64 / tries)
    };
    let found = evidence.each_step(target, |records| most(records, ERROR_SHARE_MIN, share));
    let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
    for records in &evidence.records {
        for record in &records[target] {
            for (code, count) in &record.outcome.errors {
                *codes.entry(code).or_insert(0) += count;
            }
        }
    }
    let codes: Vec<String> = codes.iter().map(|(code, n)| format!("{code} {n} times")).collect();
    worst(CaveatKind::Errors, label, found, |share| {
        format!("up to {} of the events retried; {}", percent(share), codes.join(", "))
    })
}

fn no_operations(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let found = evidence.each_step(target, |records| {
        let measured = records.iter().filter(|record| record.imported.is_none());
        let idle = measured
            .filter(|record| record.outcome.statements == 0 && record.outcome.events == 0)
            .count();
        (idle > 0).then_some(idle as f64)
    });
    worst(CaveatKind::NoOperations, label, found, |runs| {
        format!("in {} of a step", up_to(runs, "run"))
    })
}

/// Client and server of a connection take turns, so a load of n clients needs 2 n CPUs at most; if
/// both have one CPU together (placement), they wait for each other there.
fn pressure(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let workload = evidence.comparison.targets[target].workloads.first()?;
    if workload.placement == Placement::Together {
        return None;
    }
    let found = evidence.each_step(target, |records| {
        most(records, PRESSURE_SHARE_MAX, |record| {
            let count = record.client_count.as_ref();
            let clients = workload.clients_of(&record.parameters, count);
            let room = 2 * clients <= record.usage.host.cpus;
            record.usage.disturbance.as_ref()?.pressure_cpu.filter(|_| room)
        })
    });
    worst(CaveatKind::CpuPressure, label, found, |share| {
        format!("some task waited for a CPU during up to {} of a step", percent(share))
    })
}

/// One caveat for each counter, with the first reason: reasons name processes and differ by run.
fn unmeasured(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut counters: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        for record in &records[target] {
            for (counter, reason) in &record.usage.missing {
                if counter.starts_with("server_") && evidence.is_embedded(target) {
                    continue;
                }
                // Most virtual machines lack them, and no other number depends on them. Reports
                // that explain a step say why.
                if counter == "cpu_events" {
                    continue;
                }
                // Turns are a choice, and the table of turns says what they are.
                if record.outcome.turns.is_some() && ["host", "disk"].contains(&counter.as_str()) {
                    continue;
                }
                let (_, steps) = counters.entry(counter).or_insert((reason, Vec::new()));
                if steps.last() != Some(&step.name) {
                    steps.push(step.name.clone());
                }
            }
        }
    }
    let caveats = counters.into_iter().map(|(counter, (reason, steps))| {
        Caveat::of(CaveatKind::Unmeasured, label, format!("{counter}: {reason}")).in_steps(steps)
    });
    caveats.collect()
}

fn unreadable(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let mut steps = Vec::new();
    let mut first = None;
    for step in &evidence.comparison.steps {
        if evidence.is_imported(target) {
            break;
        }
        let samples = step.targets[target].samples.iter().filter(|sample| sample.events > 0);
        let faults: Vec<&str> =
            samples.filter_map(|sample| sample.why_missing(Metric::P50)).collect();
        if let Some(fault) = faults.first() {
            first.get_or_insert_with(|| (*fault).to_owned());
            steps.push(step.name.clone());
        }
    }
    first.map(|text| Caveat::of(CaveatKind::UnreadableLatency, label, text).in_steps(steps))
}

/// Notes that differ only in numbers are one.
fn notes(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut alike: BTreeMap<String, (&str, usize, Vec<String>)> = BTreeMap::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let outcomes = records[target].iter().map(|record| &record.outcome);
        for note in outcomes.flat_map(|outcome| outcome.notes.iter().chain(&outcome.cut)) {
            let key = causes::without_numbers(note);
            let (_, count, steps) = alike.entry(key).or_insert((note, 0, Vec::new()));
            *count += 1;
            if steps.last() != Some(&step.name) {
                steps.push(step.name.clone());
            }
        }
    }
    let caveats = alike.into_values().map(|(note, count, steps)| {
        let more = if count > 1 { format!(", and {} like it", count - 1) } else { String::new() };
        let text = format!("{note}{more}");
        Caveat::of(CaveatKind::DriverNote, label, text).in_steps(steps)
    });
    caveats.collect()
}

/// For each step in which any target's writes often met no row: the shares of all targets.
fn no_ops(evidence: &Evidence) -> Vec<Caveat> {
    let share = |record: &&StepRecord| {
        let outcome = &record.outcome;
        let writes = (outcome.writes + outcome.no_ops) as f64;
        (writes > 0.0).then(|| outcome.no_ops as f64 / writes)
    };
    let mut caveats = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let shares: Vec<(&str, f64)> = step
            .targets
            .iter()
            .zip(records)
            .filter_map(|(target, records)| {
                let shares: Vec<f64> = records.iter().filter_map(share).collect();
                Some((target.label.as_str(), median(&shares)?))
            })
            .collect();
        if shares.iter().any(|(_, share)| *share >= NO_OP_SHARE_MIN) {
            let spelled =
                shares.iter().map(|(label, share)| format!("{} of {label}", percent(*share)));
            caveats.push(
                Caveat::on_all(CaveatKind::NoOps, spelled.collect::<Vec<_>>().join(", "))
                    .in_steps(vec![step.name.clone()]),
            );
        }
    }
    caveats
}

/// Counters that came from different places on different targets.
fn sources(evidence: &Evidence) -> Vec<Caveat> {
    let mut by_counter: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for records in &evidence.records {
        for (target, label) in evidence.targets() {
            // Nearly always the same in every run.
            let of_runs = records[target].iter().flat_map(|record| &record.usage.sources);
            for (counter, source) in distinct(of_runs) {
                let pairs = by_counter.entry(counter).or_default();
                let pair = (label.to_owned(), source.clone());
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    let mut caveats = Vec::new();
    for (counter, pairs) in by_counter {
        let values = disagreement(pairs);
        if !values.is_empty() {
            caveats.push(Caveat::on_all(
                CaveatKind::DifferentSource,
                format!("{counter}: {}", spell(&values)),
            ));
        }
    }
    caveats
}

// Caveats on missing data (failed and missing runs and steps, missing pairs) and uneven rates.

pub(super) fn find_missing(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(runs(evidence));
    for (target, label) in evidence.targets() {
        if evidence.comparison.targets[target].runs.is_empty() {
            let text = "in the plan, but without a run".to_owned();
            caveats.push(of(CaveatKind::NeverMeasured, label, Vec::new(), text));
            continue;
        }
        caveats.extend(failed_steps(evidence, target, label));
        caveats.extend(missing_steps(evidence, target, label));
        if target > 0 {
            caveats.extend(pairs(evidence, target, label));
        }
    }
    caveats
}

fn of(kind: CaveatKind, target: &str, steps: Vec<String>, text: String) -> Caveat {
    Caveat::of(kind, target, text).in_steps(steps)
}

/// The end of a run, in words.
fn status_text(status: &Status) -> String {
    match status {
        Status::Running => "ended without a status".to_owned(),
        Status::Complete => "complete".to_owned(),
        Status::Failed(why) => format!("failed: {}", why.trim()),
        Status::Interrupted => "interrupted by the user".to_owned(),
        Status::Discarded(why) => format!("discarded with its block: {}", why.trim()),
    }
}

fn runs(evidence: &Evidence) -> Vec<Caveat> {
    let all = &evidence.comparison.runs;
    let broken = all.iter().filter(|run| run.status != Status::Complete);
    // A plan that was resumed has measured the block anew.
    let again = |run: &RunFacts| {
        all.iter().any(|other| {
            let (one, later) = (&run.key, &other.key);
            other.status == Status::Complete
                && (&run.result_set, one.block, &one.label)
                    == (&other.result_set, later.block, &later.label)
                && one.attempt < later.attempt
        })
    };
    let caveats = broken.map(|run| {
        let text = format!("{}: {}", run.folder, status_text(&run.status));
        let kind = match run.status {
            Status::Discarded(_) => CaveatKind::DiscardedBlock,
            _ if again(run) => CaveatKind::RepeatedRun,
            _ => CaveatKind::FailedRun,
        };
        of(kind, &run.key.label, Vec::new(), text)
    });
    caveats.collect()
}

/// Failures of one target, those with the same reason together.
fn failed_steps(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut reasons: Vec<(String, Vec<String>, usize)> = Vec::new();
    for step in &evidence.comparison.steps {
        for failure in &step.targets[target].failures {
            // A hint stands on a line of its own.
            let why = status_text(&failure.status).replace('\n', "; ");
            let place = reasons.iter().position(|(other, _, _)| *other == why);
            let place = place.unwrap_or_else(|| {
                reasons.push((why, Vec::new(), 0));
                reasons.len() - 1
            });
            let (_, steps, count) = &mut reasons[place];
            *count += 1;
            if steps.last() != Some(&step.name) {
                steps.push(step.name.clone());
            }
        }
    }
    let caveats = reasons.into_iter().map(|(why, steps, count)| {
        let times = if count > 1 { format!("{count} times: ") } else { String::new() };
        of(CaveatKind::FailedStep, label, steps, format!("{times}{why}"))
    });
    caveats.collect()
}

fn missing_steps(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let missing = evidence.comparison.measured_steps().filter(|step| {
        !step.targets[target].was_carried_out() && evidence.comparison.is_for(step, target)
    });
    let missing: Vec<String> = missing.map(|step| step.name.clone()).collect();
    let text = "not measured, while another target was".to_owned();
    (!missing.is_empty()).then(|| of(CaveatKind::MissingStep, label, missing, text))
}

/// Ratios without pairs and with too few of them; mean and robust estimate apart.
fn pairs(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut unpaired = Vec::new();
    let mut few: Vec<(String, usize)> = Vec::new();
    let mut apart = Vec::new();
    for step in &evidence.comparison.steps {
        let Some(relative) = step.targets[target].relative(Metric::Rate) else { continue };
        match relative.pairs {
            0 => unpaired.push(step.name.clone()),
            pairs if pairs < PAIRS_MIN => few.push((step.name.clone(), pairs)),
            _ => {}
        }
        if let (Some(robust), Some(interval)) = (&relative.robust, relative.interval)
            && !(interval.low..=interval.high).contains(&robust.ratio)
        {
            let text = format!(
                "{:.3} {interval} by the mean, {:.3} {} by Hodges-Lehmann",
                relative.ratio, robust.ratio, robust.interval
            );
            apart.push(of(CaveatKind::RobustDisagrees, label, vec![step.name.clone()], text));
        }
    }
    let mut caveats = apart;
    if !unpaired.is_empty() {
        let text = "no block where both completed the step".to_owned();
        caveats.push(of(CaveatKind::NotPaired, label, unpaired, text));
    }
    // Nobody can add a block to published results; another caveat says that they are imported.
    let published = evidence.is_imported(0) || evidence.is_imported(target);
    if published {
        few.clear();
    }
    if let Some(least) = few.iter().map(|(_, pairs)| *pairs).min() {
        let steps = few.into_iter().map(|(step, _)| step).collect();
        let text = format!("only {}", counted(least, "pair"));
        caveats.push(of(CaveatKind::TooFewBlocks, label, steps, text));
    }
    caveats
}

// Rates that were not the same from the first second to the last, or from turn to turn.

pub(super) fn courses(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = evidence.by_target(|target, label| of_courses(evidence, target, label));
    caveats.extend(carry_over(evidence));
    caveats
}

/// Targets that the turns of others slow down more or less than the baseline.
fn carry_over(evidence: &Evidence) -> Vec<Caveat> {
    let found = pairing::carry_over(evidence.comparison);
    let Some(Some(baseline)) = found.first().copied() else { return Vec::new() };
    let caveat = |(target, label): (usize, &str)| {
        let own = found[target]?;
        let difference = own.slower - baseline.slower;
        let limit = CARRY_OVER_ERRORS * own.error.hypot(baseline.error);
        let text = || {
            format!(
                "a turn after another target's is {} slower than this target's next turn, but {} \
                 with the baseline; so ratios of rates may be up to {} {} than without turns",
                percent(own.slower),
                percent(baseline.slower),
                percent(difference.abs()),
                if difference > 0.0 { "lower" } else { "higher" },
            )
        };
        let matters = difference.abs() > limit.max(CARRY_OVER_MIN);
        matters.then(|| Caveat::of(CaveatKind::CarryOver, label, text()))
    };
    evidence.targets().skip(1).filter_map(caveat).collect()
}

fn of_courses(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let stalls = each(evidence, target, |courses| {
        let longest = |course: &Stability| course.evenness.map(|even| even.longest_stall);
        courses.iter().filter_map(longest).max().filter(|seconds| *seconds > 0)
    });
    let longest = stalls.iter().map(|(_, seconds)| *seconds).max();
    caveats.extend(longest.map(|seconds| {
        caveat(CaveatKind::Stalls, label, &stalls, format!("up to {seconds} s in a row"))
    }));
    // One run in a hundred looks unsteady by chance: most of a step's runs must.
    let unsteady = each(evidence, target, |courses| {
        let count = courses.iter().filter(|course| course.is_unsteady()).count();
        (2 * count > courses.len()).then_some(count)
    });
    let most = unsteady.iter().map(|(_, runs)| *runs).max();
    caveats.extend(most.map(|runs| {
        let text = format!("in {} of a step", up_to(runs as f64, "run"));
        caveat(CaveatKind::NotSteady, label, &unsteady, text)
    }));
    let drifting = each(evidence, target, |courses| {
        let drifts: Vec<f64> = courses.iter().filter_map(Stability::drift).collect();
        if 2 * drifts.len() > courses.len() { median(&drifts) } else { None }
    });
    let largest = drifting.iter().map(|(_, drift)| *drift);
    let largest = largest.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    caveats.extend(largest.map(|drift| {
        let way = if drift < 0.0 { "falls" } else { "rises" };
        let text = format!("{way} by up to {} over the window", percent(drift.abs()));
        caveat(CaveatKind::Drifting, label, &drifting, text)
    }));
    caveats
}

/// For one target, a value of each step where `judge` finds one in the courses of its runs.
fn each<T>(
    evidence: &Evidence,
    target: usize,
    judge: impl Fn(&[Stability]) -> Option<T>,
) -> Vec<(String, T)> {
    let steps = evidence.comparison.steps.iter();
    steps
        .filter_map(|step| {
            let samples = step.targets[target].samples.iter();
            let courses: Vec<Stability> = samples.filter_map(|sample| sample.stability).collect();
            Some((step.name.clone(), judge(&courses)?))
        })
        .collect()
}

fn caveat<T>(kind: CaveatKind, label: &str, found: &[(String, T)], text: String) -> Caveat {
    let steps = found.iter().map(|(step, _)| step.clone()).collect();
    Caveat::of(kind, label, text).in_steps(steps)
}
