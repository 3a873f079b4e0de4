//! Shapes of load by name, and single settings of the form `key=value`.

use crate::bench::Order;
use crate::domain::benchmark::{Idle, Pace, Placement, Workload};

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
        }
    }
}

/// Together while every client can have a CPU of its own, else left to the operating system.
pub fn default_placement(clients: u32, cpus: u32) -> Placement {
    if clients <= cpus { Placement::Together } else { Placement::Os }
}

/// A shape of the published work: CPU-bound, cached by the DBMS, waits as long as published.
const PUBLISHED: Preset = Preset {
    name: "full",
    aliases: &[],
    about: "published lengths on 50M rows, 1 client; about 8 hours a run",
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

/// For a first look: two targets, four blocks, about a quarter of an hour.
pub const QUICK: Preset = Preset {
    name: "quick",
    about: "200k rows, 2 s a step: about 2 minutes a run",
    rows: 200_000,
    read_seconds: 2.0,
    write_seconds: 2.0,
    warmup_seconds: 1.0,
    settle_scale: 0.02,
    ..PUBLISHED
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
    ..PUBLISHED
};

/// All presets, in the order of listings.
pub const ALL: &[&Preset] = &[&QUICK, &STANDARD, &PUBLISHED];
