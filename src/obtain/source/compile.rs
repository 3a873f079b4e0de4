//! Carries out a recipe: in a copy of the sources, as an unprivileged user, with a log. The build
//! is complete or it is not there.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::locate::{present, put};
use super::recipe::Recipe;
use super::toolchain::Toolchain;
use super::{patch, relink};
use crate::dbms::spec::{self, BuildForm, SourceOrigin};
use crate::domain::build::{Dbms, Manifest};
use crate::obtain::client::shortened;
use crate::obtain::error::Reason;
use crate::obtain::find::library_as_root;
use crate::obtain::progress::Progress;
use crate::obtain::source_fault::SourceFault;
use crate::obtain::{installed, layout};
use crate::os::answer;
use crate::os::user::{self, User};

/// Time between two looks at a running command.
const POLL: Duration = Duration::from_millis(50);
/// Lines of a log that an error shows.
const LINES_SHOWN: usize = 4;

/// A build to make, and its folders.
pub(in crate::obtain) struct Compile<'a> {
    pub(in crate::obtain) dbms: Dbms,
    pub(in crate::obtain) origin: &'a SourceOrigin,
    /// An empty folder for all that is needed on the way.
    pub(in crate::obtain) scratch: &'a Path,
    /// The folder that receives the build.
    pub(in crate::obtain) tree: &'a Path,
    /// The final folder of the build.
    pub(in crate::obtain) prefix: &'a Path,
    /// The log of the build.
    pub(in crate::obtain) log: &'a Path,
}

/// Builds. What is in `scratch` afterwards is of no use.
pub(in crate::obtain) fn compile(
    work: &Compile<'_>,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { dbms, origin, scratch, tree, prefix, log } = *work;
    let sources = scratch.join("sources");
    let dest = scratch.join("dest");
    let (recipe, toolchain) = checked(dbms, origin, progress)?;
    for folder in [&sources, &dest] {
        fs::create_dir(folder).map_err(Reason::io("create", folder))?;
    }
    progress.begin(&format!("copying the sources {origin}"));
    put(origin, &sources, progress).map_err(|reason| disk_full(reason, scratch))?;
    patch::apply(&toolchain.patches, &sources)?;
    let user = user::choose(None).map_err(|error| other("choose a user for", scratch, error))?;
    let script = scratch.join("recipe");
    if let Some(text) = &recipe.script {
        write_script(&script, text).map_err(Reason::io("write", &script))?;
    }
    give(scratch, user.as_ref())?;
    if let Some(parent) = log.parent() {
        fs::create_dir_all(parent).map_err(Reason::io("create", parent))?;
    }
    let mut log_file = File::create(log).map_err(Reason::io("create", log))?;
    let order = scratch.join("order.ld");
    let again = if toolchain.order.is_some() { recipe.relink.as_slice() } else { &[] };
    let count = recipe.lines.len() + again.len();
    for (at, line) in recipe.lines.iter().chain(again).enumerate() {
        if let Some(number) = toolchain.order.filter(|_| at == recipe.lines.len()) {
            relink::write_script(dbms, &sources, number, &order)?;
        }
        io::Write::write_all(&mut log_file, format!("+ {line}\n").as_bytes())
            .map_err(Reason::io("write", log))?;
        let mut command = command(line, &sources, &toolchain, user.as_ref());
        command.env("DEST", &dest).env("PREFIX", prefix).env("TMPDIR", scratch);
        command.env("HOME", scratch).env("ORDER", &order).env("RECIPE", &script);
        let text = format!("building {origin}, command {} of {count}", at + 1);
        progress.begin(&text);
        let ended = run(&mut command, &log_file, progress, &text)?;
        if !ended.success() {
            progress.check()?;
            return Err(failed(ended, log, scratch));
        }
    }
    let below_prefix = dest.join(prefix.strip_prefix("/").unwrap_or(prefix));
    let built = if below_prefix.is_dir() { below_prefix } else { dest };
    let is_empty = fs::read_dir(&built).map_err(Reason::io("read", &built))?.next().is_none();
    if is_empty {
        let wanted = "files in DEST".to_owned();
        return Err(SourceFault::NothingBuilt { wanted, log: log.to_owned() }.into());
    }
    if user.is_some() {
        let root = User { name: "root".to_owned(), uid: 0, gid: 0 };
        give(&built, Some(&root))?;
    }
    fs::rename(&built, tree).map_err(Reason::io("rename", &built))?;
    open_to_all(tree)?;
    let told = told(work, &recipe, &sources, progress)?;
    let origin = format!("source {origin}");
    Ok(Manifest { origin, compiler: Some(toolchain.text()), ..told })
}

