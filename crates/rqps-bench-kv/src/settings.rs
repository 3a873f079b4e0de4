//! Settings `key=value` of the RocksDB sequence.

use std::collections::BTreeMap;

use rqps_bench::spec::StepSet;
use rqps_driver::workload::settings::{
    self, SetError, Settings, choice, count, number, own_settings, yes_or_no,
};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::kv::{Compression, CoreMix, Data, KvShape, Style};

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

// Named shapes of the RocksDB sequence.

/// A machine of the published runs: parallel flushes and compactions, block cache, and so on.
struct Hardware {
    name: &'static str,
    jobs: u32,
    cache_gb: u64,
    subcompactions: u32,
    clients: u32,
}

const fn hardware(name: &'static str, jobs: u32, cache_gb: u64, subs: u32, c: u32) -> Hardware {
    Hardware { name, jobs, cache_gb, subcompactions: subs, clients: c }
}

/// The published profiles. Published runs choose the clients; here as many as cores, 40 on 48.
const HARDWARE: [Hardware; 17] = [
    hardware("c4r16", 3, 10, 2, 4),
    hardware("c4bc1g", 3, 1, 2, 4),
    hardware("c8r16", 4, 10, 2, 8),
    hardware("c8r32", 4, 20, 2, 8),
    hardware("c16r16", 8, 12, 4, 16),
    hardware("c16r64", 8, 48, 4, 16),
    hardware("c16bc1g", 8, 1, 4, 16),
    hardware("c16r64b", 8, 48, 4, 16),
    hardware("c24r64", 12, 48, 4, 24),
    hardware("c30r240", 8, 180, 4, 30),
    hardware("c30r240bc150", 8, 150, 4, 30),
    hardware("c32r128", 8, 90, 4, 32),
    hardware("c40r256", 8, 210, 4, 40),
    hardware("c40r256bc180", 8, 180, 4, 40),
    hardware("c40bc1g", 8, 1, 4, 40),
    hardware("c48r128", 12, 90, 4, 40),
    hardware("c2r24", 3, 4, 2, 2),
];

/// The published machine that `quick`, `standard` and `full` are derived from.
const LARGEST: &str = "c48r128";

/// Keys of the published runs that fit in memory, and those that do not.
const KEYS_CACHED: u64 = 100_000_000;
const KEYS_IO: u64 = 2_000_000_000;
const GIB: u64 = 1 << 30;

/// The workload of a preset: `quick`, `standard`, `full` or a published machine, each with a data
/// shape after a dash: `c48r128-iodir_zstd`, `quick-iobuf`.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let (workload, shape) = parts(name)?;
    Ok((Workload { shape: BenchmarkParameters::Kv(shape), ..workload }, StepSet::Full))
}

/// True for the shapes of published results.
pub(super) fn is_published(name: &str) -> bool {
    let size = name.split_once('-').map_or(name, |(size, _)| size);
    !SMALL.iter().any(|small| small.name == size)
}

/// Both parts of a preset.
pub(crate) fn parts(name: &str) -> Result<(Workload, KvShape), String> {
    let (size, data) = name.split_once('-').unwrap_or((name, "byrx"));
    let (mut workload, mut shape) = sized(size).ok_or_else(|| unknown(name))?;
    set_data(&mut shape, data).map_err(|_| unknown(name))?;
    let io = matches!(shape.data, Data::Iobuf | Data::Iodir);
    match SMALL.iter().find(|small| small.name == size) {
        Some(small) => small.fit(&mut workload, &mut shape),
        None if io => workload.rows = KEYS_IO,
        None => {}
    }
    Ok((workload, shape))
}

/// Limits for small scales, so that the data do not fit in memory: only the published number of
/// keys exceeds the memory of the published machines.
struct Small {
    name: &'static str,
    /// Keys that exceed both cache and limit, even if values are compressed by half.
    keys_io: u64,
    /// Bytes of RocksDB's cache if the data must not fit in it.
    cache_bytes: u64,
    /// Bytes for the process and the page cache of its files: enough for the cache and eight
    /// memtables of 16 MiB.
    limit_bytes: u64,
}

