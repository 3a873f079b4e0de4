//! The blocks of a plan: how many, fixed or `auto`; in which order targets come; and one block with
//! its plan, as text for another host.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::plan::definition::{Plan, PlanDraft};
use crate::plan::{cost, file};
use rqps_model::build::{self, Config, Manifest, Target};
use rqps_model::datagen::rng::Rng;
use rqps_model::gate::CanaryReference;
use rqps_model::run::BLOCK_FORMAT;
use rqps_model::verdict::LookSchedule;
use rqps_model::{escape, units};

/// Blocks of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blocks {
    /// So many.
    Fixed(u32),
    /// Until every step is settled, within limits.
    Auto(Auto),
}

/// Limits of `blocks = "auto"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auto {
    /// Blocks before the first look at the results.
    pub min: u32,
    /// Blocks at the last look. Verdicts pay for every look that is allowed, taken or not.
    pub max: u32,
    /// Seconds for everything, loading included; no block is begun that would probably end later.
    pub budget_seconds: Option<f64>,
}

impl Default for Auto {
    /// From 4 blocks, the fewest with a useful interval, to 12.
    fn default() -> Auto {
        Auto { min: 4, max: 12, budget_seconds: None }
    }
}

impl Blocks {
    /// The most that there can be.
    pub fn most(&self) -> u32 {
        match self {
            Blocks::Fixed(blocks) => *blocks,
            Blocks::Auto(auto) => auto.max,
        }
    }

    /// The fewest, unless a budget ends before them.
    pub fn fewest(&self) -> u32 {
        match self {
            Blocks::Fixed(blocks) => *blocks,
            Blocks::Auto(auto) => auto.min,
        }
    }

    /// The schedule of interim looks; `None` for a fixed number of blocks, which has one look at
    /// the end.
    pub fn schedule(&self) -> Option<LookSchedule> {
        match self {
            Blocks::Fixed(_) => None,
            Blocks::Auto(auto) => Some(LookSchedule { blocks_min: auto.min, blocks_max: auto.max }),
        }
    }

    /// The looks at the verdicts: those of [`Blocks::schedule`], or one at the end.
    pub fn looks(&self) -> LookSchedule {
        let blocks = self.most();
        self.schedule().unwrap_or(LookSchedule { blocks_min: blocks, blocks_max: blocks })
    }

    /// The fault of these limits; `None` if they can be used.
    pub fn fault(&self) -> Option<String> {
        let limits = |blocks: u32| (1..=999).contains(&blocks);
        match self {
            Blocks::Fixed(blocks) if !limits(*blocks) => {
                Some(format!("blocks must be from 1 to 999, not {blocks}"))
            }
            Blocks::Auto(auto) if auto.min < 2 || auto.max < auto.min || !limits(auto.max) => {
                Some(format!(
                    "blocks = \"auto\" needs min from 2 and max from min to 999, not min {} and \
                     max {}",
                    auto.min, auto.max
                ))
            }
            Blocks::Auto(Auto { budget_seconds: Some(budget), .. })
                if !(budget.is_finite() && *budget > 0.0) =>
            {
                Some(format!("the budget must be above 0, not {budget} s"))
            }
            _ => None,
        }
    }
}

/// As a plan file spells them: `4`, `"auto"`, or `{ min = 4, max = 12, budget = "30m" }`.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "blocks must be a number, \"auto\", or a table with min, max and \
                               budget"
)]
pub(super) enum Spelled {
    Number(u32),
    Word(Word),
    Table(Table),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    Auto,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    #[serde(default = "default_min")]
    min: u32,
    #[serde(default = "default_max")]
    max: u32,
    /// `30m`, `1h30m`, or seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
}

fn default_min() -> u32 {
    Auto::default().min
}

fn default_max() -> u32 {
    Auto::default().max
}

impl Spelled {
    /// The blocks that the file asks for.
    pub(super) fn blocks(&self) -> Result<Blocks, String> {
        Ok(match self {
            Spelled::Number(blocks) => Blocks::Fixed(*blocks),
            Spelled::Word(Word::Auto) => Blocks::Auto(Auto::default()),
            Spelled::Table(table) => {
                let budget = table.budget.as_deref().map(units::parse_duration).transpose();
                let budget = budget.map_err(|error| format!("budget: {error}"))?;
                let budget_seconds = budget.map(|budget| budget.as_secs_f64());
                Blocks::Auto(Auto { min: table.min, max: table.max, budget_seconds })
            }
        })
    }

