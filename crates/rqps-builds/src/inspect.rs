//! Reads the version of a binary.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_NOBITS, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::read::{ReadCache, ReadCacheOps};
use sha2::{Digest, Sha256};

use crate::client::{Progress, Reason};
use crate::debian::ASIDE;
use rqps_dbms::spec::{self, DbmsSpec, LibraryForm};
use rqps_host::{beneath, child, command_output};
use rqps_model::build::{Dbms, Version};
use rqps_model::{bounded, units};

/// A program of a build, which runs as the unprivileged user and sees no variables.
fn stranger(program: &Path) -> Result<Command, Reason> {
    let other = |error| Reason::io("start", program)(std::io::Error::other(error));
    child::stranger(program).map_err(other)
}

/// The words that a server binary prints of itself, on one line, without the binary's folder. If
/// it does not start, the error says what it lacks.
pub(super) fn reported(binary: &Path, dbms: Dbms) -> Result<String, Reason> {
    let mut command = stranger(binary)?;
    command.args(spec::of(dbms).and_then(DbmsSpec::server).map_or(&[][..], |s| s.version_args));
    command.arg("--version");
    let answer = command_output::run_stranger(command)
        .map_err(|error| diagnosed(binary, error.to_string()))?;
    if !answer.success() {
        return Err(diagnosed(binary, answer.complaint()));
    }
    let mut lines = answer.output.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    Ok(without_folder(line))
}

