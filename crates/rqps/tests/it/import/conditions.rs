//! Several conditions in one folder, and one build under two names.

use super::*;

fn steps(published: &Published, label: &str) -> Vec<String> {
    let run = published.runs.iter().find(|run| run.record.key.label == label);
    let run = run.unwrap_or_else(|| panic!("no run of {label}"));
    run.steps.iter().map(|step| step.name.clone()).collect()
}

fn import(format: ImportFormat, files: &[(&str, &str)]) -> Published {
    let folder = folder(files);
    let published = read(format, &[folder.path()], &ImportOptions::default()).unwrap();
    let totals = published.cells.totals();
    let kept = totals.metrics + totals.compared + totals.annotations + totals.absent;
    assert_eq!(totals.read, kept + totals.left, "{totals}");
    published
}

fn rates(a: [u32; 3], b: [u32; 3]) -> String {
    let row = |step: &str, at: usize| format!("{}\t{}\t{step}_range=100\n", a[at], b[at]);
    let rows = row("point-query", 0) + &row("update-index", 1) + &row("scan-x", 2);
    format!("col-1 : x.a.pk1\ncol-2 : x.b.pk1\n\ncol-1\tcol-2\n{rows}")
}

fn ratios(cells: [&str; 3]) -> String {
    let row = |step: &str, at: usize| format!("{}\t{step}_range=100\n", cells[at]);
    let rows = row("point-query", 0) + &row("update-index", 1) + &row("scan-x", 2);
    format!("Relative to: x.a.pk1\ncol-1 : x.b.pk1\n\ncol-1\n{rows}")
}

#[test]
fn two_workloads_in_one_folder_are_both_imported() {
    let cached = rates([1000, 2000, 3000], [1100, 2200, 3300]);
    let iobound = rates([100, 200, 300], [90, 180, 270]);
    let published = import(
        sysbench::MYTOOLS,
        &[
            ("qps.abs.cached.tsv", &cached),
            ("qps.abs.iobound.tsv", &iobound),
            ("qps.rel.cached.tsv", &ratios(["1.10"; 3])),
            ("qps.rel.iobound.tsv", &ratios(["0.90"; 3])),
        ],
    );
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    assert_eq!(steps(&published, "x.a.pk1").len(), 6);
    let rate = |step: &str| value(&published, "x.b.pk1", step, Metric::Rate);
    let both = ["point-query_range=100.cached", "point-query_range=100.iobound"].map(rate);
    assert_eq!(both, [Some(1100.0), Some(90.0)]);
    assert_eq!(check(&published, "relative rates"), (6, 6));
    assert_eq!(published.cells.totals().left, 0);
}

#[test]
fn tables_for_several_numbers_of_clients_are_all_imported() {
    let published = import(
        sysbench::MYTOOLS,
        &[
            ("qps.rel.ma106.1u.tsv", &ratios(["1.10", "1.00", "0.99"])),
            ("qps.rel.ma106.8u.tsv", &ratios(["1.05", "1.00", "0.99"])),
            ("qps.rel.ma106.40u.tsv", &ratios(["0.80", "0.70", "0.60"])),
        ],
    );
    let rate = |step: &str| value(&published, "x.b.pk1", step, Metric::Rate);
    let of = ["dop1", "dop8", "dop40"].map(|end| rate(&format!("point-query_range=100.{end}")));
    assert_eq!(of, [Some(1.1), Some(1.05), Some(0.8)]);
    assert_eq!(steps(&published, "x.b.pk1").len(), 9);
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
}

