//! Block specifications: one block of a plan as a unit of work that another host can measure.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::plan::definition::Plan;
use crate::plan::file;
use rqps_model::block::BLOCK_FORMAT;
use rqps_model::build::Manifest;
use rqps_model::config::Config;
use rqps_model::gate::CanaryReference;
use rqps_model::{label, units};

/// Everything that a host needs to measure one attempt at a block, but for builds and data: it
/// obtains the builds and loads the data itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// [`BLOCK_FORMAT`].
    pub format: u32,
    /// Version of rqps that wrote it.
    pub rqps_version: String,
    /// The same for the same attempt at the same block of the same plan: see [`BlockSpec::new`].
    pub id: String,
    /// Round, from 1. With the plan's seed it decides the load and the seeds of all clients.
    pub block: u32,
    /// From 1; more than 1 for a repeated block.
    pub attempt: u32,
    /// Workload, seed, how targets take turns. Without passwords where it is written.
    pub plan: Plan,
    /// The targets in the order of the plan.
    pub targets: Vec<TargetSlot>,
    /// Phases that are not carried out: number in the sequence, from 1 → why.
    pub left_out: BTreeMap<u32, String>,
    /// Reference values for the canaries; `None` if they are off.
    pub canaries: Option<CanaryReference>,
}

/// A target in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSlot {
    /// Its label in the plan.
    #[serde(deserialize_with = "label::checked")]
    pub label: String,
    /// Place in the block's order, from 1.
    pub position: u32,
    /// The build that is measured. Where it has a SHA-256, no other build will do.
    pub build: Manifest,
    /// The settings that its DBMS reads. They were made for the memory of one host; on all hosts
    /// they are the same.
    pub config: Config,
}

/// A written-down block that cannot be carried out. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum SpecError {
    /// No JSON, or a field is missing or of another type.
    #[error("read the block specification: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It has something that only another version of rqps knows.
    #[error(
        "read the block specification of rqps {theirs} with rqps {}: {what}\nhint: use the same \
         version of rqps on all hosts",
        own_version()
    )]
    Foreign {
        /// Version of rqps that wrote it, if known.
        theirs: String,
        /// What this one does not know, such as a field.
        what: String,
    },
    /// It contradicts itself.
    #[error(
        "use the block specification: {0}\nhint: write the specification again; do not edit \
             it"
    )]
    Inconsistent(String),
}

/// On its way to another host a plan is the text of its file.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&file::print(self).map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Plan, D::Error> {
        file::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

fn own_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

impl BlockSpec {
    /// An attempt at a block of `plan`.
    ///
    /// Its id is made of the plan's hash, the block and the attempt. Submitted twice, it is still
    /// one block.
    pub fn new(plan: &Plan, (block, attempt): (u32, u32), targets: Vec<TargetSlot>) -> BlockSpec {
        BlockSpec {
            format: BLOCK_FORMAT,
            rqps_version: own_version().to_owned(),
            id: id(plan, block, attempt),
            block,
            attempt,
            plan: plan.clone(),
            targets,
            left_out: BTreeMap::new(),
            canaries: None,
        }
    }

