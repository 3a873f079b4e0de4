//! Named shapes of the Insert Benchmark, and the defaults of its profiles.

use rqps_driver::workload::preset::{NamedPreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::insert::{InsertShape, Pacing, Profile, QueryKind, QueryStep, RowsPerCommit};

/// A named shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InsertPreset {
    /// The name after `--preset`.
    pub name: &'static str,
    /// Other names of the same shape.
    pub aliases: &'static [&'static str],
    /// One line for lists.
    pub about: &'static str,
    /// Rows per client in l.i0.
    pub rows: u64,
    /// Rows per client in l.i1 and l.i2 together: all in l.i1 in 2021, four fifths since.
    pub more_rows: u64,
    /// Seconds of a query step.
    pub query_seconds: f64,
    /// Concurrent clients.
    pub clients: u32,
    /// Share of the published wait between writing and querying.
    pub settle_scale: f64,
    /// Bytes of the DBMS's own cache; `None` derives them from the data.
    pub cache_bytes: Option<u64>,
}

impl NamedPreset for InsertPreset {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// Default time limit of a step as a multiple of its planned length. A query step that takes more
/// than 1.05 times as long has already missed its write rate.
const STEP_LIMIT: f64 = 4.0;

/// The shape for a first look.
const QUICK: InsertPreset = InsertPreset {
    name: "quick",
    aliases: &[],
    about: "200k rows, then 100k more, 2 s per query step: about half a minute per run",
    rows: 200_000,
    more_rows: 100_000,
    query_seconds: 2.0,
    clients: 1,
    settle_scale: 0.02,
    cache_bytes: None,
};

/// All shapes in the order of lists.
pub const PRESETS: &[InsertPreset] = &[
    QUICK,
    InsertPreset {
        name: "standard",
        about: "5M rows, then 2M more, 60 s per query step: about a quarter of an hour per run",
        rows: 5_000_000,
        more_rows: 2_000_000,
        query_seconds: 60.0,
        settle_scale: 0.2,
        ..QUICK
    },
    InsertPreset {
        name: "cpu",
        aliases: &["full", "cached", "20m"],
        about: "published, cached by the DBMS (2021): 20M rows, then 20M more, 7200 s per query \
                step",
        rows: 20_000_000,
        more_rows: 20_000_000,
        query_seconds: 7200.0,
        settle_scale: 1.0,
        cache_bytes: Some(10 << 30),
        ..QUICK
    },
    InsertPreset {
        name: "io",
        aliases: &["500m"],
        about: "published, IO-bound (2021): 500M rows, then 10M more, 7200 s per query step",
        rows: 500_000_000,
        more_rows: 10_000_000,
        query_seconds: 7200.0,
        settle_scale: 1.0,
        cache_bytes: Some(10 << 30),
        ..QUICK
    },
    InsertPreset {
        name: "c8r32",
        aliases: &["pn53"],
        about: "published on 8 cores, 32 GB (2025-26): 30M rows, then 40M and 10M, 1800 s",
        rows: 30_000_000,
        more_rows: 50_000_000,
        query_seconds: 1800.0,
        settle_scale: 1.0,
        ..QUICK
    },
    InsertPreset {
        name: "c8r32-io",
        aliases: &["pn53-io"],
        about: "published on 8 cores, 32 GB, IO-bound: 800M rows, then 4M and 1M, 1800 s",
        rows: 800_000_000,
        more_rows: 5_000_000,
        query_seconds: 1800.0,
        settle_scale: 1.0,
        ..QUICK
    },
    InsertPreset {
        name: "c8r32-4u",
        about: "published on 8 cores, 32 GB, 4 clients: 10M rows each, then 16M and 4M, 1800 s",
        ..of_clients(4, 10_000_000, 20_000_000)
    },
    InsertPreset {
        name: "c8r32-io-4u",
        about: "published on 8 cores, 32 GB, 4 clients, IO-bound: 200M rows each, then 4M and 1M",
        ..of_clients(4, 200_000_000, 5_000_000)
    },
    InsertPreset {
        name: "c24r64-16u",
        about: "published on 24 cores, 64 GB, 16 clients: 20M rows each, then 16M and 4M, 1800 s",
        ..of_clients(16, 20_000_000, 20_000_000)
    },
    InsertPreset {
        name: "c48r128-20u",
        about: "published on 48 cores, 128 GB, 20 clients: 10M rows each, then 16M and 4M, 1800 s",
        ..of_clients(20, 10_000_000, 20_000_000)
    },
    InsertPreset {
        name: "c48r128-io-20u",
        about: "published on 48 cores, 128 GB, 20 clients, IO-bound: 200M rows, then 4M and 1M",
        ..of_clients(20, 200_000_000, 5_000_000)
    },
];

/// A published shape of several clients with a table each.
const fn of_clients(clients: u32, rows: u64, more_rows: u64) -> InsertPreset {
    InsertPreset { rows, more_rows, clients, query_seconds: 1800.0, settle_scale: 1.0, ..QUICK }
}

/// The workload of a preset in the newest profile.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(preset: &str) -> Result<Workload, String> {
    let found = named(PRESETS, preset)?;
    let mut shape = InsertShape {
        profile: Profile::Y2026,
        tables: None,
        i1_rows: 0,
        i2_rows: 0,
        query_seconds: found.query_seconds,
        query_steps: Vec::new(),
        deletes: true,
        shared: false,
        partitions: 1,
        secondary_indexes: 3,
        rows_per_commit: RowsPerCommit { i0: 100, i1: 50, i2: 5, query: 50 },
        resync_every: 1000,
        query_threads: 1,
        pacing: Pacing::Open,
        memory_limit: None,
        step_limit: Some(STEP_LIMIT),
    };
    take_profile(&mut shape, Profile::Y2026);
    share_rows(&mut shape, found.more_rows);
    Ok(Workload {
        tables: found.clients,
        rows: found.rows,
        clients: found.clients,
        read_seconds: found.query_seconds,
        write_seconds: found.query_seconds,
        settle_scale: found.settle_scale,
        cache_bytes: found.cache_bytes,
        ..Workload::plain(BenchmarkParameters::Insert(shape))
    })
}

/// Splits the rows after l.i0 by the rule of the profile.
pub(super) fn share_rows(shape: &mut InsertShape, rows: u64) {
    shape.i2_rows = if shape.profile.is_2021() { 0 } else { rows / 5 };
    shape.i1_rows = rows - shape.i2_rows;
}

/// Sets all that a profile decides: steps, deletes, and the split of the rows.
pub(super) fn take_profile(shape: &mut InsertShape, profile: Profile) {
    let rows = shape.i1_rows + shape.i2_rows;
    shape.profile = profile;
    shape.deletes = !profile.is_2021();
    let step = |rows_per_second, kind| QueryStep { rows_per_second, kind };
    let (range, point) = (QueryKind::Range, QueryKind::Point);
    shape.query_steps = match profile {
        Profile::Y2021 => [100, 500, 1000].map(|rate| step(rate, range)).to_vec(),
        Profile::Y2021Jan => {
            let rates = [100, 200, 400, 600, 800, 1000];
            rates.iter().flat_map(|rate| [step(*rate, range), step(*rate, range)]).collect()
        }
        Profile::Y2026 => {
            let rates = [100, 500, 1000];
            rates.iter().flat_map(|rate| [step(*rate, range), step(*rate, point)]).collect()
        }
    };
    share_rows(shape, rows);
}
