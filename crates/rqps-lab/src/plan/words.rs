//! Target words: `mysql@8.0.33`, `before=postgres=/opt/pg:big-cache`, `postgres://…`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use thiserror::Error;

use rqps_dbms::spec::{self, DbmsSpec, build_words, is_build_word, patch_file, recipe_name};
use rqps_model::build::{BuildSource, Dbms, Target, Version, config_parts};
use rqps_wire::dsn::{self, Dsn};

/// A word that does not name a target.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("read target `{word}`: {fault}\nhint: {hint}")]
pub struct TargetParseError {
    word: String,
    fault: String,
    hint: String,
}

/// The configuration that a word without one gets; shipped for every DBMS.
pub const DEFAULT_CONFIG: &str = "default";

/// The default configuration for tables in MyRocks: settings of other storage engines have no
/// effect on them.
const MYROCKS_CONFIG: &str = "myrocks";

/// Most targets of a plan.
const MOST_TARGETS: usize = 256;

/// Most letters of a label, which is part of the names of folders.
const LONGEST_LABEL: usize = 60;

fn default_config(storage: Option<&str>) -> &'static str {
    if storage == Some("rocksdb") { MYROCKS_CONFIG } else { DEFAULT_CONFIG }
}

/// True if the target has the configuration that a word without one gets.
pub fn has_default_config(target: &Target) -> bool {
    config_parts(&target.config).0 == default_config(target.storage_engine.as_deref())
}

/// The targets of a command line or plan file, labels made unique: the second `mysql@8.0.33` of an
/// A/A comparison becomes `mysql-8.0.33-2`.
///
/// # Errors
/// The first word that does not name a target, or a label that was given twice.
pub fn targets(words: &[String]) -> Result<Vec<Target>, TargetParseError> {
    let mut targets: Vec<Target> = Vec::new();
    if let Some(word) = words.get(MOST_TARGETS) {
        let fault = format!("more than {MOST_TARGETS} targets");
        return Err(error(word, &fault, "compare fewer builds at once"));
    }
    // Labels that are given, and the next number behind each of them.
    let (mut taken, mut numbers) = (BTreeSet::new(), BTreeMap::new());
    for word in words {
        let (mut target, label_given) = parse(word)?;
        if taken.contains(&target.label) && label_given {
            let fault = format!("two targets have the label `{}`", target.label);
            return Err(error(word, &fault, "give every target its own label"));
        }
        let plain = target.label.clone();
        let again = numbers.entry(plain.clone()).or_insert(2);
        while taken.contains(&target.label) {
            let number = format!("-{again}");
            let most = LONGEST_LABEL.saturating_sub(number.len()).min(plain.len());
            target.label = plain[..most].to_owned() + &number;
            *again += 1;
        }
        taken.insert(target.label.clone());
        targets.push(target);
    }
    Ok(targets)
}

/// The word that means this target, with its label unless that is the default: what a plan file
/// holds.
pub fn word(target: &Target) -> String {
    let config = match target.config.as_str() {
        name if name == default_config(target.storage_engine.as_deref()) => String::new(),
        name => format!(":{name}"),
    };
    let storage = target.storage_engine.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
    let dbms = target.dbms;
    let what = match &target.source {
        BuildSource::Version { version, variant: Some(variant) } => {
            let storage = if implied(variant) == target.storage_engine.as_deref() {
                ""
            } else {
                storage.as_str()
            };
            format!("{dbms}@{version}+{variant}{storage}{config}")
        }
        BuildSource::Version { version, variant: None } => {
            format!("{dbms}@{version}{storage}{config}")
        }
        BuildSource::Deb { suite, packages } => {
            format!("{dbms}=deb:{suite}/{}{storage}{config}", packages.join(","))
        }
        BuildSource::Path(path) => format!("{dbms}={}{storage}{config}", path.display()),
        BuildSource::Source { folder, reference, variant } => {
            let reference = reference.as_ref().map(|name| format!("@{name}")).unwrap_or_default();
            let variant = variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
            format!("{dbms}{SRC}{}{reference}{variant}{storage}{config}", folder.display())
        }
        BuildSource::CompiledIn => format!("{dbms}{storage}{config}"),
        BuildSource::Dsn(dsn) => with_dsn_config(dsn, &target.config),
        BuildSource::Client(text) => format!("{CLIENT}{text}"),
        BuildSource::Imported(tag) => format!("{dbms}={tag}"),
    };
    match parse(&what) {
        Ok((plain, _)) if plain.label == target.label => what,
        _ => format!("{}={what}", target.label),
    }
}

