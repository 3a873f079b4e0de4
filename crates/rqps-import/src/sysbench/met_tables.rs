//! Reads published tables of hardware metrics (`o.met`): absolute values and ratios to the first
//! target, in a block per microbenchmark.

use super::tables::{FileName, file_name};
use crate::cells::{Kept, number};
use crate::format::ImportError;
use crate::published::{PrintedRatio, Published};
use crate::stat_files::{Iostat, Vmstat};
use crate::text::{METRICS_MAX, Row, Text};
use rqps_model::metric::Metric;

/// One microbenchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetBlock {
    /// Step and clients, from the name in the head.
    pub name: FileName,
    /// Line number of the head.
    pub line: usize,
    /// Heads of the columns except the last: `cpu/o`, `cs/o`, …, `o/s`.
    pub heads: Vec<String>,
    /// Absolute values: one row per target.
    pub absolute: Vec<MetRow>,
    /// Ratios: one row per target except the first.
    pub relative: Vec<MetRow>,
}

/// A row of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetRow {
    /// Line number, from 1.
    pub line: usize,
    /// The target.
    pub target: String,
    /// Cells as printed.
    pub cells: Vec<String>,
}

/// The start of the line in a table that compares two numbers of clients as targets: it follows the
/// head of a block and names the first target: `base1 sb.met.x.dop1 and base2 sb.met.x.dop48`.
const PAIR: &str = "base1 ";

/// True if the text begins with the head of such a table.
pub fn is_met(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| file_name(line).is_some())
        && lines.next().is_some_and(|line| {
            let heads = ["---", "cpu/o", PAIR];
            heads.iter().any(|begin| line.starts_with(begin))
        })
}

/// Heads of columns with metrics.
pub const HEADS: [&str; 6] = ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"];

