//! No parser of others' files panics, whatever it is given; what it refuses has a file and a line.
//!
//! Each case is a good file that was changed at random: lines cut, doubled, swapped; cells replaced
//! by words of other forms; bytes put in; in whole folders also lines, names and archives of a size
//! that nothing published has. Seeded, so a case that fails comes again. A short run is in the
//! tests; docs/importing.md has the command of the long one, under a memory limit.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

#[path = "import/samples.rs"]
mod samples;

use std::path::{Path, PathBuf};

use rqps::benchmarks::insert::import::{
    client as ibench_client, histograms as ibench_histograms, raw as ibench_raw, res as ibench_res,
    summary as ibench_summary, tables as ibench_tables,
};
use rqps::benchmarks::kv::import::{
    output as dbbench_output, rates as dbbench_rates, table as dbbench_table,
};
use rqps::benchmarks::sysbench::import::{
    met_tables, names as sysbench_names, output as sysbench_output, sb_met,
    tables as sysbench_tables,
};
use rqps::benchmarks::vector::import::ann_text;
use rqps::benchmarks::{insert, kv, sysbench, vector};
use rqps::datagen::rng::Rng;
use rqps::import::text::Text;
use rqps::import::{self, ImportError, ImportFormat, ImportOptions, Named, iostat, tag, vmstat};

fn cases() -> u64 {
    let said = std::env::var("RQPS_FUZZ_CASES").ok();
    said.map_or(1500, |said| said.parse().expect("RQPS_FUZZ_CASES is a number"))
}

/// Words that mean something in some form, and some that mean nothing anywhere.
const WORDS: [&str; 48] = [
    "",
    " ",
    "\t",
    "\t\t",
    ",",
    "0",
    "-1",
    "1e308",
    "1e-320",
    "NaN",
    "inf",
    "-inf",
    "NA",
    "nonzero",
    "18446744073709551616",
    "99999999999999999999999999",
    ".",
    "..",
    "/",
    "=",
    ":",
    "%",
    "é",
    "\u{0}",
    "x.my8044_rel.z12a_c8r32.pk1",
    "sb.met.scan.range100.pk1.dop1",
    "sb.o.x.range1.pk0",
    "-",
    "---",
    "--- absolute",
    "--- relative to first result",
    "Relative to:",
    "col-1 : x",
    "col-2 : y",
    "tag",
    "ips",
    "qps",
    "samp",
    "procs",
    "swpd",
    "Device",
    "avg-cpu:",
    "ops_sec",
    "failed",
    "test",
    "sysbench 1.0.20 (using x)",
    "[ 1s ] qps: ",
    "A(m=1, ef=2)",
];

fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// One to six changes of a text.
fn changed(sample: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = sample.lines().map(str::to_owned).collect();
    for _ in 0..=below(rng, 6) {
        let at = below(rng, lines.len());
        match below(rng, 10) {
            0 if !lines.is_empty() => drop(lines.remove(at)),
            1 if !lines.is_empty() => lines.insert(at, lines[at].clone()),
            2 if !lines.is_empty() => {
                let other = below(rng, lines.len());
                lines.swap(at, other);
            }
            3 => lines.insert(at.min(lines.len()), WORDS[below(rng, WORDS.len())].to_owned()),
            4 => lines.truncate(at),
            5 if !lines.is_empty() => {
                let cut = below(rng, lines[at].len() + 1);
                let cut = (0..=cut).rev().find(|cut| lines[at].is_char_boundary(*cut)).unwrap_or(0);
                lines[at].truncate(cut);
            }
            6 | 7 if !lines.is_empty() => {
                let separator = if lines[at].contains('\t') { '\t' } else { ' ' };
                let mut cells: Vec<String> =
                    lines[at].split(separator).map(str::to_owned).collect();
                let cell = below(rng, cells.len());
                cells[cell] = WORDS[below(rng, WORDS.len())].to_owned();
                lines[at] = cells.join(&separator.to_string());
            }
            _ if !lines.is_empty() => {
                let place = below(rng, lines[at].chars().count() + 1);
                let byte = char::from(u8::try_from(below(rng, 256)).unwrap());
                let mut chars: Vec<char> = lines[at].chars().collect();
                chars.insert(place, byte);
                lines[at] = chars.into_iter().collect();
            }
            _ => {}
        }
    }
    let end = ["\n", "\r\n", "\r"][below(rng, 3)];
    lines.join(if end == "\r" { "\n" } else { end })
}

