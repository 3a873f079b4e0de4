//! Builds from sources: a commit of a git repository or a folder of sources, compiled by the
//! recipe of its DBMS into the cache. The user's tree is only read.

mod compile;
mod git;
mod recipe;

pub(super) use crate::source::compile::{
    Compile, Place, SEEN, compile, link, make_objects, rebuild,
};
pub(super) use crate::source::git::commit;
pub use crate::source::git::{Commit, commit_of, commits};
pub use crate::source::recipe::IdleFiles;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::client::{Progress, Reason, real, shortened};
use crate::source::git::Repository;
use crate::source::recipe::Recipe;
use rqps_dbms::spec::{
    BuildVariant, Origin, SharedWork, SourceOrigin, build_variant, build_words, patch_file,
    recipe_name, relink_order,
};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, end_group};
use rqps_host::user::User;
use rqps_host::{beneath, confinement};
use rqps_model::build::Dbms;
use rqps_model::{bounded, safe_path, units};

// Parses a target word with `src:`: a commit or a folder, a variant, and a toolchain.

/// The origin of a build from sources. A work tree with changes that are not committed is built
/// only where a commit is named.
pub(crate) fn locate(
    dbms: Dbms,
    path: &Path,
    reference: Option<&str>,
    variant: Option<&str>,
    progress: &mut Progress<'_>,
) -> Result<Origin, Reason> {
    let recipes = Recipe::candidates(dbms, variant)?;
    let toolchain = Toolchain::of(variant)?;
    let folder = real(path)?;
    if folder.is_dir() {
        // Not where a link of another user leads root.
        safe_path::folder(path).map_err(Reason::io("open", path))?;
    }
    let repository = Repository::of(&folder)?;
    let (commit, state) = match (&repository, reference) {
        (Some(repository), _) => {
            let commit = repository.resolve(reference.unwrap_or("HEAD"))?;
            if reference.is_none() && repository.is_dirty(&commit)? {
                return Err(Reason::Setup(format!(
                    "{} has changes that are not committed; commit them, or write @HEAD to build \
                     the last commit without them",
                    folder.display()
                )));
            }
            (Some(commit.clone()), commit)
        }
        (None, Some(_)) => return Err(Reason::no_repository(&folder)),
        (None, None) => (None, compile::hash_of_sources(&folder, progress)?),
    };
    let how = how(&recipes, &toolchain)?;
    let shared = match toolchain.order {
        Some(_) => {
            let unordered = Toolchain { order: None, ..toolchain.clone() };
            SharedWork::Orders(self::how(&recipes, &unordered)?)
        }
        None if recipes.iter().all(|recipe| recipe.incremental) => {
            let unpatched = Toolchain { patches: Vec::new(), ..toolchain.clone() };
            SharedWork::Commits(self::how(&recipes, &unpatched)?)
        }
        None => SharedWork::Nothing,
    };
    let toolchain = toolchain.text();
    let variant = variant.map(str::to_owned);
    Ok(Origin::Source(SourceOrigin { folder, commit, state, variant, toolchain, how, shared }))
}

/// The hash of all inputs of a build but its sources.
fn how(recipes: &[Recipe], toolchain: &Toolchain) -> Result<String, Reason> {
    let mut hash = Sha256::new();
    hash.update(toolchain.text());
    let with_relink = toolchain.order.is_some();
    for input in recipes.iter().flat_map(|recipe| recipe.inputs(with_relink)) {
        hash.update([0]);
        hash.update(input);
    }
    for file in &toolchain.patches {
        hash.update([0]);
        let patch = bounded::bytes(file, bounded::WRITTEN_MAX);
        hash.update(patch.map_err(Reason::io("read the patch", file))?);
    }
    Ok(units::hex(&hash.finalize()[..4]))
}