/// The metric of a column, if one has the same unit.
pub fn metric(head: &str) -> Option<Metric> {
    Some(match head {
        "cpu/o" => Metric::CpuPerOp,
        "cs/o" => Metric::ContextSwitchesPerOp,
        "r/o" => Metric::ReadsPerOp,
        "rKB/o" => Metric::ReadKbPerOp,
        "wKB/o" => Metric::WriteKbPerOp,
        "o/s" => Metric::Rate,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Absolute,
    Relative,
}

/// Reads all blocks.
///
/// # Errors
///
/// A line outside a block or with a wrong number of cells, an invalid absolute value, a block
/// without values.
pub fn parse_met(text: &Text) -> Result<Vec<MetBlock>, ImportError> {
    text.at_most(METRICS_MAX)?;
    let mut blocks: Vec<MetBlock> = Vec::new();
    let mut part = Part::Absolute;
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() {
            continue;
        }
        if let Some(name) = file_name(trimmed) {
            check_whole(text, blocks.last())?;
            let empty = Vec::new;
            blocks.push(MetBlock {
                name,
                line,
                heads: Vec::new(),
                absolute: empty(),
                relative: empty(),
            });
            part = Part::Absolute;
            continue;
        }
        let Some(block) = blocks.last_mut() else {
            return Err(text.malformed(line, "expected the file name of a microbenchmark (sb.…)"));
        };
        match trimmed {
            _ if trimmed.starts_with(PAIR) && block.heads.is_empty() => block.name.clients = None,
            "--- absolute" => part = Part::Absolute,
            _ if trimmed.starts_with("--- relative to first") => part = Part::Relative,
            _ if trimmed.starts_with("---") => {
                return Err(text.malformed(line, format!("`{trimmed}` does not belong to a block")));
            }
            _ => take_line(text, line, trimmed, part, block)?,
        }
    }
    if blocks.is_empty() {
        return Err(text.cut_short("the first block"));
    }
    check_whole(text, blocks.last())?;
    Ok(blocks)
}

fn check_whole(text: &Text, block: Option<&MetBlock>) -> Result<(), ImportError> {
    match block {
        Some(block) if block.absolute.is_empty() => {
            Err(text.malformed(block.line, "a block without absolute values"))
        }
        _ => Ok(()),
    }
}

fn take_line(
    text: &Text,
    line: usize,
    row: &str,
    part: Part,
    block: &mut MetBlock,
) -> Result<(), ImportError> {
    // Two tabs separate the first two columns.
    let mut cells: Vec<String> =
        row.split('\t').map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    let last = cells.pop().unwrap_or_default();
    if cells.iter().any(|cell| cell == "o/s") && last == "dbms" {
        if !block.absolute.is_empty() && block.heads != cells {
            return Err(text.malformed(line, "the header differs from that of the values above"));
        }
        block.heads = cells;
        return Ok(());
    }
    if block.heads.is_empty() {
        return Err(text.malformed(line, "values before the header (`cpu/o … dbms`)"));
    }
    text.check_width(line, cells.len(), block.heads.len())?;
    for (place, (head, cell)) in block.heads.iter().zip(&cells).enumerate() {
        // A ratio to zero.
        if part == Part::Absolute || cell != "inf" {
            text.number(line, place + 1, head, cell)?;
        }
    }
    text.check_label(line, &last, block.absolute.iter().map(|row| row.target.as_str()))?;
    let rows = if part == Part::Absolute { &mut block.absolute } else { &mut block.relative };
    if rows.iter().any(|other| other.target == last) {
        return Err(text.malformed(line, format!("`{last}` is already in this block")));
    }
    rows.push(MetRow { line, target: last, cells });
    Ok(())
}

/// Compares ratios with the absolute values of their block.
pub fn check_met(text: &Text, block: &MetBlock, published: &mut Published) {
    let Some(baseline) = block.absolute.first() else { return };
    let cells = block.relative.len() * block.heads.len();
    let mut wrong = 0;
    for relative in &block.relative {
        let (line, target) = (relative.line, &relative.target);
        let Some(absolute) = block.absolute.iter().find(|row| row.target == *target) else {
            let what = format!("`{target}` has a ratio but no absolute values");
            published.mismatch(text.path(), line, what);
            wrong += 1;
            continue;
        };
        for (place, head) in block.heads.iter().enumerate() {
            let values = [&absolute.cells[place], &baseline.cells[place]].map(|cell| number(cell));
            let [Some(value), Some(of_baseline)] = values else { continue };
            let printed = &relative.cells[place];
            let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
            let what = format_args!("{head} of {target} relative to {}", baseline.target);
            wrong += usize::from(!published.follows(&ratio, what));
        }
    }
    published.cells.keep(text.path(), Kept::Compared, cells);
    let agree = cells.saturating_sub(wrong);
    published.check("ratios of hardware metrics from absolute values", agree, cells);
}

// Reads `sb.met` files, which published scripts compute from vmstat, iostat and a rate; and
// computes them again.

/// Cells of an sb.met file by head, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SbMet {
    /// The block of iostat: `samp r/s rMB/s w/s wMB/s r/o rKB/o wKB/o o/s`.
    pub io: Row,
    /// The block of vmstat: `samp cs/s cpu/s cs/o cpu/o`.
    pub vm: Row,
    /// Line numbers of the cells of both blocks, from 1; 0 for a missing block.
    pub lines: [usize; 2],
}

impl SbMet {
    /// A cell as a number.
    pub fn value(&self, head: &str) -> Option<f64> {
        let cells = self.io.iter().skip(1).chain(self.vm.iter().skip(1));
        cells.filter(|(name, _)| name == head).find_map(|(_, cell)| number(cell))
    }

    /// The rate that all values were divided by, as printed.
    pub fn rate(&self) -> Option<&str> {
        self.io.iter().find(|(name, _)| name == "o/s").map(|(_, cell)| cell.as_str())
    }
}

/// Heads of the block of iostat in order.
const IO_HEADS: [&str; 9] =
    ["samp", "r/s", "rMB/s", "w/s", "wMB/s", "r/o", "rKB/o", "wKB/o", "o/s"];
const VM_HEADS: [&str; 5] = ["samp", "cs/s", "cpu/s", "cs/o", "cpu/o"];

/// True for a head of these blocks.
pub fn is_head(head: &str) -> bool {
    IO_HEADS.contains(&head) || VM_HEADS.contains(&head)
}

/// Reads a file: per block a line of heads that begins with `samp`, then a line of cells.
///
/// # Errors
///
/// A line is neither, or the file lacks both blocks.
pub fn parse_sb_met(text: &Text) -> Result<SbMet, ImportError> {
    let mut met = SbMet::default();
    let mut heads: Option<Vec<&str>> = None;
    for (line, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.is_empty() || (heads.is_none() && cells[0].starts_with("iostat,")) {
            continue;
        }
        match heads.take() {
            None if cells[0] == "samp" => heads = Some(cells),
            None => {
                return Err(text.malformed(line, "expected a header that begins with samp"));
            }
            Some(names) => {
                let of_vmstat = names.contains(&"cs/s");
                met.lines[usize::from(of_vmstat)] = line;
                let block = if of_vmstat { &mut met.vm } else { &mut met.io };
                *block = text.numbers_by_head(line, &names, &cells)?;
            }
        }
    }
    if met.io.is_empty() && met.vm.is_empty() || heads.is_some() {
        return Err(text.cut_short("the numbers of both blocks"));
    }
    Ok(met)
}

