//! Two builds that differ in nothing but what one of them burns.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rqps::domain::build::{Build, Dbms};
use rqps::obtain::layout;

use super::tally::Tally;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/slowdown/burn.c");

/// A build and the same build slowed, as words for the command line of rqps.
pub(crate) struct Twins {
    pub(crate) plain: String,
    pub(crate) slowed: String,
    /// The time that the slowed one burns.
    pub(super) tally: Tally,
}

impl Twins {
    /// Makes both in `folder`, which is to be readable by all.
    pub(crate) fn make(build: &Build, dbms: Dbms, share: f64, folder: &Path) -> Result<Twins> {
        let root = build.root.as_deref().with_context(|| {
            format!("slow {dbms} down: it is no build of its own; name a library by its path")
        })?;
        let mut made = Vec::new();
        for (name, share) in [("plain", 0.0), ("slowed", share)] {
            let place = folder.join(name);
            fs::create_dir(&place).with_context(|| format!("make {}", place.display()))?;
            let tally = Tally::create(&place.join("tally"))?;
            let twin = if root.is_file() {
                library(build, root, share, &place, &tally)?
            } else {
                server(root, dbms, share, &place, &tally)?
            };
            made.push((format!("{dbms}={}", twin.display()), tally));
        }
        let (slowed, tally) = made.pop().context("make twins")?;
        let (plain, _) = made.pop().context("make twins")?;
        Ok(Twins { plain, slowed, tally })
    }
}

/// A library that stands before the real one.
fn library(build: &Build, real: &Path, share: f64, place: &Path, tally: &Tally) -> Result<PathBuf> {
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
    compile(share, tally, &twin, &more)?;
    Ok(twin)
}

/// A tree of links to the real one, but for the server: that is a script which preloads.
fn server(root: &Path, dbms: Dbms, share: f64, place: &Path, tally: &Tally) -> Result<PathBuf> {
    let burner = place.join("burn.so");
    compile(share, tally, &burner, &[])?;
    let real = layout::server(root, dbms)
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

fn compile(share: f64, tally: &Tally, to: &Path, more: &[String]) -> Result<()> {
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(to);
    command.arg(SOURCE).arg(format!("-DSHARE={share:?}")).args(tally.definitions()).args(more);
    let output = command.output().context("run cc, the compiler of C")?;
    if !output.status.success() {
        bail!("compile burn.c: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
