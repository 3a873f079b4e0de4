//! No cell vanishes: what was read is what was kept and what is named as left out.

use super::*;

/// The account of these files, and everything that was told.
fn told(format: ImportFormat, files: &[(&str, &str)]) -> (Published, String) {
    let folder = folder(files);
    let published = read(format, &[folder.path()], &ImportOptions::default()).unwrap();
    let notices: Vec<String> = published.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    assert!(!notices.contains("this importer has a bug"), "{notices}");
    (published, notices)
}

#[test]
fn columns_of_unknown_heads_are_annotations() {
    let met = samples::MET.replace("wKB/o", "foo").replace("cs/o", "cs/0");
    let (published, notices) = told(sysbench::MYTOOLS, &[("o.met", &met)]);
    let totals = published.cells.totals();
    assert_eq!(totals.left, 0, "{totals}");
    assert!(totals.annotations > 0 && totals.compared > 0, "{totals}");
    let all = totals.metrics + totals.compared + totals.annotations;
    assert_eq!(totals.read, all, "{totals}");
    assert!(notices.contains("no metric for column `foo`"), "{notices}");
    assert!(notices.contains("is `cs/o` a typo?"), "{notices}");
    let step = &published.runs[0].steps[0];
    let kept = &step.imported.as_ref().unwrap().annotations;
    assert_eq!(kept["foo"], "1.236", "{kept:?}");
    assert!(!step.outcome.extra.contains_key(&Metric::WriteKbPerOp));
}

#[test]
fn numbers_that_nothing_can_have_are_errors_with_their_place() {
    for bad in ["inf", "-0", "-3", "nan", "1000000000000000000000000"] {
        let table = samples::QPS_ABS.replacen("3000", bad, 1);
        let met = samples::MET.replacen("1.236", bad, 1);
        for (name, content) in [("qps.abs.tsv", &table), ("o.met", &met)] {
            let folder = folder(&[(name, content)]);
            let path = folder.path().join(name);
            let fault = read(sysbench::MYTOOLS, &[&path], &ImportOptions::default());
            let fault = fault.unwrap_err().to_string();
            let place = format!("{name}`, line ");
            assert!(fault.contains(&place) && fault.contains(", column "), "{bad}: {fault}");
            assert!(fault.contains(&format!("`{bad}`")), "{bad}: {fault}");
        }
    }
}

#[test]
fn ratios_alone_are_facts_without_rates() {
    let files = [("qps.rel.tsv", samples::QPS_REL)];
    let (published, notices) = told(sysbench::MYTOOLS, &files);
    assert!(notices.contains("only ratios are published here"), "{notices}");
    assert_eq!(value(&published, MY80, "hot-points_range=100", Metric::Rate), Some(0.75));
    assert_eq!(value(&published, MY56, "hot-points_range=100", Metric::Rate), Some(1.0));
    let comparison = compared(sysbench::MYTOOLS, &published);
    let text = render(&comparison, Form::Text);
    assert!(text.contains("of the base") && !text.contains(" qps"), "{text}");
    let tsv = render(&comparison, Form::Tsv);
    assert!(tsv.contains("0.75\t0.25\thot-points_range=100"), "{tsv}");
}

#[test]
fn words_of_authors_are_in_the_report() {
    let files = [("qps.abs.tsv", samples::QPS_ABS)];
    let (published, _) = told(sysbench::MYTOOLS, &files);
    let text = render(&compared(sysbench::MYTOOLS, &published), Form::Text);
    // `col2` names the target.
    let remark = format!("delete_range=100: -> 8.0.44, col2 ({MY80})");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&remark), "{text}");
}

const SUMMARY: &str = "abs:30m.bee\tl.i0\tqr100.L1\tqp100.L2\nmy1\t1000:g\t500:y\t900:-\n\
    my2\t800:-\t450:-\t990:g\nrel:30m.bee\tl.i0\tqr100.L1\tqp100.L2\n\
    my1\t1.00:-\t1.00:-\t1.00:-\nmy2\t0.80:y\t0.90:y\t1.10:b\n\
    ins:30m.bee\tqr100.L1\tqp100.L2\nmy1\t300:r\t400:-\nmy2\t400:-\t400:-\n\
    target\t400:y\t400:y\n";

