//! Tests with the statistics of three generations of RocksDB.

use std::collections::BTreeMap;

use crate::analyze::{parse, stalls};
use rqps_model::metric::Metric;

/// Since 10.3 there is a column WPreComp(GB) after Write(GB).
const NEW: &str = "\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) \
Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop \
Rblob(GB) Wblob(GB)
  L0      2/0   15.00 MB   0.5      0.0     0.0      0.0       0.1       0.1       0.1       0.0   \
1.0      0.0    256.4      0.46              0.19        10    0.046       0  \
0       0.0       0.0
  L7      5/1    1.50 GB   0.0      0.2     0.1      0.1       0.3       0.3       0.1       0.0   \
1.2    514.1    280.4     12.50              8.25         4    0.056     70K  \
31K       0.0       0.0
 Sum      7/1    1.51 GB   0.0      0.2     0.1      0.1       0.4       0.4       0.2       0.0   \
2.4    205.8    238.5     12.96              8.44        14    0.086    607K \
194K       0.5       0.7
 Int      0/0    0.00 KB   0.0      0.2     0.1      0.1       0.3       0.3       0.2       0.0   \
2.5    208.7    238.7      1.19              0.42        13    0.092    607K \
194K       0.0       0.0

** Compaction Stats [default] **
Priority    Files   Size     Score Read(GB)  Rn(GB)
 Low      0/0    0.00 KB   0.0      0.2     0.1
Blob file count: 3, total size: 2.5 GB, garbage size: 0.0 GB, space amp: 0.0

Uptime(secs): 2.7 total, 2.6 interval
Flush(GB): cumulative 0.116, interval 0.113
Cumulative compaction: 1.28 TB write, 107.33 MB/s write, 0.24 GB read, 92.60 MB/s read, 1.2 seconds
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 7, \
cf-l0-file-count-limit-stops-with-ongoing-compaction: 0, l0-file-count-limit-delays: 1429, \
l0-file-count-limit-stops: 0, memtable-limit-delays: 0, memtable-limit-stops: 0, \
pending-compaction-bytes-delays: 1131, pending-compaction-bytes-stops: 0, total-delays: 2560, \
total-stops: 0, interval: 3 total count

** DB Stats **
Uptime(secs): 2.7 total, 2.6 interval
Cumulative writes: 307K writes, 307K keys, 307K commit groups, 1.0 writes per commit group, \
ingest: 0.13 GB, 47.72 MB/s
Cumulative stall: 00:00:0.600 H:M:S, 22.2 percent
Write Stall (count): write-buffer-manager-limit-stops: 0
";

#[test]
fn columns_are_found_by_their_heads() {
    let stats = parse(NEW);
    let sum = stats.sum.as_ref().unwrap();
    assert_eq!((sum.get("Comp(sec)"), sum.get("CompMergeCPU(sec)")), (Some(12.96), Some(8.44)));
    assert_eq!((sum.get("Rblob(GB)"), sum.get("Wblob(GB)")), (Some(0.5), Some(0.7)));
    // Fields as the published scripts read them: Wr(MB/s) and Comp(sec), KeyDrop and Rblob.
    assert_eq!((sum.field(15), sum.field(16)), (Some(238.5), Some(12.96)));
    assert_eq!((sum.field(21), sum.field(22)), (Some(194e3), Some(0.5)));
    let names: Vec<&str> = stats.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["L0", "L7"]);
    assert_eq!(stats.levels[1].files, "5/1");
    assert_eq!(stats.levels[1].bytes, 1.5 * f64::from(1 << 30));
    assert_eq!(stats.levels[1].get("KeyIn"), Some(70e3));
}

#[test]
fn facts_have_their_units() {
    let stats = parse(NEW);
    assert_eq!(stats.compaction_written_gb, Some(1.28 * 1024.0));
    assert_eq!(stats.compaction_mb_per_second, Some(107.33));
    assert_eq!((stats.flush_gb, stats.ingest_gb), (Some(0.116), Some(0.13)));
    assert_eq!((stats.uptime_seconds, stats.stall_percent), (Some(2.7), Some(22.2)));
    assert_eq!(stats.blob_gb, Some(2.5));
}

#[test]
fn stalls_of_old_and_new_versions_have_one_name() {
    let new = parse(NEW).stalls;
    assert_eq!(new["total-delays"], 2560);
    // Published (iobuf, Speedb): l0 1429 + memtable 0 + pending 1131 = 2560.
    let delays = ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes"];
    let sum: u64 = delays.iter().map(|name| new[&format!("{name}-delays")]).sum();
    assert_eq!(sum, 2560);
    assert_eq!(new["write-buffer-manager-limit-stops"], 0);
    let old = parse(
        "Stalls(count): 5 level0_slowdown, 4 level0_slowdown_with_compaction, 3 level0_numfiles, \
         2 level0_numfiles_with_compaction, 6 stop for pending_compaction_bytes, 7 slowdown for \
         pending_compaction_bytes, 8 memtable_compaction, 9 memtable_slowdown, interval 1 total \
         count\n",
    );
    let of = |name: &str| old.stalls[name];
    assert_eq!((of("l0-file-count-limit-delays"), of("l0-file-count-limit-stops")), (5, 3));
    assert_eq!(of("pending-compaction-bytes-stops"), 6);
    assert_eq!(of("pending-compaction-bytes-delays"), 7);
    assert_eq!((of("memtable-limit-stops"), of("memtable-limit-delays")), (8, 9));
    assert_eq!(of("cf-l0-file-count-limit-delays-with-ongoing-compaction"), 4);
}

#[test]
fn stalls_while_level_0_is_compacted_are_columns_and_in_no_sum() {
    let values = BTreeMap::from_iter(stalls(&parse(NEW)));
    assert_eq!(values[&Metric::StallL0DelaysBusy], 7.0);
    assert_eq!(values[&Metric::StallL0StopsBusy], 0.0);
    assert_eq!(values[&Metric::StallCount], 2560.0);
}

#[test]
fn a_text_of_another_kind_gives_nothing() {
    assert_eq!(parse("nothing\nL0 is here\n"), super::Stats::default());
}