/// Every change of every sample is read or refused with its line.
fn check<T>(seed: u64, samples: &[&str], parse: impl Fn(&Text) -> Result<T, ImportError>) {
    let mut rng = Rng::new(seed);
    let (mut good, mut bad) = (0u64, 0u64);
    let cases = cases();
    for case in 0..cases {
        let sample = samples[below(&mut rng, samples.len())];
        // Now and then a sample of another form altogether.
        let sample = if case % 16 == 0 { ALL[below(&mut rng, ALL.len())] } else { sample };
        let content = changed(sample, &mut rng);
        let text = Text::of(Path::new("case.txt"), &content);
        match parse(&text) {
            Ok(_) => good += 1,
            Err(ImportError::Malformed { path, line, why, .. }) => {
                bad += 1;
                let lines = text.len().max(1);
                assert!(
                    path == Path::new("case.txt") && (1..=lines).contains(&line),
                    "{line} {why}"
                );
                assert!(!why.is_empty(), "{content}");
            }
            Err(other) => panic!("{other}: {content}"),
        }
    }
    // Changes that never or always spoil a file would test nothing.
    assert!(good > cases / 100 && bad > cases / 100, "{good} good, {bad} bad");
}

const ALL: [&str; 25] = [
    samples::QPS_ABS,
    samples::QPS_REL,
    samples::MET,
    samples::BLOCKS,
    samples::BLOCK_RATIOS,
    samples::SB_O,
    samples::SB_VM,
    samples::SB_IO,
    samples::SB_MET,
    samples::O_SUM,
    samples::MRG,
    samples::REL,
    samples::HISTOGRAMS,
    samples::SUMMARY,
    samples::IB_CLIENT,
    samples::IB_CLIENT_2021,
    samples::IB_RES,
    samples::IB_TIMES,
    samples::DBB_SUM,
    samples::DBB_RATES,
    samples::DBB_LOG,
    samples::PLOT,
    samples::BUILDS,
    samples::SELECTED,
    samples::ANN_LOG,
];

#[test]
fn tables_of_rates() {
    check(1, &[samples::QPS_ABS, samples::QPS_REL], |text| {
        let _ = sysbench_tables::is_table(text);
        sysbench_tables::parse_table(text)
    });
}

#[test]
fn tables_of_rates_without_heads() {
    let (_, rows) = samples::QPS_ABS.split_once("\n\n").unwrap();
    check(31, &[rows, "a_range=1,1.00,0.9,\nb_range=1,1,inf\n"], |text| {
        let _ = sysbench_tables::is_unnamed(text);
        sysbench_tables::parse_unnamed(text).inspect(|table| {
            let _ = (table.is_relative(), table.width());
        })
    });
}

#[test]
fn blocks_of_rates() {
    check(2, &[samples::BLOCKS, samples::BLOCK_RATIOS], |text| {
        let _ = sysbench_tables::is_blocks(text);
        sysbench_tables::parse_blocks(text).inspect(|blocks| {
            let _ = sysbench_tables::are_ratios(blocks);
        })
    });
}

#[test]
fn tables_of_hardware_metrics() {
    check(3, &[samples::MET], |text| {
        let _ = met_tables::is_met(text);
        met_tables::parse(text).inspect(|blocks| {
            for block in blocks {
                let _ = met_tables::check(block);
            }
        })
    });
}

#[test]
fn output_of_sysbench() {
    check(4, &[samples::SB_O], |text| {
        sysbench_output::parse(text).inspect(|outputs| {
            for output in outputs {
                let _ = (output.script(), output.option("tables"));
            }
        })
    });
}

#[test]
fn vmstat_files() {
    check(5, &[samples::SB_VM], |text| {
        vmstat::parse(text).inspect(|file| {
            let _ = (file.mean(), file.compat_mean());
        })
    });
}