    /// The shortest spelling.
    pub(super) fn of(blocks: Blocks) -> Spelled {
        match blocks {
            Blocks::Fixed(blocks) => Spelled::Number(blocks),
            Blocks::Auto(auto) if auto == Auto::default() => Spelled::Word(Word::Auto),
            Blocks::Auto(Auto { min, max, budget_seconds }) => {
                let budget = budget_seconds.map(|seconds| format!("{seconds}s"));
                Spelled::Table(Table { min, max, budget })
            }
        }
    }
}

// Block specifications: one block of a plan as a unit of work that another host can measure.

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
    #[serde(deserialize_with = "build::checked_label")]
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
    #[error("read the block specification: {}", escape::fault(.0))]
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

// Sittings of a plan: its blocks in groups that lie apart in time. What the blocks of one sitting
// share (the state of the host, where memory and files came to lie) is new in the next.

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
            orders(targets, most / sittings, seed)
        };
        (1..=sittings).flat_map(of_sitting).collect()
    }
}

// In which order a block, or a load, visits its targets.
//
// Two targets: seeded random ABBA or BAAB, so that a linear drift of the host cancels within two
// blocks. More: the rows of a Williams square (each target equally often in each place and after
// each other target), relabelled and shuffled by the seed (Williams 1949). Several loads of each
// target follow the same rule. docs/measuring.md describes the design.

/// Order of the targets (indices) in each of `blocks` blocks.
pub(crate) fn orders(targets: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = Rng::stream(seed, "block order", 0);
    let mut orders = Vec::new();
    while orders.len() < blocks as usize {
        let relabelled = permutation(targets, &mut rng);
        let mut square: Vec<Vec<usize>> = williams(targets)
            .into_iter()
            .map(|row| row.into_iter().map(|place| relabelled[place]).collect())
            .collect();
        // With two targets the square is AB, BA already; shuffling more would break ABBA.
        if targets > 2 {
            shuffle(&mut square, &mut rng);
        }
        orders.extend(square);
    }
    orders.truncate(blocks as usize);
    orders
}

/// The rows of a Williams design: n rows for an even number of targets, 2n for an odd one.
fn williams(targets: usize) -> Vec<Vec<usize>> {
    if targets < 2 {
        return vec![(0..targets).collect()];
    }
    // 0, 1, n−1, 2, n−2 …: neighbours differ by every distance once.
    let mut first = vec![0];
    for step in 1..targets {
        let place = if step % 2 == 1 { step.div_ceil(2) } else { targets - step / 2 };
        first.push(place);
    }
    let shifted = |by: usize| first.iter().map(|place| (place + by) % targets).collect();
    let mut rows: Vec<Vec<usize>> = (0..targets).map(shifted).collect();
    if targets % 2 == 1 {
        let mirrored: Vec<Vec<usize>> =
            rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

fn permutation(length: usize, rng: &mut Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    shuffle(&mut places, rng);
    places
}

/// Fisher-Yates.
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        let other = rng.uniform(0, last as u64) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::{self, StepSet};
    use crate::plan::{Blocks, Interleave, PlanDraft, words};
    use rqps_bench::sysbench;
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
        let mut workload = sysbench::workload("quick").unwrap().0;
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
                code: maybe(rng, word),
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

#[cfg(test)]
mod order_tests {
    use super::*;

    #[test]
    fn two_targets_go_abba() {
        for seed in 0..50 {
            for pair in orders(2, 8, seed).chunks(2) {
                assert_eq!(pair[0], pair[1].iter().rev().copied().collect::<Vec<_>>());
            }
        }
        let firsts: usize = (0..200).map(|seed| orders(2, 1, seed)[0][0]).sum();
        assert!((60..140).contains(&firsts), "the first place must be random: {firsts} of 200");
    }

    #[test]
    fn every_target_stands_in_every_place_and_after_every_other_equally_often() {
        for targets in 2..=9usize {
            let rows = williams(targets);
            let each = rows.len() / targets;
            for place in 0..targets {
                for target in 0..targets {
                    let count = rows.iter().filter(|row| row[place] == target).count();
                    assert_eq!(count, each, "{targets} targets: {target} in place {place}");
                }
            }
            for first in 0..targets {
                for second in (0..targets).filter(|second| *second != first) {
                    let follows = |row: &&Vec<usize>| row.windows(2).any(|w| w == [first, second]);
                    let count = rows.iter().filter(follows).count();
                    assert_eq!(count, each, "{targets} targets: {second} after {first}");
                }
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(orders(5, 12, 7), orders(5, 12, 7));
        assert_ne!(orders(5, 12, 7), orders(5, 12, 8));
        assert_eq!(orders(1, 3, 7), vec![vec![0]; 3]);
    }
}
