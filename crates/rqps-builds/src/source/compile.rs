//! Carries out a recipe: in a copy of the sources, as an unprivileged user, with a log. The build
//! is complete or it is not there.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::client::{Progress, Reason};
use crate::find::{self, library_as_root};
use crate::inspect;
use crate::source::recipe::{self, Recipe};
use crate::source::{Toolchain, command, failed, no_space, present, put, run};
use rqps_dbms::spec::{self, BuildForm, SourceOrigin};
use rqps_host::child::{self, ChildTask};
use rqps_host::fingerprint::{self, Fingerprint};
use rqps_host::user::{self, User};
use rqps_host::{beneath, command_output};
use rqps_model::build::{Dbms, Manifest};
use rqps_model::safe_path;

/// No header of a version is longer.
const HEADER_MOST: u64 = 1 << 20;

/// What to compile.
pub(crate) struct Compile<'a> {
    pub(crate) dbms: Dbms,
    pub(crate) origin: &'a SourceOrigin,
    pub(crate) place: Place<'a>,
}

/// Where something is compiled.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// An empty folder for the work, or one in which objects were made.
    pub(crate) scratch: &'a Path,
    /// Where the result is put; it is made.
    pub(crate) tree: &'a Path,
    /// Where that will be in the end, for what a build writes into itself.
    pub(crate) prefix: &'a Path,
    /// Where the commands of the recipe write; kept.
    pub(crate) log: &'a Path,
}

/// Builds. What is in `scratch` afterwards is of no use.
pub(crate) fn compile(work: &Compile<'_>, progress: &mut Progress<'_>) -> Result<Manifest, Reason> {
    let Compile { dbms, origin, place } = *work;
    let (recipe, toolchain) = checked(dbms, origin, progress)?;
    let site = Site::open(&recipe, &toolchain, place)?;
    site.put_sources(origin, progress)?;
    let code = recipe.hash_of_code(&toolchain, &site.sources, progress)?;
    site.run_all(&recipe.lines, &format!("building {origin}"), progress)?;
    Ok(Manifest { code, ..finish(work, &site, progress)? })
}

/// The sources as the last build of their tree had them.
pub(crate) const SEEN: &str = "seen";
/// The sources as this build has them.
const NEXT: &str = "next";
/// Brings the sources in which the last build was made to the state of the next: files that did not
/// change keep their time, those that did get one time, which no object has yet.
const RENEW: &str = r#"
if [ -s all ]; then cp -a next/. sources; exit; fi
now=$(date +%s.%N)
tar -C next --null --no-recursion --verbatim-files-from -T "$PWD/changed" -cf - |
    tar -C sources --recursive-unlink -xf -
cd sources
xargs -0 -r rm -f -- < ../gone
xargs -0 -r touch -h -d "@$now" -- < ../changed
"#;

/// Builds where another commit was built before, if one was: with its objects. What fails there may
/// not fail elsewhere.
pub(crate) fn rebuild(
    work: &Compile<'_>,
    shared: Place<'_>,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { dbms, origin, place } = *work;
    let (recipe, toolchain) = checked(dbms, origin, progress)?;
    // All builds have one place, in which configurations and objects believe.
    let place = Place { scratch: shared.scratch, prefix: shared.prefix, ..place };
    let mut site = Site::open(&recipe, &toolchain, place)?;
    let sources = std::mem::replace(&mut site.sources, place.scratch.join(NEXT));
    site.put_sources(origin, progress)?;
    let code = recipe.hash_of_code(&toolchain, &site.sources, progress)?;
    site.renew(&recipe, &sources, progress)?;
    site.sources = sources;
    site.run_all(&recipe.lines, &format!("building {origin}"), progress)?;
    let work = Compile { dbms, origin, place };
    Ok(Manifest { code, ..finish(&work, &site, progress)? })
}