const SMALL: [Small; 3] = [
    Small { name: "quick", keys_io: 2_000_000, cache_bytes: 64 << 20, limit_bytes: 320 << 20 },
    Small { name: "standard", keys_io: 10_000_000, cache_bytes: 256 << 20, limit_bytes: GIB },
    Small { name: "c2r24", keys_io: 40_000_000, cache_bytes: GIB, limit_bytes: 4 * GIB },
];

impl Small {
    fn fit(&self, workload: &mut Workload, shape: &mut KvShape) {
        if shape.data == Data::Byrx {
            return;
        }
        workload.cache_bytes = Some(self.cache_bytes);
        if shape.data == Data::Byos {
            // The page cache holds the rest.
            return;
        }
        // Limits of compaction debt are proportional to the data.
        shape.limits_scale *= self.keys_io as f64 / workload.rows as f64;
        workload.rows = self.keys_io;
        if shape.data == Data::Iobuf {
            // With O_DIRECT, no page cache can hold them.
            workload.memory_limit = Some(self.limit_bytes);
        }
    }
}

fn unknown(name: &str) -> String {
    let machines: Vec<_> = HARDWARE.iter().map(|hardware| hardware.name).collect();
    format!(
        "use the preset `{name}`: no such preset (known: quick, standard, full, {}, each with \
         -byrx, -byos, -iobuf or -iodir after it, those with _none, _lz4 or _zstd)",
        machines.join(", ")
    )
}

fn sized(size: &str) -> Option<(Workload, KvShape)> {
    let machine = if matches!(size, "quick" | "standard" | "full") { LARGEST } else { size };
    let hardware = HARDWARE.iter().find(|hardware| hardware.name == machine)?;
    let (mut workload, mut shape) = published(hardware);
    match size {
        // About three minutes for two targets.
        "quick" => {
            set_scale(&mut workload, 1_000_000, 2, 10.0);
            shape.drain_seconds = 3.0;
            shape.background_jobs = 3;
            shape.subcompactions = 2;
            shape.limits_scale = 0.01;
        }
        "standard" => {
            set_scale(&mut workload, 10_000_000, 2, 60.0);
            shape.drain_seconds = 20.0;
            shape.background_jobs = 3;
            shape.subcompactions = 2;
            shape.limits_scale = 0.01;
        }
        "c16r64b" => {
            shape.write_buffer_bytes = 128 << 20;
            shape.target_file_bytes = 8 << 20;
        }
        "c2r24" => {
            // The published shape for a small virtual machine.
            set_scale(&mut workload, 5_000_000, 2, 300.0);
            workload.cache_bytes = Some(4 * GIB);
            shape.limits_scale = 0.0025;
        }
        _ => {}
    }
    Some((workload, shape))
}

fn set_scale(workload: &mut Workload, keys: u64, clients: u32, seconds: f64) {
    workload.rows = keys;
    workload.clients = clients;
    workload.read_seconds = seconds;
    workload.write_seconds = seconds;
    workload.cache_bytes = None;
}

fn published(hardware: &Hardware) -> (Workload, KvShape) {
    let workload = Workload {
        rows: KEYS_CACHED,
        clients: hardware.clients,
        read_seconds: 1800.0,
        write_seconds: 1800.0,
        cache_bytes: Some(hardware.cache_gb * GIB),
        ..Workload::plain(BenchmarkParameters::Sysbench)
    };
    let shape = KvShape {
        mixes: Vec::new(),
        style: Style::Leveled,
        data: Data::Byrx,
        compression: Compression::None,
        direct_io: false,
        value_bytes: 400,
        seek_nexts: 10,
        reads: true,
        multireads: false,
        drain_seconds: 300.0,
        writer_mb: 2.0,
        writer_sweep: Vec::new(),
        overwrite_share: 0.1,
        background_jobs: hardware.jobs,
        subcompactions: hardware.subcompactions,
        write_buffer_bytes: 16 << 20,
        target_file_bytes: 16 << 20,
        limits_scale: 1.0,
        options: BTreeMap::new(),
    };
    (workload, shape)
}

