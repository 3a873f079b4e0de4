//! Settings of YCSB: the core workloads, and `key=value`.

use crate::spec::{CliContext, DataSize};
use crate::ycsb::steps;
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::{choice, count};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::ycsb::{YcsbKeys, YcsbShape, YcsbWorkload};

own_settings! { YcsbShape:
    "fields", |_, shape, value| shape.fields = count(value, 1, 1000)? as u32;
    "field_bytes", |_, shape, value| shape.field_bytes = count(value, 1, 65_535)? as u32;
    "scan_rows", |_, shape, value| shape.scan_rows = count(value, 1, 1_000_000)? as u32;
    "keys", |_, shape, value| {
        let choices = [
            ("zipfian", YcsbKeys::Zipfian),
            ("uniform", YcsbKeys::Uniform),
            ("latest", YcsbKeys::Latest),
        ];
        shape.keys = Some(choice(value, &choices)?);
    };
}

const SETTINGS: Settings<YcsbShape> = Settings {
    benchmark: "ycsb",
    own: OWN,
    common: &[("records", "rows")],
    others: true,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Ycsb(shape) => Some(shape),
        _ => None,
    },
};

/// Bytes of a record beside its fields: the key twice, and overhead of pages and rows.
const RECORD_BYTES: u64 = 120;

/// Changes a workload of this benchmark by one `key=value`.
///
/// # Errors
///
/// See [`SetError`].
pub(super) fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

/// Reads the letters of core workloads after `ycsb:`, in the order of their steps.
///
/// # Errors
///
/// An unknown or repeated letter.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    if let Some(option) = said.options.first() {
        return Err(format!(
            "run the benchmark `ycsb`: it takes no options after `--`, as `{option}`; see --set"
        ));
    }
    let mut chosen = Vec::new();
    let said = said.what.iter().filter(|words| !words.is_empty());
    for word in said.flat_map(|words| words.split(',')).map(str::trim) {
        let known = YcsbWorkload::ALL.into_iter().find(|known| known.letter() == word);
        let Some(known) = known else {
            let mut all = YcsbWorkload::ALL;
            all.sort_unstable();
            let all = all.map(YcsbWorkload::letter).join(", ");
            return Err(format!(
                "run the benchmark `ycsb`: it has no core workload `{word}`; it has {all}"
            ));
        };
        if chosen.contains(&known) {
            return Err(format!(
                "run the benchmark `ycsb`: name each core workload once; `{word}` is there twice"
            ));
        }
        chosen.push(known);
    }
    match &mut workload.shape {
        BenchmarkParameters::Ycsb(shape) if !chosen.is_empty() => shape.workloads = chosen,
        _ => {}
    }
    Ok(())
}

/// The size of the data.
pub(super) fn data_size(workload: &Workload) -> DataSize {
    let Some(shape) = steps::shape(workload) else { return DataSize::of_tables(workload, 0) };
    let record = u64::from(shape.fields) * (u64::from(shape.field_bytes) + 8) + RECORD_BYTES;
    let bytes = workload.rows * record * 3 / 2;
    DataSize { data_bytes: bytes as f64, cached_bytes: bytes }
}
