//! The parameters of a step as data: what its name only shows to a reader.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The parameters of a step that analysis needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepParameters {
    /// The purpose of the step.
    #[serde(default, skip_serializing_if = "StepPurpose::is_result")]
    pub purpose: StepPurpose,
    /// True if the step is named after parameters that only one DBMS has: other DBMSs have steps of
    /// their own instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_one_dbms: bool,
    /// Its own number of clients, where that of the workload does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Its own schedule, in events per second of all clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<f64>,
    /// Parameters of the benchmark alone.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub own: Map<String, Value>,
}

impl StepParameters {
    /// Parameters of a benchmark, which are fields of a structure.
    pub fn of(own: &impl Serialize) -> StepParameters {
        let own = match serde_json::to_value(own) {
            Ok(Value::Object(own)) => own,
            // A structure with names for keys always becomes an object.
            _ => Map::new(),
        };
        StepParameters { own, ..StepParameters::default() }
    }

    /// The parameters as their benchmark knows them; `None` if they are those of something else.
    pub fn read<P: DeserializeOwned>(&self) -> Option<P> {
        P::deserialize(&self.own).ok()
    }
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPurpose {
    /// For its own result.
    #[default]
    Result,
    /// To compare it with the same step after the writes. Group summaries leave it out.
    BeforeWrites,
    /// To warm caches. Group summaries leave it out.
    Warming,
}

impl StepPurpose {
    /// True for steps that are measured for their own result.
    pub fn is_result(&self) -> bool {
        *self == StepPurpose::Result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_as_far_as_they_say_something() {
        let check = |parameters: &StepParameters, expected: &str| {
            let text = serde_json::to_string(parameters).unwrap();
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<StepParameters>(&text).unwrap(), *parameters);
        };
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Own {
            links: u32,
        }
        check(&StepParameters::default(), "{}");
        let own = StepParameters { of_one_dbms: true, ..StepParameters::of(&Own { links: 16 }) };
        check(&own, r#"{"of_one_dbms":true,"own":{"links":16}}"#);
        assert_eq!(own.read::<Own>(), Some(Own { links: 16 }));
        assert_eq!(StepParameters::default().read::<Own>(), None);
        for (word, purpose) in
            [("before_writes", StepPurpose::BeforeWrites), ("warming", StepPurpose::Warming)]
        {
            let parameters = StepParameters { purpose, ..StepParameters::default() };
            check(&parameters, &format!("{{\"purpose\":\"{word}\"}}"));
        }
    }
}