/// Makes the objects that a build shares with others, and what the recipe builds with them,
/// unless they are there.
pub(crate) fn make_objects(
    work: &Compile<'_>,
    objects: Place<'_>,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    if objects.tree.is_dir() {
        return Ok(());
    }
    let Compile { dbms, origin, .. } = *work;
    let (recipe, toolchain) = checked(dbms, origin, progress)?;
    let site = Site::open(&recipe, &toolchain, objects)?;
    site.put_sources(origin, progress)?;
    let text = format!("compiling {origin} once for all orders");
    site.run_all(&recipe.lines, &text, progress)?;
    safe_path::rename(&site.dest, objects.tree).map_err(Reason::io("rename", &site.dest))
}

/// Links objects that are there in the order of a build, which is otherwise what was built with
/// them.
pub(crate) fn link(
    work: &Compile<'_>,
    objects: Place<'_>,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { dbms, origin, place } = *work;
    let (recipe, toolchain) = checked(dbms, origin, progress)?;
    let at = Place { log: place.log, ..objects };
    let mut site = Site::open(&recipe, &toolchain, at)?;
    // Nothing that the build left is in this folder.
    site.order = place.scratch.join("order.ld");
    let Some(order) = toolchain.order else {
        let reason = "the target names no order";
        return Err(Reason::no_relink(dbms, reason));
    };
    progress.begin(&format!("ordering the functions of {origin}"));
    let tree = objects.tree.canonicalize().map_err(Reason::io("find", objects.tree))?;
    copy_tree(&tree, &site.dest, progress).map_err(|reason| disk_full(reason, place.scratch))?;
    site.give(&site.dest)?;
    recipe::write_order(dbms, &site.sources, order, &site.order)?;
    site.run_all(&recipe.relink, &format!("linking {origin}"), progress)?;
    finish(work, &site, progress)
}

/// The place in which the lines of a recipe run.
struct Site<'a> {
    recipe: &'a Recipe,
    toolchain: &'a Toolchain,
    place: Place<'a>,
    log_file: File,
    /// The user that builds, if rqps runs as root.
    user: Option<User>,
    sources: PathBuf,
    dest: PathBuf,
    /// TMPDIR and HOME of the lines.
    temporary: PathBuf,
    /// The linker script of an order.
    order: PathBuf,
    /// The script of the user, if the recipe has one.
    script: PathBuf,
}

