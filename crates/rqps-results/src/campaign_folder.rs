//! The folder of a campaign, such as a bisection: its log, and one result folder for each
//! measurement.

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::read::{self, ResultsError};
use super::store;
use rqps_model::bisection::{
    BisectionEntry, BisectionRequest, CAMPAIGN_FORMAT, CampaignLog, GapRequest, GapRound,
    RateRequest, RateRound,
};

/// The folder of a bisection.
pub type BisectionFolder = CampaignFolder<BisectionRequest>;

/// The folder of a gap.
pub type GapFolder = CampaignFolder<GapRequest>;

/// The folder of a search for the best rate.
pub type RateFolder = CampaignFolder<RateRequest>;

/// Seconds of a campaign at most, three centuries: more come from a damaged or hostile file.
const SECONDS_MOST: f64 = 1e10;

/// What a campaign is asked for, and what it keeps.
pub trait Campaign: PartialEq + Serialize + DeserializeOwned {
    /// A measurement.
    type Round: Serialize + DeserializeOwned;
    /// Name of the file.
    const FILE: &'static str;
    /// Name of the campaign.
    const NAME: &'static str;
    /// Seconds that a measurement took.
    fn seconds(round: &Self::Round) -> f64;
    /// Why measurements do not fit what was asked for.
    fn fault(&self, rounds: &[Self::Round]) -> Option<String>;
}

impl Campaign for BisectionRequest {
    type Round = BisectionEntry;
    const FILE: &'static str = "bisect.json";
    const NAME: &'static str = "bisection";

    fn seconds(entry: &BisectionEntry) -> f64 {
        match entry {
            BisectionEntry::Measured(measured) => measured.seconds,
            BisectionEntry::Lost { .. } => 0.0,
        }
    }

    fn fault(&self, entries: &[BisectionEntry]) -> Option<String> {
        let count = self.versions.len();
        let places = entries.iter().flat_map(|entry| match entry {
            BisectionEntry::Measured(measured) => measured.places.clone(),
            BisectionEntry::Lost { place, .. } => vec![*place],
        });
        (count < 2 || places.max().is_some_and(|place| place >= count))
            .then(|| format!("it has {count} versions, and measurements of others"))
    }
}

impl Campaign for GapRequest {
    type Round = GapRound;
    const FILE: &'static str = "gap.json";
    const NAME: &'static str = "gap";

    fn seconds(round: &GapRound) -> f64 {
        round.seconds
    }

    fn fault(&self, rounds: &[GapRound]) -> Option<String> {
        let is_other =
            |round: &GapRound| round.blocks.iter().any(|it| it.len() != round.arms.len());
        rounds
            .iter()
            .any(is_other)
            .then(|| "a block has another number of rates than its round has targets".to_owned())
    }
}

impl Campaign for RateRequest {
    type Round = RateRound;
    const FILE: &'static str = "rate.json";
    const NAME: &'static str = "search for a rate";

    fn seconds(round: &RateRound) -> f64 {
        round.seconds
    }

    fn fault(&self, rounds: &[RateRound]) -> Option<String> {
        let is_rate = |rate: f64| rate > 0.0 && rate.is_finite();
        let (first, others) = rounds.split_first()?;
        let capacities = first.windows.values().map(|it| Some(it.events_per_second));
        let all = capacities.chain(others.iter().map(|round| round.rate));
        all.into_iter()
            .any(|rate| !rate.is_some_and(is_rate))
            .then(|| "a round has no rate".to_owned())
    }
}

/// The folder of a campaign.
#[derive(Debug)]
pub struct CampaignFolder<R: Campaign> {
    path: PathBuf,
    log: CampaignLog<R, R::Round>,
}

impl<R: Campaign> CampaignFolder<R> {
    /// Makes the folder, or opens the one that was begun there with this request.
    ///
    /// # Errors
    /// It holds another campaign, or cannot be written.
    pub fn create(path: &Path, request: R) -> Result<Self, ResultsError> {
        if path.join(R::FILE).exists() {
            let folder = Self::open(path)?;
            if folder.log.request == request {
                return Ok(folder);
            }
            if !folder.is_bare() {
                let why = format!("it holds a {} of something else", R::NAME);
                return Err(ResultsError::Occupied { path: path.to_owned(), why });
            }
        }
        store::create_folder(path)?;
        let log = CampaignLog { format: CAMPAIGN_FORMAT, request, rounds: Vec::new() };
        let folder = CampaignFolder { path: path.to_owned(), log };
        folder.write()?;
        Ok(folder)
    }