#[test]
fn iostat_files() {
    check(6, &[samples::SB_IO], |text| {
        iostat::parse(text).inspect(|file| {
            let _ = (file.mean("md2"), file.mean(""));
        })
    });
}

#[test]
fn metrics_of_a_step() {
    check(7, &[samples::SB_MET], |text| {
        sb_met::parse(text).inspect(|met| {
            let _ = (met.rate(), met.value("cpu/o"), sb_met::differences(&met.io, &met.vm));
        })
    });
}

#[test]
fn metrics_rows_of_the_insert_benchmark() {
    check(8, &[samples::O_SUM, samples::MRG, samples::REL], |text| {
        let _ = ibench_tables::is_metrics(text);
        ibench_tables::parse(text).inspect(|table| {
            let _ = ibench_tables::relative_rows(table);
            let _: Vec<String> = table.rows.iter().map(ibench_tables::merged).collect();
        })
    });
}

#[test]
fn response_times() {
    check(9, &[samples::HISTOGRAMS], ibench_histograms::parse);
}

#[test]
fn summaries_with_colours() {
    check(10, &[samples::SUMMARY], |text| {
        let _ = ibench_summary::is_summary(text);
        ibench_summary::parse(text)
    });
}

#[test]
fn output_of_clients_and_summaries_of_steps() {
    check(21, &[samples::IB_CLIENT, samples::IB_CLIENT_2021], ibench_client::parse);
    check(22, &[samples::IB_RES], ibench_res::parse);
}

#[test]
fn reports_of_db_bench() {
    let aligned = samples::DBB_SUM.replace('\t', "  ");
    check(11, &[samples::DBB_SUM, &aligned], |text| {
        let _ = dbbench_table::is_report(text);
        dbbench_table::parse_report(text).inspect(|table| {
            for derived in &table.derived {
                let _ = derived.again(table);
            }
        })
    });
}

#[test]
fn rates_of_db_bench() {
    let heads = "test,9.8.4,10.3.4,\nfillseq.v400,1.00,1.50\n";
    check(12, &[samples::DBB_RATES, samples::DBB_RATIOS, heads], |text| {
        dbbench_rates::parse_rates(text).inspect(|rates| {
            let _ = (rates.are_ratios(), rates.width(), rates.baseline());
        })
    });
}

#[test]
fn output_of_db_bench() {
    check(13, &[samples::DBB_LOG], dbbench_output::parse);
    check(14, &["secs_elapsed,interval_qps\n1,10\n2,20.5\n"], dbbench_output::parse_seconds);
}

#[test]
fn plots_of_ann_benchmarks() {
    check(15, &[samples::PLOT], |text| {
        let _ = ann_text::is_plot(text);
        ann_text::parse_plot(text)
    });
}

#[test]
fn builds_of_ann_benchmarks() {
    check(16, &[samples::BUILDS], ann_text::parse_builds);
    check(17, &[samples::ANN_LOG], ann_text::parse_log);
}

#[test]
fn selections_of_ann_benchmarks() {
    check(18, &[samples::SELECTED], ann_text::parse_selected);
}

#[test]
fn names_and_tags() {
    let mut rng = Rng::new(19);
    for _ in 0..cases() {
        let tags = "x.my8044_rel.z12a_c8r32.pk1\n20m.pg19b1.c5\nma120101.c\n\
             sb.met.a.range1.pk1.dop2\no.ib.dop4.2";
        for word in changed(tags, &mut rng).lines() {
            assert_eq!(tag::decode(word).text, word);
            let _ = (sysbench_names::file_name(word), ibench_tables::split_size(word));
            let _ = ibench_raw::file_name(word);
        }
    }
}

