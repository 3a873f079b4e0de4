//! Forms that published files have besides those of the samples: columns without names, remarks,
//! rows that somebody computed, clients of warming, several runs of one version.

use crate::import::{MY56, MY80, check, compared, folder, read, samples, texts, value, *};
use rqps_import as import;
use rqps_import::format::NoticeKind;
use rqps_import::{ImportOptions, Named, kv, sysbench, vector};
use rqps_model::metric::Metric;

const CSV: &str = "hot-points_range=100,4000,3000\nscan_range=100,6500,6600,\n";

#[test]
fn columns_without_names_get_those_of_the_legend_or_of_the_command_line() {
    let tsv = format!(
        "col-1 : {MY56}\ncol-2 : {MY80}\n\n4000\t3000\thot-points_range=100\n\
         6500\t6600\tscan_range=100\n"
    );
    let both = folder(&[("qps.abs.all.csv", CSV), ("qps.abs.all.tsv", &tsv)]);
    let published = read(sysbench::MYTOOLS, &[both.path()], &ImportOptions::default()).unwrap();
    assert_eq!((published.runs.len(), published.notices.len()), (2, 0), "{published:?}");
    let wrong = CSV.replace("6600", "6700");
    let differ = folder(&[("qps.abs.all.csv", wrong.as_str()), ("qps.abs.all.tsv", &tsv)]);
    let published = read(sysbench::MYTOOLS, &[differ.path()], &ImportOptions::default()).unwrap();
    let mismatch = texts(&published, NoticeKind::Mismatch);
    assert!(mismatch.len() == 1 && mismatch[0].contains("line 2"), "{mismatch:?}");
    let ratios = "hot-points_range=100,0.75\nscan_range=100,1.02\n";
    let alone = folder(&[("qps.abs.csv", CSV), ("qps.rel.csv", ratios)]);
    let fault = read(sysbench::MYTOOLS, &[alone.path()], &ImportOptions::default()).unwrap_err();
    assert!(fault.to_string().contains("name them with --labels A,B,…"), "{fault}");
    let labels = vec!["old".to_owned(), "new".to_owned()];
    let options = ImportOptions { labels, ..ImportOptions::default() };
    let published = read(sysbench::MYTOOLS, &[alone.path()], &options).unwrap();
    assert_eq!(value(&published, "new", "scan_range=100", Metric::Rate), Some(6600.0));
    assert_eq!(check(&published, "relative rates"), (2, 2));
}

#[test]
fn edited_ratios_are_held_against_the_whole_table() {
    let edited = format!(
        "Relative to: {}\ncol-1 : {}\n\n- point queries, all\ncol-1\n0.75\thot-points\t\t-> 8.0\n",
        MY56.trim_start_matches("x.").trim_end_matches(".pk1"),
        MY80.trim_start_matches("x.").trim_end_matches(".pk1"),
    );
    let folder = folder(&[("qps.abs.tsv", samples::QPS_ABS), ("qps.rel.tsv.edit", &edited)]);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "relative rates"), (1, 1));
}

#[test]
fn clients_of_warming_are_not_those_of_the_table() {
    let files = [
        ("x.a/sb.o.point-query.range100.pk1.dop40", samples::SB_O),
        ("x.a/sb.met.point-query.warm.range100.pk1.dop8", samples::SB_MET),
        ("qps.abs.tsv", "col-1 : x.a\n\ncol-1\n1000\tpoint-query_range=100\n"),
    ];
    let folder = folder(&files);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let names: Vec<&str> = published.runs[0].steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["point-query_range=100", "point-query.warm_range=100"]);
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
}

#[test]
fn a_table_of_each_number_of_clients_is_known_by_its_rates() {
    let met = |clients: u32, rate: u32| {
        format!(
            "sb.met.hot-points.range100.pk1.dop{clients}\n--- absolute\ncpu/o\t\to/s\tdbms\n\
             0.5\t{rate}\tx.a\n\n"
        )
    };
    let table = |rate: u32| format!("col-1 : x.a\n\ncol-1\n{rate}\thot-points_range=100\n");
    let (met, one, ten) = (met(1, 100) + &met(10, 900), table(100), table(900));
    let folder = folder(&[("o.met", &met), ("qps.dop1.tsv", &one), ("qps.dop10.tsv", &ten)]);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let of = |step| value(&published, "x.a", step, Metric::Rate);
    let rates = (of("hot-points_range=100.dop1"), of("hot-points_range=100.dop10"));
    assert_eq!(rates, (Some(100.0), Some(900.0)));
    assert_eq!(published.notices, []);
}

