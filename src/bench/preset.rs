//! Shapes of load by name, and single settings of the form `key=value`.

use std::fmt;

use crate::bench::Order;
use crate::domain::benchmark::{Idle, Pace, Placement, Shape, Workload};

/// A named shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// What is said after `--preset`.
    pub name: &'static str,
    /// Other names of the same shape.
    pub aliases: &'static [&'static str],
    /// One line for listings.
    pub about: &'static str,
    /// The order of steps that goes with it.
    pub order: Order,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table.
    pub rows: u64,
    /// Concurrent connections.
    pub clients: u32,
    /// Measured seconds of read steps.
    pub read_seconds: f64,
    /// Measured seconds of write steps.
    pub write_seconds: f64,
    /// Seconds before each window.
    pub warmup_seconds: f64,
    /// Share of the published waits after loading and writing.
    pub settle_scale: f64,
    /// Memory of the DBMS's own cache; `None` sizes it from the data.
    pub cache_bytes: Option<u64>,
}

impl Preset {
    /// The preset of that name or alias.
    pub fn named(name: &str) -> Option<&'static Preset> {
        ALL.iter().copied().find(|preset| preset.name == name || preset.aliases.contains(&name))
    }

    /// The shape as a workload: closed pace, CPUs kept awake. Its placement is
    /// [`default_placement`] of one CPU; correct it when the number of CPUs is known.
    pub fn workload(&self) -> Workload {
        Workload {
            tables: self.tables,
            rows: self.rows,
            clients: self.clients,
            read_seconds: self.read_seconds,
            write_seconds: self.write_seconds,
            warmup_seconds: self.warmup_seconds,
            settle_scale: self.settle_scale,
            pace: Pace::Closed,
            placement: default_placement(self.clients, 1),
            idle: Idle::Awake,
            cache_bytes: self.cache_bytes,
            shape: Shape::Sysbench,
        }
    }
}

/// Together while every client can have a CPU of its own, else left to the operating system.
pub fn default_placement(clients: u32, cpus: u32) -> Placement {
    if clients <= cpus { Placement::Together } else { Placement::Os }
}

/// The published way: cached by the DBMS, waits as long as published.
pub const FULL: Preset = Preset {
    name: "full",
    aliases: &[],
    about: "50M rows, 600 s a read step and 900 s a write step: about 7 hours a run",
    order: Order::Abbreviated,
    tables: 1,
    rows: 50_000_000,
    clients: 1,
    read_seconds: 600.0,
    write_seconds: 900.0,
    warmup_seconds: 5.0,
    settle_scale: 1.0,
    cache_bytes: None,
};

/// For a first look: two targets and four blocks in about a quarter of an hour.
pub const QUICK: Preset = Preset {
    name: "quick",
    about: "200k rows, 2 s a step: about 2 minutes a run",
    rows: 200_000,
    read_seconds: 2.0,
    write_seconds: 2.0,
    warmup_seconds: 1.0,
    settle_scale: 0.02,
    ..FULL
};

/// For a decision in an evening.
pub const STANDARD: Preset = Preset {
    name: "standard",
    about: "2M rows, 10 s a step: about 8 minutes a run",
    rows: 2_000_000,
    read_seconds: 10.0,
    write_seconds: 10.0,
    warmup_seconds: 2.0,
    settle_scale: 0.1,
    ..FULL
};

/// Intel NUC, December 2020 and January 2021.
const NUC: Preset = Preset {
    name: "nuc",
    about: "published on 4 cores, 16 GB (2020-21): 1 x 10M rows, 180 s, all 42 steps",
    order: Order::Full,
    rows: 10_000_000,
    read_seconds: 180.0,
    write_seconds: 180.0,
    ..FULL
};

/// c2-standard-60, April 2023.
const C2S60: Preset = Preset {
    name: "c2s60",
    aliases: &["c2-standard-60"],
    about: "published on 30 cores, 240 GB (2023): 4 x 50M rows, 20 clients, 600 s, all 42 steps",
    order: Order::Full,
    tables: 4,
    clients: 20,
    write_seconds: 600.0,
    ..FULL
};

/// The variant of [`C2S60`] whose data are cached by the operating system only.
const C2S60_4G: Preset = Preset {
    name: "c2s60-4g",
    aliases: &["c2-standard-60-4g"],
    about: "as c2s60 with 4 GB for the DBMS, so that the operating system caches",
    cache_bytes: Some(4 << 30),
    ..C2S60
};

const C8R16: Preset = Preset {
    name: "c8r16",
    aliases: &["bee"],
    about: "published on 8 cores, 16 GB (2024-25): 1 x 30M rows, 1 client, 300/600 s",
    rows: 30_000_000,
    read_seconds: 300.0,
    write_seconds: 600.0,
    ..FULL
};

