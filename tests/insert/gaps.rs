//! The writers of a client on the real clock, over a table whose keys have gaps.

use super::*;

const BATCH: f64 = 50.0;

/// The table is a queue, and the limiter keeps its rate: whatever the gaps, as many rows leave
/// as come, neither side is more than the queue and one batch ahead, and each second has what its
/// rate says to within a batch and what the host was late.
#[test]
fn deletes_and_the_rate_are_kept_on_a_table_with_gaps() {
    let _turn = turn();
    let workload = workload(&[
        "rows=12000",
        "i1_rows=4000",
        "i2_rows=100",
        "query_seconds=4",
        "query_steps=1000:range",
    ]);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    let steps = steps(Dialect::Sqlite, &workload);
    let mut said = Vec::new();
    for step in &steps {
        if step.name == "l.i1" {
            // Every third key is gone, and a stretch of more than any delete takes.
            let sqlite = Arc::new(Sqlite::compiled_in());
            let mut connection = SqliteConnection::open(&sqlite, &database.path(), 1000).unwrap();
            let sql = "DELETE FROM pi1 WHERE transactionid % 3 = 0 OR transactionid < 900";
            connection.simple(sql).unwrap();
        }
        let before = match said.is_empty() {
            true => 0,
            false => database.number("SELECT count(*) FROM pi1"),
        };
        let outcome = run(&job(Dialect::Sqlite, database.endpoint(), &workload, step));
        let (inserted, deleted) =
            (rows_of(&outcome.outcome, "inserts"), rows_of(&outcome.outcome, "deletes"));
        let live = database.number("SELECT count(*) FROM pi1");
        assert_eq!(live, before + inserted - deleted, "{}", step.name);
        if !["l.i0", "l.x"].contains(&step.name.as_str()) {
            assert_eq!(inserted, deleted, "{}", step.name);
            assert!(outcome.outcome.notes.iter().all(|note| !note.contains("fewer rows")));
        }
        said.push(outcome);
    }
    let queries = said.last().unwrap();
    assert_eq!(rows_of(&queries.outcome, "inserts"), 4000);
    let late = 1000.0 * queries.outcome.open.unwrap().behind_seconds_max;
    let mut ahead: f64 = 0.0;
    assert!(queries.intervals.len() >= 4);
    for interval in &queries.intervals {
        let of = |role: &str| interval.extra[role];
        ahead += of("inserts") - of("deletes");
        assert!(ahead.abs() <= 9.0 * BATCH, "second {}: {ahead}", interval.second);
        for role in ["inserts", "deletes"] {
            let error = of(role) - 1000.0 * interval.seconds;
            assert!(error.abs() <= BATCH + late, "{role}: {error} of {interval:?}, late {late}");
        }
    }
    assert_eq!(ahead, 0.0, "equal at the end");
}