/// The version and variant that a finished tree reports.
fn told(
    work: &Compile<'_>,
    recipe: &Recipe,
    sources: &Path,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Compile { dbms, tree, log, .. } = *work;
    let root = library_as_root(dbms).map_or(tree.to_owned(), |library| tree.join(library.file));
    let in_tree = layout::library_in_tree(dbms).map(|library| tree.join(library.file));
    let wanted = in_tree.as_deref().unwrap_or(&root);
    if !wanted.exists() {
        let wanted = wanted.strip_prefix(tree).unwrap_or(wanted).display().to_string();
        return Err(SourceFault::NothingBuilt { wanted, log: log.to_owned() }.into());
    }
    let found = installed::build(dbms, wanted, progress)?.manifest;
    let Some(known) = &recipe.version else { return Ok(found) };
    let file = sources.join(&known.file);
    let text = fs::read_to_string(&file).map_err(Reason::io("read", &file))?;
    let version = known.read(&text).unwrap_or_else(|| found.version.clone());
    Ok(Manifest { reported: format!("{version} according to its sources"), version, ..found })
}

/// The error of a full disk with its way out; any other as it is.
fn disk_full(reason: Reason, scratch: &Path) -> Reason {
    match reason {
        Reason::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            SourceFault::DiskFull { folder: scratch.to_owned() }.into()
        }
        other => other,
    }
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
    let marks: Vec<String> = all.iter().map(|recipe| recipe.marks.join(" and ")).collect();
    let wanted = all.iter().flat_map(Recipe::looks_for).cloned().collect();
    let present = present(origin, wanted)?;
    let fits = |recipe: &Recipe| recipe.marks.iter().all(|mark| present.contains(mark));
    let none = || SourceFault::NoRecipe { dbms, marks: marks.join(", or ") };
    let recipe = all.into_iter().find(fits).ok_or_else(none)?;
    check_needs(&recipe, &present)?;
    check_allocator(dbms, &toolchain)?;
    patch::check(&toolchain.patches)?;
    if toolchain.order.is_some() && recipe.relink.is_empty() {
        let reason = "the recipe has no lines `relink`; those of SQLite and Postgres have";
        return Err(SourceFault::NoRelink { dbms, reason }.into());
    }
    Ok((recipe, toolchain))
}

/// Writes the script of a recipe, for everybody to run.
fn write_script(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Checks that all programs and libraries of a recipe are there, because some builds would fail
/// only after minutes. The error names all Debian packages that are missing.
fn check_needs(recipe: &Recipe, present: &BTreeSet<String>) -> Result<(), Reason> {
    let is_there = |line: &str, name: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line, name]);
        answer::answer(command).is_ok_and(|answer| answer.success)
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
    Err(SourceFault::Needs {
        recipe: recipe.name.clone(),
        missing: names.join(", "),
        packages: packages.join(" "),
    }
    .into())
}

/// Refuses an allocator that this host lacks, or that could replace nothing.
fn check_allocator(dbms: Dbms, toolchain: &Toolchain) -> Result<(), Reason> {
    let Some((library, package)) = toolchain.allocator else { return Ok(()) };
    if spec::of(dbms).is_some_and(|spec| matches!(spec.form, BuildForm::Library(_))) {
        return Err(SourceFault::NoAllocator { dbms }.into());
    }
    let mut command = Command::new(&toolchain.cc);
    command.arg(format!("-print-file-name={library}"));
    // A compiler that does not find the file prints the name as it is.
    let missing = |said| Reason::MissingLibrary { library, said, package };
    let answer = answer::answer(command).map_err(missing)?;
    if Path::new(answer.output.trim()).is_absolute() {
        return Ok(());
    }
    Err(missing(format!("{} does not find it", toolchain.cc)))
}