const C8R32: Preset = Preset {
    name: "c8r32",
    aliases: &["pn53"],
    about: "published on 8 cores, 32 GB (2024-26): 1 x 50M rows, 1 client, 600/900 s",
    ..FULL
};

const C24R64: Preset = Preset {
    name: "c24r64",
    aliases: &["socket2"],
    about: "published on 2 x 12 cores, 64 GB (2024-25): 8 x 10M rows, 16 clients, 600/900 s",
    tables: 8,
    rows: 10_000_000,
    clients: 16,
    ..FULL
};

const C32R128: Preset = Preset {
    name: "c32r128",
    aliases: &["dell32"],
    about: "published on 32 cores, 128 GB (2024-25): 8 x 10M rows, 24 clients, 600/900 s",
    clients: 24,
    ..C24R64
};

/// Its published windows are 630 and 930 s, 600 and 900 by name.
const HETZ48: Preset = Preset {
    name: "hetz48",
    aliases: &["ax162s", "ax162-s"],
    about: "published on 48 cores, 128 GB (2024-26): 8 x 10M rows, 40 clients, 630/930 s",
    clients: 40,
    read_seconds: 630.0,
    write_seconds: 930.0,
    ..C24R64
};

const GCP32: Preset = Preset {
    name: "gcp32",
    aliases: &["c4-standard-32"],
    about: "published on 16 cores, 128 GB (2025): 8 x 10M rows, 12 clients, 300/600 s",
    clients: 12,
    read_seconds: 300.0,
    write_seconds: 600.0,
    ..C24R64
};

/// All presets, in the order of listings.
pub const ALL: &[&Preset] = &[
    &QUICK, &STANDARD, &FULL, &NUC, &C2S60, &C2S60_4G, &C8R16, &C8R32, &C24R64, &C32R128, &HETZ48,
    &GCP32,
];

/// Why a setting is refused. Every text says what was being set and how to put it right.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    /// No `=`.
    #[error("set `{text}`: there is no `=`; write key=value, for example rows=1M")]
    NoEquals {
        /// What was given.
        text: String,
    },
    /// No such key.
    #[error("set `{key}`: there is no such setting; there are {}", Keys)]
    UnknownKey {
        /// What was given.
        key: String,
    },
    /// No such key of a benchmark that has keys of its own.
    #[error("set `{key}`: the benchmark `{benchmark}` has no such setting; there are {known}")]
    UnknownKeyOf {
        /// What was given.
        key: String,
        /// The benchmark.
        benchmark: &'static str,
        /// Its keys.
        known: String,
    },
    /// The value cannot be read, or is outside its limits.
    #[error("set {key} to `{value}`: {why}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        why: String,
    },
}

/// A setting of a workload.
pub struct Setting {
    /// What stands before the `=`.
    pub key: &'static str,
    /// What may stand after it, and what it does.
    pub about: &'static str,
    apply: fn(&mut Workload, &str) -> Result<(), String>,
}

