//! Config files by name: looked up in the user's folder, else shipped; version guards and sizes
//! filled in.
//!
//! A config is the DBMS's own file format with two additions. A trailing comment may guard a line:
//! `jit = off  # since 11`, `query_cache_type = 0  # until 5.7`, `x = 1  # since 5.7 until 8.0.29`;
//! what follows a colon in it is for the reader. `x = 1  # needs 16` refuses earlier versions the
//! whole config, which without that line would not be what its name says. Sizes may be asked
//! for: `{cache_mb}`, `{cache_kb}` (the cache that the plan gives to every target), `{log_mb}` (the
//! write-ahead or redo log that goes with it). Comments and blank lines are dropped, so the text,
//! and its hash, are only what the DBMS reads. `include default` stands for the shipped config of
//! that name, of which a file of the user's then changes single lines. Settings of a target
//! (`default,work_mem=64MB`) replace those of its config.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::spec;
use rqps_model::build::{Config, Dbms, PLANNER, Version, config_parts};
use rqps_model::{bounded, units};

/// Loads the config `name` (or the file of that path) for one version of a DBMS, with a cache of
/// `cache_bytes`. The user's `own` configs come before what is shipped.
pub fn load(
    dbms: Dbms,
    name: &str,
    own: &UserConfigs,
    version: &Version,
    cache_bytes: u64,
) -> Result<Config, ConfigError> {
    let (name, text) = find(dbms, name, own)?;
    loaded(name, text, dbms, version, cache_bytes)
}

/// [`load`] for statements of the user's own: a shipped config leaves the planner as the build has
/// it.
pub fn load_for_own_statements(
    dbms: Dbms,
    name: &str,
    own: &UserConfigs,
    version: &Version,
    cache_bytes: u64,
) -> Result<Config, ConfigError> {
    let (name, text) = find(dbms, name, own)?;
    let text = if is_shipped_file(dbms, &name, &text) { without_planner(&text) } else { text };
    loaded(name, text, dbms, version, cache_bytes)
}

/// A config without its settings of the planner.
fn without_planner(text: &str) -> String {
    let keeps = |line: &&str| {
        let setting = line.split(['=', ' ']).next().unwrap_or_default();
        !PLANNER.contains(&setting)
    };
    text.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect()
}

fn loaded(
    name: String,
    text: String,
    dbms: Dbms,
    version: &Version,
    cache_bytes: u64,
) -> Result<Config, ConfigError> {
    if let Some((setting, least)) = lacking(&text, version) {
        let version = version.clone();
        return Err(ConfigError::TooOld { name, dbms, version, setting, least });
    }
    let text = render(&text, version, cache_bytes).map_err(|(line, what)| {
        let place = format!("understand line {line} of the config '{name}' of {dbms}");
        ConfigError::Wrong(format!("{place}: {what}"))
    })?;
    let hash = hash(&text);
    Ok(Config { name, text, hash })
}

/// Checks that there is a config of that name, before the version of the DBMS is known.
pub fn check_name(dbms: Dbms, name: &str, own: &UserConfigs) -> Result<(), ConfigError> {
    find(dbms, name, own).map(drop)
}

/// The short name of a config, and its text as it is written.
///
/// # Errors
/// There is no config of that name.
pub fn written(dbms: Dbms, name: &str, own: &UserConfigs) -> Result<(String, String), ConfigError> {
    find(dbms, name, own)
}

/// The text of a config as this version reads it; `None` if the text is invalid.
pub fn rendered(text: &str, version: &Version, cache_bytes: u64) -> Option<String> {
    render(text, version, cache_bytes).ok()
}

/// True if a config is one that is shipped, but for its sizes.
pub fn is_shipped(dbms: Dbms, (name, text): (&str, &str), version: &Version) -> bool {
    let without_numbers = |text: &str| text.split(|c: char| c.is_ascii_digit()).collect::<String>();
    let of_name = shipped_texts(dbms).iter().filter(|(known, _)| *known == name);
    let texts = of_name.flat_map(|(_, text)| [(*text).to_owned(), without_planner(text)]);
    texts
        .filter_map(|text| rendered(&text, version, 1 << 30))
        .any(|shipped| without_numbers(&shipped) == without_numbers(text))
}