#[test]
fn summary_tables_are_imported_with_their_colours() {
    let (published, notices) = told(insert::MYTOOLS, &[("s.txt", SUMMARY)]);
    assert_eq!(value(&published, "my1", "qr100.L1", Metric::Rate), Some(500.0));
    assert_eq!(value(&published, "my1", "qr100.L1", Metric::InsertRate), Some(300.0));
    assert_eq!(value(&published, "my2", "l.i0", Metric::Rate), Some(800.0));
    let workload = &published.runs[0].record.workload;
    // The row of targets tells the clients: 400 / 100.
    assert_eq!((published.runs.len(), workload.rows, workload.clients), (2, 30_000_000, 4));
    assert_eq!(check(&published, "ratios of summaries"), (6, 6));
    let step = published.runs[0].steps.iter().find(|step| step.name == "qr100.L1").unwrap();
    let kept = &step.imported.as_ref().unwrap().annotations;
    assert_eq!(kept["colour of the summary, insert rate"], "red");
    assert_eq!(published.cells.totals().left, 0, "{notices}");
    let (published, notices) =
        told(insert::MYTOOLS, &[("s.txt", &SUMMARY.replace("0.80:y", "0.85:y"))]);
    assert_eq!(check(&published, "ratios of summaries"), (5, 6));
    assert!(notices.contains("s.txt, line 6: mismatch: l.i0 of my2"), "{notices}");
}

#[test]
fn ratios_of_a_summary_or_of_metrics_alone_are_facts() {
    let start = SUMMARY.find("rel:").unwrap();
    let alone = &SUMMARY[start..SUMMARY.find("ins:").unwrap()];
    for (name, content, label, expected) in
        [("s.txt", alone, "my2", 0.8), ("rel.l.i0", samples::REL, "pg2.c5", 0.8)]
    {
        let (published, _) = told(insert::MYTOOLS, &[(name, content)]);
        assert_eq!(value(&published, label, "l.i0", Metric::Rate), Some(expected));
        let text = render(&compared(insert::MYTOOLS, &published), Form::Text);
        assert!(text.contains("of the base") && !text.contains(" ips"), "{text}");
    }
}

fn metrics(size: &str, ips: u32) -> String {
    format!("step\tips\tqps\ttag\nl.i0\t{ips}\t0\t{size}my1\nl.i0\t{ips}\t0\t{size}my2\n")
}

#[test]
fn sizes_are_not_mixed_unless_asked_for() {
    let files = [
        ("a.tsv", metrics("500m.", 1000)),
        ("b.30m.tsv", metrics("", 2000)),
        ("c.tsv", metrics("", 3000).replace("my1", "pg1").replace("my2", "pg2")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
    let folder = folder(&files);
    let path = |name: &str| folder.path().join(name);
    let (a, b, c) = (path("a.tsv"), path("b.30m.tsv"), path("c.tsv"));
    for (paths, size) in [([&*a, &*b], "30m"), ([&*a, &*c], "unknown size")] {
        let fault = read(insert::MYTOOLS, &paths, &ImportOptions::default());
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("separate imports") && fault.contains("--across sizes"), "{fault}");
        assert!(fault.contains(size), "{fault}");
    }
    let across = import::Across { sizes: true, hosts: false };
    let options = ImportOptions { across, ..ImportOptions::default() };
    let published = read(insert::MYTOOLS, &[&a, &b, &c], &options).unwrap();
    let rows: Vec<(&str, u64)> = published
        .runs
        .iter()
        .map(|run| (run.record.key.label.as_str(), run.record.workload.rows))
        .collect();
    assert!(rows.contains(&("500m.my1", 500_000_000)), "{rows:?}");
    assert!(rows.contains(&("30m.my1", 30_000_000)) && rows.contains(&("pg1", 0)), "{rows:?}");
    let options = ImportOptions { size: Some("30m".to_owned()), ..ImportOptions::default() };
    let published = read(insert::MYTOOLS, &[&a, &b], &options).unwrap();
    assert_eq!(value(&published, "my1", "l.i0", Metric::Rate), Some(2000.0));
    assert_eq!(published.cells.totals().left, 4);
}

#[test]
fn hosts_are_not_mixed_unless_asked_for() {
    let a = metrics("", 1000).replace("my1", "my1.x_c8r32").replace("my2", "my2.x_c8r32");
    let b = metrics("", 2000).replace("my1", "my1.x_c32r128").replace("my2", "my2.x_c32r128");
    let folder = folder(&[("a.tsv", &a), ("b.tsv", &b)]);
    let options = ImportOptions::default();
    let fault = read(insert::MYTOOLS, &[folder.path()], &options).unwrap_err().to_string();
    assert!(fault.contains("c8r32") && fault.contains("--across hosts"), "{fault}");
    let across = import::Across { sizes: false, hosts: true };
    let options = ImportOptions { across, ..ImportOptions::default() };
    assert_eq!(read(insert::MYTOOLS, &[folder.path()], &options).unwrap().runs.len(), 4);
}

#[test]
fn rows_that_contradict_each_other_are_an_error_with_both_places() {
    let twice = format!("{}l.i0\t999\t0\t20m.my1\n", metrics("20m.", 1000));
    let other = metrics("20m.", 1001);
    let first = metrics("20m.", 1000);
    for files in [vec![("a.tsv", &*twice)], vec![("a.tsv", &*first), ("b.tsv", &*other)]] {
        let folder = folder(&files);
        let fault = read(insert::MYTOOLS, &[folder.path()], &ImportOptions::default());
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("is 999 here") || fault.contains("is 1001 here"), "{fault}");
        assert!(fault.contains("a.tsv`, line 2: one of them is wrong"), "{fault}");
    }
}

