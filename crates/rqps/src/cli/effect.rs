//! All that a plan would run, load, read and reach beyond rqps itself: for the question before a
//! plan of others runs, and for the hash by which this host remembers the answer.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::cli::folders;
use rqps_builds as obtain;
use rqps_builds::{inspect, source};
use rqps_dbms as dbms;
use rqps_dbms::spec::files_of_variant;
use rqps_dbms::{UserConfig, UserConfigs};
use rqps_host::fingerprint::Fingerprint;
use rqps_lab::benchmarks;
use rqps_lab::lab::Accepted;
use rqps_lab::plan::{Plan, PlanDraft};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::build::{BuildSource, Dbms, Target, config_parts};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::Address;
use rqps_model::units;
use rqps_results::bundle::BundledTarget;
use rqps_wire::dsn::{self, Dsn};
use rqps_wire::password;

/// Columns of the list.
const WIDTH: usize = 80;

/// What a plan would use.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    entries: Vec<Entry>,
}

/// One thing that it would use.
#[derive(Clone, Debug, Default)]
struct Entry {
    kind: &'static str,
    name: String,
    /// SHA-256 of its content, or the commit of sources.
    content: Option<String>,
    /// Sentences for the reader, which the hash does not contain.
    notes: Vec<String>,
    place: ContentPlace,
}

/// The place of its content.
#[derive(Clone, Debug, Default, PartialEq)]
enum ContentPlace {
    /// The plan has it, or it has none.
    #[default]
    Plan,
    /// A file, which must not change before it is used.
    File(PathBuf),
    /// A build that the plan names by its path, and does not bring: the label of its target.
    Build { label: String, dbms: Dbms, path: PathBuf },
    /// A commit of a repository on this host.
    Commit,
    /// A folder of sources on this host that no repository knows.
    Sources(PathBuf),
}

impl Entry {
    fn new(kind: &'static str, name: impl Into<String>) -> Entry {
        Entry { kind, name: name.into(), ..Entry::default() }
    }

    fn note(mut self, note: impl Into<String>) -> Entry {
        self.notes.push(note.into());
        self
    }

    /// With the content of a file. A missing one is reported when it is used.
    fn file(self, path: &Path) -> Entry {
        let content = Fingerprint::of(path).ok().map(|print| print.sha256);
        Entry { content, place: ContentPlace::File(path.to_owned()), ..self }
    }
}

impl Effect {
    /// What the plan would use. `settings`: settings from files of the user's are part of it,
    /// because nobody named their folder on this command line. Those of a bundle are as servers
    /// read them, so shipped ones are known by the versions of its builds. Builds are not read yet.
    pub(super) fn of(
        plan: &Plan,
        settings: Option<&UserConfigs>,
        bundle: Option<&[BundledTarget]>,
    ) -> Effect {
        let mut effect = Effect::default();
        for target in &plan.targets {
            effect.add_target(target);
            for (key, value) in config_parts(&target.config).1 {
                let name = format!("{key} = {value} of {}", target.label);
                effect.add(Entry::new("setting", name));
            }
            let config = settings.and_then(|own| own.get(target.dbms, &target.config));
            let is_own = |config: &&UserConfig| {
                let (name, text) = (config.name.as_str(), config.text.as_str());
                let of_target = bundle.into_iter().flatten().filter(|it| it.label == target.label);
                let mut builds = of_target.flat_map(|it| &it.builds);
                !dbms::config::is_shipped_file(target.dbms, name, text)
                    && !builds
                        .any(|it| dbms::config::is_shipped(target.dbms, (name, text), &it.version))
            };
            if let Some(config) = config.filter(is_own) {
                let name = format!("{} of {}", config.name, target.dbms);
                effect.add_text("settings", name, &config.text);
            }
        }
        effect.add_hosts(plan);
        effect.add_workload(plan);
        effect
    }

    /// Adds a text that the plan brings.
    pub(super) fn add_text(&mut self, kind: &'static str, name: String, text: &str) {
        let content = Some(units::sha256(text));
        self.add(Entry { content, ..Entry::new(kind, name) });
    }

    fn add(&mut self, entry: Entry) {
        let same = |known: &Entry| {
            (known.kind, &known.name, &known.content) == (entry.kind, &entry.name, &entry.content)
                && known.place == entry.place
        };
        if !self.entries.iter().any(same) {
            self.entries.push(entry);
        }
    }