/// Sets the data shape `byrx`, `iodir` or `iodir_zstd`: where the data fit, and their compression.
fn set_data(shape: &mut KvShape, word: &str) -> Result<(), String> {
    let (data, compression) = match word.split_once('_') {
        Some((data, compression)) => (data, Some(compression)),
        None => (word, None),
    };
    let data = choice(data, &Data::ALL.map(|data| (data.name(), data)))?;
    let compression = match compression {
        Some(word) => parse_compression(word)?,
        None if matches!(data, Data::Iobuf | Data::Iodir) => Compression::Lz4,
        None => Compression::None,
    };
    shape.data = data;
    shape.compression = compression;
    shape.direct_io = data == Data::Iodir;
    Ok(())
}

fn parse_compression(word: &str) -> Result<Compression, String> {
    choice(
        word,
        &[("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn presets_have_the_published_shapes() {
        let (workload, shape) = parts("c48r128").unwrap();
        assert_eq!((workload.rows, workload.clients), (100_000_000, 40));
        assert_eq!((workload.cache_bytes, shape.background_jobs), (Some(90 * GIB), 12));
        let (workload, shape) = parts("c48r128-iodir_zstd").unwrap();
        assert_eq!((workload.rows, shape.compression), (2_000_000_000, Compression::Zstd));
        assert!(shape.direct_io);
        let (_, shape) = parts("c16r64b").unwrap();
        assert_eq!((shape.write_buffer_bytes, shape.target_file_bytes), (128 << 20, 8 << 20));
        let (_, shape) = parts("c8r32-iobuf").unwrap();
        assert_eq!((shape.compression, shape.direct_io), (Compression::Lz4, false));
        assert_eq!(parts("c48r128-iobuf").unwrap().0.memory_limit, None);
        assert!(parts("c1r1").unwrap_err().contains("known: quick, standard, full, c4r16"));
        assert!(parts("quick-byox").unwrap_err().contains("no such preset"));
    }

    /// Smallest size of the data, bytes: values compressed by half, without indexes and filters.
    fn least_bytes(workload: &Workload, shape: &KvShape) -> u64 {
        let value = u64::from(shape.value_bytes);
        let value = if shape.compression == Compression::None { value } else { value / 2 };
        workload.rows * (20 + value)
    }

    #[test]
    fn data_that_are_larger_than_memory_are() {
        for size in ["quick", "standard", "c2r24"] {
            for compression in ["", "_none", "_lz4", "_zstd"] {
                let (workload, shape) = parts(&format!("{size}-iobuf{compression}")).unwrap();
                let limit = workload.memory_limit.unwrap();
                assert!(least_bytes(&workload, &shape) > limit, "{size}{compression}");
                let memtables = 8 * shape.write_buffer_bytes;
                assert!(workload.cache_bytes.unwrap() + memtables < limit, "{size}: no room");
                let (workload, shape) = parts(&format!("{size}-iodir{compression}")).unwrap();
                let least = least_bytes(&workload, &shape);
                assert!(shape.direct_io && workload.memory_limit.is_none());
                assert!(least > workload.cache_bytes.unwrap(), "{size}{compression}");
            }
        }
    }

    #[test]
    fn data_of_the_page_cache_do_not_fit_into_the_own_one() {
        for size in ["quick", "standard", "c2r24"] {
            let (workload, shape) = parts(&format!("{size}-byos")).unwrap();
            assert!(workload.cache_bytes.unwrap() < least_bytes(&workload, &shape), "{size}");
            assert_eq!(workload.memory_limit, None);
        }
    }
}
