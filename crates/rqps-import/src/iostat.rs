//! `iostat -kx N`: columns by name, old and new forms, each device by itself.

use std::collections::BTreeMap;

use super::ImportError;
use super::cells::Sampled;
use super::text::Text;

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
pub fn parse(text: &Text) -> Result<IostatFile, ImportError> {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<IostatFile, ImportError> {
        parse(&Text::of(Path::new("o.io"), text))
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
