//! A build that burns CPU time at each request: burn.c before or within the real one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rqps_builds::inspect;
use rqps_model::build::{Build, Dbms};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/slowdown/burn.c");

/// Makes it in the folder `place`, which is to be readable by all, and returns it as a word for the
/// command line of rqps. `definitions` are those of burn.c, as options of the compiler.
pub(crate) fn make(
    build: &Build,
    dbms: Dbms,
    definitions: &[String],
    place: &Path,
) -> Result<String> {
    let root = build.root.as_deref().with_context(|| {
        format!("slow {dbms} down: it is no build of its own; name a library by its path")
    })?;
    fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
    let burning = if root.is_file() {
        library(build, root, definitions, place)?
    } else {
        server(root, dbms, definitions, place)?
    };
    Ok(format!("{dbms}={}", burning.display()))
}

/// A library that stands before the real one.
fn library(build: &Build, real: &Path, definitions: &[String], place: &Path) -> Result<PathBuf> {
    let twin = place.join("libsqlite3.so");
    let version = &build.manifest.version;
    let real_text = real.display();
    let more = [
        "-DSQLITE".to_owned(),
        format!("-DREAL=\"{real_text}\""),
        format!("-DVERSION=\"{version}\""),
        "-Wl,--no-as-needed".to_owned(),
        real_text.to_string(),
    ];
    compile(&twin, &[definitions, &more].concat())?;
    Ok(twin)
}

/// A tree of links to the real one, but for the server: that is a script which preloads.
fn server(root: &Path, dbms: Dbms, definitions: &[String], place: &Path) -> Result<PathBuf> {
    let burner = place.join("burn.so");
    compile(&burner, definitions)?;
    let real = inspect::server(root, dbms)
        .with_context(|| format!("find the server of {dbms} in {}", root.display()))?;
    let programs = real.parent().context("find the folder of the server")?;
    let tree = place.join("tree");
    let twin = tree.join(programs.strip_prefix(root).context("find the folder of the server")?);
    fs::create_dir_all(&twin).with_context(|| format!("make {}", twin.display()))?;
    link_all(root, &tree, programs)?;
    link_all(programs, &twin, &real)?;
    let script = twin.join(real.file_name().unwrap_or_default());
    let text = format!(
        "#!/bin/sh\nexport LD_PRELOAD='{}'\nexec '{}' \"$@\"\n",
        burner.display(),
        real.display()
    );
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, PermissionsExt::from_mode(0o755)))
        .with_context(|| format!("write {}", script.display()))?;
    Ok(tree)
}

/// Links to everything in a folder but one.
fn link_all(from: &Path, to: &Path, but: &Path) -> Result<()> {
    let doing = || format!("link to all in {}", from.display());
    for entry in fs::read_dir(from).with_context(doing)? {
        let path = entry.with_context(doing)?.path();
        if path != but {
            symlink(&path, to.join(path.file_name().unwrap_or_default())).with_context(doing)?;
        }
    }
    Ok(())
}

fn compile(to: &Path, options: &[String]) -> Result<()> {
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(to);
    command.arg(SOURCE).args(options);
    let output = command.output().context("run cc, the compiler of C")?;
    if !output.status.success() {
        bail!("compile burn.c: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