impl<'a> Site<'a> {
    /// The log is new, and DEST is empty.
    fn open(
        recipe: &'a Recipe,
        toolchain: &'a Toolchain,
        place: Place<'a>,
    ) -> Result<Site<'a>, Reason> {
        let Place { scratch, log, .. } = place;
        let user =
            user::choose(None).map_err(|error| other("choose a user for", scratch, error))?;
        if let Some(parent) = log.parent() {
            safe_path::make_folder(parent).map_err(Reason::io("create", parent))?;
        }
        let log_file = safe_path::create_file(log).map_err(Reason::io("create", log))?;
        let [sources, dest, temporary, order, script] =
            ["sources", "dest", "tmp", "order.ld", "recipe"].map(|name| scratch.join(name));
        // What an order of linking that failed has left.
        if dest.exists() {
            let given = user.as_ref().map(User::identity);
            beneath::remove_made(&dest, given).map_err(Reason::io("remove", &dest))?;
        }
        safe_path::new_folder(&dest, 0o777).map_err(Reason::io("create", &dest))?;
        let site = Site {
            recipe,
            toolchain,
            place,
            log_file,
            user,
            sources,
            dest,
            temporary,
            order,
            script,
        };
        site.give(&site.dest)?;
        // Objects that are linked in another order have it from their compilation.
        match safe_path::new_folder(&site.temporary, 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made.map_err(Reason::io("create", &site.temporary))?;
                site.give(&site.temporary)?;
            }
        }
        Ok(site)
    }

    /// Puts the sources there, patched, and the script.
    fn put_sources(
        &self,
        origin: &SourceOrigin,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        safe_path::new_folder(&self.sources, 0o777).map_err(Reason::io("create", &self.sources))?;
        progress.begin(&format!("copying the sources {origin}"));
        put(origin, &self.sources, progress)
            .map_err(|reason| disk_full(reason, self.place.scratch))?;
        self.give(&self.sources)?;
        recipe::apply_patches(&self.toolchain.patches, &self.sources, self.user.as_ref())?;
        if let Some(text) = &self.recipe.script {
            write_script(&self.script, text).map_err(Reason::io("write", &self.script))?;
        }
        Ok(())
    }

    /// Gives the sources of the last build the state of those that were put beside them. It refuses
    /// what make may not see: a changed Makefile or configure leaves objects with the old flags, and a
    /// new header may stand before one of the same name that they were made with.
    fn renew(
        &self,
        recipe: &Recipe,
        sources: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        let scratch = self.place.scratch;
        let (next, seen) = (&self.sources, scratch.join(SEEN));
        let below = |folder: &Path| -> Result<BTreeSet<PathBuf>, Reason> {
            let files = source_files(folder)?.into_iter();
            Ok(files.filter_map(|file| Some(file.strip_prefix(folder).ok()?.to_owned())).collect())
        };
        let is_first = !seen.exists();
        let new = below(next)?;
        let (mut changed, mut gone, mut unseen) = (Vec::new(), Vec::new(), None);
        if is_first {
            safe_path::new_folder(sources, 0o777).map_err(Reason::io("create", sources))?;
            self.give(sources)?;
        } else {
            let old = below(&seen)?;
            gone.extend(old.difference(&new).cloned());
            for file in &new {
                progress.tick(|| "comparing the sources".to_owned())?;
                let (one, other) = (seen.join(file), next.join(file));
                let is_same = old.contains(file)
                    && is_same(&one, &other).map_err(Reason::io("compare", &other))?;
                if !is_same {
                    changed.push(file.clone());
                }
            }
            let is_followed = |file: &&PathBuf| {
                recipe.is_followed(file, old.contains(*file) && new.contains(*file))
            };
            unseen = changed.iter().chain(&gone).find(|file| !is_followed(file));
        }
        if let Some(file) = unseen {
            return Err(Reason::Build(format!("{} changed", file.display())));
        }
        let all = if is_first { vec![PathBuf::from(".")] } else { Vec::new() };
        for (name, files) in [("all", all), ("changed", changed), ("gone", gone)] {
            let lines = files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\0"]);
            let list = scratch.join(name);
            safe_path::write(&list, lines.flatten().copied().collect::<Vec<u8>>())
                .map_err(Reason::io("write", &list))?;
        }
        let mut line = command(RENEW, scratch, self.toolchain, self.user.as_ref());
        let text = "renewing the sources";
        let ended = run(&mut line, self.place.log, &self.log_file, progress, text)?;
        if !ended.success() {
            return Err(failed(ended, self.place.log, scratch));
        }
        if !is_first {
            let given = self.user.as_ref().map(User::identity);
            beneath::remove_made(&seen, given).map_err(Reason::io("remove", &seen))?;
        }
        safe_path::rename(next, &seen).map_err(Reason::io("rename", next))
    }

    /// Gives a folder to the user that builds.
    fn give(&self, folder: &Path) -> Result<(), Reason> {
        give(folder, self.user.as_ref())
    }

    /// Runs lines of the recipe. What they built then belongs to the user of rqps.
    fn run_all(
        &self,
        lines: &[String],
        doing: &str,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        let count = lines.len();
        for (at, line) in lines.iter().enumerate() {
            io::Write::write_all(&mut &self.log_file, format!("+ {line}\n").as_bytes())
                .map_err(Reason::io("write", self.place.log))?;
            let mut command = command(line, &self.sources, self.toolchain, self.user.as_ref());
            command.env("DEST", &self.dest).env("PREFIX", self.place.prefix);
            command.env("TMPDIR", &self.temporary).env("HOME", &self.temporary);
            command.env("ORDER", &self.order).env("RECIPE", &self.script);
            let text = format!("{doing}, command {} of {count}", at + 1);
            progress.begin(&text);
            let ended = run(&mut command, self.place.log, &self.log_file, progress, &text)?;
            if !ended.success() {
                progress.check()?;
                return Err(failed(ended, self.place.log, self.place.scratch));
            }
        }
        let built = self.built();
        if fs::read_dir(&built).map_err(Reason::io("read", &built))?.next().is_none() {
            return Err(nothing_built("files in DEST", self.place.log));
        }
        if self.user.is_some() {
            let root = User { name: "root".to_owned(), uid: 0, gid: 0 };
            give(&self.dest, Some(&root))?;
        }
        Ok(())
    }

    /// The build among what is in DEST. A link in the place of a folder would lead out of it.
    fn built(&self) -> PathBuf {
        let below_prefix = self.place.prefix.strip_prefix("/").unwrap_or(self.place.prefix);
        let mut folder = self.dest.clone();
        for part in below_prefix {
            folder.push(part);
            if !fs::symlink_metadata(&folder).is_ok_and(|facts| facts.is_dir()) {
                return self.dest.clone();
            }
        }
        folder
    }
}