    /// Opens the folder of a campaign that was begun.
    ///
    /// # Errors
    /// The file is none of this campaign, or one of a newer rqps.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        store::check_plain(path)?;
        let file = path.join(R::FILE);
        let format = |log: &CampaignLog<R, R::Round>| log.format;
        let log = read::versioned(&file, CAMPAIGN_FORMAT, format)?;
        let log = log.ok_or_else(|| read::no_file(&file))?;
        let seconds: f64 = log.rounds.iter().map(R::seconds).sum();
        let has_time = (0.0..=SECONDS_MOST).contains(&seconds);
        let fault = (!has_time).then(|| "its measurements took an impossible time".to_owned());
        if let Some(why) = fault.or_else(|| log.request.fault(&log.rounds)) {
            return Err(ResultsError::malformed(&file, 0, None, why));
        }
        Ok(CampaignFolder { path: path.to_owned(), log })
    }

    /// True if nothing was measured yet, as after a server that did not answer.
    fn is_bare(&self) -> bool {
        let only_log = |entry: Result<fs::DirEntry, Error>| {
            entry.is_ok_and(|entry| entry.file_name() == R::FILE)
        };
        fs::read_dir(&self.path).is_ok_and(|mut entries| entries.all(only_log))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The request, and the measurements so far.
    pub fn log(&self) -> &CampaignLog<R, R::Round> {
        &self.log
    }

    /// Adds a measurement, durably.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, round: R::Round) -> Result<(), ResultsError> {
        self.log.rounds.push(round);
        self.write()
    }

    fn write(&self) -> Result<(), ResultsError> {
        let file = self.path.join(R::FILE);
        let text = serde_json::to_string_pretty(&self.log)
            .map_err(|error| ResultsError::io("write", &file)(Error::other(error.to_string())))?;
        store::write_whole(&file, format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_which_nothing_was_measured_takes_another_request() {
        let folder = tempfile::tempdir().expect("folder");
        let request = |limit_ms| RateRequest {
            plan: String::new(),
            step: "s".to_owned(),
            metric: "p99_ms".to_owned(),
            limit_ms,
            budget_seconds: 9.0,
        };
        let create = |limit_ms| RateFolder::create(folder.path(), request(limit_ms));
        create(5.0).expect("a new folder");
        create(6.0).expect("another request");
        assert_eq!(RateFolder::open(folder.path()).expect("log").log().request.limit_ms, 6.0);
        fs::create_dir(folder.path().join("round-01")).expect("round");
        let said = create(7.0).expect_err("a round was begun").to_string();
        assert!(said.contains("of something else"), "{said}");
    }

    #[test]
    fn a_log_with_an_impossible_time_is_refused() {
        let plan = r#""plan":"","step":"s""#;
        let gap = format!(
            r#"{{"format":1,"request":{{{plan},"from_b":false,"budget_seconds":9,"least":0.01}},
            "rounds":[{{"folder":"r","seconds":SECONDS,"arms":[],"blocks":[]}}]}}"#
        );
        let rate = format!(
            r#"{{"format":1,"request":{{{plan},"metric":"p99_ms","limit_ms":5,"budget_seconds":9}},
            "rounds":[{{"folder":"r","seconds":SECONDS,"rate":null,"windows":{{}}}}]}}"#
        );
        for (seconds, is_fine) in [("10", true), ("-1", false), ("1e300", false)] {
            let folder = tempfile::tempdir().expect("folder");
            for (name, text) in [("gap.json", &gap), ("rate.json", &rate)] {
                let text = text.replace("SECONDS", seconds);
                fs::write(folder.path().join(name), text).expect("write");
            }
            let gap = GapFolder::open(folder.path()).map(|_| ());
            let rate = RateFolder::open(folder.path()).map(|_| ());
            for opened in [gap, rate] {
                assert_eq!(opened.is_ok(), is_fine, "{seconds}: {opened:?}");
                let words = opened.err().map_or_else(String::new, |error| error.to_string());
                assert!(is_fine || words.contains("an impossible time"), "{words}");
            }
        }
    }
}
