//! Two builds that differ in nothing but what one of them burns.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rqps_model::build::{Build, Dbms};

use super::burner;
use super::tally::Tally;

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
        let mut made = Vec::new();
        for (name, share) in [("plain", 0.0), ("slowed", share)] {
            let place = folder.join(name);
            fs::create_dir(&place).with_context(|| format!("make {}", place.display()))?;
            let tally = Tally::create(&place.join("tally"))?;
            let mut definitions = vec![format!("-DSHARE={share:?}")];
            definitions.extend(tally.definitions());
            made.push((burner::make(build, dbms, &definitions, &place)?, tally));
        }
        let (slowed, tally) = made.pop().context("make twins")?;
        let (plain, _) = made.pop().context("make twins")?;
        Ok(Twins { plain, slowed, tally })
    }
}
