//! Sittings of a plan: its blocks in groups that lie apart in time. What the blocks of one sitting
//! share (the state of the host, where memory and files came to lie) is new in the next.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::blocks::Blocks;
use crate::plan::definition::PlanDraft;
use crate::plan::{cost, order};
use rqps_model::datagen::rng::Rng;
use rqps_model::target::Target;
use rqps_model::units;

/// Sittings of a plan, as its file spells them: `{ number = 3, every = "5m" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sittings {
    /// So many, of equally many blocks each.
    pub number: u32,
    /// From the beginning of one to that of the next, if the one before is over.
    #[serde(serialize_with = "seconds", deserialize_with = "duration")]
    pub every: Duration,
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{}s", time.as_secs_f64()))
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    units::parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
}

impl Sittings {
    /// The fault of these sittings; `None` if they can be used.
    pub(super) fn fault(&self, plan: &PlanDraft) -> Option<String> {
        let Sittings { number, every } = self;
        let most = plan.blocks.most();
        if *every > Duration::from_hours(24 * 7) {
            let every = units::duration(*every);
            return Some(format!("sittings: every must be at most 7 days, not {every}"));
        }
        if matches!(plan.blocks, Blocks::Auto(_)) {
            return Some(
                "measure several sittings with blocks = \"auto\": interim looks belong to one \
                 sitting; give a number of blocks for each sitting"
                    .to_owned(),
            );
        }
        let parts = (2..=most).contains(number) && most.is_multiple_of(*number);
        (!parts).then(|| {
            format!(
                "sittings must be from 2 on and share the {most} blocks of the plan equally, not \
                 {number}"
            )
        })
    }
}

impl PlanDraft {
    /// The number of the sitting that a block belongs to, from 1; 1 for a plan without sittings.
    pub fn sitting_of(&self, block: u32) -> u32 {
        let each = self.sittings.as_ref().map(|it| self.blocks.most() / it.number.max(1));
        each.map_or(1, |each| (block.max(1) - 1) / each.max(1) + 1)
    }

    /// The number of the load that a block starts from; both numbers begin with 1. As many loads as
    /// sittings: each sitting has its own.
    pub fn load_of(&self, block: u32) -> u32 {
        match &self.sittings {
            Some(sittings) if sittings.number == self.loads => self.sitting_of(block),
            _ => (block.max(1) - 1) % self.loads.max(1) + 1,
        }
    }

    /// As many loads as blocks where loading all targets takes no longer than a block, and else one
    /// for each sitting: no interval of a single load contains what another load would give.
    pub fn usual_loads(&self) -> u32 {
        let is_loaded = |target: &Target| {
            let ours = !target.source.is_elsewhere();
            ours && !target.dbms.dialect().is_scripted() && self.load_request(target).is_some()
        };
        let phases = self.targets.first().and_then(|first| self.phases(first).ok());
        let (true, Some(phases)) = (self.targets.iter().all(is_loaded), phases) else { return 1 };
        let cost = cost::estimate(&PlanDraft { loads: 1, ..self.clone() }, &phases);
        if cost.load_seconds <= cost.block_seconds {
            self.blocks.most()
        } else {
            self.sitting_of(self.blocks.most())
        }
    }

    /// True for the first block that starts from its load.
    pub fn is_first_of_load(&self, block: u32) -> bool {
        (1..block).all(|before| self.load_of(before) != self.load_of(block))
    }

    /// The end of the names of data folders: of another length in each sitting.
    pub fn path_tail(&self, block: u32) -> String {
        let sitting = u64::from(self.sitting_of(block));
        let length = Rng::stream(self.seed, "path", sitting).below(32) as usize;
        self.sittings.as_ref().map(|_| "-".repeat(length)).unwrap_or_default()
    }

    /// Order of the targets (indices) in each block: that of each sitting is drawn anew.
    pub fn orders(&self, targets: usize) -> Vec<Vec<usize>> {
        let most = self.blocks.most();
        let sittings = self.sitting_of(most);
        let of_sitting = |sitting| {
            let seed = match sitting {
                1 => self.seed,
                sitting => Rng::stream(self.seed, "sitting", u64::from(sitting)).next_u64(),
            };
            order::orders(targets, most / sittings, seed)
        };
        (1..=sittings).flat_map(of_sitting).collect()
    }
}