/// The files of the paths that the sources of an origin have, before they are copied.
fn present(origin: &SourceOrigin, paths: BTreeSet<String>) -> Result<BTreeSet<String>, Reason> {
    let mut found = BTreeSet::new();
    let repository = match &origin.commit {
        Some(commit) => Some((repository(origin)?, commit)),
        None => None,
    };
    for path in paths {
        let is_there = match &repository {
            Some((repository, commit)) => repository.holds(commit, &path)?,
            None => origin.folder.join(&path).exists(),
        };
        if is_there {
            found.insert(path);
        }
    }
    Ok(found)
}

/// The repository of an origin with a commit.
fn repository(origin: &SourceOrigin) -> Result<Repository<'_>, Reason> {
    Repository::of(&origin.folder)?.ok_or_else(|| Reason::no_repository(&origin.folder))
}

/// Puts the sources of an origin into an empty folder.
fn put(origin: &SourceOrigin, into: &Path, progress: &mut Progress<'_>) -> Result<(), Reason> {
    let Some(commit) = &origin.commit else {
        return compile::copy_sources(&origin.folder, into, progress);
    };
    repository(origin)?.export(commit, into, progress)
}

// The tree of sources that somebody works in.

/// A file that only the sources of one DBMS have; MariaDB before MySQL, from which it comes.
const MARKS: [(&str, Dbms); 6] = [
    ("src/backend/tcop/postgres.c", Dbms::Postgres),
    ("storage/maria/ma_open.c", Dbms::Mariadb),
    ("sql/mysqld.cc", Dbms::Mysql),
    ("include/rocksdb/db.h", Dbms::Rocksdb),
    ("src/sqliteInt.h", Dbms::Sqlite),
    ("sqlite3.c", Dbms::Sqlite),
];

/// The folder of sources that this one is in, and their DBMS.
pub fn tree_of(folder: &Path) -> Option<(PathBuf, Dbms)> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|top| {
        let (_, dbms) = MARKS.iter().find(|(mark, _)| top.join(mark).is_file())?;
        Some((top.to_owned(), *dbms))
    })
}

/// True if a reference means a commit there.
///
/// # Errors
/// git does not run.
pub fn has_commit(top: &Path, reference: &str) -> Result<bool, Reason> {
    let repository = Repository::of(top)?;
    Ok(repository.is_some_and(|it| it.resolve(reference).is_ok()))
}

/// What the work tree has changed since the last commit, as a patch; empty for nothing. Files that
/// git does not know are not in it.
///
/// # Errors
/// No repository, or git fails.
pub fn changes(top: &Path) -> Result<String, Reason> {
    let top = real(top)?;
    let repository = Repository::of(&top)?.ok_or_else(|| Reason::no_repository(&top))?;
    repository.changes(&repository.resolve("HEAD")?)
}

// One command of a recipe: its environment, its end, and why it failed. It ends with rqps.

/// Time between two looks at a running command.
const POLL: Duration = Duration::from_millis(50);
/// Time that the last words of a command may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes at the end of a log in which rqps looks for the share that is done.
const TAIL: u64 = 4096;
/// Bytes at the end of a log in which an error looks for words.
const WORDS_MOST: u64 = 1 << 20;
/// Lines of a log that an error shows.
const LINES_SHOWN: usize = 4;

/// A line of a recipe, to be run in `folder` as `user`.
pub(super) fn command(
    line: &str,
    folder: &Path,
    toolchain: &Toolchain,
    user: Option<&User>,
) -> Command {
    let flags = toolchain.flags.join(" ");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = child::command("sh", ChildTask::Work);
    command.args(["-e", "-c", line]).current_dir(folder).stdin(Stdio::null());
    command.env("CC", &toolchain.cc).env("CXX", &toolchain.cxx);
    command.env("CFLAGS", &flags).env("CXXFLAGS", &flags).env("JOBS", jobs.to_string());
    command.env("LDFLAGS", toolchain.link_flags());
    if let Some(user) = user {
        child::become_user(&mut command, user.identity());
    }
    command
}