    fn add_target(&mut self, target: &Target) {
        let Target { dbms, label, .. } = target;
        match &target.source {
            BuildSource::Version { .. } if dbms.dialect() == Dialect::Fake => {}
            BuildSource::CompiledIn | BuildSource::Imported(_) => {}
            BuildSource::Version { version, variant } => {
                let with = variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
                let entry = Entry::new("release", format!("{dbms}@{version}{with}"));
                self.add(entry.note("from the packages that `rqps builds` lists"));
            }
            BuildSource::Deb { suite, packages } => {
                let name = format!("{dbms}=deb:{suite}/{}", packages.join(","));
                self.add(Entry::new("packages", name).note("of Debian, with what they need"));
            }
            BuildSource::Path(path) => {
                let kind = if dbms.is_embedded() { "library" } else { "programs" };
                let place =
                    ContentPlace::Build { label: label.clone(), dbms: *dbms, path: path.clone() };
                let name = format!("{dbms}={}", absolute(path).display());
                self.add(Entry { place, ..Entry::new(kind, name) });
            }
            BuildSource::Source { folder, reference, variant } => {
                let what = (folder.as_path(), reference.as_deref(), variant.as_deref());
                self.add_sources(*dbms, what);
            }
            BuildSource::Dsn(text) => self.add(server(text)),
            BuildSource::Client(text) => {
                let entry = Entry::new("target", dsn::without_password(text));
                self.add(entry.note("handed to the program"));
            }
        }
    }

    fn add_sources(
        &mut self,
        dbms: Dbms,
        (folder, reference, variant): (&Path, Option<&str>, Option<&str>),
    ) {
        let at = reference.map(|name| format!("@{name}")).unwrap_or_default();
        let with = variant.map(|name| format!("+{name}")).unwrap_or_default();
        let name = format!("{dbms}=src:{}{at}{with}", absolute(folder).display());
        let content = source::commit_of(folder, reference);
        let (place, note) = match &content {
            Some(commit) => {
                (ContentPlace::Commit, format!("commit {commit}, which is built and run"))
            }
            // What is hashed must be what is built.
            None if reference.is_some() => (ContentPlace::Commit, "no such commit".to_owned()),
            None => (ContentPlace::Sources(folder.to_owned()), "built and run".to_owned()),
        };
        self.add(Entry { content, place, ..Entry::new("sources", name) }.note(note));
        for (kind, file) in variant.into_iter().flat_map(files_of_variant) {
            let path = absolute(file);
            self.add(Entry::new(kind, path.display().to_string()).file(&path));
        }
    }

    fn add_hosts(&mut self, plan: &Plan) {
        let Some(hosts) = &plan.workload.client_hosts else { return };
        for host in &hosts.hosts {
            self.add(Entry::new("host", host).note("runs the clients, by ssh as you"));
        }
        if let Some(host) = &hosts.server_host {
            self.add(Entry::new("host", host).note("runs the servers, by ssh as you"));
        }
        if let Some(address) = &hosts.server_address {
            self.add(Entry::new("address", address).note("where servers listen"));
        }
        if let Some(nodes) = hosts.nodes {
            self.add(Entry::new("nodes", nodes.to_string()).note("of Slurm run the clients"));
        }
    }

    fn add_workload(&mut self, plan: &Plan) {
        let spec = benchmarks::of(&plan.workload);
        for brought in (spec.brought)(&plan.workload) {
            let place = brought.place.map_or(ContentPlace::Plan, ContentPlace::File);
            let content = brought.sha256;
            self.add(Entry { content, place, ..Entry::new(brought.kind, brought.name) });
        }
        for path in (spec.own_data)(&plan.workload) {
            let name = absolute(&path).display().to_string();
            self.add(Entry::new("data", name).note("read as numbers; not hashed"));
        }
        if let BenchmarkParameters::Kv(shape) = &plan.workload.shape {
            for (key, value) in &shape.options {
                self.add(Entry::new("option", format!("{key}={value}")));
            }
        }
    }

    /// True if the plan would use nothing but rqps itself.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The hash of all names and contents, but for builds that stand on this host: who names a
    /// build on a command line means what is there.
    pub(super) fn named(&self) -> String {
        self.hash("named", |entry| match entry.place {
            ContentPlace::Build { .. } | ContentPlace::Commit | ContentPlace::Sources(_) => None,
            ContentPlace::Plan | ContentPlace::File(_) => entry.content.as_deref(),
        })
    }

    /// The hash of all names and contents.
    pub(super) fn whole(&self) -> String {
        self.hash("whole", |entry| entry.content.as_deref())
    }

