//! Targets: a build with a configuration and a short label.

use serde::{Deserialize, Serialize};

use crate::build::{BuildSource, Dbms};
use crate::label;

/// One thing to measure. Two targets of a plan never share a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Short and unique in the plan: `mysql-8.0.33`, `before`. Safe in a file name.
    #[serde(deserialize_with = "label::checked")]
    pub label: String,
    /// The product.
    pub dbms: Dbms,
    /// The origin of its build.
    pub source: BuildSource,
    /// Name of the configuration, and settings of the target's own after it, as
    /// [`config_parts`] divides it; `default` is shipped for every DBMS.
    pub config: String,
    /// `innodb`, `rocksdb`: only where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
}

impl Target {
    /// True if the DBMS is a library in the process of its clients.
    pub fn is_in_client(&self) -> bool {
        self.dbms.is_embedded() && !self.source.is_elsewhere()
    }
}

/// A setting of a target: its name and its value.
pub type Setting<'a> = (&'a str, &'a str);

/// `default,work_mem=64MB`: the name of a configuration, and the settings that come after it. A
/// name or path whose comma begins no setting has none.
pub fn config_parts(config: &str) -> (&str, Vec<Setting<'_>>) {
    let Some((name, rest)) = config.split_once(',') else { return (config, Vec::new()) };
    match rest.split(',').map(setting).collect() {
        Some(settings) => (name, settings),
        None => (config, Vec::new()),
    }
}

/// `KEY=VALUE` with characters that no file of settings reads as more than one setting.
pub fn setting(text: &str) -> Option<Setting<'_>> {
    let of = |text: &str, more: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        !text.is_empty() && text.len() <= 200 && text.chars().all(plain)
    };
    let (key, value) = text.split_once('=')?;
    (of(key, "_.-") && of(value, "_.-+%")).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_after_the_name_of_a_config() {
        assert_eq!(config_parts("default"), ("default", vec![]));
        let (name, settings) = config_parts("a,work_mem=64MB,jit=off");
        assert_eq!((name, &settings[..]), ("a", &[("work_mem", "64MB"), ("jit", "off")][..]));
        for whole in ["./a,b.conf", "a,x=1\ny=2", "a,x=/etc/passwd", "a,x=1,", "a,=1", "a,x='a b'"]
        {
            assert_eq!(config_parts(whole), (whole, vec![]), "{whole}");
        }
    }
}