fn error(word: &str, fault: &str, hint: &str) -> TargetParseError {
    TargetParseError {
        word: dsn::without_password(word),
        fault: fault.to_owned(),
        hint: hint.to_owned(),
    }
}

/// One word; true if it carries a label.
fn parse(word: &str) -> Result<(Target, bool), TargetParseError> {
    let (label, rest) = match label_of(word) {
        Some((label, rest)) => (Some(label), rest),
        None => (None, word),
    };
    if let Some(label) = label {
        check_label(word, label)?;
    }
    let mut target = match rest.strip_prefix(CLIENT) {
        Some(text) => of_client(text),
        None if rest.contains("://") => running(word, rest)?,
        None => local(word, rest)?,
    };
    if let Some(label) = label {
        target.label = label.to_owned();
    }
    Ok((target, label.is_some()))
}

/// `label=rest`. The name of a DBMS is a label where a whole target follows, as in
/// `pg=postgres@17.2.0`: `postgres=/opt/pg` has none.
pub fn label_of(word: &str) -> Option<(&str, &str)> {
    let (before, rest) = word.split_once('=')?;
    let is_dbms = |name: &str| Dbms::from_name(name).is_some();
    let names = |name: &str| is_dbms(name) || dsn::known_scheme(name).is_some();
    let is_target = |mark| rest.split_once(mark).is_some_and(|(name, _)| names(name));
    let is_label = !is_dbms(before) || ["@", "=", "://"].into_iter().any(is_target);
    (is_label && !before.contains(['/', '@', ':'])).then_some((before, rest))
}

fn check_label(word: &str, label: &str) -> Result<(), TargetParseError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    if label.is_empty()
        || label.len() > LONGEST_LABEL
        || !label.chars().all(safe)
        || label.starts_with('.')
    {
        let fault = format!("`{label}` is not a valid label");
        let hint = "use up to 60 letters, digits and . _ + -; `rqps report --label` shows any name";
        return Err(error(word, &fault, hint));
    }
    Ok(())
}

/// The parameter of a DSN that names the configuration by which a benchmark chooses its variant. It
/// never reaches the server, whose settings stay.
const DSN_CONFIG: &str = "rqps_config=";

/// Takes the parameter of rqps out of a DSN.
fn split_dsn_config(dsn: &str) -> (String, Option<&str>) {
    let Some((before, query)) = dsn.split_once('?') else { return (dsn.to_owned(), None) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|parameter| parameter.starts_with(DSN_CONFIG));
    let config = ours.first().map(|parameter| &parameter[DSN_CONFIG.len()..]);
    match (config, theirs.is_empty()) {
        (None, _) => (dsn.to_owned(), None),
        (_, true) => (before.to_owned(), config),
        (_, false) => (format!("{before}?{}", theirs.join("&")), config),
    }
}

fn with_dsn_config(dsn: &str, config: &str) -> String {
    match (config, dsn.contains('?')) {
        (DEFAULT_CONFIG, _) => dsn.to_owned(),
        (_, true) => format!("{dsn}&{DSN_CONFIG}{config}"),
        (_, false) => format!("{dsn}?{DSN_CONFIG}{config}"),
    }
}

/// The beginning of a text for a program of the user's.
const CLIENT: &str = "client:";

/// A text that only a program of the user's understands.
fn of_client(text: &str) -> Target {
    let address = text.split_once("://").map(|(scheme, rest)| {
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}-{}", host.split(['/', '?']).next().unwrap_or_default())
    });
    let name = address.unwrap_or_else(|| text.rsplit('/').next().unwrap_or(text).to_owned());
    let label = label_text(name.trim_start_matches('.'));
    let label = if label.is_empty() { "client".to_owned() } else { label };
    let source = BuildSource::Client(text.to_owned());
    let config = DEFAULT_CONFIG.to_owned();
    Target { label, dbms: Dbms::Client, source, config, storage_engine: None }
}

