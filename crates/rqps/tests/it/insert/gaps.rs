//! The writers of a client on the real clock, over a table whose keys have gaps.

use super::*;

/// The table is a queue: whatever the gaps, as many rows leave as come, and the intervals count
/// them all. Rates and the lead of a side are tested on a simulated clock, beside the schedule.
#[test]
fn as_many_rows_leave_as_come_on_a_table_with_gaps() {
    let _turn = turn();
    let workload = workload(&[
        "rows=12000", "i1_rows=4000", "i2_rows=100", "query_seconds=4", "query_steps=1000:range",
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
        let before = if said.is_empty() { 0 } else { database.number("SELECT count(*) FROM pi1") };
        let outcome = run(&job(Dialect::Sqlite, database.endpoint(), &workload, step));
        let (inserted, deleted) =
            (rows_of(&outcome.outcome, "inserts"), rows_of(&outcome.outcome, "deletes"));
        let live = database.number("SELECT count(*) FROM pi1");
        assert_eq!(live, before + inserted - deleted, "{}", step.name);
        if !["l.i0", "l.x"].contains(&step.name.as_str()) {
            assert_eq!(inserted, deleted, "{}", step.name);
            assert!(outcome.outcome.notes.iter().all(|note| !note.contains("too few rows")));
        }
        said.push(outcome);
    }
    let queries = said.last().unwrap();
    assert_eq!(rows_of(&queries.outcome, "inserts"), 4000);
    let sum = |role: &str| queries.intervals.iter().map(|it| it.extra[role]).sum::<f64>();
    assert_eq!((sum("inserts"), sum("deletes")), (4000.0, 4000.0), "intervals lose nothing");
}