#[test]
fn ratios_are_held_against_the_table_of_the_same_name() {
    // The second table has the same targets, measured again.
    let second = rates([1000, 2000, 3000], [1100, 2000, 3000]);
    let first = rates([1000, 2000, 3000], [1000, 2000, 3000]);
    let published = import(
        sysbench::MYTOOLS,
        &[
            ("qps.abs.a.tsv", &first),
            ("qps.abs.b.tsv", &second),
            ("qps.rel.b.tsv", &ratios(["1.10", "1.00", "1.00"])),
        ],
    );
    let wrong = texts(&published, NoticeKind::Mismatch);
    assert!(wrong.iter().all(|text| text.contains("in an earlier file")), "{wrong:?}");
    assert_eq!(check(&published, "relative rates"), (3, 3));
}

const HEADS: &str = "ops_sec\tmb_sec\tlsm_sz\ttest\tdate\tversion\tgithash\n";

fn report(rates: [u32; 2]) -> String {
    let row = |test: &str, rate: u32| {
        format!("{HEADS}{rate}\t1.0\t20GB\t{test}\t2025-05-9T01:44:24\t9.8.4\tabc\n")
    };
    row("fillseq.v400", rates[0]) + &row("readrandom.t8", rates[1])
}

#[test]
fn one_build_under_two_names_is_imported_once() {
    let table = format!("d0/9.8.clang/report.tsv\n\n{}", report([104_301, 88_412]));
    let published = import(
        kv::DB_BENCH,
        &[
            ("sum.x.txt", &table),
            ("abs.csv", "test,9.8.4,9.9.3\nfillseq.v400,104301,99812\nreadrandom.t8,88412,91200\n"),
            ("rel.csv", "test,9.8.4,9.9.3\nfillseq.v400,1.00,0.96\nreadrandom.t8,1.00,1.03\n"),
        ],
    );
    let labels: Vec<&str> =
        published.runs.iter().map(|run| run.record.key.label.as_str()).collect();
    assert_eq!(labels, ["9.8.clang", "9.9.3"]);
    let notes = texts(&published, NoticeKind::Note);
    let said = "9.8.4: its rates are those of 9.8.clang in all 2 steps that both have: one build";
    assert!(notes.iter().any(|note| note.starts_with(said)), "{notes:?}");
    let other = "test,9.8.4,9.9.3\nfillseq.v400,104301,99812\nreadrandom.t8,88413,91200\n";
    let published = import(kv::DB_BENCH, &[("sum.x.txt", &table), ("abs.csv", other)]);
    assert_eq!(published.runs.len(), 3);
}

#[test]
fn labels_of_the_columns_of_one_table_do_not_rename_the_rows_of_another() {
    let of_99 = report([99_812, 91_200]).replace("9.8.4", "9.9.3");
    let folder = folder(&[
        ("9.8.clang.tsv", &report([104_301, 88_412])),
        ("9.9.clang.tsv", &of_99),
        ("abs.tsv", "104301\t99812\tfillseq.v400\n88412\t91200\treadrandom.t8\n"),
    ]);
    let labels = ["9.8.4", "9.9.3"].map(str::to_owned).to_vec();
    let options = ImportOptions { labels, ..ImportOptions::default() };
    let published = read(kv::DB_BENCH, &[folder.path()], &options).unwrap();
    let rate = |label: &str| value(&published, label, "fillseq.v400", Metric::Rate);
    assert_eq!(published.runs.len(), 2);
    assert_eq!((rate("9.8.4"), rate("9.9.3")), (Some(104_301.0), Some(99_812.0)));
}

#[test]
fn workloads_of_db_bench_become_steps() {
    let published = import(
        kv::DB_BENCH,
        &[
            ("sum.byrx.txt", &report([104_301, 88_412])),
            ("sum.iobuf.txt", &report([94_301, 8_412])),
            ("abs.iobuf.csv", "test,9.8.4\nfillseq.v400,94301\nreadrandom.t8,8412\n"),
        ],
    );
    let rate = |step: &str| value(&published, "9.8.4", step, Metric::Rate);
    let of = ["readrandom.t8.byrx", "readrandom.t8.iobuf"].map(rate);
    assert_eq!((published.runs.len(), of), (1, [Some(88_412.0), Some(8_412.0)]));
    assert_eq!(texts(&published, NoticeKind::Left), [""; 0]);
}

