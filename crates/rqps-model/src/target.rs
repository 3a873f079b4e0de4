//! Targets: a build with a configuration and a short label, and where its tables are on a server of
//! somebody else.

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::build::{BuildSource, Dbms};

/// One thing to measure. Two targets of a plan never share a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Short and unique in the plan: `mysql-8.0.33`, `before`. Safe in a file name.
    #[serde(deserialize_with = "checked_label")]
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

// Named settings of a DBMS, with a hash of their text.

/// Settings as they were handed to the DBMS: a my.cnf, a postgresql.conf fragment, a list of
/// PRAGMAs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `default`, or the name after the colon of the target word.
    pub name: String,
    /// The text after version guards and sizes were filled in: exactly what the DBMS read.
    pub text: String,
    /// The first 12 hex digits of the SHA-256 of `text`.
    pub hash: String,
}

/// The config of every DBMS that leaves its build as it is.
pub const INSTALLED: &str = "installed";

/// True for [`INSTALLED`], and for changes of it, whose names continue with a plus.
pub fn is_installed(name: &str) -> bool {
    name.strip_prefix(INSTALLED).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

// Labels of targets. A label becomes the name of a folder, so this rule holds wherever a file
// brings one: plans, bundles, run records, blocks, reports of other hosts.

/// Bytes of the longest label. The name of a run folder has some more.
const BYTES_MOST: usize = 200;

/// The reason for refusing a label; `None` if it is one.
pub fn label_fault(label: &str) -> Option<&'static str> {
    if label.is_empty() {
        return Some("it is empty");
    }
    if label.len() > BYTES_MOST {
        return Some("it is longer than 200 bytes");
    }
    if label.starts_with('.') {
        return Some("it begins with a dot");
    }
    if label.contains('/') {
        return Some("it has a slash");
    }
    // Marks of direction are of a kind that `escape_debug` escapes, as control characters are.
    let hides = |c: char| !c.is_ascii_graphic() && c != ' ' && c.escape_debug().len() > 1;
    label.contains(hides).then_some("it has a character that is not shown")
}

/// Reads a label. For `#[serde(deserialize_with)]`.
///
/// # Errors
/// [`fault`].
pub fn checked_label<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let label = String::deserialize(from)?;
    match label_fault(&label) {
        None => Ok(label),
        Some(why) => {
            let shown: String = label.chars().take(60).flat_map(char::escape_debug).collect();
            Err(de::Error::custom(format!("`{shown}` is not the label of a target: {why}")))
        }
    }
}

// rqps as a guest: where its tables are on a server that it does not run.

/// The place of a benchmark's tables on a server that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPlace {
    /// `schema rqps_0123456789ab of the database app`.
    pub words: String,
    /// The comment of every table that rqps makes there. A table without it is not rqps's.
    pub mark: String,
}

#[cfg(test)]
mod tests {
    use super::{Target, *};
    use crate::run::RunKey;

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

    #[test]
    fn a_label_is_the_name_of_a_folder() {
        for fine in ["mysql-8.0.33", "before", "a b+c_d", "é", "x..y", "🦀"] {
            assert_eq!(label_fault(fine), None, "{fine}");
        }
        let long = "x".repeat(201);
        for wrong in ["", ".", "..", ".x", "../x", "a/b", "/etc", "a\0", "a\n", "\u{202e}x", &long]
        {
            assert!(label_fault(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn whoever_reads_a_label_checks_it() {
        let key = |label: &str| {
            let json = serde_json::json!({"block": 1, "attempt": 1, "order": 1, "label": label});
            serde_json::from_value::<RunKey>(json)
        };
        assert!(key("a").is_ok());
        assert!(key("x/../../x").unwrap_err().to_string().contains("has a slash"));
        let target = |label: &str| {
            let source = "compiled_in";
            serde_json::from_value::<Target>(serde_json::json!({"label": label, "dbms": "sqlite",
                "source": source, "config": "default", "storage_engine": null}))
        };
        assert!(target("a").is_ok());
        assert!(target("..").unwrap_err().to_string().contains("begins with a dot"));
    }
}
