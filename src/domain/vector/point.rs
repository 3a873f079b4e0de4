//! Points of a curve, and the steps that are named after them.

use serde::{Deserialize, Serialize};

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

    /// The point that a step of that name measures; `None` for other steps.
    pub fn of_step(name: &str) -> Option<SearchPoint> {
        let mut point = SearchPoint { m: 0, ef_construction: None, ef: 0, clients: 1 };
        for part in name.strip_prefix("search.")?.split('.') {
            let (key, value) = part.split_once('=')?;
            let value = value.parse().ok()?;
            match key {
                "m" => point.m = value,
                "ec" => point.ef_construction = Some(value),
                "ef" => point.ef = value,
                "clients" => point.clients = value,
                _ => return None,
            }
        }
        (point.m > 0 && point.ef > 0).then_some(point)
    }

    /// True for steps that are named after parameters of an index: another DBMS, whose parameters
    /// mean something else, has other steps in their place.
    pub fn is_named_in(step: &str) -> bool {
        step.split('.').any(|part| part.starts_with("m="))
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

    /// As published: `m=16, ef_construction=64, ef_search=20`.
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
    fn a_point_is_found_by_the_name_of_its_step() {
        let check = |point: SearchPoint, name: &str| {
            assert_eq!(point.step(), name);
            assert_eq!(SearchPoint::of_step(name), Some(point));
        };
        let point = SearchPoint { m: 16, ef_construction: Some(64), ef: 20, clients: 1 };
        check(point, "search.m=16.ec=64.ef=20");
        check(
            SearchPoint { ef_construction: None, clients: 8, ..point },
            "search.m=16.ef=20.clients=8",
        );
        for other in ["load", "search", "search.m=16", "index.m=16.ec=64", "search.m=x.ef=1"] {
            assert_eq!(SearchPoint::of_step(other), None, "{other}");
        }
    }
}