fn command(line: &str, folder: &Path, toolchain: &Toolchain, user: Option<&User>) -> Command {
    let flags = toolchain.flags.join(" ");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("sh");
    command.args(["-e", "-c", line]).current_dir(folder).stdin(Stdio::null());
    command.env("CC", &toolchain.cc).env("CXX", &toolchain.cxx);
    command.env("CFLAGS", &flags).env("CXXFLAGS", &flags).env("JOBS", jobs.to_string());
    command.env("LDFLAGS", toolchain.link_flags());
    // Variables of a make that called rqps.
    for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR"] {
        command.env_remove(name);
    }
    // A group of its own, so that all of it can be ended.
    command.process_group(0);
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

/// Runs a command to its end with its words in the log; ends it with all its children if the
/// caller wants to stop.
fn run(
    command: &mut Command,
    log: &File,
    progress: &mut Progress<'_>,
    text: &str,
) -> Result<ExitStatus, Reason> {
    let pipe = || log.try_clone().map_err(Reason::io("share", "the log of the build"));
    command.stdout(pipe()?).stderr(pipe()?);
    let mut child = command.spawn().map_err(Reason::io("run", "sh"))?;
    let mut guard = match guard(&child) {
        Ok(guard) => guard,
        Err(error) => {
            end(&mut child);
            return Err(Reason::io("guard", "a build")(error));
        }
    };
    let ended = loop {
        match child.try_wait().map_err(Reason::io("wait for", "sh")) {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        if let Err(stopped) = progress.tick(|| text.to_owned()) {
            break Err(stopped);
        }
        std::thread::sleep(POLL);
    };
    if ended.is_err() {
        end(&mut child);
    }
    // It may be gone with the whole group, which is as good.
    let _ = guard.kill();
    let _ = guard.wait();
    ended
}

/// Ends the group of a command when rqps is gone, however it went: its pipe closes then.
fn guard(child: &Child) -> io::Result<Child> {
    let group = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut guard = Command::new("sh");
    guard.args(["-c", "read -r line; kill -KILL 0"]).process_group(group);
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Ends a command and its children at once. They may have ended by themselves, which is as good.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// The reason why a build failed, from its log.
fn failed(ended: ExitStatus, log: &Path, scratch: &Path) -> Reason {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if text.contains("No space left on device") {
        return SourceFault::DiskFull { folder: scratch.to_owned() }.into();
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors = lines.iter().filter(|line| line.contains("error:") || line.contains("Error:"));
    let mut shown: Vec<&str> = errors.copied().take(LINES_SHOWN).collect();
    if shown.is_empty() {
        let from = lines.len().saturating_sub(LINES_SHOWN);
        shown = lines[from..].to_vec();
    }
    let said = shown.into_iter().map(shortened).collect::<Vec<_>>().join("; ");
    let ended = match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("exits with {code}"),
        (None, Some(signal)) => format!("is killed by signal {signal}"),
        (None, None) => "ends".to_owned(),
    };
    SourceFault::BuildFailed { ended, said, log: log.to_owned() }.into()
}

/// Gives a folder to the user that builds, if rqps runs as root.
fn give(folder: &Path, user: Option<&User>) -> Result<(), Reason> {
    match user {
        Some(user) => {
            user::chown_tree(folder, user).map_err(|error| other("give away", folder, error))
        }
        None => Ok(()),
    }
}

/// Servers may run as another user than rqps.
fn open_to_all(tree: &Path) -> Result<(), Reason> {
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(tree, open).map_err(Reason::io("chmod", tree))
}

fn other(doing: &'static str, path: &Path, error: user::UserError) -> Reason {
    Reason::io(doing, PathBuf::from(path))(io::Error::other(error))
}