/// Runs a command to its end with its words in the log; ends it with all its children if the
/// caller wants to stop.
pub(super) fn run(
    command: &mut Command,
    log: &Path,
    log_file: &File,
    progress: &mut Progress<'_>,
    text: &str,
) -> Result<ExitStatus, Reason> {
    let sharing = || Reason::io("share", "the log of the build");
    let (said, pipe) = io::pipe().map_err(sharing())?;
    command.stdout(pipe.try_clone().map_err(sharing())?).stderr(pipe);
    let spawned = command.spawn();
    // Otherwise this process would hold the pipe open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawned.map_err(Reason::io("run", "sh"))?;
    let written = command_output::keep_log(said, log_file.try_clone().map_err(sharing())?);
    let mut guard = match guard(&child) {
        Ok(guard) => guard,
        Err(error) => {
            end_group(&mut child);
            return Err(Reason::io("guard", "a build")(error));
        }
    };
    let started = Instant::now();
    let ended = loop {
        match child.try_wait().map_err(Reason::io("wait for", "sh")) {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        if let Err(stopped) = progress.tick(|| with_share(text, log, started.elapsed())) {
            break Err(stopped);
        }
        std::thread::sleep(POLL);
    };
    if ended.is_err() {
        end_group(&mut child);
    }
    // It may be gone already, which is as good.
    let _ = guard.kill();
    let _ = guard.wait();
    let left = confinement::end_left(child.id());
    // Daemons of an ordinary user may hold the pipe.
    written.recv_timeout(LAST_WORDS).ok();
    for left in left {
        // Told for whoever reads why a daemon of the recipe is gone.
        let _ = writeln!(&mut &*log_file, "rqps: ended what the command left running: {left}");
    }
    ended
}

/// The text with the share that is done and the time left, if the command tells its share.
fn with_share(text: &str, log: &Path, elapsed: Duration) -> String {
    let tail = beneath::end(log, 0, TAIL).unwrap_or_default();
    let Some(percent) = percent_done(&String::from_utf8_lossy(&tail)) else {
        return text.to_owned();
    };
    if matches!(percent, 0 | 100) {
        return format!("{text}, {percent} % done");
    }
    let left = elapsed.as_secs_f64() * (100.0 / f64::from(percent) - 1.0);
    let left = units::duration(Duration::from_secs_f64(left.round()));
    format!("{text}, {percent} % done, about {left} left")
}

/// The percentage in the last line such as `[ 34%] Built target a`, which CMake's makefiles print.
fn percent_done(tail: &str) -> Option<u8> {
    let of_line = |line: &str| line.strip_prefix('[')?.split_once("%]")?.0.trim().parse().ok();
    tail.lines().rev().find_map(of_line).filter(|percent| *percent <= 100)
}

/// Ends the group of a command when rqps is gone, however it went: its pipe closes then.
fn guard(child: &Child) -> io::Result<Child> {
    let mut guard = child::command("sh", ChildTask::Work);
    guard.args(["-c", "read -r line; kill -s KILL -- \"-$0\"", &child.id().to_string()]);
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// The reason why a build failed, from its log.
pub(super) fn failed(ended: ExitStatus, log: &Path, scratch: &Path) -> Reason {
    let text = beneath::end(log, 0, WORDS_MOST).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if text.contains("No space left on device") {
        return no_space(scratch);
    }
    // Commands themselves begin with a plus.
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("+ ");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_said).collect();
    let errors = lines.iter().filter(|line| line.contains("error:") || line.contains("Error:"));
    let mut shown: Vec<&str> = errors.copied().take(LINES_SHOWN).collect();
    if shown.is_empty() {
        let from = lines.len().saturating_sub(LINES_SHOWN);
        shown = lines[from..].to_vec();
    }
    let said = shown.into_iter().map(shortened).collect::<Vec<_>>().join("; ");
    let (ended, log) = (command_output::how(ended), log.display());
    Reason::Build(format!("the build {ended}: {said}; the whole log is {log}"))
}

pub(super) fn no_space(folder: &Path) -> Reason {
    Reason::Setup(format!(
        "the disk of {} is full; make room, or name another cache with --cache",
        folder.display()
    ))
}

// Compiler and flags of a build from sources.

/// Compilers and flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The C compiler.
    pub(super) cc: String,
    /// The C++ compiler.
    pub(super) cxx: String,
    /// Flags for both.
    pub(super) flags: Vec<String>,
    /// The library that replaces malloc, and its Debian package.
    pub(super) allocator: Option<(&'static str, &'static str)>,
    /// The version text of the C compiler, on one line.
    pub(super) reported: String,
    /// The number of the order in which functions are linked; `None` for that of the compiler.
    pub(super) order: Option<u32>,
    /// Patches to the sources, in their order.
    pub(super) patches: Vec<PathBuf>,
}