/// The first word of a line without the folder in it, and without what [`ASIDE`] adds.
fn without_folder(line: &str) -> String {
    let (first, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let name = first.rsplit('/').next().unwrap_or(first);
    format!("{}{rest}", name.strip_suffix(ASIDE).unwrap_or(name))
}

/// Checks whether the loader finds the dependencies of a shared library.
pub(super) fn loadable(library: &Path) -> Result<(), Reason> {
    let missing = unresolved(library);
    if missing.is_empty() {
        return Ok(());
    }
    Err(missing_libraries(library, &missing))
}

/// The reason why a program did not start.
fn diagnosed(binary: &Path, said: String) -> Reason {
    let missing = unresolved(binary);
    if !missing.is_empty() {
        return missing_libraries(binary, &missing);
    }
    // The loader's words: version `GLIBC_2.34' not found (required by …).
    if said.contains("GLIBC") && said.contains("not found") {
        return Reason::Build(format!(
            "{} needs newer system libraries than this host has: {said}; run it on a newer host, \
             or build it on this one and name the tree with DBMS=PATH",
            binary.display()
        ));
    }
    unrunnable(binary, &said)
}

pub(super) fn unrunnable(binary: &Path, said: &str) -> Reason {
    Reason::Build(format!("{} does not report its version: {said}", binary.display()))
}

fn missing_libraries(program: &Path, missing: &[(String, String)]) -> Reason {
    let list: Vec<String> =
        missing.iter().map(|(library, advice)| format!("{library} ({advice})")).collect();
    let word = if missing.len() == 1 { "a shared library" } else { "shared libraries" };
    let (program, list) = (program.file_name().unwrap_or_default(), list.join(", "));
    let program = program.to_string_lossy();
    Reason::Build(format!("{program} needs {word} that this host lacks: {list}"))
}

/// The DBMS and the version in a server's words; `None` if they are no server's.
pub(super) fn parse_reported(reported: &str) -> Option<(Dbms, Version)> {
    spec::ALL.iter().find_map(|spec| {
        let version = (spec.server()?.reported)(reported)?;
        Some((spec.dbms, version))
    })
}

/// SHA-256 of a file, hexadecimal.
pub(super) fn sha256(path: &Path, progress: &mut Progress<'_>) -> Result<String, Reason> {
    let mut file = bounded::plain(path).map_err(Reason::io("open", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    loop {
        match Read::read(&mut file, &mut buffer).map_err(Reason::io("read", path))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
        progress.tick(|| format!("checksumming {name}"))?;
    }
    Ok(units::hex(&hash.finalize()))
}

/// The compilers of a binary as its `.comment` section names them, if it has one.
pub(super) fn compiler(binary: &Path) -> Option<String> {
    // The compiler is good to know, and no reason to refuse a build that runs.
    let mut aside = binary.as_os_str().to_owned();
    aside.push(ASIDE);
    let aside = PathBuf::from(aside);
    let comments = elf_comments(if aside.is_file() { &aside } else { binary }).ok()?;
    // Libraries that are linked in may leave a note of their own there.
    let names = ["GCC", "clang", "LLD", "rustc"];
    let is_compiler = |text: &String| names.iter().any(|name| text.contains(name));
    let compilers: Vec<String> = comments.into_iter().filter(is_compiler).collect();
    (!compilers.is_empty()).then(|| compilers.join("; "))
}

/// True if a binary that calls itself `found` may be the version that was asked for: the numbers
/// that both have are the same. Packages may add numbers of their own.
pub(super) fn agrees(dbms: Dbms, asked: &Version, found: &Version) -> bool {
    let own = spec::of(dbms).map_or(3, |spec| (spec.numbering.own)(asked));
    let (asked, found) = (asked.numbers(), found.numbers());
    !found.is_empty() && asked.iter().zip(&found).take(own).all(|(asked, found)| asked == found)
}

/// Old versions of MySQL set up their data folder with a script of Perl: that Perl and its modules
/// are here, is asked by having it compile the script.
pub(super) fn script_runs(root: &Path) -> Result<(), Reason> {
    let script = root.join("scripts/mysql_install_db");
    let Ok(bytes) = bounded::bytes(&script, bounded::WRITTEN_MAX) else { return Ok(()) };
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !String::from_utf8_lossy(first).contains("perl") {
        return Ok(());
    }
    // `BEGIN` blocks run, although the script is only compiled.
    let mut command = stranger(Path::new("perl"))?;
    command.arg("-c").arg(&script);
    let said = match command_output::run_stranger(command) {
        Ok(answer) if answer.success() => return Ok(()),
        Ok(answer) => answer.complaint(),
        Err(error) => error.to_string(),
    };
    let purpose = format!("to run {}", script.display());
    Err(Reason::missing_program("perl", &purpose, said, "the Debian package perl"))
}

// Finds shared libraries that a program needs and this host lacks, with their Debian packages.
//
// Asked only when a program does not start. The loader lists them, as it does for ldd(1).

/// The loaders of the processors that builds are made for.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// The libraries that the program needs, itself or through another library, and that cannot be
/// found: name and advice. Empty if the file is no program.
fn unresolved(program: &Path) -> Vec<(String, String)> {
    let loader = LOADERS.iter().map(Path::new).find(|loader| loader.exists());
    let listed = loader.and_then(|loader| {
        let mut command = child::stranger(loader).ok()?;
        // It maps the files and starts nothing.
        command.env("LD_TRACE_LOADED_OBJECTS", "1").arg(program);
        command_output::run_stranger(command).ok()
    });
    let listed = listed.map(|listed| listed.output).unwrap_or_default();
    let names: BTreeSet<&str> = unresolved_in(&listed).collect();
    names.into_iter().map(|name| (name.to_owned(), advice(name))).collect()
}

/// The names in lines such as `libz.so.1 => not found`.
pub(super) fn unresolved_in(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.trim().strip_suffix(" => not found"))
}

/// Library and Debian package, where the one does not follow from the other.
const PACKAGES: &[(&str, &str)] = &[
    ("libaio.so.1", "libaio1"),
    ("libatomic.so.1", "libatomic1"),
    ("libbz2.so.1.0", "libbz2-1.0"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libcurl.so.4", "libcurl4"),
    ("libedit.so.2", "libedit2"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgssapi_krb5.so.2", "libgssapi-krb5-2"),
    ("libkrb5.so.3", "libkrb5-3"),
    ("libldap-2.4.so.2", "libldap-2.4-2, last in Debian 11"),
    ("libldap-2.5.so.0", "libldap-2.5-0"),
    ("liblz4.so.1", "liblz4-1"),
    ("liblzma.so.5", "liblzma5"),
    ("libncurses.so.5", "libncurses5, last in Debian 12"),
    ("libncurses.so.6", "libncurses6"),
    ("libnuma.so.1", "libnuma1"),
    ("libpam.so.0", "libpam0g"),
    ("libpcre2-8.so.0", "libpcre2-8-0"),
    ("libpq.so.5", "libpq5"),
    ("libreadline.so.7", "libreadline7, last in Debian 10"),
    ("libreadline.so.8", "libreadline8"),
    ("libsasl2.so.2", "libsasl2-2"),
    ("libsnappy.so.1", "libsnappy1v5"),
    ("libstdc++.so.6", "libstdc++6"),
    ("libsystemd.so.0", "libsystemd0"),
    ("libtinfo.so.5", "libtinfo5, last in Debian 12"),
    ("libtinfo.so.6", "libtinfo6"),
    ("liburing.so.2", "liburing2"),
    ("libuuid.so.1", "libuuid1"),
    ("libxml2.so.2", "libxml2"),
    ("libxslt.so.1", "libxslt1.1"),
    ("libz.so.1", "zlib1g"),
    ("libzstd.so.1", "libzstd1"),
];

/// The package to install for a library.
fn advice(name: &str) -> String {
    if name == "libaio.so.1" {
        return "install the Debian package libaio1; since Debian 13 it is libaio1t64 with the file \
                libaio.so.1t64: make a link libaio.so.1 to it"
            .to_string();
    }
    let package = PACKAGES.iter().find(|(library, _)| *library == name);
    let package = package.map(|(_, package)| package.to_string()).or_else(|| by_rule(name));
    match package {
        Some(package) => format!("install the Debian package {package}"),
        None => format!("search for its Debian package with `apt-file search {name}`"),
    }
}

/// Families of libraries whose packages carry the version.
fn by_rule(name: &str) -> Option<String> {
    let (stem, version) = name.split_once(".so.")?;
    match (stem, version) {
        ("libssl" | "libcrypto", "1.1") => Some("libssl1.1, last in Debian 11".to_string()),
        ("libssl" | "libcrypto", "1.0.0" | "1.0.2") => Some(format!("libssl{version}")),
        ("libssl" | "libcrypto", "3") => Some("libssl3".to_string()),
        (stem, version) if stem.starts_with("libicu") => Some(format!("libicu{version}")),
        _ => None,
    }
}

// Reads from ELF files what a build is asked for: compilers, and functions that can be placed.
//
// Only 64-bit little-endian files, only through their section headers, and only the few sections
// of interest: a server binary may have 400 MB. Every offset and length comes from the file and
// is checked against it. Format: System V ABI, chapters 4 and 5.

/// A section that is larger is not read.
const SECTION_BYTES: u64 = 16 << 20;
/// A longer text of a file is none: a file may name one text of megabytes a million times.
const TEXT_BYTES: usize = 4096;

type Section = SectionHeader64<LE>;

/// The different strings of `.comment`, in order: one for each compiler that took part. Empty for
/// another file, or one that contradicts itself.
pub(super) fn elf_comments(path: &Path) -> io::Result<Vec<String>> {
    Ok(comments_in(&ReadCache::new(bounded::plain(path)?)).unwrap_or_default())
}

/// Names of the sections of single functions in an object file (`-ffunction-sections`), without
/// cold parts. Empty for another file.
pub(super) fn elf_functions(path: &Path) -> io::Result<Vec<String>> {
    let data = ReadCache::new(beneath::open_without_links(path)?);
    let Some((sections, names)) = sections(&data) else { return Ok(Vec::new()) };
    let named = sections.iter().filter_map(|section| section_name(names, section));
    let is_function = |name: &String| {
        name.strip_prefix(".text.")
            .is_some_and(|name| !["unlikely", "startup", "exit", "hot"].contains(&part(name)))
    };
    Ok(named.filter(is_function).collect())
}

/// The part of a name before its first dot.
fn part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn comments_in<R: ReadCacheOps>(data: &ReadCache<R>) -> Option<Vec<String>> {
    let (sections, names) = sections(data)?;
    let is_comment =
        |section: &&Section| section_name(names, section).as_deref() == Some(".comment");
    let bytes = content(sections.iter().find(is_comment)?, data)?;
    let (mut comments, mut known) = (Vec::new(), HashSet::new());
    for comment in bytes.split(|byte| *byte == 0) {
        let comment = String::from_utf8_lossy(comment).trim().to_string();
        if !comment.is_empty() && known.insert(comment.clone()) {
            comments.push(comment);
        }
    }
    Some(comments)
}

/// The sections, and the table of their names.
fn sections<R: ReadCacheOps>(data: &ReadCache<R>) -> Option<(&[Section], &[u8])> {
    let header = FileHeader64::<LE>::parse(data).ok()?;
    if !header.is_little_endian() {
        return None;
    }
    let sections = header.section_headers(LE, data).ok()?;
    let names = sections.get(header.shstrndx(LE, data).ok()? as usize)?;
    Some((sections, content(names, data)?))
}

/// The bytes of a section; `None` if it has none in the file, or too many.
fn content<'a, R: ReadCacheOps>(section: &Section, data: &'a ReadCache<R>) -> Option<&'a [u8]> {
    let is_read = section.sh_type(LE) != SHT_NOBITS && section.sh_size(LE) <= SECTION_BYTES;
    is_read.then(|| section.data(LE, data).ok()).flatten()
}

/// The zero-ended name of a section.
fn section_name(names: &[u8], section: &Section) -> Option<String> {
    let rest = names.get(section.sh_name(LE) as usize..)?;
    let end = rest.iter().take(TEXT_BYTES).position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

// Paths in the tree of a build.
//
// Trees come from packages, distributions and `make install`, which agree on little: each function
// looks in the places that occur, and `None` means that the tree has no such thing.

/// Names of the server binary, the one to prefer first; none for a library.
pub(super) fn server_names(dbms: Dbms) -> &'static [&'static str] {
    spec::of(dbms).and_then(DbmsSpec::server).map_or(&[], |server| server.programs)
}

/// The shared library of a build that is a tree around one.
pub(super) fn library_in_tree(dbms: Dbms) -> Option<&'static LibraryForm> {
    spec::of(dbms).and_then(DbmsSpec::library).filter(|library| !library.is_root)
}

/// Folders of a tree that hold programs.
pub(super) const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", "libexec"];

/// The server: `root/bin/postgres`, `root/sbin/mariadbd` …
pub fn server(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    if let Some(library) = library_in_tree(dbms) {
        return Some(root.join(library.file)).filter(|path| path.is_file());
    }
    server_names(dbms).iter().find_map(|name| program(root, name))
}

/// A program of the tree by its name: `initdb`, `mariadb-install-db`. Looks in `bin`, `sbin`,
/// `libexec` and `scripts`.
pub fn program(root: &Path, name: &str) -> Option<PathBuf> {
    let folders = PROGRAM_FOLDERS.iter().chain(&["scripts"]);
    folders.map(|folder| root.join(folder).join(name)).find(|path| path.is_file())
}

/// The folder of a server's system tables and messages, where it has one: the one for
/// `--lc-messages-dir` and the bootstrap scripts.
pub fn share(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    let server = spec::of(dbms).and_then(DbmsSpec::server)?;
    let mut folders = server.share.iter().map(|folder| root.join(folder));
    folders.find(|folder| folder.join("english/errmsg.sys").is_file())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn check(reported: &str, expected: Option<(Dbms, &str)>) {
        let found = parse_reported(reported);
        let found = found.as_ref().map(|(dbms, version)| (*dbms, version.as_str()));
        assert_eq!(found, expected, "{reported}");
    }

    #[test]
    fn servers_are_told_by_their_words() {
        check("postgres (PostgreSQL) 17.2", Some((Dbms::Postgres, "17.2")));
        check("postgres (PostgreSQL) 15.13 (Debian 15.13-1)", Some((Dbms::Postgres, "15.13")));
        check("postgres (PostgreSQL) 18beta2", Some((Dbms::Postgres, "18beta2")));
        let mysql = "mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)";
        check(mysql, Some((Dbms::Mysql, "8.0.33")));
        let old = "mysqld  Ver 5.6.14-log for linux-glibc2.5 on x86_64 (MySQL Community Server)";
        check(old, Some((Dbms::Mysql, "5.6.14")));
        let percona = "mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL))";
        check(percona, Some((Dbms::Mysql, "8.0.35")));
        let mariadb = "mariadbd  Ver 11.4.5-MariaDB for Linux on x86_64 (MariaDB Server)";
        check(mariadb, Some((Dbms::Mariadb, "11.4.5")));
        let named_mysqld = "mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)";
        check(named_mysqld, Some((Dbms::Mariadb, "10.1.23")));
        check("perl 5.36.0", None);
        check("nginx  Ver ", None);
        check("", None);
    }

    #[test]
    fn versions_agree_in_the_numbers_that_are_the_dbms_own() {
        let check = |dbms, asked: &str, found: &str| {
            agrees(dbms, &Version::new(asked), &Version::new(found))
        };
        assert!(check(Dbms::Postgres, "17.2.0", "17.2"));
        assert!(check(Dbms::Postgres, "11.22.1", "11.22"));
        assert!(check(Dbms::Postgres, "9.6.24", "9.6.24"));
        assert!(check(Dbms::Mysql, "8.0.33.1", "8.0.33"));
        assert!(!check(Dbms::Postgres, "17.2.0", "17.3"));
        assert!(!check(Dbms::Postgres, "9.6.24", "9.6.23"));
        assert!(!check(Dbms::Mariadb, "10.11.5", "10.1.23"));
        assert!(!check(Dbms::Mysql, "8.0.33", "beta"));
    }

    #[test]
    fn advice_names_the_package() {
        let check = |library: &str, words: &str| {
            let advice = advice(library);
            assert!(advice.contains(words), "{library}: {advice}");
        };
        check("libaio.so.1", "libaio1;");
        check("libnuma.so.1", "package libnuma1");
        check("libtinfo.so.5", "libtinfo5");
        check("libcrypto.so.1.1", "libssl1.1");
        check("libicuuc.so.72", "libicu72");
        check("libxml2.so.2", "libxml2");
        check("libodd.so.9", "apt-file search libodd.so.9");
    }

    #[test]
    fn the_list_of_the_loader_is_understood() {
        let listed = "\tlinux-vdso.so.1 (0x00007ff288723000)\n\tlibodd.so.9 => not found\n\
                      \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007ff28852b000)\n";
        assert!(unresolved_in(listed).eq(["libodd.so.9"]));
    }

    #[test]
    fn what_runs_lacks_nothing() {
        assert_eq!(unresolved(&std::env::current_exe().unwrap()), []);
        assert_eq!(unresolved(Path::new("/etc/passwd")), []);
    }

    /// An ELF file with three sections: null, .comment, .shstrtab.
    fn made(comment: &[u8]) -> Vec<u8> {
        let names = b"\0.comment\0.shstrtab\0";
        let contents: [(u32, u32, &[u8]); 3] = [(0, 0, b""), (1, 1, comment), (10, 3, names)];
        let mut body = Vec::new();
        let mut table = Vec::new();
        for (name, kind, content) in contents {
            let mut header = [0; 64];
            header[0..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            table.extend_from_slice(&header);
            body.extend_from_slice(content);
        }
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        file[40..48].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&3u16.to_le_bytes());
        file[62..64].copy_from_slice(&2u16.to_le_bytes());
        file.extend_from_slice(&body);
        file.extend_from_slice(&table);
        file
    }

    fn read(bytes: &[u8]) -> Option<Vec<String>> {
        comments_in(&ReadCache::new(Cursor::new(bytes)))
    }

    #[test]
    fn a_made_file_gives_back_what_was_put_in() {
        let gcc = "GCC: (Debian 12.2.0) 12.2.0";
        let bytes = made(format!("{gcc}\0\0{gcc}\0clang 14\0").as_bytes());
        assert_eq!(read(&bytes).unwrap(), [gcc, "clang 14"]);
    }

    #[test]
    fn no_damage_makes_it_read_outside_of_the_file() {
        let bytes = made(b"GCC\0");
        for length in 0..bytes.len() {
            read(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                read(&damaged);
            }
        }
        assert_eq!(read(b"#!/bin/sh\necho hello\n"), None);
        assert_eq!(read(b""), None);
    }

    #[test]
    fn this_very_program_names_its_compiler() {
        let found = elf_comments(Path::new("/proc/self/exe")).unwrap();
        assert!(found.iter().any(|text| text.contains("rustc")), "{found:?}");
    }
}