    /// The block as JSON.
    ///
    /// # Errors
    /// A canary reading that is not a number.
    pub fn print(&self) -> Result<String, SpecError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads what [`BlockSpec::print`] wrote.
    ///
    /// A field that this rqps does not know may change what is measured, so it is refused.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn parse(text: &str) -> Result<BlockSpec, SpecError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            #[serde(default)]
            rqps_version: String,
        }
        let Head { format, rqps_version: theirs } = serde_json::from_str(text)?;
        if format != BLOCK_FORMAT {
            return Err(SpecError::Foreign { theirs, what: format!("its format is {format}") });
        }
        let spec: BlockSpec = serde_json::from_str(text)
            .map_err(|error| SpecError::Foreign { theirs, what: error.to_string() })?;
        spec.check()?;
        Ok(spec)
    }

    /// Holds the block against its plan.
    fn check(&self) -> Result<(), SpecError> {
        let fault = |text: String| Err(SpecError::Inconsistent(text));
        if self.id != id(&self.plan, self.block, self.attempt) {
            return fault("its id is not that of its plan, block and attempt".to_owned());
        }
        let planned = self.plan.targets.iter().map(|target| target.label.as_str());
        let slots = self.targets.iter().map(|slot| slot.label.as_str());
        if !planned.eq(slots) {
            return fault("its targets are not those of its plan".to_owned());
        }
        let positions: BTreeSet<u32> = self.targets.iter().map(|slot| slot.position).collect();
        if !positions.into_iter().eq(1..=self.targets.len() as u32) {
            return fault("the positions of its targets are not 1, 2, 3 and so on".to_owned());
        }
        Ok(())
    }

    /// True if the phase of this index, from 0, is carried out.
    pub fn holds(&self, phase: usize) -> bool {
        !self.left_out.contains_key(&(phase as u32 + 1))
    }
}