fn running(word: &str, rest: &str) -> Result<Target, TargetParseError> {
    let (rest, config) = split_dsn_config(rest);
    let rest = rest.as_str();
    let config = config.unwrap_or(DEFAULT_CONFIG).to_owned();
    if config.is_empty() || !config.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let hint = "write rqps_config=halfvec, for the variant of a vector index";
        return Err(error(word, "rqps_config names no variant", hint));
    }
    let (scheme, address) = rest.split_once("://").unwrap_or((rest, ""));
    let dbms = match (dsn::known_scheme(scheme), Dbms::from_name(scheme)) {
        (Some((dbms, _)), _) => dbms,
        // The plan refuses it unless a program of the user's is there to understand it.
        (None, None) if is_scheme(scheme) => return Ok(of_client(rest)),
        _ => {
            let fault = format!("no DBMS has the scheme `{scheme}://`");
            return Err(error(word, &fault, "use postgres://, mysql:// or mariadb://"));
        }
    };
    let dsn = Dsn::parse(rest).map_err(|fault| {
        error(word, &fault.to_string(), "write DBMS://USER:PASSWORD@HOST:PORT/DATABASE")
    })?;
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let host: String = host.chars().take_while(|c| !"/?:".contains(*c)).collect();
    let host = match (host.as_str(), dsn.service.as_deref()) {
        ("", None | Some("")) => "local".to_owned(),
        ("", Some(service)) => service.to_owned(),
        _ => host,
    };
    // `cockroachdb://` says more than its protocol.
    let server = if Dbms::from_name(scheme).is_some() { dbms.name() } else { scheme };
    let of_config = if config == DEFAULT_CONFIG { String::new() } else { format!(".{config}") };
    Ok(Target {
        label: format!("{server}-{}{of_config}", label_text(&host)),
        dbms,
        source: BuildSource::Dsn(rest.to_owned()),
        config,
        storage_engine: None,
    })
}

/// True for a scheme of addresses: letters, digits, `+`, `.` and `-` after a letter.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
}

/// True if this program was built with a library of the DBMS.
fn is_compiled_in(dbms: Dbms) -> bool {
    let library = spec::of(dbms).and_then(DbmsSpec::library);
    library.is_some_and(|library| library.compiled_in.is_some())
}

fn local(word: &str, rest: &str) -> Result<Target, TargetParseError> {
    let hint = "write DBMS@VERSION, DBMS=deb:SUITE/PACKAGE, DBMS=src:DIR@REF, DBMS=PATH, sqlite, \
                or a DSN; `rqps builds` lists versions";
    let end = rest.find(['@', '=', ':', '+']).unwrap_or(rest.len());
    let (name, what) = rest.split_at(end);
    let named = Dbms::from_name(name).filter(|dbms| *dbms != Dbms::Client);
    let Some(dbms) = named else {
        let known: Vec<_> = Dbms::ALL.iter().map(|dbms| dbms.name()).collect();
        let fault = format!("unknown DBMS `{name}` (known: {})", known.join(", "));
        return Err(error(word, &fault, hint));
    };
    let (what, config) = split_config(what);
    if config == Some("") {
        return Err(error(word, "no configuration after the colon", "append a configuration name"));
    }
    let (source, storage_engine) = source(word, dbms, what)?;
    let config = config.unwrap_or(default_config(storage_engine.as_deref())).to_owned();
    let label = default_label(dbms, &source, storage_engine.as_deref(), &config);
    let label = label_text(&label);
    Ok(Target { label, dbms, source, config, storage_engine })
}

/// The beginning of the name of a Debian package in a target word.
const DEB: &str = "=deb:";

/// The beginning of the name of sources in a target word.
const SRC: &str = "=src:";

/// Splits off `:CONFIG`; a configuration may be a path, the build's path may hold no colon.
fn split_config(what: &str) -> (&str, Option<&str>) {
    let prefix = [DEB, SRC].into_iter().find(|prefix| what.starts_with(prefix));
    let from = prefix.map_or(0, str::len);
    match what[from..].split_once(':') {
        Some((build, config)) => (&what[..from + build.len()], Some(config)),
        None => (what, None),
    }
}

/// The storage engine of tables, if a variant of a build is one that is there for it.
fn implied(variant: &str) -> Option<&'static str> {
    match variant {
        "myrocks" | "rocksdb" => Some("rocksdb"),
        _ => None,
    }
}

type SourceAndStorage = (BuildSource, Option<String>);