/// A format and the files of a folder: name, sample.
type Set = (ImportFormat, &'static [(&'static str, &'static str)]);

const SETS: [Set; 5] = [
    (
        sysbench::import::MYTOOLS,
        &[
            ("qps.abs.tsv", samples::QPS_ABS),
            ("qps.rel.tsv", samples::QPS_REL),
            ("o.met", samples::MET),
            ("o.qps.abs.pg", samples::BLOCKS),
            ("o.qps.rel.pg", samples::BLOCK_RATIOS),
            ("x.a/sb.o.p.range1.pk1.dop4", samples::SB_O),
            ("x.a/sb.met.p.range1.pk1.dop4", samples::SB_MET),
            ("x.a/sb.vm.p.range1.pk1.dop4", samples::SB_VM),
            ("x.a/sb.io.p.range1.pk1.dop4", samples::SB_IO),
        ],
    ),
    (sysbench::import::PLAIN, &[("a.txt", samples::SB_O), ("b.txt", samples::SB_O)]),
    (
        insert::import::MYTOOLS,
        &[
            ("o.sum.t.20m.pg1.c5", samples::O_SUM),
            ("res.pg/mrg.l.i0", samples::MRG),
            ("res.pg/rel.l.i0", samples::REL),
            ("rt.tsv", samples::HISTOGRAMS),
            ("summary.txt", samples::SUMMARY),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.ib.dop2.1", samples::IB_CLIENT),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.ib.dop2.2", samples::IB_CLIENT),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.res.dop2", samples::IB_RES),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.rt.t.insert", samples::IB_TIMES),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.vm.dop2", samples::SB_VM),
            ("20m.pg1.c5_c4r16/qr1000.L1/o.io.dop2", samples::SB_IO),
            ("20m.pg1.c5_c4r16/l.i0/o.ib.dop1.1", samples::IB_CLIENT_2021),
        ],
    ),
    (
        kv::import::DB_BENCH,
        &[
            ("sum.txt", samples::DBB_SUM),
            ("abs.tsv", samples::DBB_RATES),
            ("rel.csv", samples::DBB_RATIOS),
            ("x.log", samples::DBB_LOG),
        ],
    ),
    (
        vector::import::ANN_BENCHMARKS,
        &[
            ("o.plot", samples::PLOT),
            ("build.txt", samples::BUILDS),
            ("qr.topN.1", samples::SELECTED),
            ("o.batch0.mariadb", samples::ANN_LOG),
        ],
    ),
];

/// A file with megabytes of one thing in it, plain or packed.
fn oversized(sample: &str, rng: &mut Rng) -> Vec<u8> {
    let pieces = ["\n", "9", "\t", "1\t", "1 ", "a\n", "\r", "-1\n", "é", "=,"];
    let piece = pieces[below(rng, pieces.len())];
    let many = piece.repeat(below(rng, 6 << 20) / piece.len());
    let at = (0..=below(rng, sample.len())).rev().find(|at| sample.is_char_boundary(*at));
    let (begin, end) = sample.split_at(at.unwrap_or(0));
    let bytes = [begin, &many, end].concat().into_bytes();
    if below(rng, 2) == 0 {
        return bytes;
    }
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, &bytes).unwrap();
    let mut packed = packer.finish().unwrap();
    // Now and then the archive is cut.
    packed.truncate(packed.len() - below(rng, 3) * packed.len() / 16);
    packed
}

/// Whole folders: what is found is put together, or refused.
#[test]
fn whole_imports() {
    let mut rng = Rng::new(20);
    let folder = tempfile::tempdir().unwrap();
    for case in 0..(cases() / 20).min(20_000) {
        let (format, files) = SETS[below(&mut rng, SETS.len())];
        let root = folder.path().join(format!("{}", case % 8));
        let _ = std::fs::remove_dir_all(&root);
        for (name, sample) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let content = match below(&mut rng, 3) {
                0 => changed(sample, &mut rng),
                _ => (*sample).to_owned(),
            };
            match case % 97 {
                0 => std::fs::write(path, oversized(&content, &mut rng)).unwrap(),
                _ => std::fs::write(path, content).unwrap(),
            }
        }
        let named = Named { path: PathBuf::from(&root), label: None, step: None };
        match import::read(format, &[named], &ImportOptions::default()) {
            Ok(published) => {
                let extras = published.runs.iter().flat_map(|run| &run.steps);
                let mut values = extras.flat_map(|step| step.outcome.extra.values());
                assert!(values.all(|value| value.is_finite()), "case {case}");
            }
            Err(fault) => assert!(fault.to_string().contains("import"), "{fault}"),
        }
    }
}