/// Puts what was built in its place, and asks it what it is.
fn finish(
    work: &Compile<'_>,
    site: &Site<'_>,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { origin, place: Place { tree, .. }, .. } = *work;
    let built = site.built();
    safe_path::rename(&built, tree).map_err(Reason::io("rename", &built))?;
    open_to_all(tree)?;
    let told = told(work, site.recipe, &site.sources, progress)?;
    let origin = format!("source {origin}");
    Ok(Manifest { origin, compiler: Some(site.toolchain.text()), ..told })
}

/// The version and variant that a finished tree reports.
fn told(
    work: &Compile<'_>,
    recipe: &Recipe,
    sources: &Path,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { dbms, place: Place { tree, log, .. }, .. } = *work;
    let root = library_as_root(dbms).map_or(tree.to_owned(), |library| tree.join(library.file));
    let in_tree = inspect::library_in_tree(dbms).map(|library| tree.join(library.file));
    let wanted = in_tree.as_deref().unwrap_or(&root);
    if !wanted.exists() {
        let wanted = wanted.strip_prefix(tree).unwrap_or(wanted);
        return Err(nothing_built(&wanted.to_string_lossy(), log));
    }
    let found = find::build(dbms, wanted, progress)?.manifest;
    let Some(known) = &recipe.version else { return Ok(found) };
    let file = sources.join(&known.file);
    let text = beneath::beginning(&file, HEADER_MOST).map_err(Reason::io("read", &file))?;
    let version = known.read(&text).unwrap_or_else(|| found.version.clone());
    Ok(Manifest { reported: format!("{version} according to its sources"), version, ..found })
}

/// The error of a full disk with its way out; any other as it is.
fn disk_full(reason: Reason, scratch: &Path) -> Reason {
    match reason {
        Reason::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            no_space(scratch)
        }
        other => other,
    }
}

fn nothing_built(wanted: &str, log: &Path) -> Reason {
    let log = log.display();
    Reason::Build(format!(
        "the build ended without an error, but it made no {wanted}; its log is {log}"
    ))
}