/// True if the file of a config is the one that is shipped.
pub fn is_shipped_file(dbms: Dbms, name: &str, text: &str) -> bool {
    shipped_texts(dbms).contains(&(name, text))
}

/// Names of what is shipped for a DBMS.
pub fn shipped(dbms: Dbms) -> Vec<&'static str> {
    shipped_texts(dbms).iter().map(|(name, _)| *name).collect()
}

fn shipped_texts(dbms: Dbms) -> &'static [(&'static str, &'static str)] {
    spec::of(dbms).map_or(&[], |spec| spec.configs)
}

/// The first 12 hex digits of the SHA-256 of `text`.
pub fn hash(text: &str) -> String {
    units::hex(&Sha256::digest(text.as_bytes())[..6])
}

/// The short name and the raw text, with the settings of the target after it.
fn find(dbms: Dbms, config: &str, own: &UserConfigs) -> Result<(String, String), ConfigError> {
    let (name, settings) = config_parts(config);
    if settings.is_empty() || own.has(dbms, config) {
        // Of a bundle, the file of the whole name has the settings already.
        return find_named(dbms, config, own);
    }
    let (name, text) = find_named(dbms, name, own)?;
    let lines: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let words: String = settings.iter().map(|(key, value)| format!(",{key}={value}")).collect();
    Ok((name + &words, replaced(&text, &lines)))
}

/// A config with these lines in place of what it says about their settings: SQLite would make both.
/// `skip-log-bin` is about `log_bin`, too.
pub fn replaced(text: &str, lines: &[String]) -> String {
    let key = |line: &str| {
        let setting = split_comment(line).0;
        let key = setting.split('=').next().unwrap_or_default().trim().replace('-', "_");
        let prefixes = ["loose_", "skip_", "disable_"];
        let bare = |key: String, prefix| key.strip_prefix(prefix).map(str::to_owned).unwrap_or(key);
        prefixes.into_iter().fold(key.to_ascii_lowercase(), bare)
    };
    let keys: Vec<String> = lines.iter().map(|line| key(line)).collect();
    let kept =
        text.lines().filter(|line| split_comment(line).0.is_empty() || !keys.contains(&key(line)));
    kept.chain(lines.iter().map(String::as_str)).flat_map(|line| [line, "\n"]).collect()
}

/// A config of the user's with the text of shipped ones in place of `include NAME`, without what it
/// sets itself.
fn included(dbms: Dbms, text: &str) -> String {
    let shipped = |line: &str| {
        let name = split_comment(line).0.strip_prefix("include ")?.trim();
        shipped_texts(dbms).iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    };
    let (includes, own): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| shipped(line).is_some());
    if includes.is_empty() {
        return text.to_owned();
    }
    let base: String = includes.into_iter().filter_map(shipped).collect();
    replaced(&base, &own.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

fn find_named(dbms: Dbms, name: &str, own: &UserConfigs) -> Result<(String, String), ConfigError> {
    if let Some(config) = own.get(dbms, name) {
        return Ok((config.name.clone(), included(dbms, &config.text)));
    }
    if let Some((_, text)) = shipped_texts(dbms).iter().find(|(known, _)| *known == name) {
        return Ok((name.to_owned(), (*text).to_owned()));
    }
    let files = own.files(dbms, name);
    let looked: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let looked = if looked.is_empty() {
        format!("configs/{}/{name}.conf", dbms.name())
    } else {
        looked.join(" or ")
    };
    let shipped = shipped(dbms).join(", ");
    let more = if name.contains(',') { "; a setting of its own is KEY=VALUE" } else { "" };
    Err(ConfigError::Wrong(format!(
        "find the config '{name}' of {dbms}: no {looked}; shipped configs: {shipped}; create that \
         file, or give the path of one{more}"
    )))
}

/// The first setting that needs a later version than this, and which.
fn lacking(text: &str, version: &Version) -> Option<(String, String)> {
    text.lines().map(split_comment).find_map(|(setting, comment)| {
        let least = comment.strip_prefix("needs ")?.split(':').next()?.trim();
        let has = version.at_least(&Version::new(least).numbers());
        (!setting.is_empty() && !has).then(|| (setting.to_owned(), least.to_owned()))
    })
}

/// The text that the DBMS reads; the error is the line and the problem.
fn render(text: &str, version: &Version, cache_bytes: u64) -> Result<String, (usize, String)> {
    let mut rendered = String::new();
    for (index, line) in text.lines().enumerate() {
        let fault = |what| (index + 1, what);
        let (setting, comment) = split_comment(line);
        if setting.is_empty() || !applies(comment, version).map_err(fault)? {
            continue;
        }
        rendered.push_str(&fill_sizes(setting, cache_bytes).map_err(fault)?);
        rendered.push('\n');
    }
    Ok(rendered)
}

/// The setting and the comment of a line. `#` begins a comment at the start of a line and after
/// white space, but not within quotes; `;` does at the start of a line.
fn split_comment(line: &str) -> (&str, &str) {
    let line = line.trim();
    if line.starts_with(';') {
        return ("", "");
    }
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => {
                return (line[..at].trim_end(), line[at + 1..].trim());
            }
            None => {}
        }
        before = c;
    }
    (line, "")
}

