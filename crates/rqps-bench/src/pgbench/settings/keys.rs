//! Settings `key=value` of pgbench scripts, and values derived from them.

use crate::spec::{DataSize, UserCode};
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::pgbench::PgbenchShape;
use rqps_model::units;

/// Bytes of the standard tables with indexes, per unit of scale.
const SCALE_BYTES: u64 = 16 << 20;

/// Bytes of the history that steps write.
const GROWTH_BYTES: u64 = 256 << 20;

/// Accounts per unit of scale.
const ACCOUNTS: u64 = 100_000;

/// The parameters of this benchmark, mutable; `None` for another workload.
pub(super) fn shape_of(workload: &mut Workload) -> Option<&mut PgbenchShape> {
    match &mut workload.shape {
        BenchmarkParameters::Pgbench(shape) => Some(shape),
        _ => None,
    }
}

own_settings! { PgbenchShape:
    "load", |_, shape, value| shape.tables.made = match value {
        "builtin" => true,
        "none" => false,
        _ => return Err("write builtin, or none for tables that are there already".to_owned()),
    };
}

const SETTINGS: Settings<PgbenchShape> = Settings {
    benchmark: "pgbench",
    own: OWN,
    common: &[],
    others: true,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Pgbench(shape) => Some(shape),
        _ => None,
    },
};

/// Changes the workload by one `key=value`.
///
/// # Errors
///
/// See [`SetError`].
pub(crate) fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

/// Computes the number of rows.
pub(crate) fn finish(workload: &mut Workload) {
    if let BenchmarkParameters::Pgbench(shape) = &workload.shape {
        workload.rows = ACCOUNTS * u64::from(shape.scale);
    }
}

/// The scripts that are files, the values of `-D`, and names that become a part of statements. The
/// hash is that of the text that runs.
pub(crate) fn brought(workload: &Workload) -> Vec<UserCode> {
    let BenchmarkParameters::Pgbench(shape) = &workload.shape else { return Vec::new() };
    let files = shape.files.iter().map(|(name, file)| UserCode {
        kind: "script",
        name: name.clone(),
        sha256: Some(units::sha256(&file.text)),
        place: None,
    });
    let option = |text: String| UserCode::named("option", text);
    let values = shape.define.iter().map(|(name, value)| option(format!("-D {name}={value}")));
    let tables = &shape.tables;
    let spaces =
        [("--tablespace", &tables.tablespace), ("--index-tablespace", &tables.index_tablespace)];
    let spaces = spaces
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| option(format!("{name}={value}"))));
    files.chain(values).chain(spaces).collect()
}

/// The size of the data.
pub(crate) fn data_size(workload: &Workload) -> DataSize {
    let scale = match &workload.shape {
        BenchmarkParameters::Pgbench(shape) if shape.tables.made => u64::from(shape.scale),
        _ => 0,
    };
    let cached_bytes = scale * SCALE_BYTES;
    DataSize { data_bytes: (cached_bytes + GROWTH_BYTES) as f64, cached_bytes }
}
