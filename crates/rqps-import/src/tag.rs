//! Tags of published results: `my8044_rel_o2nofp.z12a_c8r32` is MySQL 8.0.44 with the configuration
//! z12a_c8r32 on 8 cores and 32 GB.

use rqps_dbms::spec::{self, DbmsSpec, TagScheme};
use rqps_model::build::{Dbms, Version};

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
pub fn decode(text: &str) -> Tag {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tag: &str, dbms: Dbms, version: Option<&str>, machine: Option<(u32, u64)>) {
        let tag = decode(tag);
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
}