#[test]
fn a_scan_in_millions_of_rows_becomes_thousands() {
    let table = "col-1 : x.a\ncol-2 : x.b\n\n3.138\t2\tscan_range=100\n\
        2.500\t3\thot-points_range=100\n";
    let met = "sb.met.scan.range100.pk1.dop1\n--- absolute\ncpu/o\t\to/s\tdbms\n\
        0.000015\t3138000\tx.a\n";
    let folder = folder(&[("qps.abs.tsv", table), ("o.met", met)]);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let of = |label, step| value(&published, label, step, Metric::Rate);
    let scan = |label| of(label, "scan_range=100");
    assert_eq!((scan("x.a"), scan("x.b")), (Some(3138.0), Some(2000.0)));
    assert_eq!(of("x.a", "hot-points_range=100"), Some(2.5));
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    let notes = texts(&published, NoticeKind::Note).join("\n");
    assert!(notes.contains("is 3138000 here and 3138 in an earlier file"), "{notes}");
}

#[test]
fn runs_with_other_clients_are_no_repetitions() {
    let more = samples::SB_O.replace("Number of threads: 4", "Number of threads: 8");
    let folder = folder(&[("a.txt", samples::SB_O), ("b.txt", &more)]);
    let named = |label: &str, name: &str| Named {
        path: folder.path().join(name),
        label: Some(label.to_owned()),
        step: None,
    };
    let of =
        |paths: &[Named]| import::read(sysbench::PLAIN, paths, &ImportOptions::default()).unwrap();
    let one = of(&[named("x", "a.txt"), named("x", "b.txt"), named("x", "a.txt")]);
    let steps: Vec<(u32, &str)> = one
        .runs
        .iter()
        .flat_map(|run| run.steps.iter().map(|step| (run.record.key.block, step.name.as_str())))
        .collect();
    assert_eq!(steps, [(1, "oltp_point_select.dop4"), (1, "oltp_point_select.dop8")]);
    let left = texts(&one, NoticeKind::Left).join("\n");
    assert!(left.contains("the same run as in"), "{left}");
    // Two targets may differ in their clients: that is a comparison of clients.
    let two = of(&[named("few", "a.txt"), named("many", "b.txt")]);
    assert!(two.runs.iter().all(|run| run.steps[0].name == "oltp_point_select"));
    let notes = texts(&two, NoticeKind::Note).join("\n");
    assert!(notes.contains("was run with 4, 8 threads: its targets differ in that"), "{notes}");
}

#[test]
fn tables_of_db_bench_are_known_by_their_heads_or_their_report() {
    let rows = |rates: [u32; 2]| {
        let row = |rate: u32, version: &str| format!("{rate}\t1.0\tfillseq.v400\t{version}\n");
        let heads = "ops_sec\tmb_sec\ttest\tversion\n";
        format!("{heads}{}{}", row(rates[0], "9.8.4"), row(rates[1], "10.3.4"))
    };
    let sum = rows([100, 150]) + "1.500\n";
    let files = [
        ("sum.gcc.txt", sum.as_str()),
        ("abs.gcc.tsv", "100\t150\tfillseq.v400\n"),
        ("csum.gcc.csv", "test,9.8.4,10.3.4,\nfillseq.v400,1.00,1.50\n"),
        ("rel2.gcc.csv", "fillseq.v400,1.10,1.65\n"),
        ("abs.other.tsv", "1\t2\tfillseq.v400\n"),
    ];
    let folder = folder(&files);
    let published = read(kv::DB_BENCH, &[folder.path()], &ImportOptions::default()).unwrap();
    assert_eq!(published.runs.len(), 2, "{published:?}");
    assert_eq!(check(&published, "relative rates"), (2, 2));
    assert_eq!(check(&published, "ratios, means and deviations"), (1, 1));
    let left = texts(&published, NoticeKind::Left).join("\n");
    for part in
        ["rel2.gcc.csv: not imported: 2 cells: ratios to a version", "abs.other.tsv: not imported"]
    {
        assert!(left.contains(part), "{part}: {left}");
    }
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
}

