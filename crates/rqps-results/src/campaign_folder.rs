//! The folder of a campaign, such as a bisection: its log, and one result folder for each
//! measurement.

use std::io::Error;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::read::{self, ResultsError};
use super::store;
use rqps_model::best_rate::{RATE_FORMAT, RateLog, RateRequest, RateRound};
use rqps_model::bisection::{
    BISECTION_FORMAT, BisectionEntry, BisectionLog, BisectionRequest, GAP_FORMAT, GapLog,
    GapRequest, GapRound,
};

/// The folder of a bisection.
pub type BisectionFolder = CampaignFolder<BisectionLog>;

/// The folder of a gap.
pub type GapFolder = CampaignFolder<GapLog>;

/// The folder of a search for the best rate.
pub type RateFolder = CampaignFolder<RateLog>;

/// Seconds of a campaign at most, three centuries: more come from a damaged or hostile file.
const SECONDS_MOST: f64 = 1e10;

/// What a campaign keeps.
pub trait CampaignLog: Serialize + DeserializeOwned {
    /// What it was asked for.
    type Request: PartialEq;
    /// A measurement.
    type Entry;
    /// Name of the file.
    const FILE: &'static str;
    /// Name of the campaign.
    const NAME: &'static str;
    /// The newest format that this rqps reads.
    const FORMAT: u32;

    /// A log without measurements.
    fn new(request: Self::Request) -> Self;
    /// The format of the file.
    fn format(&self) -> u32;
    /// What it was asked for.
    fn request(&self) -> &Self::Request;
    /// Adds a measurement.
    fn push(&mut self, entry: Self::Entry);
    /// Seconds that all measurements took.
    fn seconds(&self) -> f64;
    /// Why its parts do not fit together.
    fn fault(&self) -> Option<String>;
}

impl CampaignLog for BisectionLog {
    type Request = BisectionRequest;
    type Entry = BisectionEntry;
    const FILE: &'static str = "bisect.json";
    const NAME: &'static str = "bisection";
    const FORMAT: u32 = BISECTION_FORMAT;

    fn new(request: BisectionRequest) -> BisectionLog {
        BisectionLog { format: BISECTION_FORMAT, request, entries: Vec::new() }
    }

    fn format(&self) -> u32 {
        self.format
    }

    fn request(&self) -> &BisectionRequest {
        &self.request
    }

    fn push(&mut self, entry: BisectionEntry) {
        self.entries.push(entry);
    }

    fn seconds(&self) -> f64 {
        let seconds = |entry: &BisectionEntry| match entry {
            BisectionEntry::Measured(measured) => measured.seconds,
            BisectionEntry::Lost { .. } => 0.0,
        };
        self.entries.iter().map(seconds).sum()
    }

    fn fault(&self) -> Option<String> {
        let count = self.request.versions.len();
        let places = self.entries.iter().flat_map(|entry| match entry {
            BisectionEntry::Measured(measured) => measured.places.clone(),
            BisectionEntry::Lost { place, .. } => vec![*place],
        });
        (count < 2 || places.max().is_some_and(|place| place >= count))
            .then(|| format!("it has {count} versions, and measurements of others"))
    }
}

impl CampaignLog for GapLog {
    type Request = GapRequest;
    type Entry = GapRound;
    const FILE: &'static str = "gap.json";
    const NAME: &'static str = "gap";
    const FORMAT: u32 = GAP_FORMAT;

    fn new(request: GapRequest) -> GapLog {
        GapLog { format: GAP_FORMAT, request, rounds: Vec::new() }
    }

    fn format(&self) -> u32 {
        self.format
    }

    fn request(&self) -> &GapRequest {
        &self.request
    }

    fn push(&mut self, round: GapRound) {
        self.rounds.push(round);
    }

    fn seconds(&self) -> f64 {
        self.rounds.iter().map(|round| round.seconds).sum()
    }

    fn fault(&self) -> Option<String> {
        let is_other =
            |round: &GapRound| round.blocks.iter().any(|it| it.len() != round.arms.len());
        self.rounds
            .iter()
            .any(is_other)
            .then(|| "a block has another number of rates than its round has targets".to_owned())
    }
}

impl CampaignLog for RateLog {
    type Request = RateRequest;
    type Entry = RateRound;
    const FILE: &'static str = "rate.json";
    const NAME: &'static str = "search for a rate";
    const FORMAT: u32 = RATE_FORMAT;

    fn new(request: RateRequest) -> RateLog {
        RateLog { format: RATE_FORMAT, request, rounds: Vec::new() }
    }

    fn format(&self) -> u32 {
        self.format
    }

    fn request(&self) -> &RateRequest {
        &self.request
    }

    fn push(&mut self, round: RateRound) {
        self.rounds.push(round);
    }

    fn seconds(&self) -> f64 {
        self.rounds.iter().map(|round| round.seconds).sum()
    }

    fn fault(&self) -> Option<String> {
        let is_rate = |rate: f64| rate > 0.0 && rate.is_finite();
        let (first, others) = self.rounds.split_first()?;
        let capacities = first.windows.values().map(|it| Some(it.events_per_second));
        let all = capacities.chain(others.iter().map(|round| round.rate));
        all.into_iter()
            .any(|rate| !rate.is_some_and(is_rate))
            .then(|| "a round has no rate".to_owned())
    }
}

/// The folder of a campaign.
#[derive(Debug)]
pub struct CampaignFolder<L> {
    path: PathBuf,
    log: L,
}

impl<L: CampaignLog> CampaignFolder<L> {
    /// Makes the folder, or opens the one that was begun there with this request.
    ///
    /// # Errors
    /// It holds another campaign, or cannot be written.
    pub fn create(path: &Path, request: L::Request) -> Result<Self, ResultsError> {
        if path.join(L::FILE).exists() {
            let folder = Self::open(path)?;
            if *folder.log.request() == request {
                return Ok(folder);
            }
            let why = format!("it holds a {} of something else", L::NAME);
            return Err(ResultsError::Occupied { path: path.to_owned(), why });
        }
        store::create_folder(path)?;
        let folder = CampaignFolder { path: path.to_owned(), log: L::new(request) };
        folder.write()?;
        Ok(folder)
    }

    /// Opens the folder of a campaign that was begun.
    ///
    /// # Errors
    /// The file is none of this campaign, or one of a newer rqps.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        store::check_plain(path)?;
        let file = path.join(L::FILE);
        let log = read::versioned(&file, L::FORMAT, L::format)?;
        let log: L = log.ok_or_else(|| read::no_file(&file))?;
        let has_time = (0.0..=SECONDS_MOST).contains(&log.seconds());
        let fault = (!has_time).then(|| "its measurements took an impossible time".to_owned());
        if let Some(why) = fault.or_else(|| log.fault()) {
            return Err(ResultsError::malformed(&file, 0, None, why));
        }
        Ok(CampaignFolder { path: path.to_owned(), log })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The request, and the measurements so far.
    pub fn log(&self) -> &L {
        &self.log
    }

    /// Adds a measurement, durably.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, entry: L::Entry) -> Result<(), ResultsError> {
        self.log.push(entry);
        self.write()
    }

    fn write(&self) -> Result<(), ResultsError> {
        let file = self.path.join(L::FILE);
        let text = serde_json::to_string_pretty(&self.log)
            .map_err(|error| ResultsError::io("write", &file)(Error::other(error.to_string())))?;
        store::write_whole(&file, format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
