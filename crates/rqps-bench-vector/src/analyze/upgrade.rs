//! Reads parameters of steps from their names, for records of older versions.

use rqps_model::step_parameters::StepParameters;
use rqps_model::vector::VectorParameters;

/// The parameters in the name of a step; `None` without parameters of an index.
pub(super) fn parameters_of_name(name: &str) -> Option<StepParameters> {
    let is_of_index = name.split('.').any(|part| part.starts_with("m="));
    let own = curve_point(name).unwrap_or_default();
    is_of_index.then(|| StepParameters { of_one_dbms: true, ..StepParameters::of(&own) })
}

/// The parameters of `search.m=16.ec=64.ef=20.clients=4`; `None` for steps that are no point of a
/// curve.
fn curve_point(name: &str) -> Option<VectorParameters> {
    let mut own = VectorParameters { on_curve: true, ..VectorParameters::default() };
    for part in name.strip_prefix("search.")?.split('.') {
        let (key, value) = part.split_once('=')?;
        let parameter = match key {
            "m" => &mut own.m,
            "ec" => &mut own.ef_construction,
            "ef" => &mut own.ef_search,
            "clients" => &mut own.clients,
            _ => return None,
        };
        *parameter = Some(value.parse().ok()?);
    }
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::vector::SearchPoint;

    #[test]
    fn a_point_is_found_by_the_name_of_its_step() {
        let of = |name: &str| SearchPoint::of(&parameters_of_name(name)?);
        let point = SearchPoint { m: 16, ef_construction: Some(64), ef: 20, clients: 1 };
        let many = SearchPoint { ef_construction: None, clients: 8, ..point };
        for point in [point, many] {
            assert_eq!(of(&point.step()), Some(point));
        }
        for other in ["load", "search", "search.m=16", "index.m=16.ec=64", "search.m=x.ef=1"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn steps_named_after_an_index_are_of_one_dbms() {
        let check = |name: &str, expected: bool| {
            let named = parameters_of_name(name).is_some_and(|named| named.of_one_dbms);
            assert_eq!(named, expected, "{name}");
        };
        check("cold.m=8.ef=40", true);
        check("index.m=16.ec=64", true);
        check("filter.random=10.ef=40", false);
        check("recall=0.95", false);
    }
}
