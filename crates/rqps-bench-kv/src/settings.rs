//! Settings `key=value` of the RocksDB sequence.

use crate::presets::{parse_compression, set_data};
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::{self, SetError};
use rqps_driver::workload::value::{choice, count, number, yes_or_no};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::kv::{CoreMix, KvShape, Style};

/// The option for the ratio between the sizes of neighbouring levels.
const FANOUT: &str = "max_bytes_for_level_multiplier";

own_settings! { KvShape:
    "data", |_, shape, value| set_data(shape, value)?;
    "style", |_, shape, value| shape.style =
        choice(value, &[("leveled", Style::Leveled), ("universal", Style::Universal)])?;
    "compression", |_, shape, value| shape.compression = parse_compression(value)?;
    "direct_io", |_, shape, value| shape.direct_io = yes_or_no(value)?;
    "value_bytes", |_, shape, value| shape.value_bytes = count(value, 1, 65_536)? as u32;
    "seek_nexts", |_, shape, value| shape.seek_nexts = count(value, 0, 100_000)? as u32;
    "ycsb", |_, shape, value| {
        let mixes = value.split(',').map(|letter| choice(letter.trim(), &CoreMix::ALL));
        shape.mixes = mixes.collect::<Result<Vec<CoreMix>, String>>()?;
    };
    "reads", |_, shape, value| shape.reads = yes_or_no(value)?;
    "multireads", |_, shape, value| shape.multireads = yes_or_no(value)?;
    "drain_seconds", |_, shape, value| shape.drain_seconds = number(value, 0.1, 86_400.0)?;
    "writer_mb", |_, shape, value| {
        let rates = value.split(',').map(|word| number(word.trim(), 0.0, 100_000.0));
        let rates = rates.collect::<Result<Vec<f64>, String>>()?;
        // The first rate keeps the plain names of steps.
        (shape.writer_mb, shape.writer_sweep) = (rates[0], rates[1..].to_vec());
    };
    "fanout", |_, shape, value| {
        let fanout = number(value, 2.0, 1000.0)?;
        shape.options.insert(FANOUT.to_owned(), fanout.to_string());
    };
    "overwrite_share", |_, shape, value| shape.overwrite_share = number(value, 0.0, 100.0)?;
    "background_jobs", |_, shape, value| shape.background_jobs = count(value, 1, 1024)? as u32;
    "subcompactions", |_, shape, value| shape.subcompactions = count(value, 1, 1024)? as u32;
    "write_buffer_mb", |_, shape, value|
        shape.write_buffer_bytes = count(value, 1, 65_536)? << 20;
    "target_file_mb", |_, shape, value| shape.target_file_bytes = count(value, 1, 65_536)? << 20;
    "limits_scale", |_, shape, value| shape.limits_scale = number(value, 1e-6, 1e3)?;
}

const SETTINGS: Settings<KvShape> = Settings {
    benchmark: "kv",
    own: OWN,
    common: &[
        ("keys", "rows"),
        ("rows", "rows"),
        ("clients", "clients"),
        ("threads", "clients"),
        ("seconds", "seconds"),
        ("read_seconds", "read_seconds"),
        ("write_seconds", "write_seconds"),
        ("cache", "cache"),
        ("memory_limit", "memory_limit"),
        ("rate", "rate"),
        ("placement", "placement"),
        ("idle", "idle"),
        ("turn_ms", "turn_ms"),
    ],
    others: false,
    open: &["option.KEY"],
    of: |shape| match shape {
        BenchmarkParameters::Kv(shape) => Some(shape),
        _ => None,
    },
};

/// Changes a workload of this benchmark by one `key=value`. `option.KEY=VALUE` sets an option of
/// the library on all targets.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = settings::parts(assignment)?;
    let (Some(name), BenchmarkParameters::Kv(shape)) =
        (key.strip_prefix("option."), &mut workload.shape)
    else {
        return SETTINGS.set(workload, assignment);
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    if name.is_empty() || value.is_empty() || !name.chars().all(plain) {
        let (key, value) = ("option.KEY", value.to_owned());
        return Err(SetError::BadValue { key, value, why: "write option.KEY=VALUE".to_owned() });
    }
    shape.options.insert(name.to_owned(), value.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;
    use rqps_model::kv::Compression;

    #[test]
    fn settings_are_those_of_the_benchmark_and_the_common_ones() {
        let (mut workload, _) = workload("quick").unwrap();
        let mut check = |assignment: &str| set(&mut workload, assignment);
        for good in [
            "keys=2M",
            "threads=4",
            "data=iobuf_zstd",
            "style=universal",
            "writer_mb=8",
            "option.max_bytes_for_level_multiplier=32",
            "limits_scale=0.001",
            "direct_io=on",
            "multireads=yes",
            "reads=false",
            "rate=1000",
            "placement=apart",
            "memory_limit=1G",
        ] {
            check(good).unwrap();
        }
        check("writer_mb=2, 8,32").unwrap();
        check("fanout=16").unwrap();
        let wrong = |error: SetError| error.to_string();
        assert!(wrong(check("style=flat").unwrap_err()).contains("leveled, universal"));
        assert!(wrong(check("reads=maybe").unwrap_err()).contains("yes or no"));
        assert!(
            wrong(check("tables=2").unwrap_err()).contains("unknown key of the benchmark `kv`")
        );
        assert!(wrong(check("option.=1").unwrap_err()).contains("option.KEY=VALUE"));
        assert!(wrong(check("keys").unwrap_err()).contains("no `=`"));
        let BenchmarkParameters::Kv(shape) = &workload.shape else { panic!("{workload:?}") };
        assert_eq!((workload.rows, workload.clients), (2_000_000, 4));
        assert_eq!((shape.direct_io, shape.multireads, shape.reads), (true, true, false));
        assert_eq!(shape.options["max_bytes_for_level_multiplier"], "16");
        assert_eq!((shape.writer_mb, &shape.writer_sweep[..]), (2.0, &[8.0, 32.0][..]));
        assert_eq!(workload.memory_limit, Some(1 << 30));
        assert_eq!((shape.style, shape.compression), (Style::Universal, Compression::Zstd));
    }
}
