//! `--set pg.work_mem=64MB`: settings of servers and libraries on the command line.

use anyhow::{Result, bail};

use rqps_model::build::{BuildSource, Dbms};
use rqps_model::dialect::Dialect;
use rqps_model::target::{Setting, Target, config_parts, setting};

/// A setting of all targets of a kind.
pub(super) struct TargetSetting<'a> {
    /// The word before the dot.
    kind: &'a str,
    pub(super) setting: Setting<'a>,
}

impl<'a> TargetSetting<'a> {
    /// `my.KEY=VALUE`; `None` for a setting of the workload.
    ///
    /// # Errors
    /// The value may be more than one setting.
    pub(super) fn of(word: &'a str) -> Result<Option<TargetSetting<'a>>> {
        let Some((kind, rest)) = word.split_once('.') else { return Ok(None) };
        if kind.contains('=') || (![MY, KV].contains(&kind) && Dbms::from_name(kind).is_none()) {
            return Ok(None);
        }
        match setting(rest) {
            Some(setting) => Ok(Some(TargetSetting { kind, setting })),
            None => bail!(
                "set {word}: write {kind}.KEY=VALUE with letters, digits and _ . - + %; other \
                 values have a line in a config that begins with `include default`"
            ),
        }
    }

    /// True if rqps starts the target, and it has such settings.
    pub(super) fn is_of(&self, target: &Target) -> bool {
        match self.kind {
            _ if matches!(target.source, BuildSource::Dsn(_)) => false,
            KV => target.dbms.dialect() == Dialect::KeyValue,
            MY => target.dbms.dialect() == Dialect::Mysql,
            name => Dbms::from_name(name) == Some(target.dbms),
        }
    }
}

/// MySQL and MariaDB.
const MY: &str = "my";
/// RocksDB and Speedb.
const KV: &str = "kv";

/// Divides settings into those of targets and those of the workload.
///
/// # Errors
/// A setting of targets is malformed.
pub(super) fn divide(settings: &[String]) -> Result<(Vec<TargetSetting<'_>>, Vec<&String>)> {
    let (mut of_targets, mut of_workload) = (Vec::new(), Vec::new());
    for word in settings {
        match TargetSetting::of(word)? {
            Some(setting) => of_targets.push(setting),
            None => of_workload.push(word),
        }
    }
    Ok((of_targets, of_workload))
}

/// Adds settings to the configurations of the targets that they are for. One that a target's own
/// word sets stays.
///
/// # Errors
/// No target takes a setting.
pub(super) fn put(targets: &mut [Target], settings: &[TargetSetting<'_>]) -> Result<()> {
    for one in settings {
        let (key, value) = one.setting;
        let mut is_taken = false;
        for target in targets.iter_mut().filter(|target| one.is_of(target)) {
            is_taken = true;
            if !config_parts(&target.config).1.iter().any(|(known, _)| *known == key) {
                target.config.push_str(&format!(",{key}={value}"));
            }
        }
        if !is_taken {
            bail!("set {}.{key}: rqps starts no target that takes it", one.kind);
        }
    }
    Ok(())
}
