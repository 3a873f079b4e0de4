//! Words that a newer rqps wrote and this one does not know.
//!
//! Within a format version fields, metrics and values of enumerations may be added. A reader keeps
//! what it does not know under its name and shows it, instead of refusing the folder.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};

/// A word as it was read. Equal words are one text in memory, so that it is as small and as easy to
/// copy as the variants that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Word(&'static str);

impl Word {
    /// Keeps `text` for as long as the process lives. Result folders hold a handful of them.
    pub fn of(text: &str) -> Word {
        static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.get(text) {
            return Word(known);
        }
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        words.insert(kept);
        Word(kept)
    }

    /// The word.
    pub fn text(self) -> &'static str {
        self.0
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Word::of(&text))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::benchmark::{Group, RateUnit};
    use crate::metric::Metric;
    use crate::run::Status;

    #[test]
    fn equal_words_are_one() {
        let (a, b) = (Word::of("new"), Word::of(&"newer"[..3]));
        assert_eq!(a, b);
        assert!(std::ptr::eq(a.text(), b.text()));
    }

    #[test]
    fn what_is_not_known_is_written_as_it_was_read() {
        fn check<T: Serialize + for<'de> Deserialize<'de>>(json: &str) -> T {
            let value: T = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            value
        }
        let extra: BTreeMap<Metric, f64> = check(r#"{"recall":0.5,"joules_per_op":2.5}"#);
        let names: Vec<&str> = extra.keys().map(|metric| metric.name()).collect();
        assert_eq!(names, ["recall", "joules_per_op"]);
        assert_eq!(check::<Group>(r#""point""#), Group::Point);
        assert_eq!(check::<Group>(r#""graph""#).name(), "graph");
        assert_eq!(check::<RateUnit>(r#""joules""#), RateUnit::Unknown(Word::of("joules")));
        assert_eq!(check::<Status>(r#""complete""#), Status::Complete);
        assert_eq!(check::<Status>(r#"{"failed":"why"}"#), Status::Failed("why".to_owned()));
        assert!(matches!(check::<Status>(r#"{"skipped":"why"}"#), Status::Unknown(_)));
        assert!(matches!(check::<Status>(r#""paused""#), Status::Unknown(_)));
    }
}
