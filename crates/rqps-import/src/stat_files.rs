//! Outputs of `iostat` and `vmstat`.

use std::collections::BTreeMap;

use super::cells::Sampled;
use super::format::ImportError;
use super::text::Text;

// `iostat -kx N`: columns by name, old and new forms, each device by itself.

/// One line of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Iostat {
    /// Reads per second.
    pub reads: f64,
    /// KiB read per second.
    pub read_kb: f64,
    /// Writes per second.
    pub writes: f64,
    /// KiB written per second.
    pub write_kb: f64,
    /// Mean wait of a read, ms; `None` in forms that do not tell it apart.
    pub read_wait: Option<f64>,
    /// Mean size of a read, KiB.
    pub read_size: Option<f64>,
    /// Mean wait of a write, ms.
    pub write_wait: Option<f64>,
    /// Mean size of a write, KiB.
    pub write_size: Option<f64>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IostatFile {
    /// Device → its lines in order.
    pub devices: BTreeMap<String, Vec<Iostat>>,
    /// The account of the cells.
    pub sampled: Sampled,
    /// CPUs of the host, from the first line.
    pub cpus: Option<u32>,
    /// Kernel of the host, from the first line.
    pub kernel: Option<String>,
}

impl IostatFile {
    /// Plain means over the lines of all devices whose name holds `device`, and how many lines
    /// there are: what the published scripts do. `None` if there is no such device.
    pub fn mean(&self, device: &str) -> Option<(Iostat, usize)> {
        let named = self.devices.iter().filter(|(name, _)| name.contains(device));
        let lines: Vec<&Iostat> = named.flat_map(|(_, lines)| lines).collect();
        let n = lines.len();
        let of =
            |get: fn(&Iostat) -> f64| lines.iter().map(|line| get(line)).sum::<f64>() / n as f64;
        let optional = |get: fn(&Iostat) -> Option<f64>| {
            let values: Vec<f64> = lines.iter().filter_map(|line| get(line)).collect();
            (values.len() == n).then(|| values.iter().sum::<f64>() / n as f64)
        };
        (n > 0).then(|| {
            let mean = Iostat {
                reads: of(|line| line.reads),
                read_kb: of(|line| line.read_kb),
                writes: of(|line| line.writes),
                write_kb: of(|line| line.write_kb),
                read_wait: optional(|line| line.read_wait),
                read_size: optional(|line| line.read_size),
                write_wait: optional(|line| line.write_wait),
                write_size: optional(|line| line.write_size),
            };
            (mean, n)
        })
    }
}

/// Columns that are read.
const USED: [&str; 10] = [
    "r/s", "rkB/s", "rMB/s", "w/s", "wkB/s", "wMB/s", "r_await", "rareq-sz", "w_await", "wareq-sz",
];

/// Reads a file. The CPU blocks are passed over; every other line belongs to a device.
///
/// # Errors
/// A device line before a line of heads, one with another number of cells than its heads, a cell
/// that is not a number, heads without rates, and a file without a device.
pub fn parse_iostat(text: &Text) -> Result<IostatFile, ImportError> {
    let mut file = IostatFile::default();
    let mut heads: Vec<String> = Vec::new();
    let mut in_cpu_block = false;
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() {
            in_cpu_block = false;
        } else if trimmed.starts_with("Linux ") {
            (file.cpus, file.kernel) = host_of(trimmed);
        } else if trimmed.starts_with("avg-cpu") {
            in_cpu_block = true;
        } else if trimmed.starts_with("Device") {
            heads = trimmed.split_whitespace().map(str::to_owned).collect();
            // The two units of iostat: -k and -m.
            for kinds in [["r/s", "r/s"], ["w/s", "w/s"], ["rkB/s", "rMB/s"], ["wkB/s", "wMB/s"]] {
                if !heads.iter().any(|head| kinds.contains(&head.as_str())) {
                    let why = format!("the header has no column `{}`", kinds[0]);
                    return Err(text.malformed(line, why));
                }
            }
            in_cpu_block = false;
        } else if in_cpu_block || is_time(trimmed) {
            continue;
        } else if heads.is_empty() {
            return Err(text.malformed(line, "a line before the header (`Device r/s …`)"));
        } else {
            let (device, sample) = sample(text, line, trimmed, &heads)?;
            file.sampled.line(&heads[1..], &USED);
            file.devices.entry(device).or_default().push(sample);
        }
    }
    if file.devices.is_empty() {
        Err(text.cut_short("the first device of iostat"))
    } else {
        Ok(file)
    }
}