fn source(word: &str, dbms: Dbms, what: &str) -> Result<SourceAndStorage, TargetParseError> {
    if let Some(rest) = what.strip_prefix(DEB) {
        return packages(word, dbms, rest);
    }
    if let Some(rest) = what.strip_prefix(SRC) {
        return sources(word, dbms, rest);
    }
    let (what, additions) = match what.split_once('+') {
        Some((what, additions)) if !what.starts_with('=') => (what, additions),
        _ => (what, ""),
    };
    let mut storage_engine = None;
    let mut variant: Option<String> = None;
    for addition in additions.split('+').filter(|addition| !addition.is_empty()) {
        let named = match addition {
            "innodb" => {
                storage_engine = Some("innodb".to_owned());
                continue;
            }
            "myrocks" | "rocksdb" => {
                storage_engine = Some("rocksdb".to_owned());
                "myrocks"
            }
            other => other,
        };
        if let Some(known) = variant.filter(|known| known != named) {
            let fault = format!("it names the variants `{known}` and `{named}`");
            return Err(error(word, &fault, "name one of them"));
        }
        variant = Some(named.to_owned());
    }
    let source = match what.chars().next() {
        Some('@') if what.len() > 1 => {
            let version = Version::new(&what[1..]);
            if version.numbers().is_empty() {
                let hint = format!("write {dbms}@NUMBERS, {dbms}=deb:SUITE/PACKAGE or {dbms}=PATH");
                return Err(error(word, &format!("`{version}` is not a version"), &hint));
            }
            BuildSource::Version { version, variant }
        }
        Some('=') if what.len() > 1 => {
            let (path, storage) = split_storage(&what[1..]);
            storage_engine = storage;
            BuildSource::Path(PathBuf::from(path))
        }
        None if is_compiled_in(dbms) => BuildSource::CompiledIn,
        _ => {
            let fault = format!("it names no version or path of {dbms}");
            let hint =
                format!("write {dbms}@VERSION or {dbms}=PATH; `rqps builds {dbms}` lists versions");
            return Err(error(word, &fault, &hint));
        }
    };
    Ok((source, storage_engine))
}

/// Splits off the storage engine at the end of names that may hold a `+` of their own.
fn split_storage(what: &str) -> (&str, Option<String>) {
    let storage = ["innodb", "rocksdb", "myrocks"].into_iter().find_map(|name| {
        let rest = what.strip_suffix(name)?.strip_suffix('+')?;
        Some((rest, Some(implied(name).unwrap_or(name).to_owned())))
    });
    storage.unwrap_or((what, None))
}

/// `SUITE/PACKAGE,PACKAGE+STORAGE`. Names of packages may hold a `+` of their own.
fn packages(word: &str, dbms: Dbms, rest: &str) -> Result<SourceAndStorage, TargetParseError> {
    let (rest, storage_engine) = split_storage(rest);
    match rest.split_once('/') {
        Some((suite, names)) if !suite.is_empty() && !names.is_empty() => {
            let packages = names.split(',').map(str::to_owned).collect();
            Ok((BuildSource::Deb { suite: suite.to_owned(), packages }, storage_engine))
        }
        _ => {
            let hint = format!("write {dbms}=deb:SUITE/PACKAGE, as in deb:trixie/mariadb-server");
            Err(error(word, "it names no Debian suite and package", &hint))
        }
    }
}

/// `DIR@REF+VARIANT+STORAGE`. Names of folders may hold a `+` of their own.
fn sources(word: &str, dbms: Dbms, rest: &str) -> Result<SourceAndStorage, TargetParseError> {
    let (rest, storage_engine) = split_storage(rest);
    let mut folder = rest;
    let mut variants: Vec<&str> = Vec::new();
    while let Some((before, name)) = folder.rsplit_once('+')
        && is_build_word(name)
    {
        variants.insert(0, name);
        folder = before;
    }
    let (folder, reference) = match folder.rsplit_once('@') {
        Some((folder, reference)) => (folder, Some(reference)),
        None => (folder, None),
    };
    let unknown = reference.and_then(|reference| reference.split_once('+'));
    if let Some((_, name)) = unknown {
        let hint = format!("variants are {}", build_words());
        return Err(error(word, &format!("unknown variant `{name}`"), &hint));
    }
    if folder.is_empty() || reference == Some("") {
        let hint = format!("write {dbms}=src:DIR@REF, as in src:../{dbms}@HEAD~3");
        return Err(error(word, "it names no folder of sources", &hint));
    }
    let source = BuildSource::Source {
        folder: PathBuf::from(folder),
        reference: reference.map(str::to_owned),
        variant: (!variants.is_empty()).then(|| variants.join("+")),
    };
    Ok((source, storage_engine))
}