/// The block of iostat as the published script prints it, from means, number of lines and the rate
/// as text. `None` unless the rate is positive.
pub fn io_block(mean: &Iostat, lines: usize, rate: &str) -> Option<Row> {
    let ops = number(rate).filter(|ops| *ops > 0.0)?;
    let cells = [
        lines.to_string(),
        format!("{:.1}", mean.reads),
        format!("{:.1}", mean.read_kb / 1024.0),
        format!("{:.1}", mean.writes),
        format!("{:.1}", mean.write_kb / 1024.0),
        format!("{:.3}", mean.reads / ops),
        format!("{:.3}", mean.read_kb / ops),
        format!("{:.3}", mean.write_kb / ops),
        rate.to_owned(),
    ];
    Some(IO_HEADS.iter().map(|head| (*head).to_owned()).zip(cells).collect())
}

/// The block of vmstat as the published script prints it.
pub fn vm_block(mean: &Vmstat, samples: usize, rate: &str) -> Option<Row> {
    let ops = number(rate).filter(|ops| *ops > 0.0)?;
    let cpu = mean.us + mean.sy;
    let cells = [
        samples.to_string(),
        format!("{:.0}", mean.cs),
        format!("{cpu:.1}"),
        format!("{:.3}", mean.cs / ops),
        format!("{:.6}", cpu / ops),
    ];
    Some(VM_HEADS.iter().map(|head| (*head).to_owned()).zip(cells).collect())
}

/// Cells in which two blocks differ: head, published, computed.
pub fn differences(
    published: &[(String, String)],
    again: &[(String, String)],
) -> Vec<(String, String, String)> {
    let find = |head: &str| published.iter().find(|(name, _)| name == head);
    let pairs = again.iter().filter_map(|(head, cell)| Some((head, cell, &find(head)?.1)));
    let differing = pairs.filter(|(_, again, published)| again != published);
    differing
        .map(|(head, again, published)| (head.clone(), published.clone(), again.clone()))
        .collect()
}

#[cfg(test)]
mod met_tables_tests {
    use std::path::Path;

    use super::*;
    use crate::format::Notice;

    /// The published rows of a scan; its ratios show every convention.
    const MET: &str = "sb.met.scan.range100.pk1.dop1\n--- absolute\n\
        cpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms\n\
        0.222553\t2.534\t0\t0.001\t0.035\t55\tx.my8028\n\
        0.285792\t7.622\t0\t0\t0.041\t43\tx.my8040\n\
        --- relative to first result\n\
        1.28\t\t3.01\t1\t0.00\t1.17\t0.78\tx.my8040\n\n";

    fn of(text: &str) -> Result<Vec<MetBlock>, ImportError> {
        parse_met(&Text::of(Path::new("o.met"), text))
    }

    fn contradictions(block: &MetBlock) -> Vec<Notice> {
        let mut published = Published::default();
        check_met(&Text::of(Path::new("o.met"), ""), block, &mut published);
        published.notices
    }

    #[test]
    fn ratios_follow_from_the_absolute_values() {
        let blocks = of(MET).unwrap();
        assert_eq!((blocks.len(), blocks[0].name.clients), (1, Some(1)));
        assert_eq!(blocks[0].absolute[1].cells, ["0.285792", "7.622", "0", "0", "0.041", "43"]);
        assert_eq!(contradictions(&blocks[0]), []);
        let wrong = of(&MET.replace("3.01", "3.02")).unwrap();
        let found = contradictions(&wrong[0]);
        assert_eq!((found.len(), found[0].line), (1, Some(7)));
        assert!(found[0].text.contains("cs/o of x.my8040"), "{found:?}");
    }