    fn hash(&self, what: &str, content: impl Fn(&Entry) -> Option<&str>) -> String {
        let mut lines: Vec<String> = self
            .entries
            .iter()
            .map(|entry| {
                // Without a control character no name can look like two.
                let name = entry.name.escape_debug();
                format!("{}\n{name}\n{}\n", entry.kind, content(entry).unwrap_or("-"))
            })
            .collect();
        lines.sort();
        let mut sum = Sha256::new();
        sum.update(format!("rqps {what} 1\n"));
        lines.iter().for_each(|line| sum.update(line));
        units::hex(&sum.finalize())
    }

    /// Reads builds and files, so that their contents are part of [`Effect::whole`], and holds
    /// builds against those that a bundle was measured with. Returns what must stay as it is.
    ///
    /// # Errors
    /// A build is not there, or cannot be read; a file is not the one that the plan was made with.
    pub(super) fn read(&mut self, measured: Option<&[BundledTarget]>) -> Result<Accepted> {
        let mut accepted = Accepted::default();
        for entry in &mut self.entries {
            match &entry.place {
                ContentPlace::Plan | ContentPlace::Commit => {}
                ContentPlace::File(path) | ContentPlace::Sources(path) => {
                    let doing = || format!("read {}", shown(&path.display().to_string()));
                    let print = match &entry.place {
                        ContentPlace::Sources(_) => Fingerprint::of_sources(path, &mut || true),
                        _ => Fingerprint::of(path),
                    };
                    let print = print.with_context(doing)?;
                    if entry.content.as_ref().is_some_and(|known| *known != print.sha256) {
                        bail!("{}: it changes while rqps reads it", doing());
                    }
                    entry.content = Some(print.sha256.clone());
                    accepted.files.push(print);
                }
                ContentPlace::Build { label, dbms, path } => {
                    let doing = || format!("read {}", shown(&path.display().to_string()));
                    let place = obtain::files_of(*dbms, path).with_context(doing)?;
                    let print = Fingerprint::of(&place).with_context(doing)?;
                    entry.content = Some(print.sha256.clone());
                    entry.notes = notes_of_build(&print);
                    if let Some(measured) = measured {
                        let program = inspect::server(&print.path, *dbms);
                        let main = program.map_or(Ok(print.clone()), |it| Fingerprint::of(&it));
                        let main = main.with_context(doing)?;
                        entry.notes.push(held_against(measured, label, &main.sha256));
                    }
                    accepted.builds.insert(label.clone(), print);
                }
            }
        }
        Ok(accepted)
    }

    /// The list for the user; each line fits a terminal and has nothing that moves its cursor.
    pub(super) fn list(&self) -> String {
        let mut list = String::new();
        for entry in &self.entries {
            wrap(&mut list, (&format!("  {:<9} ", entry.kind), "            "), &entry.name);
            let hash = entry.content.as_ref().filter(|_| entry.place != ContentPlace::Commit);
            if let Some(content) = hash {
                wrap(&mut list, ("    sha256 ", "    "), content);
            }
            for note in &entry.notes {
                wrap(&mut list, ("    ", "    "), note);
            }
        }
        list
    }
}

fn notes_of_build(print: &Fingerprint) -> Vec<String> {
    if print.files == 1 {
        return Vec::new();
    }
    vec![format!("of {} files, {}", print.files, units::bytes(print.bytes))]
}

/// Says whether a build is the one that was measured for a bundle.
fn held_against(measured: &[BundledTarget], label: &str, sha256: &str) -> String {
    let builds = measured.iter().filter(|target| target.label == label);
    let known: Vec<&str> =
        builds.flat_map(|target| &target.builds).filter_map(|it| it.sha256.as_deref()).collect();
    if known.is_empty() {
        "the bundle does not tell which build it measured".to_owned()
    } else if known.contains(&sha256) {
        "the build that the bundle measured".to_owned()
    } else {
        format!("NOT the build that the bundle measured: SHA-256 {}", known.join(", "))
    }
}

/// A server, with everything of the user's that a login may send there.
fn server(text: &str) -> Entry {
    let mut entry = Entry::new("server", dsn::without_password(text));
    let known = password::known(text, &folders::variable);
    let (dsn, source) = match known {
        Ok(known) => (known.dsn, known.source),
        Err(_) => match Dsn::parse(text) {
            Ok(dsn) => (dsn, String::new()),
            // It is reported when it is measured.
            Err(_) => return entry,
        },
    };
    let database = match dsn.login.database.as_str() {
        "" => String::new(),
        name => format!(", database {name}"),
    };
    entry = entry.note(format!("logs in to {} as {}{database}", dsn.address, dsn.login.user));
    if let Some(name) = &dsn.service {
        let name = if name.is_empty() { "its default" } else { name };
        entry = entry.note(format!("with all that your service or login path {name} says"));
    }
    entry = entry.note(match (&dsn.password_variable, source.as_str()) {
        (Some(name), _) => format!("SENDS the value of your variable {name} as the password"),
        (None, "") => "with a password of yours, if one is set for it later".to_owned(),
        (None, "the DSN") => "with the password that the plan has".to_owned(),
        (None, source) => format!("SENDS the password from {source}"),
    });
    if let Address::Tcp { tls, .. } = &dsn.address
        && let Some(identity) = &tls.identity
    {
        entry = entry.note(format!(
            "logs in with the certificate {} and its key {}",
            identity.certificate.display(),
            identity.key.display()
        ));
    }
    entry
}