#[test]
fn outputs_of_one_version_are_targets_and_their_columns_are_shown() {
    let other = samples::DBB_LOG.replace(" micros/op ", "1 micros/op ");
    let folder = folder(&[("lru.log", samples::DBB_LOG), ("hcc.log", &other)]);
    let published = read(kv::DB_BENCH, &[folder.path()], &ImportOptions::default()).unwrap();
    let labels: Vec<&str> =
        published.runs.iter().map(|run| run.record.key.label.as_str()).collect();
    assert_eq!((labels.len(), labels[1]), (2, format!("{}#2", labels[0]).as_str()));
    let text = rqps_lab::benchmarks::render(
        &compared(kv::DB_BENCH, &published),
        rqps_report::Format::Text,
    );
    for part in ["usec_op", "w_amp_compat", "p99_compat"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn selections_of_other_names_are_points() {
    let plot = " MariaDB(m= 8, ef_search=10)   0.984   19555.2\n \
        PGVector(m=16, ef_construction=96, ef_search=20)   0.990   10704.3\n";
    let selected = "Legend\n* isecs - seconds\n\nBest QPS with recall >= 0.97\n\
        recall\tQPS\tisecs\talgorithm\n0.990   10704\tPGVector(m=16, ef_cons=96, ef_search=20)\n";
    let some = plot.lines().next().unwrap().to_owned() + "\n";
    let files = [("o.plot.all", plot), ("o.plot.some", &some), ("qr.topN.1", selected)];
    let folder = folder(&files);
    let published =
        read(vector::ANN_BENCHMARKS, &[folder.path()], &ImportOptions::default()).unwrap();
    // The same points in two plots are not two measurements.
    assert_eq!(published.runs.len(), 2, "{published:?}");
    assert_eq!(check(&published, "selected rows found"), (1, 1));
    assert_eq!(check(&published, "selected rows that are the best"), (1, 1));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_left_and_what_cannot_be_read_is_told() {
    let folder = folder(&[("a.txt", samples::SB_O), ("b.tsv", "caf\u{e9}\n")]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    let socket = folder.path().join("socket");
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let published = read(sysbench::PLAIN, &[folder.path()], &ImportOptions::default()).unwrap();
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("no sysbench output: b.tsv, link (no file), socket (no file)"), "{left}");
    // Text that is damaged is not passed over, if its name is one that the format reads.
    for format in import::FORMATS {
        let name = if format.word == "series" { "b.csv" } else { "b.tsv" };
        let damaged = folder.path().join(name);
        std::fs::write(&damaged, b"one\ncaf\xe9\n").unwrap();
        let fault =
            read(format, &[folder.path()], &ImportOptions::default()).unwrap_err().to_string();
        let said = format!("{name}`, line 2: it is not UTF-8 text");
        assert!(fault.contains(&said), "{}: {fault}", format.word);
        std::fs::remove_file(&damaged).unwrap();
    }
}

// Several conditions in one folder, and one build under two names.

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

#[test]
fn ratios_of_a_workload_without_rates_are_steps_of_their_own() {
    let warm = rates([1000, 2000, 3000], [1100, 2200, 3300]);
    let published = import(
        sysbench::MYTOOLS,
        &[
            ("qps.abs.warm.tsv", &warm),
            ("qps.rel.warm.tsv", &ratios(["1.10"; 3])),
            ("qps.rel.cold.tsv", &ratios(["0.50", "0.40", "0.30"])),
        ],
    );
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    assert_eq!(check(&published, "relative rates"), (3, 3));
    let rate = |label: &str, step: &str| value(&published, label, step, Metric::Rate);
    let cold = ["x.a.pk1", "x.b.pk1"].map(|label| rate(label, "point-query_range=100.cold"));
    assert_eq!(cold, [Some(1.0), Some(0.5)]);
    assert_eq!(rate("x.b.pk1", "point-query_range=100.warm"), Some(1100.0));
    // A wrong ratio is a mismatch, not a workload.
    let files = [("qps.abs.tsv", warm.as_str()), ("qps.rel.tsv", &ratios(["1.10", "1.10", "0.9"]))];
    let published = import(sysbench::MYTOOLS, &files);
    assert_eq!(texts(&published, NoticeKind::Mismatch).len(), 1);
}

#[test]
fn a_comma_in_a_rate_is_an_error_with_its_place() {
    let table = rates([1000, 2000, 3000], [990, 4, 5]).replace("1000", "1,000");
    let folder = folder(&[("qps.abs.tsv", &table)]);
    let fault = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap_err();
    let said = "line 5, column 1: `1,000` under `x.a.pk1` has a comma";
    assert!(fault.to_string().contains(said), "{fault}");
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
