//! What labels and names of files tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cells::decimals_agree;
use rqps_dbms::spec::{self, DbmsSpec, TagScheme};
use rqps_model::build::{Dbms, Version};

// Tags of published results: `my8044_rel_o2nofp.z12a_c8r32` is MySQL 8.0.44 with the configuration
// z12a_c8r32 on 8 cores and 32 GB.

/// The parts of a tag. What it does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The whole tag as it was published.
    pub text: String,
    /// The product.
    pub dbms: Dbms,
    /// Its version, if the digits are of a known scheme.
    pub version: Option<Version>,
    /// `innodb` or `rocksdb` where the tag says so.
    pub storage_engine: Option<&'static str>,
    /// Name of the configuration.
    pub config: Option<String>,
    /// Cores of the machine and gigabytes of its memory, from `cXrY` in the configuration's name.
    pub machine: Option<(u32, u64)>,
}

/// Decodes a tag, with or without the `x.` before it, a size such as `20m.`, and `.pk1` after it.
/// Never fails: an unknown tag is a [`Dbms::Other`] of unknown version.
pub fn decode_tag(text: &str) -> Tag {
    let mut rest = text.strip_prefix("x.").unwrap_or(text);
    rest = rest.strip_suffix(".pk1").or_else(|| rest.strip_suffix(".pk0")).unwrap_or(rest);
    if let Some((size, after)) = rest.split_once('.')
        && let Some(digits) = size.strip_suffix('m')
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = after;
    }
    let (build, config) = match rest.split_once('.') {
        Some((build, config)) => (build, Some(config.to_owned())),
        None => (rest, None),
    };
    let machine = config.as_deref().and_then(machine);
    let mut tag = Tag {
        text: text.to_owned(),
        dbms: Dbms::Other,
        version: None,
        storage_engine: None,
        config,
        machine,
    };
    if let Some((spec, scheme, storage_engine, after)) = known(build) {
        tag.dbms = spec.dbms;
        tag.storage_engine = storage_engine;
        let end = after.find('_').unwrap_or(after.len());
        tag.version = version(scheme, &after[..end]);
    }
    tag
}

/// The DBMS whose prefix a tag has, the storage engine that the prefix means, and the rest of the
/// tag. The longest prefix counts.
fn known(build: &str) -> Option<(&'static DbmsSpec, TagScheme, Option<&'static str>, &str)> {
    let all = spec::ALL.iter().filter_map(|spec| Some((spec, spec.tags?)));
    let found = all.flat_map(|(spec, scheme)| {
        scheme.prefixes.iter().filter_map(move |(prefix, storage)| {
            let after = build.strip_prefix(prefix)?;
            let digit = after.starts_with(|c: char| c.is_ascii_digit() || c == '_');
            digit.then_some((spec, scheme, *storage, after))
        })
    });
    found.min_by_key(|(.., after)| after.len())
}

fn version(scheme: TagScheme, text: &str) -> Option<Version> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let dotted = (scheme.version)(number)?;
    Some(Version::new(format!("{dotted}{rest}")))
}

/// `z12a_c8r32` → 8 cores, 32 GB.
fn machine(config: &str) -> Option<(u32, u64)> {
    config.split(['_', '.']).find_map(|part| {
        let (cores, memory) = part.strip_prefix('c')?.split_once('r')?;
        Some((cores.parse().ok()?, memory.parse().ok()?))
    })
}

// What the names of files tell of the numbers in them: clients, workload, host.
//
// A folder may hold tables of one form that were measured under several conditions, such as
// `qps.abs.cached.tsv` beside `qps.abs.iobound.tsv`. Where two tables contradict each other, the
// words in which their names differ become part of the step.

/// Words in names of files that say how a table is written, not what was measured.
const FORMS: [&str; 20] = [
    "o", "sb", "qps", "abs", "abs0", "abs1", "rel", "rel2", "met", "sum", "sum2", "summary", "fmt",
    "csum", "csum2", "sdev", "txt", "tsv", "csv", "gz",
];

/// The cells of a table by target and step, as printed.
pub(crate) type TableCells = BTreeMap<(String, String), String>;

/// Conditions that the names of files tell apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variants {
    /// Words of names that tell conditions apart.
    words: BTreeSet<String>,
    /// True if the clients in names do.
    by_clients: bool,
}

/// The words of a name, without those of the form.
fn words(name: &Path) -> Vec<String> {
    let name = name.to_string_lossy();
    let words = name.split(['.', '/']).filter(|word| !word.is_empty() && !FORMS.contains(word));
    words.map(str::to_owned).collect()
}

