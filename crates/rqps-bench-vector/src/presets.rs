//! Presets of vector search.

use rqps_driver::workload::preset::{NamedPreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Idle, Workload};
use rqps_model::vector::{Case, DataSource, Iterative, PgBuild, Variant, VectorShape};

/// A size, and its part of the published grid.
struct Preset {
    name: &'static str,
    rows: u64,
    queries: u32,
    seconds: f64,
    warmup_seconds: f64,
    pgvector: &'static [(u32, u32)],
    mariadb: &'static [u32],
    ef: &'static [u32],
    ramp: &'static [u32],
}

impl NamedPreset for Preset {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// All presets in the order of lists.
const PRESETS: [Preset; 3] = [
    Preset {
        name: "quick",
        rows: 5_000,
        queries: 1_000,
        seconds: 1.5,
        warmup_seconds: 0.3,
        pgvector: &[(8, 32), (16, 64)],
        mariadb: &[6, 12],
        ef: &[10, 20, 40],
        ramp: &[],
    },
    Preset {
        name: "standard",
        rows: 20_000,
        queries: 2_000,
        seconds: 5.0,
        warmup_seconds: 1.0,
        pgvector: &[(8, 32), (16, 32), (16, 64), (16, 192), (32, 64)],
        mariadb: &[4, 6, 8, 12, 16],
        ef: &[10, 20, 40, 80, 120],
        ramp: &[1, 4],
    },
    // The grid of January 2025.
    Preset {
        name: "full",
        rows: 60_000,
        queries: 10_000,
        seconds: 30.0,
        warmup_seconds: 10.0,
        pgvector: &[
            (8, 32),
            (16, 32),
            (8, 64),
            (16, 64),
            (32, 64),
            (8, 96),
            (16, 96),
            (32, 96),
            (48, 96),
            (8, 192),
            (16, 192),
            (32, 192),
            (48, 192),
            (64, 192),
            (8, 256),
            (16, 256),
            (32, 256),
            (48, 256),
            (64, 256),
        ],
        mariadb: &[4, 5, 6, 8, 12, 16, 24, 32, 48],
        ef: &[10, 20, 30, 40, 80, 120, 200, 400, 800],
        ramp: &[1, 8],
    },
];

/// Default seed of the generated set: the first one that passes all checks of `rqps vector
/// verify-data` (docs/vector.md).
pub(super) const DATA_SEED: u64 = 2;

/// The workload of a preset.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(preset: &str) -> Result<Workload, String> {
    let found = named(&PRESETS, preset)?;
    let shape = VectorShape {
        data: DataSource::Fashion {
            dims: 784,
            queries: found.queries,
            rounded: true,
            seed: DATA_SEED,
        },
        k: 10,
        cases: vec![Case::Sweep],
        pgvector: found
            .pgvector
            .iter()
            .map(|&(m, ef_construction)| PgBuild { m, ef_construction })
            .collect(),
        mariadb: found.mariadb.to_vec(),
        ef: found.ef.to_vec(),
        ramp: found.ramp.to_vec(),
        targets: vec![0.95, 0.99],
        selectivity: vec![50.0, 10.0, 1.0],
        deletes: vec![10.0, 50.0],
        insert_rate: 50.0,
        variant: Variant::Vector,
        iterative: Iterative::Off,
        build_workers: 0,
        commit_rows: vec![1],
        capacity_seconds: 60.0,
    };
    Ok(Workload {
        rows: found.rows,
        read_seconds: found.seconds,
        write_seconds: found.seconds,
        warmup_seconds: found.warmup_seconds,
        idle: Idle::Os,
        ..Workload::plain(BenchmarkParameters::Vector(Box::new(shape)))
    })
}