impl Toolchain {
    /// The toolchain of a variant such as `O3+native`; without one -O2 -g by `cc`.
    pub(super) fn of(variant: Option<&str>) -> Result<Toolchain, Reason> {
        let mut flags: Vec<&str> = vec!["-O2", "-g"];
        let (mut cc, mut cxx) = ("cc", "c++");
        let (mut order, mut patches, mut allocator) = (None, Vec::new(), None);
        for name in variant.into_iter().flat_map(|names| names.split('+')) {
            if let Some(file) = patch_file(name) {
                patches.push(PathBuf::from(file));
                continue;
            }
            if let Some(number) = relink_order(name) {
                order = Some(number);
                flags.push("-ffunction-sections");
                continue;
            }
            if recipe_name(name).is_some() {
                continue;
            }
            let Some(found) = build_variant(name) else {
                return Err(Reason::Setup(format!(
                    "no variant of builds is called {name:?} (known: {})",
                    build_words()
                )));
            };
            let BuildVariant { flags: own, compilers, allocator: library, .. } = found;
            allocator = library.or(allocator);
            for flag in *own {
                flags.retain(|other| group(other) != group(flag));
                flags.push(flag);
            }
            if let Some((c, cplusplus)) = compilers {
                (cc, cxx) = (c, cplusplus);
            }
        }
        let mut command = child::command(cc, ChildTask::Work);
        command.arg("--version");
        let package =
            if cc == "clang" { "the Debian package clang" } else { "the Debian package gcc" };
        let purpose = format!("to build from sources ({cc})");
        let answer = command_output::run(command)
            .map_err(|error| Reason::missing_program("a C compiler", &purpose, error, package))?;
        let reported = answer.output.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Toolchain {
            cc: cc.to_owned(),
            cxx: cxx.to_owned(),
            flags: flags.into_iter().map(str::to_owned).collect(),
            allocator,
            reported,
            order,
            patches,
        })
    }

    /// The flags of the linker. The library comes before libc in the list of each program, so its
    /// malloc is taken, as with LD_PRELOAD.
    fn link_flags(&self) -> String {
        self.allocator.map_or_else(String::new, |(library, _)| {
            format!("-Wl,--push-state,--no-as-needed -l:{library} -Wl,--pop-state")
        })
    }

    /// Compiler, flags, allocator, order of linking and patches, for manifests.
    pub(super) fn text(&self) -> String {
        let order = self.order.map(|order| format!(", functions in order {order}"));
        let patches = self.patches.iter().map(|file| {
            format!(", patch {}", file.file_name().unwrap_or_default().to_string_lossy())
        });
        let patches: String = patches.collect();
        let allocator = self.allocator.map(|(library, _)| format!(", {library}"));
        let (flags, allocator) = (self.flags.join(" "), allocator.unwrap_or_default());
        format!("{} {flags}{allocator}{}{patches}", self.reported, order.unwrap_or_default())
    }
}

/// The flag that excludes `-fomit-frame-pointer`.
const FRAME_POINTER: &str = "-fno-omit-frame-pointer";

