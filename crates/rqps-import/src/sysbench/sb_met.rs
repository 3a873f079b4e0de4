//! Reads `sb.met` files, which published scripts compute from vmstat, iostat and a rate; and
//! computes them again.

use crate::ImportError;
use crate::iostat::Iostat;
use crate::number::number;
use crate::text::{Row, Text};
use crate::vmstat::Vmstat;

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
pub fn parse(text: &Text) -> Result<SbMet, ImportError> {
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
mod tests {
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
        let met = parse(&Text::of(Path::new("sb.met.x"), FILE)).unwrap();
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
            let fault = parse(&Text::of(Path::new("sb.met.x"), text)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("samp\tr/s\n1\n", "line 2: 1 cell for 2 columns");
        check("samp\tr/s\n1\tx\n", "line 2, column 2: `x` under `r/s` is not a number");
        check("nothing\n", "line 1: expected a header");
        check("samp\tr/s\n", "line 1: the file ends here");
        check("", "line 1: the file ends here");
    }
}