/// The first recipe whose files are among the sources, and the compiler. Nothing is copied before
/// all that both need is there: large sources take minutes.
fn checked(
    dbms: Dbms,
    origin: &SourceOrigin,
    progress: &mut Progress<'_>,
) -> Result<(Recipe, Toolchain), Reason> {
    progress.begin(&format!("checking what {origin} needs"));
    let variant = origin.variant.as_deref();
    let toolchain = Toolchain::of(variant)?;
    let all = Recipe::candidates(dbms, variant)?;
    let wanted = all.iter().flat_map(Recipe::looks_for).cloned().collect();
    let present = present(origin, wanted)?;
    let fits = |recipe: &Recipe| recipe.marks.iter().all(|mark| present.contains(mark));
    let lacking = |recipe: &Recipe| {
        let missing = recipe.marks.iter().filter(|mark| !present.contains(*mark));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        format!("the recipe {} needs {}", recipe.name, missing.join(" and "))
    };
    let Some(recipe) = all.iter().find(|recipe| fits(recipe)).cloned() else {
        let lacking = all.iter().map(lacking).collect::<Vec<_>>().join(", ");
        return Err(Reason::Build(format!(
            "these are no sources of {dbms} that rqps can build: {lacking}; add what is missing \
             (commit it, where a commit is built), or name a recipe of your own with +recipe=FILE"
        )));
    };
    // First what no package can mend.
    if toolchain.order.is_some() && recipe.relink.is_empty() {
        let reason = "the recipe has no lines `relink`; those of SQLite and Postgres have";
        return Err(Reason::no_relink(dbms, reason));
    }
    check_needs(&recipe, &present)?;
    check_allocator(dbms, &toolchain)?;
    recipe::check_patches(&toolchain.patches)?;
    Ok((recipe, toolchain))
}