/// The path from the root, so that it means the same in every folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Refuses a plan whose builds, recipes, patches or settings are among the files that came with it:
/// a bundle holds none, and rqps has just unpacked them.
///
/// # Errors
/// The path of the first one.
pub(super) fn refuse_brought_builds(plan: &PlanDraft, unpacked: &Path) -> Result<()> {
    let root = unpacked.canonicalize().unwrap_or_else(|_| unpacked.to_owned());
    let inside = |path: &Path| {
        let real = path.canonicalize().unwrap_or_else(|_| absolute(path));
        real.starts_with(&root) || real.iter().any(|part| part == ".bundle")
    };
    for target in &plan.targets {
        let mut paths: Vec<PathBuf> = Vec::new();
        match &target.source {
            BuildSource::Path(path) => paths.push(path.clone()),
            BuildSource::Source { folder, variant, .. } => {
                paths.push(folder.clone());
                let files = variant.iter().flat_map(|words| files_of_variant(words));
                paths.extend(files.map(|(_, file)| file.to_owned()));
            }
            _ => {}
        }
        let config = config_parts(&target.config).0;
        if config.contains('/') {
            paths.push(PathBuf::from(config));
        }
        if let Some(path) = paths.iter().find(|path| inside(path)) {
            bail!(
                "repeat with {}: {} is a file of the bundle, and a bundle brings no builds",
                target.label,
                shown(&path.display().to_string())
            );
        }
    }
    Ok(())
}

/// A text of others as plain ASCII: no look-alike, nothing that moves the cursor.
pub(super) fn shown(text: &str) -> String {
    let plain = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => c.escape_unicode().to_string(),
    };
    text.chars().map(plain).collect()
}

/// Adds a text in lines that fit; `first` and `next` stand before them.
fn wrap(list: &mut String, (first, next): (&str, &str), text: &str) {
    let mut line = format!("\n{first}");
    let mut column = first.len();
    for c in shown(text).chars() {
        if column == WIDTH {
            line.push('\n');
            line.push_str(next);
            column = next.len();
        }
        line.push(c);
        column += 1;
    }
    list.push_str(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_cursor_or_look_like_two() {
        let mut effect = Effect::default();
        effect.add(Entry::new("server", "a\u{1b}[2K\n\u{202e}b\u{430}"));
        assert_eq!(effect.list(), "\n  server    a\\u{1b}[2K\\u{a}\\u{202e}b\\u{430}");
        let hash = |entries: &[(&'static str, &str)]| {
            let mut effect = Effect::default();
            entries.iter().for_each(|(kind, name)| effect.add(Entry::new(kind, *name)));
            effect.whole()
        };
        assert_eq!(hash(&[("a", "1"), ("b", "2")]), hash(&[("b", "2"), ("a", "1")]));
        assert_ne!(hash(&[("a", "1"), ("b", "2")]), hash(&[("a", "1\n-\nb\n2")]));
        let long = "x".repeat(300);
        effect.add_text("SQL", long, "");
        assert!(effect.list().lines().all(|line| line.len() <= 80), "{}", effect.list());
    }

    #[test]
    fn a_server_shows_which_secret_goes_there() {
        let entry = server("postgres://me:${RQPS_NO_SUCH_SECRET}@db.example:7/app");
        assert_eq!(entry.name, "postgres://me:${RQPS_NO_SUCH_SECRET}@db.example:7/app");
        let all = entry.notes.join("\n");
        assert!(all.contains("logs in to db.example:7 as me, database app"), "{all}");
        assert!(all.contains("SENDS the value of your variable RQPS_NO_SUCH_SECRET"), "{all}");
        let entry = server("postgres://me:word@h/d?sslcert=/c.pem&sslkey=/k.pem");
        assert_eq!(entry.name, "postgres://me@h/d?sslcert=/c.pem&sslkey=/k.pem");
        assert!(entry.notes.join("\n").contains("/c.pem and its key /k.pem"), "{entry:?}");
    }
}
