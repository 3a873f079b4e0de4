//! Which of many changes move a value: groups of them are measured beside each other, and those
//! that move it are split until single changes are left.

use std::collections::VecDeque;

use super::super::{Interval, student, summary};

/// A group that moves the value is split into this number of parts.
const PARTS: usize = 4;
/// Up to this number, changes are measured one by one at once.
const SINGLES_MOST: usize = 6;

/// The rules of a screening. Values are logarithms, so differences are shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenRules {
    /// Smaller effects do not matter.
    pub least: f64,
    /// A group moves the value if the interval at this confidence does not contain 0.
    pub confidence: f64,
    /// Blocks of a group at most; then it stays undecided.
    pub blocks_most: usize,
    /// Groups that are measured beside each other at most.
    pub groups_most: usize,
}

impl Default for ScreenRules {
    fn default() -> ScreenRules {
        ScreenRules { least: 0.01, confidence: 0.99, blocks_most: 12, groups_most: 8 }
    }
}

/// Changes that are on together, and what they do.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Their places.
    pub members: Vec<usize>,
    /// The mean effect.
    pub ln: f64,
    /// Its interval.
    pub interval: Interval,
}

/// A group at work.
#[derive(Clone, Debug)]
struct Group {
    members: Vec<usize>,
    /// ln(group / base) by block.
    values: Vec<f64>,
    /// The group that it is a part of, by its place in `split`.
    whole: Option<usize>,
}

/// A group that was split.
#[derive(Clone, Debug)]
struct Split {
    group: Group,
    /// Parts that are not decided yet.
    open: usize,
    /// True once a part moved the value.
    is_found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Moves,
    Still,
    Unsure,
}

/// The state of a screening.
#[derive(Clone, Debug)]
pub struct Screen {
    rules: ScreenRules,
    waiting: VecDeque<Group>,
    split: Vec<Split>,
    /// Sum of squares of what blocks and arms do not explain, and its degrees of freedom.
    residual: (f64, usize),
    survivors: Vec<Group>,
    undecided: Vec<Group>,
}

impl Screen {
    /// A screening of so many changes.
    pub fn new(changes: usize, rules: ScreenRules) -> Screen {
        let all: Vec<usize> = (0..changes).collect();
        let mut screen = Screen {
            rules,
            waiting: VecDeque::new(),
            split: Vec::new(),
            residual: (0.0, 0),
            survivors: Vec::new(),
            undecided: Vec::new(),
        };
        // Opposite effects may cancel in the whole, so its parts are measured beside it.
        let size = if changes <= SINGLES_MOST { 1 } else { changes.div_ceil(PARTS) };
        for members in all.chunks(size) {
            screen.waiting.push_back(Group {
                members: members.to_vec(),
                values: Vec::new(),
                whole: None,
            });
        }
        screen
    }

    /// The groups to measure next, each beside the base, and no more than `most`; empty at the end.
    pub fn next_round(&self, most: usize) -> Vec<Vec<usize>> {
        let next = self.waiting.iter().take(most.min(self.rules.groups_most));
        next.map(|group| group.members.clone()).collect()
    }

    /// Changes that are known to move the value so far, each or as a group.
    pub fn found(&self) -> usize {
        self.survivors.len() + self.split.iter().filter(|it| it.open > 0 && !it.is_found).count()
    }

    /// Takes blocks of so many of the groups that [`Screen::next_round`] asked for: the logarithms
    /// of the base, then of each group.
    pub fn record(&mut self, count: usize, blocks: &[Vec<f64>]) {
        let whole: Vec<&Vec<f64>> =
            blocks.iter().filter(|block| block.len() == count + 1).collect();
        let (squares, df) = residual(&whole);
        self.residual = (self.residual.0 + squares, self.residual.1 + df);
        let mut round: Vec<Group> = self.waiting.drain(..count).collect();
        for (at, group) in (1..).zip(&mut round) {
            group.values.extend(whole.iter().map(|block| block[at] - block[0]));
        }
        for group in round {
            match self.fate(&group) {
                // A round without a block decides nothing, and must not come again for ever.
                Fate::Unsure
                    if group.values.len() < self.rules.blocks_most && !whole.is_empty() =>
                {
                    self.waiting.push_back(group);
                }
                fate => self.settle(group, fate),
            }
        }
    }