/// Flags of one group exclude each other.
fn group(flag: &str) -> &str {
    let groups = ["-O", "-g", "-march", FRAME_POINTER];
    let flag = if flag == "-fomit-frame-pointer" { FRAME_POINTER } else { flag };
    groups.into_iter().find(|group| flag.starts_with(group)).unwrap_or(flag)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::client::Said;
    use rqps_host::command_output::LOG_MOST;

    #[test]
    fn a_command_fills_no_disk_with_its_words() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let line = format!("yes | head -c {}; echo; echo the end; exit 3", LOG_MOST + (4 << 20));
        let mut command = child::command("sh", ChildTask::Work);
        command.args(["-c", &line]);
        let (mut hear, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut hear, &stop);
        let ended = run(&mut command, log.path(), log.as_file(), &mut progress, "run").unwrap();
        assert_eq!(ended.code(), Some(3));
        let length = log.as_file().metadata().unwrap().len();
        assert!((LOG_MOST..LOG_MOST + (1 << 20)).contains(&length), "{length}");
        let end = beneath::end(log.path(), 0, 99).unwrap();
        assert!(String::from_utf8_lossy(&end).ends_with("\nthe end\n"));
    }

    #[test]
    fn the_share_that_makefiles_of_cmake_tell_gives_the_time_left() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let said = |words: &str, seconds| {
            fs::write(log.path(), words).unwrap();
            with_share("building", log.path(), Duration::from_secs(seconds))
        };
        let lines = "[  3%] Building C object a.o\n[ 25%] Built target b\nwarning: [-Wall] 99%\n";
        assert_eq!(said(lines, 60), "building, 25 % done, about 3m00s left");
        assert_eq!(said("[  0%] Built target a\n", 2), "building, 0 % done");
        assert_eq!(said("[100%] Built target a\n", 90), "building, 100 % done");
        assert_eq!(said("gcc -c a.c\n", 60), "building");
        // A share beyond the end of a long log does not count.
        let long = format!("[ 25%] Built target b\n{}", "x\n".repeat(3000));
        assert_eq!(said(&long, 60), "building");
        assert_eq!(with_share("building", Path::new("/nowhere/log"), Duration::ZERO), "building");
    }

    #[test]
    fn later_flags_replace_those_of_their_group() {
        let check = |variant: Option<&str>, expected: &str| {
            let found = Toolchain::of(variant).unwrap();
            assert_eq!(found.flags.join(" "), expected, "{variant:?}");
            assert!(found.text().starts_with(&found.reported) && !found.reported.is_empty());
        };
        check(None, "-O2 -g");
        check(Some("O3+native"), "-g -O3 -march=native");
        check(Some("rel"), "-O3 -g0");
        check(Some("rel_native_lto"), "-O3 -g0 -march=native -flto");
        check(Some("o2nofp"), "-g -O2 -fno-omit-frame-pointer");
        check(Some("o2nofp+omitfp"), "-g -O2 -fomit-frame-pointer");
        check(Some("gcc+O0"), "-g -O0");
        check(Some("O3+relink7+patch=../a.diff"), "-g -O3 -ffunction-sections");
        check(Some("recipe=sources+jemalloc"), "-O2 -g");
        let found = Toolchain::of(Some("tcmalloc+rel_o2+jemalloc")).unwrap();
        assert!(found.text().ends_with("-O2 -g0, libjemalloc.so.2"), "{}", found.text());
        assert!(found.link_flags().contains("-l:libjemalloc.so.2"));
        let found = Toolchain::of(Some("O3+relink7+patch=../a.diff")).unwrap();
        assert!(found.text().ends_with("-ffunction-sections, functions in order 7, patch a.diff"));
        // Published results mean the opposite of what this word said here.
        assert!(Toolchain::of(Some("nofp")).is_err());
        let said = Toolchain::of(Some("O3+fast")).unwrap_err().to_string();
        assert!(said.contains("fast") && said.contains("rel_withdbg"), "{said}");
    }
}
