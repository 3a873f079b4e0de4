//! The folders and the build of a server of a test. Use it with `mod server_place;`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rqps_dbms::{Interrupt, Site, config};
use rqps_host::user;
use rqps_model::build::{Build, Dbms, Manifest, Version};

/// A build; without a root where it is compiled in.
pub(crate) fn build(dbms: Dbms, root: Option<&Path>, version: &str) -> Build {
    let manifest = Manifest {
        dbms,
        version: Version::new(version),
        reported: String::new(),
        origin: "a test".to_owned(),
        sha256: None,
        compiler: None,
        code: None,
        packages: BTreeMap::new(),
    };
    Build { root: root.map(Path::to_owned), manifest, cache: None }
}

/// A server of that build in `folder`, with its default config and a small cache.
pub(crate) fn site(folder: &Path, build: &Build) -> Site {
    let Manifest { dbms, version, .. } = &build.manifest;
    Site {
        build: build.clone(),
        accepted: None,
        config: config::load(*dbms, "default", &Default::default(), version, 128 << 20).unwrap(),
        data: folder.join("data"),
        logs: folder.join("logs"),
        sockets: folder.join("s"),
        storage_engine: None,
        run_as: user::choose(None).unwrap(),
        memory_group: None,
        callgrind: None,
        still: false,
        listen: None,
        warden_program: PathBuf::from(env!("CARGO_BIN_EXE_rqps")),
        start_timeout: Duration::from_secs(120),
        interrupt: Interrupt::default(),
    }
}
