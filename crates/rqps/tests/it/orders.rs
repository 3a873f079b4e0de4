//! The order mix through the whole program: the example of docs/workloads.md as it stands there, on
//! SQLite; a real server; and what is refused. The step itself checks that the tables agree.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{builds, program, skipped};
#[test]
fn the_example_of_the_docs_runs_and_its_tables_agree_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--canaries", "off", "--blocks", "1", "--out", "out"];
    let example = program::example_of_docs("--bench orders");
    let output = program::rqps_in(&example, folder.path()).args(short).output().unwrap();
    let said = program::text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = program::text(&output.stdout);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let derived = "a workload derived from TPC-C; not comparable with published TPC-C results";
    assert!(report.contains(derived), "{report}");
    let step = program::steps(&folder.path().join("out"), "sqlite").remove(0);
    assert_eq!(step["status"], "complete", "{step}");
    let outcome = &step["outcome"];
    let count = |what: &str| outcome[what].as_f64().unwrap();
    let kinds = ["new_order", "payment", "delivery", "stock_level", "order_status"];
    let of_kind = |kind: &str| outcome["roles"][kind]["operations"].as_f64().unwrap();
    // Every transaction is of a kind; one of a hundred new orders is rolled back.
    assert_eq!(kinds.map(of_kind).iter().sum::<f64>(), count("events"), "{outcome}");
    assert!(count("statements") > 0.0 && count("statements") <= of_kind("new_order"), "{outcome}");
    let minute = 60.0 / count("seconds");
    let close = |metric: &str, number: f64| {
        let stored = outcome["extra"][metric].as_f64().unwrap();
        assert!((stored / (number * minute) - 1.0).abs() < 1e-9, "{metric}: {stored}");
    };
    close("nopm", count("statements"));
    close("tpm", count("events"));
    assert_eq!(outcome["notes"].as_array().unwrap().len(), 0, "{outcome}");
}

/// Statements of the client are what SQLite gets above.
#[test]
fn servers_carry_out_stored_transactions_and_their_tables_agree() {
    let test = "servers_carry_out_stored_transactions_and_their_tables_agree";
    if let Err(why) = builds::roots("", &["postgres@17.2.0", "mysql@8.0.33"]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    let targets = ["p=postgres@17.2.0", "m=mysql@8.0.33"];
    let words = ["compare", targets[0], targets[1], "--bench", "orders", "--clients", "3"];
    let mut command = program::rqps_in(&words, folder.path());
    command.args(program::SHORT).args(["--set", "seconds=2", "--set", "partitions=2"]);
    command.args(["--set", "procedures=on"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    for target in ["p", "m"] {
        let step = program::steps(&folder.path().join("out"), target).remove(0);
        assert_eq!(step["status"], "complete", "{step}");
        assert!(step["outcome"]["statements"].as_u64().unwrap() > 0, "{step}");
        let payments = step["outcome"]["roles"]["payment"]["operations"].as_u64().unwrap();
        assert!(payments > 0, "{step}");
        assert_eq!(step["outcome"]["notes"].as_array().unwrap().len(), 0, "{step}");
    }
    let report = program::text(&output.stdout);
    let kinds = ["new order", "payment", "delivery", "stock level", "order status"];
    let table = &report[report.find("per_minute").expect("a table of response times")..];
    let missing: Vec<_> = kinds.iter().filter(|kind| !table.contains(*kind)).collect();
    assert!(missing.is_empty() && table.contains("p99_ms"), "{missing:?}: {report}");
}

#[test]
fn what_cannot_be_carried_out_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |setting: &str, want: &str| {
        let words = ["compare", "sqlite", "--bench", "orders", "--set", setting, "--out", "out"];
        let output = program::rqps_in(&words, folder.path()).output().unwrap();
        let said = program::text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(want), "{said}");
        assert!(!folder.path().join("out").exists());
    };
    refused("partitions=4", "SQLite has no partitions");
    refused("procedures=on", "SQLite has no stored procedures");
    refused("warehouses=0", "write a whole number from 1 to 100000");
    refused("rows=7", "unknown key of the benchmark `orders`; valid keys: warehouses,");
}
