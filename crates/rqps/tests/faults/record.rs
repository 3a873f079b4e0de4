//! One line for each trial, and the table of a campaign.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::Trial;
use crate::setups::SETUPS;

/// The first line of docs/faults.csv.
pub(crate) const HEADER: &str =
    "seed,trial,setup,user,fault,after_lines,delay_ms,moment_ms,struck,exit,resumed,outcome,note";

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// It came to its end.
    Unharmed,
    /// It ended early, said why, and was resumed.
    Resumed,
    /// Something of what the page promises did not hold.
    Lost,
    /// It had ended before the fault.
    Missed,
    /// The scene could not be made.
    Broken,
}

impl Outcome {
    const ALL: [(Outcome, &'static str); 5] = [
        (Outcome::Unharmed, "unharmed"),
        (Outcome::Resumed, "resumed"),
        (Outcome::Lost, "lost"),
        (Outcome::Missed, "missed"),
        (Outcome::Broken, "broken"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Outcome::ALL.iter().find(|(it, _)| *it == self).map_or("", |(_, name)| name)
    }

    /// A fault that met a run.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Outcome::Unharmed | Outcome::Resumed | Outcome::Lost)
    }
}

/// A trial and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    seed: u64,
    pub(crate) trial: u64,
    pub(crate) setup: String,
    user: String,
    pub(crate) fault: String,
    after_lines: u64,
    delay: u64,
    pub(crate) moment: u128,
    pub(crate) struck: String,
    pub(crate) exit: i32,
    pub(crate) resumed: Option<i32>,
    pub(crate) outcome: Outcome,
    pub(crate) note: String,
    /// What rqps said; not in the line.
    pub(crate) details: String,
}

impl Record {
    pub(crate) fn of(trial: &Trial) -> Record {
        Record {
            seed: trial.seed,
            trial: trial.number,
            setup: trial.setup.name.to_owned(),
            user: if trial.as_nobody { "nobody" } else { "root" }.to_owned(),
            fault: trial.kind.name(),
            after_lines: trial.after_lines,
            delay: trial.delay,
            moment: 0,
            struck: String::new(),
            exit: 0,
            resumed: None,
            outcome: Outcome::Missed,
            note: String::new(),
            details: String::new(),
        }
    }

    /// A line of docs/faults.csv.
    pub(crate) fn line(&self) -> String {
        let plain = |text: &str| text.replace([',', '\n', '"'], ";").trim().to_owned();
        let resumed = self.resumed.map(|code| code.to_string()).unwrap_or_default();
        [
            self.seed.to_string(),
            self.trial.to_string(),
            self.setup.clone(),
            self.user.clone(),
            plain(&self.fault),
            self.after_lines.to_string(),
            self.delay.to_string(),
            self.moment.to_string(),
            plain(&self.struck),
            self.exit.to_string(),
            resumed,
            self.outcome.name().to_owned(),
            plain(&self.note),
        ]
        .join(",")
    }

    /// `None` for a line that is none, such as the header.
    pub(crate) fn read(line: &str) -> Option<Record> {
        let cells: Vec<&str> = line.split(',').collect();
        let [
            seed,
            trial,
            setup,
            user,
            fault,
            after,
            delay,
            moment,
            struck,
            exit,
            resumed,
            end,
            note,
        ] = cells[..]
        else {
            return None;
        };
        Some(Record {
            seed: seed.parse().ok()?,
            trial: trial.parse().ok()?,
            setup: setup.to_owned(),
            user: user.to_owned(),
            fault: fault.to_owned(),
            after_lines: after.parse().ok()?,
            delay: delay.parse().ok()?,
            moment: moment.parse().ok()?,
            struck: struck.to_owned(),
            exit: exit.parse().ok()?,
            resumed: resumed.parse().ok(),
            outcome: Outcome::ALL.iter().find(|(_, name)| *name == end)?.0,
            note: note.to_owned(),
            details: String::new(),
        })
    }
}

/// How many there are of each outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    tried: u32,
    unharmed: u32,
    resumed: u32,
    lost: u32,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        self.tried += u32::from(outcome.counts());
        self.unharmed += u32::from(outcome == Outcome::Unharmed);
        self.resumed += u32::from(outcome == Outcome::Resumed);
        self.lost += u32::from(outcome == Outcome::Lost);
    }

    fn cells(self) -> String {
        let Tally { tried, unharmed, resumed, lost } = self;
        format!("{tried} | {unharmed} | {resumed} | {lost}")
    }
}

/// The tables of docs/faults.md: by kind of fault, and tried and lost by kind and setup.
pub(crate) fn tables(records: &[Record]) -> String {
    let records: Vec<&Record> = records.iter().filter(|it| it.outcome.counts()).collect();
    let kinds: BTreeSet<&str> = records.iter().map(|record| record.fault.as_str()).collect();
    let (mut all, mut by_kind) = (Tally::default(), BTreeMap::<&str, Tally>::new());
    let mut by_both = BTreeMap::<(&str, &str), Tally>::new();
    for record in &records {
        all.add(record.outcome);
        by_kind.entry(&record.fault).or_default().add(record.outcome);
        by_both.entry((&record.fault, &record.setup)).or_default().add(record.outcome);
    }
    let mut text = "| fault | tried | came to its end | resumed | lost |\n".to_owned();
    text.push_str("|---|---|---|---|---|\n");
    for (kind, tally) in &by_kind {
        text.push_str(&format!("| {kind} | {} |\n", tally.cells()));
    }
    text.push_str(&format!("| **all** | {} |\n\n", all.cells()));
    let setups: Vec<&str> = SETUPS.iter().map(|setup| setup.name).collect();
    text.push_str(&format!("| tried (lost) | {} |\n", setups.join(" | ")));
    text.push_str(&format!("|---|{}\n", "---|".repeat(setups.len())));
    for kind in kinds {
        let cell = |setup: &&str| match by_both.get(&(kind, *setup)) {
            None => String::new(),
            Some(Tally { tried, lost: 0, .. }) => tried.to_string(),
            Some(Tally { tried, lost, .. }) => format!("{tried} ({lost})"),
        };
        let cells: Vec<String> = setups.iter().map(cell).collect();
        text.push_str(&format!("| {kind} | {} |\n", cells.join(" | ")));
    }
    text
}