/// True if a line with this comment is for `version`. A comment that does not begin with `since` or
/// `until` has no effect.
fn applies(comment: &str, version: &Version) -> Result<bool, String> {
    let guard = comment.split(':').next().unwrap_or_default();
    let words: Vec<&str> = guard.split_whitespace().collect();
    if !matches!(words.first(), Some(&"since" | &"until")) {
        return Ok(true);
    }
    for pair in words.chunks(2) {
        let numbers = pair.get(1).map(|text| Version::new(*text).numbers()).unwrap_or_default();
        if numbers.is_empty() {
            return Err(format!(
                "the guard '# {guard}' has no version; write it as '# since 8.0.30'"
            ));
        }
        let holds = match pair[0] {
            "since" => version.at_least(&numbers),
            // `until 5.7` holds for 5.7.44 too: only as many numbers as are given count.
            "until" => !version.at_least(&next(numbers)),
            other => {
                return Err(format!(
                    "the guard '# {guard}' has '{other}' instead of 'since' or 'until'; put \
                     remarks after a colon"
                ));
            }
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first version that no longer begins with these numbers.
fn next(mut numbers: Vec<u32>) -> Vec<u32> {
    if let Some(last) = numbers.last_mut() {
        *last += 1;
    }
    numbers
}

/// Megabytes of write-ahead or redo log: as much as the cache, at least 256 and at most 16384.
/// Published runs have 20 to 40 GB with 10 GB of cache; less suffices for shorter runs, and some
/// versions fill the whole log with zeros when they first start, which every snapshot then copies.
pub fn log_mb(cache_mb: u64) -> u64 {
    cache_mb.clamp(256, 16384)
}

/// Replaces `{cache_mb}` and its like.
fn fill_sizes(setting: &str, cache_bytes: u64) -> Result<String, String> {
    let cache_mb = (cache_bytes >> 20).max(1);
    let sizes = [
        ("{cache_mb}", cache_mb),
        ("{cache_kb}", (cache_bytes >> 10).max(1)),
        ("{log_mb}", log_mb(cache_mb)),
        ("{half_log_mb}", log_mb(cache_mb) / 2),
    ];
    let mut filled = setting.to_owned();
    for (word, size) in sizes {
        filled = filled.replace(word, &size.to_string());
    }
    match filled.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        Some((word, _))
            if !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_') =>
        {
            let known: Vec<&str> = sizes.iter().map(|(word, _)| *word).collect();
            Err(format!("unknown size {{{word}}}; valid sizes: {}", known.join(", ")))
        }
        _ => Ok(filled),
    }
}

// Configs that a user brings, by name in a folder or by path: each is read once, so what is asked
// about and hashed is what servers get.

/// The configs of a plan that are files of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserConfigs {
    folder: Option<PathBuf>,
    found: BTreeMap<(Dbms, String), UserConfig>,
}

/// A config that is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConfig {
    /// The file.
    pub path: PathBuf,
    /// Its name without its ending.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl UserConfigs {
    /// Configs that may stand in `folder`, which holds `DBMS/NAME.conf` or `.cnf`.
    pub fn of(folder: Option<PathBuf>) -> UserConfigs {
        UserConfigs { folder, found: BTreeMap::new() }
    }

    /// Reads the config `name`, or the file of that path; false if there is none, so that the
    /// shipped one counts.
    ///
    /// # Errors
    /// The file cannot be read, or is no text.
    pub fn read(&mut self, dbms: Dbms, config: &str) -> Result<bool, ConfigError> {
        let base = config_parts(config).0;
        Ok((base != config && self.read_named(dbms, config)?) || self.read_named(dbms, base)?)
    }

    fn read_named(&mut self, dbms: Dbms, name: &str) -> Result<bool, ConfigError> {
        for path in self.files(dbms, name) {
            match bounded::text(&path, bounded::WRITTEN_MAX) {
                Ok(text) => {
                    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    let config = UserConfig { name: stem.unwrap_or_default(), path, text };
                    self.found.insert((dbms, name.to_owned()), config);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                    ) =>
                {
                    let path = path.display();
                    return Err(ConfigError::Wrong(format!(
                        "use {path} as a config of {dbms}: it is not a text file; to use it as a \
                         build, write {dbms}={path}"
                    )));
                }
                Err(source) => return Err(ConfigError::Read { path, source }),
            }
        }
        Ok(false)
    }

    /// Adds a config that is made of another, under a name of its own.
    pub fn add(&mut self, dbms: Dbms, name: &str, text: String) {
        let config = UserConfig { name: name.to_owned(), path: PathBuf::new(), text };
        self.found.insert((dbms, name.to_owned()), config);
    }

    /// The files that may be the config of this name.
    pub fn files(&self, dbms: Dbms, name: &str) -> Vec<PathBuf> {
        if name.contains('/') {
            return vec![PathBuf::from(name)];
        }
        let of_ending =
            |folder: &Path, ending| folder.join(dbms.name()).join(format!("{name}.{ending}"));
        let folder = self.folder.iter();
        folder.flat_map(|folder| ["conf", "cnf"].map(|ending| of_ending(folder, ending))).collect()
    }

    /// The config of this name, or that which the settings in it change; `None` for a shipped one.
    pub fn get(&self, dbms: Dbms, config: &str) -> Option<&UserConfig> {
        let of = |name: &str| self.found.get(&(dbms, name.to_owned()));
        of(config).or_else(|| of(config_parts(config).0))
    }

    /// True if there is a config of this whole name.
    pub(crate) fn has(&self, dbms: Dbms, config: &str) -> bool {
        self.found.contains_key(&(dbms, config.to_owned()))
    }
}

