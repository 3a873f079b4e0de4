//! Tests of selecting steps by name, with their warm-up steps.

use crate::spec::StepSet;
use crate::sysbench;
use crate::sysbench::steps::{choose, phases};
use rqps_driver::request::StepRequest;
use rqps_driver::workload::{SelectError, at_each_count, set};
use rqps_model::benchmark::{Phase, Step, Workload};
use rqps_model::dialect::Dialect;

fn name(phase: &Phase) -> &str {
    match phase {
        Phase::Measure(step) => &step.name,
        Phase::Settle | Phase::Restore => "|",
    }
}

/// Names of what is kept, with `|` for settling.
fn kept_of(order: StepSet, globs: &[&str]) -> Result<String, SelectError> {
    let globs: Vec<String> = globs.iter().map(ToString::to_string).collect();
    let all = phases(Dialect::Mysql, order, &sysbench::workload("quick").unwrap().0);
    let kept = choose(all, &globs)?;
    let names: Vec<&str> = kept.iter().map(name).collect();
    Ok(names.join(" "))
}

fn kept(globs: &[&str]) -> Result<String, SelectError> {
    kept_of(StepSet::Abbreviated, globs)
}

fn check(globs: &[&str], want: &str) {
    assert_eq!(kept(globs).unwrap(), want, "{globs:?}");
}

fn check_error(globs: &[&str], want: &str) {
    let error = kept(globs).unwrap_err().to_string();
    assert_eq!(error.split("\nhint: `rqps plan`").next(), Some(want), "{error}");
}

#[test]
fn a_name_brings_its_warm_up() {
    check(&["point-query"], "point-query.warm point-query");
    check(&["scan"], "point-query.warm scan.warm scan");
    check(&["range-covered-si"], "point-query.warm points-covered-si.warm range-covered-si");
    check(&["*.pre"], "point-query.warm scan.warmpre point-query.pre range-notcovered-si.pre");
    check(&["scan.warm"], "scan.warm");
    check(&["scan", "!*.warm"], "scan");
}

#[test]
fn settling_stays_between_writes_and_reads_only() {
    check(&["read-write*"], "point-query.warm read-write_range=10 read-write_range=100");
    check(&["update-one,hot-points"], "point-query.warm update-one | hot-points");
    // Writes after the last settling have nothing to settle for.
    check(&["delete", "insert"], "point-query.warm delete insert");
}

#[test]
fn patterns_match_whole_names() {
    check(
        &["random-points_range=10*"],
        "point-query.warm random-points_range=10 random-points_range=100 \
         random-points_range=1000",
    );
    check(&["random-points_range=10"], "point-query.warm random-points_range=10");
    check(
        &["read-only_range=1?,read-only-[so]*"],
        "point-query.warm read-only_range=10 read-only-simple read-only-sum read-only-order",
    );
    check(
        &["update-[!iz]*,update-[i-o]n*,!update-inlist"],
        "point-query.warm update-index update-nonindex update-one",
    );
}

#[test]
fn no_patterns_keep_everything() {
    let all = phases(Dialect::Mysql, StepSet::Full, &sysbench::workload("quick").unwrap().0);
    assert_eq!(choose(all.clone(), &[]).unwrap(), all);
    assert_eq!(choose(all.clone(), &["*".to_string()]).unwrap(), all);
}

#[test]
fn exclusions_alone_keep_the_others() {
    let kept = kept(&["!*range*", "!read-*", "!*-si", "!update-*"]).unwrap();
    assert_eq!(
        kept,
        "point-query.warm scan.warmpre point-query.pre write-only | scan.warm scan \
         point-query hot-points points-covered-pk points-notcovered-pk delete insert"
    );
}

#[test]
fn the_full_order_is_chosen_from_alike() {
    let kept = kept_of(StepSet::Full, &["point-query*"]).unwrap();
    assert_eq!(kept, "point-query.warm point-query.pre point-query");
}

/// The phases of a workload with all its client counts.
fn phases_of(dialect: Dialect, order: StepSet, workload: &Workload) -> Vec<Phase> {
    at_each_count(workload, |single| phases(dialect, order, single))
}