#[test]
fn a_renamed_rate_is_refused_and_other_columns_are_kept() {
    let table = samples::O_SUM.replace("\tqps\t", "\tfoo\t");
    let folder = folder(&[("o.sum.t", &table)]);
    let fault = read(insert::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap_err();
    let fault = fault.to_string();
    assert!(fault.contains("line 5: a query step without a column `qps`"), "{fault}");
    assert!(fault.contains("`foo`"), "{fault}");
    let table = samples::O_SUM.replace("\twkbpi\t", "\twkbp1\t");
    let (published, notices) = told(insert::MYTOOLS, &[("o.sum.t", &table)]);
    assert!(notices.contains("no metric for column `wkbp1`"), "{notices}");
    assert!(notices.contains("6 cells; is `wkbpi` a typo?"), "{notices}");
    assert_eq!(published.cells.totals().annotations, 6);
}

const HEADS: &str = "ops_sec\tmb_sec\tfoo\tw_amp\ttest\tdate\tversion\n";

#[test]
fn columns_of_db_bench_that_nobody_knows_are_annotations() {
    let rows = format!("{HEADS}100\t0.5\tx 1\tNA\treadrandom.t1\t2025-05-09T01:44:24\t9.8.4\n");
    let folder = folder(&[("sum.txt", &rows), ("abs.tsv", "1\t2\treadrandom.t1\n")]);
    let published = read(kv::DB_BENCH, &[folder.path()], &ImportOptions::default()).unwrap();
    let step = &published.runs[0].steps[0];
    assert_eq!(step.imported.as_ref().unwrap().annotations["foo"], "x 1");
    let totals = published.cells.totals();
    let kept = (totals.metrics, totals.annotations, totals.absent, totals.left);
    assert_eq!((totals.read, kept), (9, (2, 4, 1, 2)));
    let notes = texts(&published, NoticeKind::Note).join("\n");
    assert!(notes.contains("no metric for column `foo`"), "{notes}");
}

#[test]
fn rows_of_db_bench_that_contradict_each_other_are_an_error() {
    let row = |rate: &str| format!("{rate}\t0.5\t\t1.5\tread.t1\t2025-05-09T01:44:24\t9.8.4\n");
    let again = format!("{HEADS}{}", row("100"));
    let other = format!("{HEADS}{}", row("101"));
    let folder = folder(&[("a.txt", &again), ("b.txt", &again), ("c.txt", &other)]);
    let paths = ["a.txt", "b.txt", "c.txt"].map(|name| folder.path().join(name));
    let same = read(kv::DB_BENCH, &[&paths[0], &paths[1]], &ImportOptions::default()).unwrap();
    assert_eq!((same.runs.len(), same.cells.totals().compared), (1, 7));
    let fault = read(kv::DB_BENCH, &[&paths[0], &paths[2]], &ImportOptions::default()).unwrap_err();
    let said = fault.to_string();
    for part in
        ["c.txt`, line 2, column 1: `101` under `ops_sec` contradicts `100`", "a.txt, line 2"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn cells_of_plots_and_builds_are_counted() {
    let builds = format!("{}\nOther\nM\tcons\tsecs\tsize\n8\t32\t27.0\t234\n", samples::BUILDS);
    let folder = folder(&[("o.plot", samples::PLOT), ("build.txt", &builds)]);
    let published =
        read(vector::ANN_BENCHMARKS, &[folder.path()], &ImportOptions::default()).unwrap();
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(
        left.contains("builds without a point") && !left.contains("this importer has a bug"),
        "{left}"
    );
    let totals = published.cells.totals();
    assert_eq!(totals.read, totals.metrics + totals.compared + totals.left);
}
