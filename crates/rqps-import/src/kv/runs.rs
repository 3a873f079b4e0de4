//! Assigns rows and outputs of db_bench to runs. One version may have several runs.

use std::collections::{BTreeMap, BTreeSet};

/// The runs of each label, with the rows seen of each run.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    of_label: BTreeMap<String, Vec<ParsedRun>>,
}

/// One run of a label: the rows of its tests, and its time.
#[derive(Debug, Default)]
struct ParsedRun {
    tests: BTreeMap<String, String>,
    seconds: Vec<i64>,
}

impl Runs {
    /// The number of the run (from 0) that a row belongs to, and true if the row was seen before,
    /// because several tables contain it. A run has each test once. Among several runs without the
    /// test, the one nearest in time gets the row.
    pub(crate) fn place(
        &mut self,
        label: &str,
        test: &str,
        identity: &str,
        date: Option<&str>,
    ) -> (usize, bool) {
        let runs = self.of_label.entry(label.to_owned()).or_default();
        let same = |run: &ParsedRun| run.tests.get(test).is_some_and(|other| other == identity);
        if let Some(place) = runs.iter().position(same) {
            return (place, true);
        }
        let at = date.and_then(seconds);
        let apart = |run: &ParsedRun| {
            let apart = at.and_then(|at| run.seconds.iter().map(|other| (other - at).abs()).min());
            apart.unwrap_or(i64::MAX)
        };
        let open = runs.iter().enumerate().filter(|(_, run)| !run.tests.contains_key(test));
        let near = open.min_by_key(|(_, run)| apart(run)).map(|(place, _)| place);
        let place = near.unwrap_or_else(|| {
            runs.push(ParsedRun::default());
            runs.len() - 1
        });
        let run = &mut runs[place];
        run.tests.insert(test.to_owned(), identity.to_owned());
        run.seconds.extend(at);
        (place, false)
    }

    /// The number of the first run of a label without any of these tests: a file belongs to one
    /// run.
    pub(crate) fn place_of_file(&mut self, label: &str, tests: &BTreeSet<&str>) -> usize {
        let runs = self.of_label.entry(label.to_owned()).or_default();
        let open = |run: &ParsedRun| tests.iter().all(|test| !run.tests.contains_key(*test));
        let place = runs.iter().position(open).unwrap_or_else(|| {
            runs.push(ParsedRun::default());
            runs.len() - 1
        });
        let names = tests.iter().map(|test| ((*test).to_owned(), String::new()));
        runs[place].tests.extend(names);
        place
    }
}

/// A number that grows with `2025-05-09T01:44:24Z`; months of 31 days suffice.
fn seconds(date: &str) -> Option<i64> {
    let parts: Option<Vec<i64>> = date
        .trim_end_matches('Z')
        .split(['-', 'T', ':'])
        .map(|part| part.parse::<u32>().ok().map(i64::from))
        .collect();
    match parts?.as_slice() {
        [year, month, day, hour, minute, second] => {
            let days = (year * 12 + month) * 31 + day;
            Some(((days * 24 + hour) * 60 + minute) * 60 + second)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_version_belong_to_the_run_of_their_time() {
        let mut runs = Runs::default();
        let (lru, hcc) = (Some("2025-05-09T01:44:24Z"), Some("2025-05-01T00:54:23Z"));
        assert_eq!(runs.place("9.9.3", "fillseq", "a", lru), (0, false));
        assert_eq!(runs.place("9.9.3", "fillseq", "b", hcc), (1, false));
        // The second run's row appears alone, then again in another table.
        assert_eq!(runs.place("9.9.3", "overwrite", "c", Some("2025-05-01T02:00:00Z")), (1, false));
        assert_eq!(runs.place("9.9.3", "overwrite", "c", Some("2025-05-01T02:00:00Z")), (1, true));
        assert_eq!(runs.place("9.9.3", "overwrite", "d", None), (0, false));
        assert_eq!(runs.place("9.8.4", "fillseq", "a", lru), (0, false));
    }

    #[test]
    fn a_file_is_of_one_run() {
        let mut runs = Runs::default();
        let of = |tests: &[&'static str]| tests.iter().copied().collect::<BTreeSet<&str>>();
        assert_eq!(runs.place_of_file("x", &of(&["fillseq", "readrandom"])), 0);
        assert_eq!(runs.place_of_file("x", &of(&["overwrite"])), 0);
        assert_eq!(runs.place_of_file("x", &of(&["readrandom"])), 1);
        assert_eq!(seconds("2025-05-09"), None);
    }
}
