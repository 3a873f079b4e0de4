//! Parameters of a step, points of a curve, and the steps that are named after them.

use serde::{Deserialize, Serialize};

use crate::step_parameters::StepParameters;

/// Parameters of a step; `None` for those that it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorParameters {
    /// True for a point of a curve of recall and rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_curve: bool,
    /// Links of a node of the index that the step is named after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<u32>,
    /// Width of the search while building that index, where the DBMS has such an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_construction: Option<u32>,
    /// Width of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_search: Option<u32>,
    /// Clients that query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Neighbours that a query asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

/// A point of a curve: an index and how it is asked. The step that measures it is named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SearchPoint {
    /// Links of a node.
    pub m: u32,
    /// Width of the search while building, where the DBMS has such an option.
    pub ef_construction: Option<u32>,
    /// Width of the search.
    pub ef: u32,
    /// Clients.
    pub clients: u32,
}

/// The end of a step's name that tells its clients; one is not told.
pub fn of_clients(clients: u32) -> String {
    if clients == 1 { String::new() } else { format!(".clients={clients}") }
}

impl SearchPoint {
    /// The step: `search.m=16.ec=64.ef=20`, with `.clients=4` for more than one.
    pub fn step(&self) -> String {
        format!("search.{}.ef={}{}", self.index(), self.ef, of_clients(self.clients))
    }

    /// The point that a step measures; `None` for other steps.
    pub fn of(step: &StepParameters) -> Option<SearchPoint> {
        let own: VectorParameters = step.read()?;
        let VectorParameters { m: Some(m), ef_search: Some(ef), .. } = own else { return None };
        let (ef_construction, clients) = (own.ef_construction, own.clients.unwrap_or(1));
        (own.on_curve && m > 0 && ef > 0).then_some(SearchPoint { m, ef_construction, ef, clients })
    }

    /// The index in names of steps: `m=16.ec=64`.
    pub fn index(&self) -> String {
        match self.ef_construction {
            Some(ef_construction) => format!("m={}.ec={ef_construction}", self.m),
            None => format!("m={}", self.m),
        }
    }

    /// The step that builds its index: `index.m=16.ec=64`.
    pub fn index_step(&self) -> String {
        format!("index.{}", self.index())
    }

    /// Parameters in the published form: `m=16, ef_construction=64, ef_search=20`.
    pub fn parameters(&self) -> String {
        match self.ef_construction {
            Some(width) => {
                format!("m={}, ef_construction={width}, ef_search={}", self.m, self.ef)
            }
            None => format!("m={}, ef_search={}", self.m, self.ef),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_found_by_the_parameters_of_its_step() {
        let own = VectorParameters {
            on_curve: true,
            m: Some(16),
            ef_construction: Some(64),
            ef_search: Some(20),
            ..VectorParameters::default()
        };
        let of = |own: &VectorParameters| SearchPoint::of(&StepParameters::of(own));
        let point = SearchPoint { m: 16, ef_construction: Some(64), ef: 20, clients: 1 };
        assert_eq!(of(&own), Some(point));
        assert_eq!(point.step(), "search.m=16.ec=64.ef=20");
        let (ef_construction, clients) = (None, 8);
        let point = SearchPoint { ef_construction, clients, ..point };
        let own = VectorParameters { ef_construction, clients: Some(clients), ..own };
        assert_eq!(of(&own), Some(point));
        assert_eq!(point.step(), "search.m=16.ef=20.clients=8");
        assert_eq!(of(&VectorParameters { on_curve: false, ..own }), None);
        assert_eq!(of(&VectorParameters { ef_search: None, ..own }), None);
        assert_eq!(SearchPoint::of(&StepParameters::default()), None);
    }
}
