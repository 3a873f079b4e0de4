//! Which changes a server takes: it may refuse to start with one, or start and keep what it had.

use std::collections::BTreeMap;

use anyhow::Result;

use super::measuring::Measuring;
use rqps_analysis::gap::not_taken;
use rqps_model::gap::{GapArm, GapRound};

/// Changes that a server does not take.
#[derive(Debug, Default)]
pub(super) struct Possible {
    /// Name → the reason, in the server's words where it has some.
    pub(super) refused: BTreeMap<String, String>,
}

impl Possible {
    /// Those of the changes that the server takes together.
    ///
    /// # Errors
    /// What makes every measurement impossible.
    pub(super) fn of(
        &mut self,
        measuring: &mut Measuring<'_>,
        mut names: Vec<String>,
    ) -> Result<Vec<String>> {
        while !names.is_empty() {
            let round = measuring.ask(vec![GapArm::Base(names.clone())], 1)?;
            let Some(words) = round.faults.values().next() else {
                self.keep_taken(measuring, &round)?;
                names.retain(|name| !self.refused.contains_key(name));
                return Ok(names);
            };
            let guilty = named_in(words, &names);
            match (guilty.is_empty(), names.len()) {
                (true, 1) => self.refuse(measuring, &names[0], last_words(words)),
                (true, count) => {
                    let second = names.split_off(count / 2);
                    let mut both = self.of(measuring, names)?;
                    both.extend(self.of(measuring, second)?);
                    return Ok(both);
                }
                (false, _) => {
                    for (name, line) in guilty {
                        self.refuse(measuring, &name, line);
                    }
                }
            }
            names.retain(|name| !self.refused.contains_key(name));
        }
        Ok(names)
    }

    /// Looks again at the groups of a round that a server did not start with.
    ///
    /// # Errors
    /// As [`Possible::of`].
    pub(super) fn take_faults(
        &mut self,
        measuring: &mut Measuring<'_>,
        round: &GapRound,
    ) -> Result<()> {
        for (number, arm) in (1..).zip(&round.arms) {
            let label = measuring.label(arm, number)?;
            let GapArm::Base(names) = arm else { continue };
            let Some(words) = round.faults.get(&label) else { continue };
            if let [only] = names.as_slice() {
                self.refuse(measuring, only, last_words(words));
            } else {
                self.of(measuring, names.clone())?;
            }
        }
        Ok(())
    }

    fn keep_taken(&mut self, measuring: &mut Measuring<'_>, round: &GapRound) -> Result<()> {
        let settings = measuring.settings(round)?;
        let (Some(GapArm::Base(names)), Some(settings)) = (round.arms.first(), settings.first())
        else {
            return Ok(());
        };
        for name in names {
            let kept = measuring.changes.get(name).and_then(|change| not_taken(change, settings));
            if let Some(kept) = kept {
                self.refuse(measuring, name, kept);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, measuring: &mut Measuring<'_>, name: &str, why: String) {
        measuring.note(format!("{name} cannot be changed: {why}"));
        self.refused.insert(name.to_owned(), why);
    }
}

/// The changes that lines with an error name, each with its line.
fn named_in(words: &str, names: &[String]) -> Vec<(String, String)> {
    const OF_ERRORS: [&str; 7] =
        ["error", "fatal", "unknown", "unrecognized", "invalid", "refuse", "cannot"];
    let lines = words.lines().filter(|line| {
        let line = line.to_lowercase();
        OF_ERRORS.iter().any(|word| line.contains(word))
    });
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in lines {
        let spelled = line.to_lowercase().replace('-', "_");
        let is_named = |name: &&String| {
            let setting = name.split(' ').next().unwrap_or_default().to_lowercase();
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            spelled.match_indices(&setting).any(|(at, _)| {
                let before = spelled[..at].trim_end_matches("loose_").chars().next_back();
                !is_word(before) && !is_word(spelled[at + setting.len()..].chars().next())
            })
        };
        for name in names.iter().filter(is_named) {
            found.entry(name.clone()).or_insert_with(|| words_of(line).to_owned());
        }
    }
    found.into_iter().collect()
}

/// What a server said last, in one line.
fn last_words(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    words_of(line.unwrap_or_default()).to_owned()
}

/// A line of a log without its time, its marks and the path of the program.
fn words_of(line: &str) -> &str {
    const BEFORE: [&str; 6] =
        ["mysqld: ", "mariadbd: ", "[Server] ", "[ERROR] ", "FATAL:  ", "FATAL: "];
    let found = BEFORE.iter().find_map(|mark| line.split_once(mark));
    found.map_or(line, |(_, words)| words).trim().trim_start_matches('|').trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_what_it_refuses() {
        let names = ["work_mem", "mem", "io-x", "optimizer_switch mrr"].map(str::to_owned);
        let words = "start: ended\n[ERROR] unknown variable 'io_x=5'\nFATAL: invalid value for \
                     parameter \"work_mem\": \"a\"\nnote: optimizer_switch is fine";
        let found = named_in(words, &names);
        let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, ["work_mem"]);
        assert_eq!(last_words("a\n  | b \n\n"), "b");
        let line = "| 2026-11-27T04:19:08Z 0 [ERROR] [MY-1] [Server] /x/bin/mysqld: Empty value.";
        assert_eq!(words_of(line), "Empty value.");
    }
}
