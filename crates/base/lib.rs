//! Layer L0: nouns, mathematics, generators and the readers of texts. Only `bounded` does I/O.

#[path = "../../src/bounded.rs"]
pub mod bounded;
#[path = "../../src/datagen/mod.rs"]
pub mod datagen;
#[path = "../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../src/escape.rs"]
pub mod escape;
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