/// All settings, in the order of listings.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "tables",
        about: "number of tables, 1 to 10000",
        apply: |workload, value| {
            workload.tables = count(value, 1, 10_000)? as u32;
            Ok(())
        },
    },
    Setting {
        key: "rows",
        about: "rows per table, 200 to 2G; K, M and G are powers of 1000",
        apply: |workload, value| {
            // hot-points reads the ids up to rows/2 + 100; ids are 32-bit integers and insert needs
            // some beyond the last row.
            workload.rows = count(value, 200, 2_000_000_000)?;
            Ok(())
        },
    },
    Setting {
        key: "clients",
        about: "concurrent connections, 1 to 10000",
        apply: |workload, value| {
            workload.clients = count(value, 1, 10_000)? as u32;
            Ok(())
        },
    },
    Setting {
        key: "seconds",
        about: "read_seconds and write_seconds at once",
        apply: |workload, value| {
            workload.read_seconds = seconds(value)?;
            workload.write_seconds = workload.read_seconds;
            Ok(())
        },
    },
    Setting {
        key: "read_seconds",
        about: "measured seconds of a read step, 0.1 to 86400",
        apply: |workload, value| {
            workload.read_seconds = seconds(value)?;
            Ok(())
        },
    },
    Setting {
        key: "write_seconds",
        about: "measured seconds of a write step, 0.1 to 86400",
        apply: |workload, value| {
            workload.write_seconds = seconds(value)?;
            Ok(())
        },
    },
    Setting {
        key: "warmup_seconds",
        about: "seconds before each measured window, 0 to 3600",
        apply: |workload, value| {
            workload.warmup_seconds = number(value, 0.0, 3600.0)?;
            Ok(())
        },
    },
    Setting {
        key: "settle_scale",
        about: "share of the published wait after loading and writing, 0 to 10",
        apply: |workload, value| {
            workload.settle_scale = number(value, 0.0, 10.0)?;
            Ok(())
        },
    },
    Setting {
        key: "cache",
        about: "the DBMS's own cache, 8M to 64T in powers of 1024, or auto: from the data",
        apply: |workload, value| {
            workload.cache_bytes = if value == "auto" { None } else { Some(bytes(value)?) };
            Ok(())
        },
    },
    Setting {
        key: "rate",
        about: "events per second of all clients on a Poisson schedule, 0.01 to 100M, or closed",
        apply: |workload, value| {
            workload.pace = match value {
                "closed" => Pace::Closed,
                _ => {
                    let rate = number(value, 0.01, 1e8).map_err(|why| why + ", or closed");
                    Pace::Open { events_per_second: rate? }
                }
            };
            Ok(())
        },
    },
    Setting {
        key: "placement",
        about: "together, apart or os",
        apply: |workload, value| {
            workload.placement = match value {
                "together" => Placement::Together,
                "apart" => Placement::Apart,
                "os" => Placement::Os,
                _ => return Err("it is one of together, apart, os".to_string()),
            };
            Ok(())
        },
    },
    Setting {
        key: "idle",
        about: "awake or os",
        apply: |workload, value| {
            workload.idle = match value {
                "awake" => Idle::Awake,
                "os" => Idle::Os,
                _ => return Err("it is one of awake, os".to_string()),
            };
            Ok(())
        },
    },
];

/// Changes `workload` by one `key=value` (`--set`). Nothing is changed on an error.
///
/// # Errors
///
/// When there is no `=`, the key is unknown, or the value is malformed or outside its limits.
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(SetError::NoEquals { text: assignment.to_string() });
    };
    let (key, value) = (key.trim(), value.trim());
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
        return Err(SetError::UnknownKey { key: key.to_string() });
    };
    let bad = |why| SetError::BadValue { key: setting.key, value: value.to_string(), why };
    (setting.apply)(workload, value).map_err(bad)
}

/// The keys as a list for people.
struct Keys;

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, setting) in SETTINGS.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(setting.key)?;
        }
        Ok(())
    }
}

/// A whole number with `_` between digits and a unit of powers of 1000.
pub(super) fn count(text: &str, low: u64, high: u64) -> Result<u64, String> {
    let wanted = || {
        let example = if high < 1_000_000 { "8" } else { "10M" };
        format!("it is a whole number from {low} to {high}, such as {low} or {example}")
    };
    let (digits, unit) = split_unit(text);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(factor));
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// Bytes with a unit of powers of 1024: `512M`, `4GiB`, `4GB`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || "it is a size from 8M to 64T such as 512M or 4G, or auto".to_string();
    let (digits, unit) = split_unit(text);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(1 << shift));
    value.filter(|value| (8 << 20..=64 << 40).contains(value)).ok_or_else(wanted)
}

/// Seconds of a window.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    number(text, 0.1, 86_400.0)
}

/// A decimal number; infinities and the like are outside any limits.
fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let wanted = || format!("it is a number from {low} to {high}");
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// Digits (with `_`) and what follows them.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