    #[test]
    fn two_numbers_of_clients_are_two_targets() {
        let pair = "sb.met.scan.range100.pk1.dop1\nbase1 sb.met.scan.range100.pk1.dop1 and base2 \
            sb.met.scan.range100.pk1.dop48\n--- absolute\ncpu/o\t\tcs/o\to/s\tdbms\n\
            0.000716\t0.081\t2922\tpg180_1u\n0.033489\t0.135\t2836\tpg180_48u\n\
            --- relative to first result\n46.77\t\t1.67\t0.97\tpg180_48u\n\n";
        assert!(is_met(&Text::of(Path::new("o.met"), pair)));
        let blocks = of(pair).unwrap();
        assert_eq!((blocks.len(), blocks[0].name.clients), (1, None));
        assert_eq!(blocks[0].absolute[1].target, "pg180_48u");
        assert_eq!(contradictions(&blocks[0]), []);
    }

    #[test]
    fn older_heads_go_by_their_names() {
        let old = "sb.met.x.range1.pk1.dop1\n--- absolute\ncpu/o\t\trKB/o\twKB/o\to/s\tdbms\n\
            0.5\t0.000\t1.0\t10\tx.a\n";
        assert_eq!(of(old).unwrap()[0].heads, ["cpu/o", "rKB/o", "wKB/o", "o/s"]);
    }

    #[test]
    fn faults_name_the_line() {
        let check_met = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check_met("1\t2\n", "line 1: expected the file name");
        check_met(&MET.replace("\t43\t", "\t"), "line 5: 5 cells for 6 columns");
        check_met(
            &MET.replace("7.622", "many"),
            "line 5, column 2: `many` under `cs/o` is not a number",
        );
        check_met(
            &MET.replace("7.622", "nan"),
            "line 5, column 2: `nan` under `cs/o` is not a measured number",
        );
        check_met(
            &MET.replace("7.622", "-7.6"),
            "line 5, column 2: `-7.6` under `cs/o` is below zero",
        );
        check_met(&MET.replace("--- absolute", "--- base1"), "line 2: `--- base1`");
        check_met("sb.met.scan.range100.pk1.dop1\n", "line 1: a block without absolute values");
        let heads = "cpu/o\t\tcs/o\to/s\tdbms\n1.28\t";
        let differs = "line 7: the header differs from that of the values above";
        check_met(&MET.replace("1.28\t", heads), differs);
        check_met("", "line 1: the file ends here");
    }
}

#[cfg(test)]
mod sb_met_tests {
    use std::path::Path;

    use super::*;

    const FILE: &str = "iostat, vmstat normalized by operation rate\r\n\
        samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\r\n\
        2\t10.0\t0.1\t4.0\t0.0\t0.020\t0.200\t0.100\t500.00\r\n\
        \r\n\
        samp\tcs/s\tcpu/s\tcs/o\tcpu/o\r\n\
        3\t1000\t25.0\t2.000\t0.050000\r\n";

    #[test]
    fn a_file_is_read_and_made_again() {
        let met = parse_sb_met(&Text::of(Path::new("sb.met.x"), FILE)).unwrap();
        assert_eq!(met.rate(), Some("500.00"));
        assert_eq!(met.value("cpu/o"), Some(0.05));
        let io = Iostat {
            reads: 10.0,
            read_kb: 100.0,
            writes: 4.0,
            write_kb: 50.0,
            ..Iostat::default()
        };
        let vm = Vmstat { cs: 1000.0, us: 20.0, sy: 5.0, ..Vmstat::default() };
        assert_eq!(io_block(&io, 2, "500.00").unwrap().len(), 9);
        let again = io_block(&io, 2, "500.00").unwrap();
        assert_eq!(differences(&met.io, &again), [] as [(String, String, String); 0]);
        assert_eq!(vm_block(&vm, 3, "500.00").unwrap(), met.vm);
        let other = Vmstat { cs: 1100.0, ..vm };
        let differing = differences(&met.vm, &vm_block(&other, 3, "500.00").unwrap());
        let heads: Vec<&str> = differing.iter().map(|(head, _, _)| head.as_str()).collect();
        assert_eq!(heads, ["cs/s", "cs/o"]);
        assert_eq!(vm_block(&vm, 3, "0"), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault =
                parse_sb_met(&Text::of(Path::new("sb.met.x"), text)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("samp\tr/s\n1\n", "line 2: 1 cell for 2 columns");
        check("samp\tr/s\n1\tx\n", "line 2, column 2: `x` under `r/s` is not a number");
        check("nothing\n", "line 1: expected a header");
        check("samp\tr/s\n", "line 1: the file ends here");
        check("", "line 1: the file ends here");
    }
}