/// Writes the script of a recipe, for everybody to run.
fn write_script(path: &Path, text: &str) -> io::Result<()> {
    safe_path::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Checks that all programs and libraries of a recipe are there, because some builds would fail
/// only after minutes. The error names all Debian packages that are missing.
fn check_needs(recipe: &Recipe, present: &BTreeSet<String>) -> Result<(), Reason> {
    let is_there = |line: &str, name: &str| {
        let mut command = child::command("sh", ChildTask::Work);
        command.args(["-c", line, name]);
        command_output::run(command).is_ok_and(|answer| answer.success())
    };
    let programs = recipe.programs(present);
    let mut missing: Vec<(&str, &str)> = programs.into_iter().collect();
    missing.retain(|(name, _)| !is_there("command -v \"$0\"", name));
    // pkg-config itself is among the programs of a recipe with libraries.
    let libraries =
        recipe.libraries.iter().map(|(name, package)| (name.as_str(), package.as_str()));
    missing.extend(libraries.filter(|(name, _)| !is_there("pkg-config --exists \"$0\"", name)));
    if missing.is_empty() {
        return Ok(());
    }
    let (names, packages): (Vec<&str>, Vec<&str>) = missing.into_iter().unzip();
    Err(Reason::Setup(format!(
        "the recipe {} needs {}, which this host lacks; install the Debian packages with `apt-get \
         install {}`, or build it yourself and give its tree as DBMS=PATH",
        recipe.name,
        names.join(", "),
        packages.join(" ")
    )))
}

/// Refuses an allocator that this host lacks, or that could replace nothing.
fn check_allocator(dbms: Dbms, toolchain: &Toolchain) -> Result<(), Reason> {
    let Some((library, package)) = toolchain.allocator else { return Ok(()) };
    if spec::of(dbms).is_some_and(|spec| matches!(spec.form, BuildForm::Library(_))) {
        return Err(Reason::Setup(format!(
            "{dbms} is a library, which takes memory from the allocator of its program; leave out \
             jemalloc and tcmalloc"
        )));
    }
    let mut command = child::command(&toolchain.cc, ChildTask::Work);
    command.arg(format!("-print-file-name={library}"));
    // A compiler that does not find the file prints the name as it is.
    let missing = |said: String| {
        Reason::Build(format!("this variant links {library}, but {said}; install {package}"))
    };
    let answer = command_output::run(command).map_err(|error| missing(error.to_string()))?;
    if Path::new(answer.output.trim()).is_absolute() {
        return Ok(());
    }
    Err(missing(format!("{} does not find it", toolchain.cc)))
}

/// Gives a folder to the user that builds, if rqps runs as root.
fn give(folder: &Path, user: Option<&User>) -> Result<(), Reason> {
    match user {
        Some(user) => {
            beneath::chown_tree(folder, user).map_err(|error| other("give away", folder, error))
        }
        None => Ok(()),
    }
}

/// Servers may run as another user than rqps.
fn open_to_all(tree: &Path) -> Result<(), Reason> {
    // By its descriptor: nobody can put a link in its place.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(tree, flags, Mode::empty());
    let opened = opened.and_then(|folder| rustix::fs::fchmod(folder, Mode::from_raw_mode(0o755)));
    opened.map_err(|error| Reason::io("chmod", tree)(error.into()))
}

fn other(doing: &'static str, path: &Path, error: user::UserError) -> Reason {
    Reason::io(doing, PathBuf::from(path))(io::Error::other(error))
}

// A folder of sources that is no git repository: its state is the hash of its files.

/// Files of a folder of sources: its own path and that of each file below it, in order.
pub(super) fn source_files(folder: &Path) -> Result<Vec<PathBuf>, Reason> {
    fingerprint::sources_below(folder).map_err(Reason::io("read", folder))
}

/// SHA-256 of names and contents of all files, hexadecimal.
pub(super) fn hash_of_sources(
    folder: &Path,
    progress: &mut Progress<'_>,
) -> Result<String, Reason> {
    let mut stopped = None;
    let print = Fingerprint::of_sources(folder, &mut || {
        stopped = progress.tick(|| "reading the sources".to_owned()).err();
        stopped.is_none()
    });
    match stopped {
        Some(reason) => Err(reason),
        None => Ok(print.map_err(Reason::io("read", folder))?.sha256),
    }
}

/// Copies all files to another folder.
pub(super) fn copy_sources(
    from: &Path,
    to: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    for path in source_files(from)? {
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if let Some(parent) = target.parent() {
            safe_path::make_folder(parent).map_err(Reason::io("create", parent))?;
        }
        copy_one(&path, &target).map_err(Reason::io("copy", &path))?;
        progress.tick(|| "copying the sources".to_owned())?;
    }
    Ok(())
}

/// Copies a folder with all that is in it, also empty folders, with their permissions. `from` is the
/// path without links.
fn copy_tree(from: &Path, to: &Path, progress: &mut Progress<'_>) -> Result<(), Reason> {
    safe_path::make_folder(to).map_err(Reason::io("create", to))?;
    for entry in fs::read_dir(from).map_err(Reason::io("read", from))? {
        let path = entry.map_err(Reason::io("read", from))?.path();
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if path.is_dir() && !path.is_symlink() {
            copy_tree(&path, &target, progress)?;
        } else {
            copy_one(&path, &target).map_err(Reason::io("copy", &path))?;
        }
        progress.tick(|| "copying a build".to_owned())?;
    }
    let permissions = fs::metadata(from).map_err(Reason::io("look at", from))?.permissions();
    fs::set_permissions(to, permissions).map_err(Reason::io("chmod", to))
}

/// True for two files with the same content and rights, or links to the same place.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let [a, b] = [fs::symlink_metadata(one)?, fs::symlink_metadata(other)?];
    if a.is_symlink() || b.is_symlink() {
        return Ok(a.is_symlink()
            && b.is_symlink()
            && fs::read_link(one)? == fs::read_link(other)?);
    }
    if a.len() != b.len() || a.permissions().mode() != b.permissions().mode() {
        return Ok(false);
    }
    let content = |path| -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        io::Read::read_to_end(&mut beneath::open_without_links(path)?, &mut content)?;
        Ok(content)
    };
    Ok(content(one)? == content(other)?)
}

fn copy_one(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    let source = beneath::open_without_links(from)?;
    // Generated files must not look older than what they are made of.
    safe_path::copy(&source, to)?.set_modified(source.metadata()?.modified()?)
}