#[test]
fn reads_that_find_nothing_are_void_and_warnings_are_caveats() {
    let log = |found: u32, said: &str| {
        format!(
            "{said}RocksDB:    version 8.{found}.1\nDate:       Thu Nov  9 02:12:37 2023\n\
             readrandom   :       4.9 micros/op 2040{found} ops/sec; ({found} of 1000 found)\n"
        )
    };
    let said = "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n\
                WARNING: Snappy compression is not enabled\n";
    let (none, all) = (log(0, ""), log(632, said));
    let published = import(kv::DB_BENCH, &[("a.log", &none), ("b.log", &all)]);
    let [none, all] = published.runs.as_slice() else { panic!("{:?}", published.runs) };
    assert_eq!(none.record.started, "2023-11-09T02:12:37Z");
    let Status::Failed(why) = &none.steps[0].status else { panic!("{:?}", none.steps[0]) };
    assert!(why.contains("found none of 1000 keys"), "{why}");
    assert_eq!(all.steps[0].status, Status::Complete);
    assert!(all.record.debug_build.as_ref().unwrap().contains("Assertions are enabled"));
    let comparison = compared(kv::DB_BENCH, &published);
    let text = render(&comparison, Form::Text).replace('\n', " ");
    for part in ["A debug build", "Snappy compression is not enabled", "found 632 of 1000 keys"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn one_impossible_size_is_left_out_and_not_the_folder() {
    let rows = report([104_301, 88_412]).replacen("20GB", "-3GB", 1);
    let published = import(kv::DB_BENCH, &[("sum.x.txt", &rows)]);
    let left = texts(&published, NoticeKind::Left);
    assert!(left[0].ends_with("1 cell: sizes below zero under `lsm_sz`"), "{left:?}");
    let size = |step: &str| value(&published, "9.8.4", step, Metric::LsmSize);
    assert_eq!((size("fillseq.v400"), size("readrandom.t8")), (None, Some(20.0)));
    let sums = "ips\tqps\tdbgb1\ttag\n100\t0\t-0.4\t20m.my8033_rel.cz10a_c8r32\n";
    let published = import(insert::MYTOOLS, &[("mrg.l.i0", sums)]);
    assert_eq!(texts(&published, NoticeKind::Left).len(), 1);
    assert_eq!(published.runs[0].steps[0].outcome.extra[&Metric::Rate], 100.0);
}

#[test]
fn labels_that_name_nothing_are_refused() {
    let folder = folder(&[("qps.abs.tsv", &rates([1, 2, 3], [4, 5, 6]))]);
    let options = ImportOptions { labels: vec!["old".into(), "new".into()], ..Default::default() };
    let fault = read(sysbench::MYTOOLS, &[folder.path()], &options).unwrap_err();
    let said = "`old` names no row and no column, because these files name their targets (x.a.pk1";
    assert!(fault.to_string().contains(said), "{fault}");
}

#[test]
fn a_series_becomes_a_result_set_for_each_date() {
    let format = import::FORMATS.into_iter().find(|format| format.word == "series").unwrap();
    let rows: Vec<String> = (1..=9).map(|day| format!("2026-01-0{day},{}", 100 + day)).collect();
    let csv = format!("date,point\n{}\n", rows.join("\n"));
    let published = import(format, &[("nightly.csv", &csv)]);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("out");
    import::write(format, &published, &out).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .args(["history", "--by", "date", "--format", "csv"])
        .args(std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()))
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(text.lines().count(), 10, "{text}");
    for day in 1..=9 {
        let said = format!("point,2026-01-0{day}T00:00:00Z,");
        let row = text.lines().find(|row| row.contains(&said)).unwrap();
        assert_eq!(row.split(',').nth(6), Some(format!("{}", 100 + day).as_str()), "{row}");
    }
}