fn sample(
    text: &Text,
    line: usize,
    row: &str,
    heads: &[String],
) -> Result<(String, Iostat), ImportError> {
    let cells: Vec<&str> = row.split_whitespace().collect();
    text.check_width(line, cells.len(), heads.len())?;
    let find = |name: &str| match heads.iter().position(|head| head == name) {
        None => Ok(None),
        // Some locales write a decimal comma.
        Some(place) => {
            let cell = cells[place].replace(',', ".");
            text.number(line, place + 1, name, &cell).map(Some)
        }
    };
    let kib = |kb: &str, mb: &str| match find(kb)? {
        Some(value) => Ok::<f64, ImportError>(value),
        None => Ok(find(mb)?.unwrap_or_default() * 1024.0),
    };
    let sample = Iostat {
        reads: find("r/s")?.unwrap_or_default(),
        read_kb: kib("rkB/s", "rMB/s")?,
        writes: find("w/s")?.unwrap_or_default(),
        write_kb: kib("wkB/s", "wMB/s")?,
        read_wait: find("r_await")?,
        read_size: find("rareq-sz")?,
        write_wait: find("w_await")?,
        write_size: find("wareq-sz")?,
    };
    Ok((cells[0].trim_end_matches(':').to_owned(), sample))
}

/// `Linux 5.15.0-119-generic (name) 03/05/2025 _x86_64_ (96 CPU)`.
fn host_of(line: &str) -> (Option<u32>, Option<String>) {
    let cpus = line.rsplit_once('(').and_then(|(_, rest)| rest.split_whitespace().next());
    (cpus.and_then(|cpus| cpus.parse().ok()), line.split_whitespace().nth(1).map(str::to_owned))
}

/// The line that `iostat -t` prints before each block.
fn is_time(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
        && line.contains(':')
        && line.contains(['/', '-'])
}

// `vmstat N`: columns by name, the sample since boot and repeated heads told apart.

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
const VMSTAT_USED: [&str; 6] = ["cs", "us", "sy", "id", "wa", "st"];

/// Reads a file. Columns are found by the names in the line that holds `swpd`; lines with a time
/// stamp after the numbers (`vmstat -t`) are fine.
///
/// # Errors
/// A line that is neither head nor numbers, numbers before any head, a head without `cs`, `us` or
/// `sy`, and a file without a sample.
pub fn parse_vmstat(text: &Text) -> Result<VmstatFile, ImportError> {
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
        file.sampled.line(&heads, &VMSTAT_USED);
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
mod iostat_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<IostatFile, ImportError> {
        parse_iostat(&Text::of(Path::new("o.io"), text))
    }

    /// The same block in the forms of three releases.
    const FORMS: [&str; 4] = [
        "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz await  %util\n\
         md2  0 0 2.00 4.00 8.00 64.00 1 1 1\n",
        "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s  %util\n\
         md2 2.00 4.00 8.00 64.00 0 1\n",
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz  w/s     wkB/s  %util\n\
         md2 2.00 8.00 0 0 0.5 4.0 4.00 64.00 1\n",
        "Device   r/s  rMB/s  w/s  wMB/s\nmd2 2,00 0,0078125 4,00 0,0625\n",
    ];

    #[test]
    fn all_releases_tell_the_same() {
        for form in FORMS {
            let file =
                of(&format!("Linux 6.1 (h) 01/01/2025 _x86_64_ (96 CPU)\n\n{form}\n")).unwrap();
            let (mean, n) = file.mean("md").unwrap();
            assert_eq!((mean.reads, mean.read_kb), (2.0, 8.0), "{form}");
            assert_eq!((mean.writes, mean.write_kb, n), (4.0, 64.0, 1), "{form}");
            assert_eq!(file.cpus, Some(96));
            assert_eq!(file.kernel.as_deref(), Some("6.1"));
        }
    }

    #[test]
    fn cpu_blocks_and_times_are_passed_over() {
        let block = "03/05/25 10:00:01\navg-cpu:  %user %nice\n  25.70 0.00\n\n";
        let text = format!("{block}{}\n{block}{}", FORMS[2], FORMS[2]);
        let file = of(&text).unwrap();
        assert_eq!(file.devices["md2"].len(), 2);
        assert_eq!(file.mean("md2").unwrap().0.read_wait, Some(0.5));
        assert_eq!(file.mean("sda"), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("md2 1 2\n", "line 1: a line before the header");
        check("Device r/s w/s rkB/s wkB/s\nmd2 1 2\n", "line 2: 3 cells for 5 columns");
        check("Device r/s w/s rkB/s wkB/s\nmd2 1 2 x 3\n", "line 2, column 4: `x` under `rkB/s`");
        check("Device r/s rkB/s wkB/s\n", "line 1: the header has no column `w/s`");
        check("\n", "line 1: the file ends here");
    }
}

#[cfg(test)]
mod vmstat_tests {
    use std::path::Path;

    use super::*;

    const HEAD: &str = "procs ---memory--- --cpu--\n r  b   swpd   free   in   cs us sy id wa st\n";

    fn of(text: &str) -> Result<VmstatFile, ImportError> {
        parse_vmstat(&Text::of(Path::new("o.vm"), text))
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
