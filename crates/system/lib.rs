//! Layer L1: protocols, C libraries and the operating system, without a DBMS by its row.

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!(
    "rqps needs Linux with glibc: it loads database libraries, and the builds that it runs are \
     made for glibc; on Alpine, build and run it in a container of a distribution with glibc"
);

pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};

#[path = "../../src/embed/mod.rs"]
pub mod embed;
#[path = "../../src/os/mod.rs"]
pub mod os;
#[path = "../../src/wire/mod.rs"]
pub mod wire;
