//! `vmstat N`: columns by name, the sample since boot and repeated heads told apart.

use super::ImportError;
use super::cells::Sampled;
use super::text::Text;

/// One line of numbers, in the units of vmstat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vmstat {
    /// Context switches per second.
    pub cs: f64,
    /// Per cent of all CPUs: user and nice.
    pub us: f64,
    /// System, irq and softirq.
    pub sy: f64,
    /// Idle.
    pub id: f64,
    /// Waiting for I/O.
    pub wa: f64,
    /// Taken by the hypervisor; 0 where there is no such column.
    pub st: f64,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmstatFile {
    /// All lines of numbers. The first tells of the time since boot.
    pub samples: Vec<Vmstat>,
    /// The account of the cells.
    pub sampled: Sampled,
    /// `procs` lines: one at the start, then again every 20 or so samples.
    pub banners: usize,
}

impl VmstatFile {
    /// Means without the sample since boot, and how many samples they rest on. `None` if there is
    /// no other.
    pub fn mean(&self) -> Option<(Vmstat, usize)> {
        let samples = self.samples.get(1..).unwrap_or_default();
        mean(samples, samples.len()).map(|mean| (mean, samples.len()))
    }

    /// Means as the published scripts have them, and their divisor: the sample since boot counts,
    /// and so does every repeated `procs` line, as a sample of zeros. Some 4.5 % too low.
    pub fn compat_mean(&self) -> Option<(Vmstat, usize)> {
        let divisor = self.samples.len() + self.banners.saturating_sub(1);
        mean(&self.samples, divisor).map(|mean| (mean, divisor))
    }
}

fn mean(samples: &[Vmstat], divisor: usize) -> Option<Vmstat> {
    let of = |get: fn(&Vmstat) -> f64| samples.iter().map(get).sum::<f64>() / divisor as f64;
    (divisor > 0).then(|| Vmstat {
        cs: of(|s| s.cs),
        us: of(|s| s.us),
        sy: of(|s| s.sy),
        id: of(|s| s.id),
        wa: of(|s| s.wa),
        st: of(|s| s.st),
    })
}

/// Columns that are read.
const USED: [&str; 6] = ["cs", "us", "sy", "id", "wa", "st"];

/// Reads a file. Columns are found by the names in the line that holds `swpd`; lines with a time
/// stamp after the numbers (`vmstat -t`) are fine.
///
/// # Errors
/// A line that is neither head nor numbers, numbers before any head, a head without `cs`, `us` or
/// `sy`, and a file without a sample.
pub fn parse(text: &Text) -> Result<VmstatFile, ImportError> {
    let mut file = VmstatFile::default();
    let mut heads: Vec<String> = Vec::new();
    for (line, row) in text.lines() {
        if row.trim().is_empty() {
            continue;
        }
        // `vmstat -w` writes `--procs--`.
        if row.trim_start().trim_start_matches('-').starts_with("procs") {
            file.banners += 1;
            continue;
        }
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.contains(&"swpd") {
            heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
            for name in ["cs", "us", "sy"] {
                if !heads.iter().any(|head| head == name) {
                    return Err(text.malformed(line, format!("the header has no column `{name}`")));
                }
            }
            continue;
        }
        if heads.is_empty() {
            return Err(text.malformed(line, "numbers before the header (`r b swpd …`)"));
        }
        // A time stamp may follow.
        text.check_width(line, cells.len().min(heads.len()), heads.len())?;
        let value = |name: &str| match heads.iter().position(|head| head == name) {
            Some(place) => text.number(line, place + 1, name, cells[place]),
            None => Ok(0.0),
        };
        file.sampled.line(&heads, &USED);
        file.samples.push(Vmstat {
            cs: value("cs")?,
            us: value("us")?,
            sy: value("sy")?,
            id: value("id")?,
            wa: value("wa")?,
            st: value("st")?,
        });
    }
    if file.samples.is_empty() {
        return Err(text.cut_short("the first sample of vmstat"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const HEAD: &str = "procs ---memory--- --cpu--\n r  b   swpd   free   in   cs us sy id wa st\n";

    fn of(text: &str) -> Result<VmstatFile, ImportError> {
        parse(&Text::of(Path::new("o.vm"), text))
    }

    #[test]
    fn wide_output_has_dashes_around_its_banner() {
        let wide = "--procs-- -----------------------memory---------------------- -cpu-\n   r    b \
                    swpd free in cs us sy id wa st\n 1 0 0 99 5 7 40 10 50 0 0\n";
        let file = of(wide).unwrap();
        assert_eq!((file.samples.len(), file.banners, file.samples[0].cs), (1, 1, 7.0));
    }

    #[test]
    fn the_banner_counts_only_for_the_published_means() {
        let sample = |cs: u32| format!(" 1  0      0  99   5 {cs} 40 10 50  0  0\n");
        let text = format!("{HEAD}{}{}{HEAD}{}", sample(7), sample(100), sample(200));
        let file = of(&text).unwrap();
        let (mean, samples) = file.mean().unwrap();
        assert_eq!((mean.cs, mean.us + mean.sy, samples), (150.0, 50.0, 2));
        // (7 + 100 + 200) / (3 samples + 1 repeated banner)
        let (compat, divisor) = file.compat_mean().unwrap();
        assert_eq!((compat.cs, compat.us + compat.sy, divisor), (76.75, 37.5, 4));
    }

    #[test]
    fn columns_go_by_their_names() {
        let text = "procs\n cs us sy swpd id wa\n9 1 2 0 90 7 2025-03-05 10:00:00\n";
        let file = of(text).unwrap();
        let expected = Vmstat { cs: 9.0, us: 1.0, sy: 2.0, id: 90.0, wa: 7.0, st: 0.0 };
        assert_eq!(file.samples, [expected]);
        assert_eq!(file.mean(), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1 2 3\n", "line 1: numbers before");
        check(&format!("{HEAD}1 2\n"), "line 3: 2 cells for 11 columns");
        check(&format!("{HEAD}1 0 0 9 5 x 40 10 50 0 0\n"), "line 3, column 6: `x` under `cs`");
        check("procs\n r b swpd us sy\n", "no column `cs`");
        check(HEAD, "line 2: the file ends here");
    }
}
