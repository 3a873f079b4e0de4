//! Gives libFuzzer the target that `RQPS_FUZZ` names.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../targets/mod.rs"]
mod targets;

static CHOSEN: LazyLock<&targets::FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("RQPS_FUZZ").unwrap_or_default();
    let known = || targets::ALL.each_ref().map(|target| target.name).join(" ");
    targets::named(&name).unwrap_or_else(|| panic!("RQPS_FUZZ=NAME, one of: {}", known()))
});

fuzz_target!(|bytes: &[u8]| targets::held(&CHOSEN, bytes));