fn whole(digits: &str) -> Option<u64> {
    digits.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(assignment: &str) -> Workload {
        let mut workload = QUICK.workload();
        set(&mut workload, assignment).unwrap();
        workload
    }

    fn check_error(assignment: &str, want: &str) {
        let mut workload = QUICK.workload();
        let error = set(&mut workload, assignment).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert_eq!(workload, QUICK.workload(), "an error changes nothing");
    }

    #[test]
    fn presets_have_the_published_shapes() {
        let check = |name: &str, shape: (u32, u64, u32), seconds: (f64, f64)| {
            let preset = Preset::named(name).unwrap();
            assert_eq!((preset.tables, preset.rows, preset.clients), shape, "{name}");
            assert_eq!((preset.read_seconds, preset.write_seconds), seconds, "{name}");
            assert_eq!((preset.warmup_seconds, preset.settle_scale), (5.0, 1.0), "{name}");
        };
        check("nuc", (1, 10_000_000, 1), (180.0, 180.0));
        check("c2s60", (4, 50_000_000, 20), (600.0, 600.0));
        check("c2s60-4g", (4, 50_000_000, 20), (600.0, 600.0));
        check("c8r16", (1, 30_000_000, 1), (300.0, 600.0));
        check("c8r32", (1, 50_000_000, 1), (600.0, 900.0));
        check("c24r64", (8, 10_000_000, 16), (600.0, 900.0));
        check("c32r128", (8, 10_000_000, 24), (600.0, 900.0));
        check("hetz48", (8, 10_000_000, 40), (630.0, 930.0));
        check("ax162s", (8, 10_000_000, 40), (630.0, 930.0));
        check("gcp32", (8, 10_000_000, 12), (300.0, 600.0));
        assert_eq!(Preset::named("c2s60-4g").unwrap().workload().cache_bytes, Some(4 << 30));
        assert_eq!(Preset::named("nuc").unwrap().order, Order::Full);
        assert_eq!(Preset::named("quick").unwrap().order, Order::Abbreviated);
        assert_eq!(Preset::named("slow"), None);
    }

    #[test]
    fn names_of_presets_are_unique() {
        let mut names: Vec<&str> = Vec::new();
        for preset in ALL {
            names.push(preset.name);
            names.extend(preset.aliases);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn placement_is_together_while_clients_have_a_cpu_each() {
        assert_eq!(default_placement(1, 1), Placement::Together);
        assert_eq!(default_placement(2, 2), Placement::Together);
        assert_eq!(default_placement(3, 2), Placement::Os);
        assert_eq!(QUICK.workload().placement, Placement::Together);
    }

    #[test]
    fn settings_are_read_with_their_units() {
        assert_eq!(after("tables=8").tables, 8);
        assert_eq!(after("rows=10M").rows, 10_000_000);
        assert_eq!(after("rows=1_500k").rows, 1_500_000);
        assert_eq!(after("rows=2000000000").rows, 2_000_000_000);
        assert_eq!(after("clients = 40").clients, 40);
        let both = after("seconds=0.5");
        assert_eq!((both.read_seconds, both.write_seconds), (0.5, 0.5));
        assert_eq!(after("read_seconds=30").read_seconds, 30.0);
        assert_eq!(after("write_seconds=30").write_seconds, 30.0);
        assert_eq!(after("warmup_seconds=0").warmup_seconds, 0.0);
        assert_eq!(after("settle_scale=0").settle_scale, 0.0);
        assert_eq!(after("cache=512M").cache_bytes, Some(512 << 20));
        assert_eq!(after("cache=4 GiB").cache_bytes, Some(4 << 30));
        assert_eq!(after("cache=4gb").cache_bytes, Some(4 << 30));
        assert_eq!(after("cache=16777216").cache_bytes, Some(16 << 20));
        assert_eq!(after("cache=auto").cache_bytes, None);
        assert_eq!(after("rate=closed").pace, Pace::Closed);
        assert_eq!(after("rate=250.5").pace, Pace::Open { events_per_second: 250.5 });
        assert_eq!(after("placement=apart").placement, Placement::Apart);
        assert_eq!(after("idle=os").idle, Idle::Os);
    }

    #[test]
    fn absurd_values_are_refused() {
        let rows = "it is a whole number from 200 to 2000000000, such as 200 or 10M";
        for value in ["0", "199", "-5", "", "1.5M", "3G", "99999999999999999999", "10 MM", "x", "M"]
        {
            check_error(&format!("rows={value}"), &format!("set rows to `{value}`: {rows}"));
        }
        check_error(
            "tables=0",
            "set tables to `0`: it is a whole number from 1 to 10000, such as 1 or 8",
        );
        let seconds = "it is a number from 0.1 to 86400";
        for value in ["0", "-1", "NaN", "inf", "1e9", "", "ten"] {
            check_error(
                &format!("read_seconds={value}"),
                &format!("set read_seconds to `{value}`: {seconds}"),
            );
        }
        let size = "it is a size from 8M to 64T such as 512M or 4G, or auto";
        for value in ["0", "1M", "-4G", "4X", "65T", "4i", "99999999999999T", ""] {
            check_error(&format!("cache={value}"), &format!("set cache to `{value}`: {size}"));
        }
        check_error("rate=0", "set rate to `0`: it is a number from 0.01 to 100000000, or closed");
        check_error("idle=no", "set idle to `no`: it is one of awake, os");
    }

    #[test]
    fn unknown_keys_are_answered_with_the_known() {
        check_error(
            "row=5",
            "set `row`: there is no such setting; there are tables, rows, clients, seconds, \
             read_seconds, write_seconds, warmup_seconds, settle_scale, cache, rate, placement, \
             idle",
        );
        check_error("rows", "set `rows`: there is no `=`; write key=value, for example rows=1M");
    }
}
