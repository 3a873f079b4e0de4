//! Layers L0 and L1: they know no DBMS by its row, no driver and no report.

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!(
    "rqps needs Linux with glibc: it loads database libraries, and the builds that it runs are \
     made for glibc; on Alpine, build and run it in a container of a distribution with glibc"
);

// L1
#[path = "../../src/embed/mod.rs"]
pub mod embed;
#[path = "../../src/os/mod.rs"]
pub mod os;
#[path = "../../src/wire/mod.rs"]
pub mod wire;
// L0
#[path = "../../src/datagen/mod.rs"]
pub mod datagen;
#[path = "../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../src/json.rs"]
pub mod json;
#[path = "../../src/parallel.rs"]
pub mod parallel;
#[path = "../../src/stats/mod.rs"]
pub mod stats;
#[path = "../../src/units.rs"]
pub mod units;
#[path = "../../src/user_text/mod.rs"]
pub mod user_text;
