//! The number of blocks of a plan: fixed, or `auto`.

use serde::{Deserialize, Serialize};

use rqps_model::units;
use rqps_model::verdict::LookSchedule;

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