/// The clients that a word tells: 40 for `40u`, `dop40`, `nt40`, `40clients`.
fn clients_in(word: &str) -> Option<u32> {
    let after = ["dop", "nt"].iter().find_map(|begin| word.strip_prefix(begin));
    let before = ["u", "clients", "users", "threads", "thr"];
    let before = before.iter().find_map(|end| word.strip_suffix(end));
    let digits = after.or(before).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// The clients in the name of a file, else of its folders from the nearest.
fn clients_of(path: &Path) -> Option<u32> {
    words(path).iter().rev().find_map(|word| clients_in(word))
}

/// What the names of a table of rates and of the ratios made of it have in common: their folder,
/// and their words without those of the form.
pub(crate) fn kin(path: &Path) -> (PathBuf, Vec<String>) {
    let name = Path::new(path.file_name().unwrap_or_default());
    (path.parent().unwrap_or(Path::new("")).to_owned(), words(name))
}

/// True if many cells of both tables differ. Single cells that differ are faults of one table.
fn contradict(a: &TableCells, b: &TableCells) -> bool {
    let (mut shared, mut differing) = (0, 0);
    for (key, printed) in a {
        let Some(other) = b.get(key) else { continue };
        shared += 1;
        let agrees = match printed.parse::<f64>() {
            // Ratios have two decimals, and neighbours are two values.
            Ok(number) if number.abs() >= 10.0 => decimals_agree(number, other),
            _ => printed == other,
        };
        differing += usize::from(!agrees);
    }
    differing >= 2 && differing * 4 > shared
}

impl Variants {
    /// Compares each table with each other one.
    pub(crate) fn find<P: AsRef<Path>>(tables: &[(P, TableCells)]) -> Variants {
        let mut variants = Variants::default();
        variants.add(tables);
        variants
    }

    /// Compares tables of another form among each other, too.
    pub(crate) fn add<P: AsRef<Path>>(&mut self, tables: &[(P, TableCells)]) {
        for (place, (path, cells)) in tables.iter().enumerate() {
            for (other, of_other) in &tables[..place] {
                self.compare((path.as_ref(), cells), (other.as_ref(), of_other));
            }
        }
    }

    fn compare(&mut self, (a, of_a): (&Path, &TableCells), (b, of_b): (&Path, &TableCells)) {
        let clients = (clients_of(a), clients_of(b));
        if let (Some(a), Some(b)) = clients
            && a != b
        {
            self.by_clients = true;
            return;
        }
        if !contradict(of_a, of_b) {
            return;
        }
        self.by_clients |= clients.0 != clients.1;
        let set = |path: &Path| -> BTreeSet<String> {
            words(path).into_iter().filter(|word| clients_in(word).is_none()).collect()
        };
        self.words.extend(set(a).symmetric_difference(&set(b)).cloned());
    }

    /// True if names tell no conditions apart.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Variants::default()
    }

    /// The clients of a table, if the names of the tables differ in them.
    pub(crate) fn clients(&self, path: &Path) -> Option<u32> {
        clients_of(path).filter(|_| self.by_clients)
    }

    /// The words of names, other than clients, that tell conditions apart.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// True if the clients in names tell conditions apart.
    pub(crate) fn by_clients(&self) -> bool {
        self.by_clients
    }

    /// The end of names of steps for a file, such as `.iobound`; without its clients.
    pub(crate) fn suffix(&self, path: &Path) -> String {
        let mut suffix = String::new();
        let mut left = self.words.clone();
        for word in words(path).iter().filter(|word| left.remove(*word)) {
            suffix.push('.');
            suffix.push_str(word);
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tag: &str, dbms: Dbms, version: Option<&str>, machine: Option<(u32, u64)>) {
        let tag = decode_tag(tag);
        let found = tag.version.as_ref().map(Version::as_str);
        assert_eq!((tag.dbms, found, tag.machine), (dbms, version, machine), "{tag:?}");
    }

    #[test]
    fn published_tags_are_understood() {
        let c8r32 = Some((8, 32));
        check("x.my8044_rel_o2nofp.z12a_c8r32.pk1", Dbms::Mysql, Some("8.0.44"), c8r32);
        check("x.my5651_rel_o2nofp.z12a_c8r32.pk1", Dbms::Mysql, Some("5.6.51"), c8r32);
        check("my8406_rel.cz10a", Dbms::Mysql, Some("8.4.6"), None);
        check("my9400_rel", Dbms::Mysql, Some("9.4.0"), None);
        check("20m.my5649.cx6d", Dbms::Mysql, Some("5.6.49"), None);
        check("x.pg1110.x5.pk1", Dbms::Postgres, Some("11.10"), None);
        check("x.pg176_o2nofp.x10a_c32r128.pk1", Dbms::Postgres, Some("17.6"), Some((32, 128)));
        check("800m.pg19b1_o2nofp.cx10b_c8r32", Dbms::Postgres, Some("19b1"), c8r32);
        check("pg18beta2", Dbms::Postgres, Some("18beta2"), None);
        check("pg9624", Dbms::Postgres, Some("9.6.24"), None);
        check(
            "x.ma101114_rel_withdbg.z12a_c32r128.pk1",
            Dbms::Mariadb,
            Some("10.11.14"),
            Some((32, 128)),
        );
        check("x.ma120101_rel", Dbms::Mariadb, Some("12.1.1"), None);
        check("fbmy8032_rel_o2nofp_end_241023_ba9709c9_971.y", Dbms::Mysql, Some("8.0.32"), None);
        check("rx56.cx6a", Dbms::Mysql, Some("5.6"), None);
        check("fbrx_fix2.za", Dbms::Mysql, None, None);
        check("mo425.c5", Dbms::Other, None, None);
        check("", Dbms::Other, None, None);
        check("manual", Dbms::Other, None, None);
        check("myé", Dbms::Other, None, None);
    }

    fn table(rates: [&str; 4]) -> TableCells {
        let steps = ["a", "b", "c", "d"].iter().zip(rates);
        steps.map(|(step, rate)| (("x".to_owned(), (*step).to_owned()), rate.to_owned())).collect()
    }

    #[test]
    fn names_of_contradicting_tables_tell_conditions_apart() {
        let check = |files: [(&str, [&str; 4]); 2], ends: [&str; 2], clients: [Option<u32>; 2]| {
            let paths = files.map(|(name, _)| PathBuf::from(name));
            let tables: Vec<(&Path, TableCells)> =
                paths.iter().map(PathBuf::as_path).zip(files.map(|(_, it)| table(it))).collect();
            let variants = Variants::find(&tables);
            assert_eq!([0, 1].map(|at| variants.suffix(&paths[at])), ends, "{paths:?}");
            assert_eq!([0, 1].map(|at| variants.clients(&paths[at])), clients, "{paths:?}");
        };
        let (one, two) = (["100", "200", "300", "400"], ["90", "20", "310", "40"]);
        let names = ["d/qps.abs.cached.tsv", "d/qps.abs.iobound.tsv"];
        check([(names[0], one), (names[1], two)], [".cached", ".iobound"], [None; 2]);
        // One wrong cell is a mismatch, not a condition.
        let fault = ["100", "200", "300", "440"];
        check([(names[0], one), (names[1], fault)], ["", ""], [None; 2]);
        check([("d/qps.abs.all.tsv", one), ("d/qps.abs.io.tsv", two)], [".all", ".io"], [None; 2]);
        check([("p/qps.abs.tsv", one), ("q/qps.abs.tsv", two)], [".p", ".q"], [None; 2]);
        // Any folder of the path may tell it, and the clients, too.
        let names = ["d/inmem/8u/qps.abs.tsv", "d/io/8u/qps.abs.tsv"];
        check([(names[0], one), (names[1], two)], [".inmem", ".io"], [None; 2]);
        let names = ["d/io.1u/qps.abs.tsv", "d/io.8u/qps.abs.tsv"];
        check([(names[0], one), (names[1], two)], ["", ""], [Some(1), Some(8)]);
        let names = ["d/qps.rel.ma106.1u.tsv", "d/qps.rel.ma106.40u.tsv"];
        check([(names[0], one), (names[1], one)], ["", ""], [Some(1), Some(40)]);
        let ratios = (["1.00", "0.99", "0.97", "1.02"], ["1.00", "0.98", "0.96", "1.02"]);
        let names = ["d/rel.a.dop8.tsv", "d/rel.b.dop8.tsv"];
        check([(names[0], ratios.0), (names[1], ratios.1)], [".a", ".b"], [None; 2]);
    }

    #[test]
    fn rates_and_their_ratios_are_kin() {
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/qps.abs.my80.1u.tsv"), of("a/qps.rel.my80.1u.csv"));
        assert_ne!(of("a/qps.abs.my80.1u.tsv"), of("a/qps.rel.my84.1u.tsv"));
        assert_ne!(of("a/qps.abs.tsv"), of("b/qps.rel.tsv"));
    }
}