    /// Gives up what is left: groups that moved the value and were not split to the end count as
    /// they are. Returns the members of those that were never measured.
    pub fn stop(&mut self) -> Vec<usize> {
        let mut unmeasured = Vec::new();
        while let Some(group) = self.waiting.pop_front() {
            if group.values.is_empty() {
                unmeasured.extend(group.members.clone());
            }
            self.settle(group, Fate::Unsure);
        }
        let survives = |place: &usize| self.survivors.iter().any(|it| it.members.contains(place));
        unmeasured.retain(|place| !survives(place));
        unmeasured
    }

    /// The changes, or groups of them, that move the value: the largest effect first.
    pub fn survivors(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> =
            self.survivors.iter().map(|group| self.finding(group)).collect();
        found.sort_by(|a, b| b.ln.abs().total_cmp(&a.ln.abs()));
        found
    }

    /// Groups of which nothing can be said.
    pub fn undecided(&self) -> Vec<Finding> {
        let measured = self.undecided.iter().filter(|group| !group.values.is_empty());
        measured.map(|group| self.finding(group)).collect()
    }

    fn settle(&mut self, group: Group, fate: Fate) {
        let whole = group.whole;
        let moves = fate == Fate::Moves;
        if moves && group.members.len() > 1 {
            let size = group.members.len().div_ceil(PARTS);
            let parts: Vec<Vec<usize>> =
                group.members.chunks(size).map(<[usize]>::to_vec).collect();
            let place = self.split.len();
            self.split.push(Split { group, open: parts.len(), is_found: false });
            let part = |members| Group { members, values: Vec::new(), whole: Some(place) };
            self.waiting.extend(parts.into_iter().map(part));
        } else if moves {
            self.survivors.push(group);
        } else if fate == Fate::Unsure {
            self.undecided.push(group);
        }
        let Some(split) = whole.and_then(|at| self.split.get_mut(at)) else { return };
        split.open -= 1;
        split.is_found |= moves;
        if split.open == 0 && !split.is_found {
            // No part moves the value alone: they do it together.
            let group = split.group.clone();
            self.undecided.retain(|part| part.whole != whole);
            self.survivors.push(group);
        }
    }

    fn fate(&self, group: &Group) -> Fate {
        let Finding { interval: Interval { low, high }, .. } = self.finding(group);
        if low > 0.0 || high < 0.0 {
            Fate::Moves
        } else if low > -self.rules.least && high < self.rules.least {
            Fate::Still
        } else {
            Fate::Unsure
        }
    }

    /// The scatter is that of all arms of all rounds: they are the same build beside itself.
    fn finding(&self, group: &Group) -> Finding {
        let ln = if group.values.is_empty() { 0.0 } else { summary::mean(&group.values) };
        let (squares, df) = self.residual;
        let half = match (df, group.values.len()) {
            (0, _) | (_, 0) => f64::INFINITY,
            (df, n) => {
                let t = student::quantile(0.5 + self.rules.confidence / 2.0, df as f64);
                t * (2.0 * squares / (df * n) as f64).sqrt()
            }
        };
        Finding {
            members: group.members.clone(),
            ln,
            interval: Interval { low: ln - half, high: ln + half },
        }
    }
}

/// Sum of squares beyond the means of blocks and arms, and its degrees of freedom.
fn residual(blocks: &[&Vec<f64>]) -> (f64, usize) {
    let Some(arms) = blocks.first().map(|block| block.len()) else { return (0.0, 0) };
    if blocks.len() < 2 {
        return (0.0, 0);
    }
    let of_block: Vec<f64> = blocks.iter().map(|block| summary::mean(block)).collect();
    let grand = summary::mean(&of_block);
    let of_arm =
        |arm: usize| summary::mean(&blocks.iter().map(|block| block[arm]).collect::<Vec<f64>>());
    let mut squares = 0.0;
    for arm in 0..arms {
        let mean = of_arm(arm);
        for (block, level) in blocks.iter().zip(&of_block) {
            squares += (block[arm] - mean - level + grand).powi(2);
        }
    }
    (squares, (blocks.len() - 1) * (arms - 1))
}