/// Names one attempt at one block of one plan.
fn id(plan: &Plan, block: u32, attempt: u32) -> String {
    units::short_hash(format!("{}\n{block}\n{attempt}", plan.hash()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::{self, StepSet};
    use crate::plan::{Blocks, Interleave, PlanDraft, words};
    use rqps_bench::sysbench::presets;
    use rqps_model::build::Version;
    use rqps_model::datagen::rng::Rng;
    use rqps_model::gate::{Canary, CanaryRule};

    /// A text with everything that a file may hold.
    fn word(rng: &mut Rng) -> String {
        let letters = ['a', 'Z', '0', '"', '\\', '\n', '\t', '=', '[', '#', 'é', '\u{1F600}', ' '];
        let count = rng.below(12);
        (0..count).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect()
    }

    fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
        (rng.below(2) == 1).then(|| make(rng))
    }

    fn map<K: Ord>(rng: &mut Rng, key: fn(&mut Rng) -> K) -> BTreeMap<K, String> {
        let count = rng.below(4);
        (0..count).map(|_| (key(rng), word(rng))).collect()
    }

    fn canary(rng: &mut Rng) -> Canary {
        Canary {
            at: word(rng),
            seconds: rng.unit(),
            spin_ns: maybe(rng, |rng| 1e9 * rng.unit()),
            memory_mb_s: maybe(rng, |rng| rng.unit() / 3.0),
            fsync_ns: maybe(rng, Rng::exponential),
            missing: map(rng, word),
        }
    }

    fn plan(rng: &mut Rng) -> Plan {
        let words = ["mysql@5.6.14", "pg=postgres://me@host:1/db", "sqlite", "x=postgres@17:big"];
        let mut words: Vec<String> = words.map(str::to_owned).to_vec();
        words.truncate(1 + rng.below(4) as usize);
        let mut workload = presets::QUICK.workload();
        let rows = 1 + rng.below(1_000_000);
        benchmarks::set(&mut workload, &format!("rows={rows}")).expect("rows");
        workload.read_seconds = 0.1 + rng.unit();
        let all = [Interleave::Turns, Interleave::Step, Interleave::Run];
        let draft = PlanDraft {
            targets: words::targets(&words).expect("words"),
            order: StepSet::Abbreviated,
            steps: if rng.below(2) == 1 { vec!["point*".to_owned()] } else { Vec::new() },
            workload,
            blocks: Blocks::Fixed(1 + rng.below(99) as u32),
            sittings: None,
            loads: 1,
            interleave: all[rng.below(3) as usize],
            seed: rng.next_u64(),
            canaries: rng.below(2) == 1,
            gate: None,
            count: None,
            profile: None,
        };
        Plan::build(draft).expect("a plan")
    }

    fn slot(
        rng: &mut Rng,
        (position, label): (usize, &str),
        dbms: rqps_model::build::Dbms,
    ) -> TargetSlot {
        TargetSlot {
            label: label.to_owned(),
            position: position as u32 + 1,
            build: Manifest {
                dbms,
                version: Version::new(word(rng)),
                reported: word(rng),
                origin: word(rng),
                sha256: maybe(rng, word),
                compiler: maybe(rng, word),
                packages: map(rng, word),
            },
            config: Config { name: word(rng), text: word(rng), hash: word(rng) },
        }
    }

    fn spec(rng: &mut Rng) -> BlockSpec {
        let plan = plan(rng);
        let turned = rng.below(2) == 1;
        let count = plan.targets.len();
        let slots = plan.targets.iter().enumerate().map(|(index, target)| {
            let position = if turned { count - 1 - index } else { index };
            slot(rng, (position, &target.label), target.dbms)
        });
        let slots = slots.collect();
        let which = (1 + rng.below(999) as u32, 1 + rng.below(9) as u32);
        BlockSpec {
            left_out: map(rng, |rng| 1 + rng.below(99) as u32),
            canaries: maybe(rng, |rng| CanaryReference {
                rule: [CanaryRule::Own, CanaryRule::Calibration][rng.below(2) as usize],
                usual: (0..rng.below(4)).map(|_| canary(rng)).collect(),
                pairs: (0..rng.below(3)).map(|_| [canary(rng), canary(rng)]).collect(),
                may_discard: rng.below(2) == 1,
            }),
            ..BlockSpec::new(&plan, which, slots)
        }
    }

    #[test]
    fn a_specification_survives_being_written_down() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let spec = spec(&mut rng);
            let text = spec.print().expect("print");
            let again = BlockSpec::parse(&text).expect(&text);
            assert_eq!(again, spec, "seed {seed}");
            assert_eq!(again.print().expect("print"), text, "seed {seed}");
            assert!((0..200).all(|phase| {
                spec.holds(phase) != spec.left_out.contains_key(&(phase as u32 + 1))
            }));
        }
    }

    #[test]
    fn an_id_names_one_attempt_at_one_block_of_one_plan() {
        let plan = plan(&mut Rng::new(1));
        let built = |draft| Plan::build(draft).expect("a plan");
        let other = built(PlanDraft { seed: plan.seed ^ 1, ..plan.draft() });
        let judged = built(PlanDraft { gate: Some(Default::default()), ..plan.draft() });
        let made = id(&plan, 1, 12);
        assert_eq!(id(&judged, 1, 12), made, "what judges changes nothing that is measured");
        for different in [id(&plan, 11, 2), id(&plan, 1, 13), id(&plan, 2, 12), id(&other, 1, 12)] {
            assert_ne!(different, made);
        }
    }

    #[test]
    fn what_another_rqps_wrote_or_a_hand_changed_is_refused() {
        let mut rng = Rng::new(3);
        let spec = spec(&mut rng);
        let fails = |change: &dyn Fn(&mut serde_json::Value), part: &str| {
            let mut json = serde_json::to_value(&spec).expect("json");
            change(&mut json);
            let error = BlockSpec::parse(&json.to_string()).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
            error
        };
        let error = fails(&|json| json["format"] = 2.into(), "its format is 2");
        assert!(error.contains("hint: use the same version of rqps on all hosts"), "{error}");
        fails(
            &|json| {
                json["rqps_version"] = "7.1.0".into();
                json["clients_on"] = "host-2".into();
            },
            "rqps 7.1.0 with rqps 0.1.0: unknown field `clients_on`",
        );
        fails(
            &|json| json["targets"][0]["build"]["linker"] = "lld".into(),
            "unknown field `linker`",
        );
        fails(&|json| json["block"] = 1000.into(), "its id is not that of its plan");
        fails(&|json| json["targets"] = serde_json::json!([]), "its targets are not those");
        fails(&|json| json["targets"][0]["position"] = 9.into(), "positions of its targets");
        fails(&|json| json["plan"] = "blocks = 1".into(), "read the plan");
        let error = BlockSpec::parse("{").expect_err("half a file").to_string();
        assert!(error.starts_with("read the block specification: "), "{error}");
    }
}