/// Names of what is kept of steps that run once per count of 1, 4 and 16 clients.
fn kept_of_counts(globs: &[&str]) -> Result<String, SelectError> {
    let mut workload = sysbench::workload("quick").unwrap().0;
    set(&mut workload, "clients=16,1,4").unwrap();
    let all = phases_of(Dialect::Mysql, StepSet::Abbreviated, &workload);
    let kept = choose(all, &globs.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(kept.iter().map(name).collect::<Vec<_>>().join(" "))
}

#[test]
fn steps_of_client_counts_are_chosen_with_and_without_the_count() {
    let check = |globs: &[&str], want: &str| {
        assert_eq!(kept_of_counts(globs).unwrap(), want, "{globs:?}");
    };
    check(
        &["point-query"],
        "point-query.warm point-query.clients=1 point-query.clients=4 point-query.clients=16",
    );
    check(&["point-query.clients=4"], "point-query.warm point-query.clients=4");
    check(
        &["random-points_range=10", "!*.clients=4"],
        "point-query.warm random-points_range=10.clients=1 random-points_range=10.clients=16",
    );
    check(&["scan.clients=1"], "point-query.warm scan.warm scan.clients=1");
    check(
        &["update-[io]n*,hot-points.clients=16", "!update-inlist"],
        "point-query.warm update-index.clients=1 update-index.clients=4 update-index.clients=16 \
         update-one.clients=1 update-one.clients=4 update-one.clients=16 | hot-points.clients=16",
    );
    let error = |glob: &str| kept_of_counts(&[glob]).unwrap_err().to_string();
    assert!(error("point-query.clients=8").contains(
        "similar names: point-query.clients=1, point-query.clients=4, point-query.clients=16, "
    ));
    assert!(
        error("hot-point")
            .starts_with("choose steps: no step matches `hot-point`; similar names: hot-points, ")
    );
}

#[test]
fn each_step_runs_once_per_client_count_and_warm_ups_once() {
    let mut workload = sysbench::workload("quick").unwrap().0;
    set(&mut workload, "clients=4").unwrap();
    let single = phases_of(Dialect::Sqlite, StepSet::Full, &workload);
    assert_eq!(single, phases(Dialect::Sqlite, StepSet::Full, &workload));
    set(&mut workload, "clients=1,4").unwrap();
    let all = phases_of(Dialect::Sqlite, StepSet::Full, &workload);
    let step = |phase: &Phase| match phase {
        Phase::Measure(step) => Some(step.as_ref().clone()),
        Phase::Settle | Phase::Restore => None,
    };
    let measured: Vec<Step> = single.iter().filter_map(step).collect();
    let counted: Vec<Step> = all.iter().filter_map(step).collect();
    let reported = measured.iter().filter(|step| step.reported).count();
    assert_eq!(counted.len(), measured.len() + reported);
    for step in &counted {
        assert_eq!(step.reported, step.client_count.is_some(), "{}", step.name);
        let asked = StepRequest::of(step, &workload).clients;
        assert_eq!(asked, step.client_count.as_ref().map_or(4, |count| count.clients));
    }
    let scan: Vec<&Step> = counted.iter().filter(|step| step.name.starts_with("scan.c")).collect();
    assert_eq!(scan[0].name, "scan.clients=1");
    assert!(scan[0].detail.ends_with("; 1 client") && scan[1].detail.ends_with("; 4 clients"));
    assert_eq!(scan[0].work, scan[1].work);
}

#[test]
fn what_matches_nothing_is_answered_with_what_is_near() {
    check_error(
        &["poin-query"],
        "choose steps: no step matches `poin-query`; similar names: point-query, \
         point-query.pre, point-query.warm",
    );
    check_error(
        &["scan,Update-*"],
        "choose steps: no step matches `Update-*`; similar names: update-inlist, update-index, \
         update-nonindex, update-one, update-zipf",
    );
    let nothing_near = kept(&["nope"]).unwrap_err().to_string();
    assert!(nothing_near.starts_with("choose steps: no step matches `nope`; steps: "));
    let [first, hint] = nothing_near.lines().collect::<Vec<_>>()[..] else { panic!() };
    assert!(first.ends_with(" more") && first.len() < 200, "{nothing_near}");
    assert!(hint.contains("lists all steps"), "{nothing_near}");
    check_error(
        &["!covered"],
        "choose steps: no step matches `!covered`; similar names: range-notcovered-si.pre, \
         points-covered-pk, points-notcovered-pk, range-covered-pk, range-notcovered-pk",
    );
}

#[test]
fn malformed_patterns_are_refused() {
    check_error(
        &["update-[ab"],
        "choose steps: invalid pattern `update-[ab`: a [ without ]; use names with *, ? and \
         [abc]",
    );
    check_error(
        &["scan,"],
        "choose steps: invalid pattern ``: it is empty; use names with *, ? and [abc]",
    );
    check_error(
        &["scan", "!scan"],
        "choose steps: `scan,!scan` excludes every step; \
         remove a pattern that begins with `!`",
    );
    check_error(
        &["!*"],
        "choose steps: `!*` excludes every step; remove a pattern that begins with `!`",
    );
}

proptest::proptest! {
    #[test]
    fn no_pattern_panics(glob in "[a-c*?!,\\[\\]-]{0,12}") {
        let _ = kept(&[&glob]);
    }
}