// Errors of configs.

/// An error of a config.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No such config, or none that can be used.
    #[error("{0}")]
    Wrong(String),
    /// The file is there and cannot be read.
    #[error("read the config {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A setting without which the config is not what its name says.
    #[error(
        "use the config '{name}' for {dbms} {version}: '{setting}' needs {dbms} {least} or later; \
         use another config or a later version"
    )]
    TooOld {
        /// Name of the config.
        name: String,
        /// The DBMS.
        dbms: Dbms,
        /// The version that it was to be used for.
        version: Version,
        /// The line of it.
        setting: String,
        /// The first version that knows the setting.
        least: String,
    },
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shipped_only() -> UserConfigs {
        UserConfigs::default()
    }

    fn read(dbms: Dbms, name: &str) -> Result<bool, ConfigError> {
        UserConfigs::default().read(dbms, name)
    }

    fn rendered(text: &str, version: &str) -> Result<String, (usize, String)> {
        render(text, &Version::new(version), 3 << 30)
    }

    #[test]
    fn the_planner_of_own_statements_is_that_of_the_build() {
        let none = shipped_only();
        let version = Version::new("17.2");
        let usual = load(Dbms::Postgres, "default", &none, &version, 1 << 30).unwrap();
        let own = load_for_own_statements(Dbms::Postgres, "default", &none, &version, 1 << 30);
        let own = own.unwrap();
        for name in PLANNER {
            assert!(usual.text.contains(&format!("{name} = ")), "{name}");
            assert!(!own.text.contains(&format!("{name} = ")), "{name}");
        }
        assert!(own.text.contains("max_parallel_maintenance_workers = 0"));
        assert_eq!(usual.text.lines().count(), own.text.lines().count() + PLANNER.len());
        for text in [&usual.text, &own.text] {
            assert!(is_shipped(Dbms::Postgres, ("default", text), &version));
        }
    }

    #[test]
    fn guards_select_lines() {
        let check = |line: &str, version, wanted: bool| {
            let found = rendered(line, version).unwrap();
            assert_eq!(!found.is_empty(), wanted, "{line} for {version}");
        };
        check("a = 1", "9.6.24", true);
        check("a = 1 # since 11", "11.22.1", true);
        check("a = 1 # since 11", "10.5", false);
        check("a = 1 # until 5.7", "5.7.44", true);
        check("a = 1 # until 5.7", "8.0.33", false);
        check("a = 1 # since 5.7 until 8.0.29", "8.0.29", true);
        check("a = 1 # since 5.7 until 8.0.29: then the other", "8.0.30", false);
        check("a = 1 # fast since 12", "11", true);
        check("# since 11", "11", false);
        check("; a = 1", "11", false);
        check("   ", "11", false);
    }

    #[test]
    fn comments_go_and_quotes_stay() {
        let check = |line: &str, wanted: &str| {
            assert_eq!(rendered(line, "11").unwrap(), wanted, "{line}");
        };
        check("a = '# b' # c", "a = '# b'\n");
        check("  a = b#c", "a = b#c\n");
        check("[mysqld]", "[mysqld]\n");
        check("a = \"{} x\"", "a = \"{} x\"\n");
    }

    #[test]
    fn sizes_are_filled_in() {
        let check = |line: &str, wanted: &str| {
            assert_eq!(rendered(line, "11").unwrap(), wanted, "{line}");
        };
        check("a = {cache_mb}MB", "a = 3072MB\n");
        check("a = -{cache_kb}", "a = -3145728\n");
        check("a = {log_mb}M, {half_log_mb}", "a = 3072M, 1536\n");
        assert_eq!(log_mb(10), 256);
        assert_eq!(log_mb(100_000), 16384);
    }

    #[test]
    fn a_setting_of_a_target_replaces_that_of_its_config() {
        let version = Version::new("8.0.33");
        let get = |own: &UserConfigs, name: &str| {
            load(Dbms::Mysql, name, own, &version, 1 << 30).unwrap()
        };
        let none = shipped_only();
        let config = get(&none, "default,sync-binlog=1,innodb_io_capacity=200");
        assert_eq!(config.name, "default,sync-binlog=1,innodb_io_capacity=200");
        let plain = get(&none, "default").text;
        let expected =
            plain.replace("sync_binlog = 0\n", "").replace("innodb_io_capacity = 1000\n", "");
        assert_eq!(expected.lines().count() + 2, plain.lines().count());
        assert_eq!(config.text, expected + "sync-binlog = 1\ninnodb_io_capacity = 200\n");
        let error = load(Dbms::Mysql, "default,sync_binlog", &none, &version, 1 << 30).unwrap_err();
        assert!(error.to_string().ends_with("a setting of its own is KEY=VALUE"), "{error}");
        let text =
            replaced("journal_mode = WAL\ncache_size = -1 # x\n", &["cache_size = 5".into()]);
        assert_eq!(text, "journal_mode = WAL\ncache_size = 5\n");
        let text = replaced("skip-log-bin  # since 5.7\n", &["log_bin = b".into()]);
        assert_eq!(text, "log_bin = b\n");
    }

    #[test]
    fn a_file_may_change_one_line_of_a_shipped_config() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("postgres")).unwrap();
        let text = "# mine\ninclude default\njit = on  # since 11\n";
        fs::write(folder.path().join("postgres/mine.conf"), text).unwrap();
        let mut own = UserConfigs::of(Some(folder.path().to_owned()));
        assert!(own.read(Dbms::Postgres, "mine,work_mem=8MB").unwrap());
        let load =
            |name: &str| load(Dbms::Postgres, name, &own, &Version::new("17.2"), 1 << 30).unwrap();
        let lines = |text: &str, part: &str| text.lines().filter(|it| it.starts_with(part)).count();
        let (mine, default) = (load("mine"), load("default"));
        assert_eq!((lines(&mine.text, "jit = on"), lines(&mine.text, "jit = ")), (1, 1));
        assert_eq!(mine.text.lines().count(), default.text.lines().count());
        let more = load("mine,work_mem=8MB");
        assert_eq!((more.name.as_str(), lines(&more.text, "work_mem")), ("mine,work_mem=8MB", 1));
        assert!(included(Dbms::Postgres, "include nowhere\n").contains("include nowhere"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, line, words: &str| {
            let (at, what) = rendered(text, "11").unwrap_err();
            assert_eq!(at, line, "{text}");
            assert!(what.contains(words), "{what}");
        };
        check("\na = 1 # since", 2, "has no version");
        check("a = 1 # since 11 but 12", 1, "'but'");
        check("a = {cash_mb}", 1, "unknown size {cash_mb}");
    }

    #[test]
    fn the_hash_is_the_head_of_sha256() {
        // printf 'abc' | sha256sum
        assert_eq!(hash("abc"), "ba7816bf8f01");
    }

    #[test]
    fn a_config_that_needs_a_later_version_is_refused() {
        let get = |version| {
            load(Dbms::Postgres, "direct-io", &shipped_only(), &Version::new(version), 1 << 30)
        };
        let error = get("15.4").unwrap_err().to_string();
        assert!(error.contains("for postgres 15.4: 'debug_io_direct = "), "{error}");
        assert!(error.contains("needs postgres 16 or later"), "{error}");
        assert!(get("16.0").unwrap().text.contains("debug_io_direct = 'data,wal'\n"));
        assert_eq!(lacking("# needs 17\na = 1 # needs 16: why", &Version::new("16.2")), None);
    }

    #[test]
    fn shipped_configs_render_for_all_versions() {
        let check = |dbms, versions: &[&str]| {
            for version in versions {
                for name in shipped(dbms) {
                    let version = Version::new(*version);
                    let config = match load(dbms, name, &shipped_only(), &version, 1 << 30) {
                        Err(ConfigError::TooOld { name, .. })
                            if ["direct-io", "myrocks-hyperclock"].contains(&&*name) =>
                        {
                            continue;
                        }
                        other => other.unwrap(),
                    };
                    assert!(!config.text.contains('#'), "{}", config.text);
                    assert_eq!(config.hash, hash(&config.text));
                }
            }
        };
        check(Dbms::Postgres, &["9.6.24", "11.22.1", "17.2.0", "18.0"]);
        check(Dbms::Mysql, &["5.5.34", "5.6.14", "5.7.44", "8.0.33"]);
        check(Dbms::Mariadb, &["10.1.23", "10.2.11", "10.11.5", "11.4.5", "11.8.2"]);
        check(Dbms::Sqlite, &["3.34.1", "3.46.0"]);
        check(Dbms::Fake, &["1"]);
        check(Dbms::Rocksdb, &["7.8.3", "9.9.3"]);
    }

    #[test]
    fn a_build_in_place_of_a_config_is_told_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libsqlite3.so");
        fs::write(&library, [0x7f, b'E', b'L', b'F', 0xff]).unwrap();
        for path in [folder.path(), &library] {
            let path = path.to_str().unwrap();
            let error = read(Dbms::Sqlite, path).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "use {path} as a config of sqlite: it is not a text file; to use it as a \
                     build, write sqlite={path}"
                )
            );
        }
    }

    #[test]
    fn the_users_file_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let of = folder.path().join("mysql");
        fs::create_dir(&of).unwrap();
        fs::write(of.join("tiny.cnf"), "[mysqld]\nx = 1\n").unwrap();
        fs::write(of.join("default.conf"), "y = 2\n").unwrap();
        let version = Version::new("8.0.33");
        let get = |name: &str| {
            let mut own = UserConfigs::of(Some(folder.path().to_owned()));
            own.read(Dbms::Mysql, name).unwrap();
            load(Dbms::Mysql, name, &own, &version, 1 << 30)
        };
        assert_eq!(get("tiny").unwrap().text, "[mysqld]\nx = 1\n");
        assert_eq!(get("default").unwrap().text, "y = 2\n");
        let path = of.join("tiny.cnf");
        let by_path = get(path.to_str().unwrap()).unwrap();
        assert_eq!((by_path.name.as_str(), by_path.text.as_str()), ("tiny", "[mysqld]\nx = 1\n"));
        let error = get("none").unwrap_err().to_string();
        assert!(error.contains("mysql/none.conf or ") && error.contains("default"), "{error}");
    }
}