/// A reference in a label: a commit is known by its first digits.
fn short(reference: &str) -> &str {
    let is_id = reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { &reference[..10] } else { reference }
}

fn default_label(dbms: Dbms, source: &BuildSource, storage: Option<&str>, config: &str) -> String {
    let (name, settings) = config_parts(config);
    let plain = config == default_config(storage);
    let (storage_chosen, mut storage) = (storage, storage);
    let mut label = match source {
        BuildSource::Version { version, variant } => {
            if variant.as_deref().is_some_and(|variant| implied(variant) == storage) {
                storage = None;
            }
            let variant = variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
            format!("{dbms}-{version}{variant}")
        }
        BuildSource::Path(path) => {
            let last = path.iter().rev().map(|part| part.to_string_lossy().into_owned());
            let telling =
                last.into_iter().find(|part| !matches!(part.as_str(), "bin" | "sbin" | "/"));
            format!("{dbms}-{}", telling.unwrap_or_else(|| "path".to_owned()))
        }
        BuildSource::Source { folder, reference, variant } => {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            let what = reference.as_deref().map(|reference| short(reference).to_owned()).or(name);
            let words = variant.iter().flat_map(|names| names.split('+'));
            let file = |word| patch_file(word).or_else(|| recipe_name(word)).map(Path::new);
            let named = words.map(|word| match file(word) {
                Some(file) => file.file_stem().unwrap_or_default().to_string_lossy(),
                None => word.into(),
            });
            let variant: String = named.map(|name| format!("+{name}")).collect();
            format!("{dbms}-{}{variant}", what.unwrap_or_else(|| "src".to_owned()))
        }
        BuildSource::Deb { suite, packages } => {
            let first = packages.first().map(String::as_str).unwrap_or_default();
            format!("{dbms}-{suite}-{first}")
        }
        BuildSource::CompiledIn
        | BuildSource::Dsn(_)
        | BuildSource::Client(_)
        | BuildSource::Imported(_) => dbms.name().to_owned(),
    };
    if let Some(storage) = storage {
        label = format!("{label}+{storage}");
    }
    if !plain {
        if name != default_config(storage_chosen) {
            let name = name.rsplit('/').next().unwrap_or(name);
            label = format!("{label}.{}", name.trim_end_matches(".conf").trim_end_matches(".cnf"));
        }
        label.extend(settings.iter().map(|(key, value)| format!(".{key}-{value}")));
    }
    label
}

