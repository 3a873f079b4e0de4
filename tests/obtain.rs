//! Obtaining builds, end to end: with a scripted package client, and with the real one where it is.

use std::path::Path;

use rqps::domain::build::{Dbms, Source, Version};
use rqps::obtain::{Cache, obtain};

fn version(text: &str) -> Source {
    Source::Version { version: Version::new(text), variant: None }
}

#[test]
fn live_cache() {
    let Some(words) = std::env::var_os("RQPS_TEST_FILL") else {
        eprintln!("SKIPPED: live_cache: RQPS_TEST_FILL is not set");
        return;
    };
    let cache = Cache::open(Path::new("/var/cache/rqps")).unwrap();
    for word in words.to_string_lossy().split_whitespace() {
        let (dbms, text) = word.split_once('@').unwrap();
        let begun = std::time::Instant::now();
        let mut say = |text: &str| eprintln!("  {text}");
        let build = obtain(Dbms::from_name(dbms).unwrap(), &version(text), &cache, &mut say);
        eprintln!("{word} {:.2} s {build:?}", begun.elapsed().as_secs_f64());
    }
}
