//! Tests of the settings of all benchmarks on a workload of this one.

use crate::sysbench;
use rqps_driver::workload::set;
use rqps_model::benchmark::{BackgroundState, Idle, Pace, Placement, Workload};

fn after(assignment: &str) -> Workload {
    let mut workload = sysbench::workload("quick").unwrap().0;
    set(&mut workload, assignment).unwrap();
    workload
}

fn check_error(assignment: &str, want: &str) {
    let mut workload = sysbench::workload("quick").unwrap().0;
    let error = set(&mut workload, assignment).unwrap_err();
    assert_eq!(error.to_string(), want);
    assert_eq!(workload, sysbench::workload("quick").unwrap().0, "an error changes nothing");
}

#[test]
fn settings_are_read_with_their_units() {
    assert_eq!(after("tables=8").tables, 8);
    assert_eq!(after("rows=10M").rows, 10_000_000);
    assert_eq!(after("rows=1_500k").rows, 1_500_000);
    assert_eq!(after("rows=2000000000").rows, 2_000_000_000);
    assert_eq!(after("clients = 40").clients, 40);
    let several = after("clients=16, 1,4");
    assert_eq!((several.clients, several.counts()), (16, &[1, 4, 16][..]));
    let single = after("clients=4");
    assert_eq!((single.client_counts.as_slice(), single.counts()), (&[][..], &[4][..]));
    assert_eq!(several.clients_text(), "1, 4, 16 clients");
    assert_eq!(after("clients=1").clients_text(), "1 client");
    let both = after("seconds=0.5");
    assert_eq!((both.read_seconds, both.write_seconds), (0.5, 0.5));
    assert_eq!(after("read_seconds=30").read_seconds, 30.0);
    assert_eq!(after("write_seconds=30").write_seconds, 30.0);
    assert_eq!(after("warmup_seconds=0").warmup_seconds, 0.0);
    assert_eq!(after("settle_scale=0").settle_scale, 0.0);
    assert_eq!(after("turn_ms=2.5").turn_ms, Some(2.5));
    assert_eq!(after("waiting=stopped").waiting, Some(BackgroundState::Stopped));
    assert_eq!(after("waiting=auto").waiting, None);
    assert_eq!(after("cache=512M").cache_bytes, Some(512 << 20));
    assert_eq!(after("cache=4 GiB").cache_bytes, Some(4 << 30));
    assert_eq!(after("cache=4gb").cache_bytes, Some(4 << 30));
    assert_eq!(after("cache=16777216").cache_bytes, Some(16 << 20));
    assert_eq!(after("cache=auto").cache_bytes, None);
    assert_eq!(after("memory_limit=2G").memory_limit, Some(2 << 30));
    assert_eq!(after("memory_limit=none").memory_limit, None);
    assert_eq!(after("rate=closed").pace, Pace::Closed);
    assert_eq!(after("rate=250.5").pace, Pace::Open { events_per_second: 250.5 });
    assert!(after("prepared=no").plain_statements && !after("prepared=yes").plain_statements);
    assert_eq!(after("placement=apart").placement, Placement::Apart);
    assert_eq!(after("idle=os").idle, Idle::Os);
}

#[test]
fn absurd_values_are_refused() {
    let rows = "write a whole number from 200 to 2000000000, such as 200 or 10M";
    for value in ["0", "199", "-5", "", "1.5M", "3G", "99999999999999999999", "10 MM", "x", "M"] {
        check_error(&format!("rows={value}"), &format!("set rows to `{value}`: {rows}"));
    }
    check_error(
        "tables=0",
        "set tables to `0`: write a whole number from 1 to 10000, such as 1 or 8",
    );
    let clients = "write a whole number from 1 to 10000, such as 1 or 8; or several such as 1,4,16";
    check_error("clients=0", &format!("set clients to `0`: {clients}"));
    check_error("clients=four", &format!("set clients to `four`: {clients}"));
    check_error("clients=1,0,4", &format!("set clients to `1,0,4`: `0`: {clients}"));
    check_error("clients=1,", &format!("set clients to `1,`: ``: {clients}"));
    check_error("clients=4,1,4", "set clients to `4,1,4`: write each count once; 4 is there twice");
    let seconds = "write a number from 0.1 to 86400";
    for value in ["0", "-1", "NaN", "inf", "1e9", "", "ten"] {
        check_error(
            &format!("read_seconds={value}"),
            &format!("set read_seconds to `{value}`: {seconds}"),
        );
    }
    let size = "write a size from 8M to 64T such as 512M or 4G, or auto";
    for value in ["0", "1M", "-4G", "4X", "65T", "4i", "99999999999999T", ""] {
        check_error(&format!("cache={value}"), &format!("set cache to `{value}`: {size}"));
    }
    check_error("rate=0", "set rate to `0`: write a number from 0.01 to 100000000, or closed");
    check_error("idle=no", "set idle to `no`: write one of awake, os");
}

#[test]
fn unknown_keys_are_answered_with_the_known() {
    check_error(
        "row=5",
        "set `row`: unknown key; valid keys: tables, rows, clients, seconds, \
         read_seconds, write_seconds, warmup_seconds, settle_scale, cache, memory_limit, \
         rate, prepared, placement, idle, turn_ms, waiting",
    );
    check_error("rows", "set `rows`: no `=`; write key=value, for example rows=1M");
}