/// Only what is safe in a file name, and no more than a label has.
fn label_text(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    text.chars().map(keep).take(LONGEST_LABEL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, label: &str, source: BuildSource, config: &str) {
        let target = &targets(&[word.to_owned()]).expect(word)[0];
        assert_eq!((target.label.as_str(), target.config.as_str()), (label, config), "{word}");
        assert_eq!(target.source, source, "{word}");
        let again = targets(&[super::word(target)]).expect("round trip");
        assert_eq!(&again[0], target, "{word} as {}", super::word(target));
    }

    fn version(text: &str) -> BuildSource {
        BuildSource::Version { version: Version::new(text), variant: None }
    }

    fn fails(word: &str, part: &str) {
        let error = targets(&[word.to_owned()]).expect_err(word).to_string();
        assert!(error.contains(part), "{word}: {error}");
    }

    #[test]
    fn a_build_has_one_variant() {
        let read = |word: &str| targets(&[word.to_owned()]);
        for word in ["mysql@8.0.33+myrocks+debug", "mysql@8.0.33+debug+rocksdb"] {
            let said = read(word).unwrap_err().to_string();
            assert!(said.contains("it names the variants"), "{word}: {said}");
        }
        assert!(read("mysql@8.0.33+rocksdb+myrocks").is_ok() && read("mysql@8+a+innodb").is_ok());
    }

    #[test]
    fn words_name_targets() {
        check("mysql@8.0.33", "mysql-8.0.33", version("8.0.33"), "default");
        check("mysql@8.0.33:big", "mysql-8.0.33.big", version("8.0.33"), "big");
        check("old=mysql@5.6.14", "old", version("5.6.14"), "default");
        check("pg@17.2.0:./a/b.conf", "postgres-17.2.0.b", version("17.2.0"), "./a/b.conf");
        let path = || BuildSource::Path(PathBuf::from("/usr/lib/postgresql/17"));
        check("postgres=/usr/lib/postgresql/17", "postgres-17", path(), "default");
        check("x=postgres=/usr/lib/postgresql/17:c", "x", path(), "c");
        check("pg=postgres@17.2.0", "pg", version("17.2.0"), "default");
        check(
            "mysql=mysql=/opt/my",
            "mysql",
            BuildSource::Path(PathBuf::from("/opt/my")),
            "default",
        );
        let dsn = "mysql://me@db.example/bench";
        check(&format!("mysql={dsn}"), "mysql", BuildSource::Dsn(dsn.to_owned()), "default");
        check("sqlite", "sqlite", BuildSource::CompiledIn, "default");
        check("sqlite:small", "sqlite.small", BuildSource::CompiledIn, "small");
        let dsn = "postgres://me:secret@db.example:5433/bench?sslmode=require";
        check(dsn, "postgres-db.example", BuildSource::Dsn(dsn.to_owned()), "default");
        check(&format!("prod={dsn}"), "prod", BuildSource::Dsn(dsn.to_owned()), "default");
        let dsn = |text: &str| BuildSource::Dsn(text.to_owned());
        check("cockroachdb://u@h/d", "cockroachdb-h", dsn("cockroachdb://u@h/d"), "default");
        check("mysql=tidb://u@h:1/d", "mysql", dsn("tidb://u@h:1/d"), "default");
        let text = |text: &str| BuildSource::Client(text.to_owned());
        check("mongodb+srv://u@h/d", "mongodb+srv-h", text("mongodb+srv://u@h/d"), "default");
        check(
            "redis://me:secret@h:7001/0",
            "redis-h-7001",
            text("redis://me:secret@h:7001/0"),
            "default",
        );
        check("a=client:/opt/b=1:c", "a", text("/opt/b=1:c"), "default");
        check("client:/opt/duckdb-2.0.1", "duckdb-2.0.1", text("/opt/duckdb-2.0.1"), "default");
        check("client:", "client", text(""), "default");
        let of = |given: &str| word(&targets(&[given.to_owned()]).expect(given)[0]);
        assert_eq!(of("a=redis://h:1"), "a=client:redis://h:1");
        assert_eq!(of(&of("client:x y")), "client:x y");
    }

    #[test]
    fn a_word_may_set_single_settings() {
        let own = "default,innodb_io_capacity=200,sync_binlog=1";
        let label = "mysql-8.0.33.innodb_io_capacity-200.sync_binlog-1";
        check(&format!("mysql@8.0.33:{own}"), label, version("8.0.33"), own);
        check("a=pg@17.2.0:mine,work_mem=8MB", "a", version("17.2.0"), "mine,work_mem=8MB");
    }

    #[test]
    fn a_dsn_may_name_a_variant_which_the_server_never_sees() {
        let dsn = |text: &str| BuildSource::Dsn(text.to_owned());
        let word = "postgres://me@h:5/d?rqps_config=halfvec";
        check(word, "postgres-h.halfvec", dsn("postgres://me@h:5/d"), "halfvec");
        let word = "x=postgres://me@h/d?rqps_config=halfvec&sslmode=require";
        check(word, "x", dsn("postgres://me@h/d?sslmode=require"), "halfvec");
        fails("postgres://me@h/d?rqps_config=../x", "names no variant");
    }

    #[test]
    fn variants_and_storage_engines() {
        let target = &targets(&["mariadb@11.4.5+innodb".to_owned()]).expect("word")[0];
        assert_eq!(target.storage_engine.as_deref(), Some("innodb"));
        assert_eq!(target.label, "mariadb-11.4.5+innodb");
        assert_eq!(targets(&[word(target)]).expect("word")[0], *target);
    }

    fn check_storage(text: &str, label: &str, variant: Option<&str>, storage: Option<&str>) {
        let target = &targets(&[text.to_owned()]).expect(text)[0];
        assert_eq!(target.label, label, "{text}");
        assert_eq!(target.storage_engine.as_deref(), storage, "{text}");
        if let BuildSource::Version { variant: found, .. } = &target.source {
            assert_eq!(found.as_deref(), variant, "{text}");
        }
        assert_eq!(targets(&[word(target)]).expect("word")[0], *target, "{}", word(target));
    }

    #[test]
    fn myrocks_is_a_build_and_a_storage_engine() {
        let (build, tables) = (Some("myrocks"), Some("rocksdb"));
        check_storage("mariadb@11.8+myrocks", "mariadb-11.8+myrocks", build, tables);
        let word = "mariadb@11.8+myrocks:default";
        check_storage(word, "mariadb-11.8+myrocks.default", build, tables);
        let target = &targets(&["mariadb@11.8+myrocks".to_owned()]).expect("word")[0];
        assert_eq!(target.config, "myrocks");
        check_storage("mariadb@11.8+rocksdb:c", "mariadb-11.8+myrocks.c", build, tables);
        let both = "mariadb@11.8+myrocks+innodb";
        check_storage(both, "mariadb-11.8+myrocks+innodb", build, Some("innodb"));
        let packages = "mariadb=deb:sid/mariadb-server-core,mariadb-plugin-rocksdb+myrocks";
        check_storage(packages, "mariadb-sid-mariadb-server-core+rocksdb", None, tables);
        check_storage("mariadb=/opt/a+b+myrocks", "mariadb-a+b+rocksdb", None, tables);
        check_storage("postgres@17+pgvector", "postgres-17+pgvector", Some("pgvector"), None);
    }

    #[test]
    fn packages_of_a_suite_are_targets() {
        let deb = |suite: &str, packages: &[&str]| BuildSource::Deb {
            suite: suite.to_owned(),
            packages: packages.iter().map(|package| package.to_string()).collect(),
        };
        let word = "postgres=deb:sid/postgresql-18,postgresql-18-pgvector:big";
        let packages = ["postgresql-18", "postgresql-18-pgvector"];
        check(word, "postgres-sid-postgresql-18.big", deb("sid", &packages), "big");
        let plain = deb("bookworm", &["libsqlite3-0"]);
        check("sqlite=deb:bookworm/libsqlite3-0", "sqlite-bookworm-libsqlite3-0", plain, "default");
        let plus = deb("trixie", &["a", "libstdc++6"]);
        check("x=mariadb=deb:trixie/a,libstdc++6", "x", plus, "default");
        fails("mariadb=deb:trixie", "deb:SUITE/PACKAGE");
        fails("mariadb=deb:/x", "deb:SUITE/PACKAGE");
    }

    #[test]
    fn the_same_word_twice_is_an_a_a_comparison() {
        let words = ["sqlite".to_owned(), "sqlite".to_owned()];
        let labels: Vec<_> = targets(&words).expect("words").into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["sqlite", "sqlite-2"]);
    }

    #[test]
    fn long_words_give_labels_that_may_stand_in_a_plan() {
        let long = format!("sqlite=/{}", "x".repeat(300));
        let twice = targets(&[long.clone(), long]).expect("two targets");
        assert!(twice.iter().all(|target| target.label.len() == LONGEST_LABEL));
        let written: Vec<String> = twice.iter().map(word).collect();
        assert_eq!(targets(&written).expect("what was written"), twice);
        let many = vec!["sqlite".to_owned(); MOST_TARGETS + 1];
        assert!(targets(&many).expect_err("many").to_string().contains("more than 256 targets"));
    }

    #[test]
    fn bad_words_say_what_to_do() {
        fails("oracle@19", "unknown DBMS `oracle`");
        fails("mysql", "mysql@VERSION or mysql=PATH");
        fails("mysql@", "mysql@VERSION");
        fails("postgres@seventeen", "not a version");
        fails("postgres://localhost/bench", "names no user");
        fails("re dis://localhost", "no DBMS has the scheme `re dis://`");
        fails("a b=mysql@8.0.33", "not a valid label");
        fails("sqlite:", "no configuration after the colon");
        let twice = ["x=sqlite".to_owned(), "x=sqlite:small".to_owned()];
        assert!(targets(&twice).expect_err("twice").to_string().contains("two targets"));
        let hidden = targets(&["oo ps://me:secret@host/".to_owned()]).expect_err("scheme");
        assert!(!hidden.to_string().contains("secret"), "{hidden}");
    }
}
