//! Conditions of vendors for publishing results of their services.

use std::collections::BTreeMap;

use super::document::{Block, Section};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetFacts;
use rqps_model::build::BuildSource;
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::Dialect;
use rqps_model::terms::{NO_ADVICE, Terms};

/// The terms of the vendors of the targets; nothing if no target is a vendor's service.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    if comparison.hides_terms {
        return None;
    }
    let mut labels: BTreeMap<&str, (&Terms, Vec<&str>)> = BTreeMap::new();
    for target in &comparison.targets {
        if let Some(terms) = of_target(target) {
            labels.entry(terms.vendor).or_insert((terms, Vec::new())).1.push(&target.label);
        }
    }
    if labels.is_empty() {
        return None;
    }
    let mut points: Vec<String> = labels
        .into_values()
        .map(|(terms, labels)| format!("{}: {}", labels.join(", "), sentence(terms)))
        .collect();
    points.push(NO_ADVICE.to_owned());
    Some(Section {
        id: "terms",
        heading: "Terms of publication".to_owned(),
        blocks: vec![Block::List(points)],
    })
}

/// A vendor's terms in a sentence.
pub fn sentence(terms: &Terms) -> String {
    format!(
        "{} ({}): {}. Source: {}; {}.",
        terms.vendor, terms.services, terms.rule, terms.source, terms.date
    )
}

/// By the host of its DSN or address, else by what the server said of itself.
fn of_target(target: &TargetFacts) -> Option<&'static Terms> {
    let wanted = target.target.as_ref()?;
    let (BuildSource::Dsn(dsn) | BuildSource::Client(dsn)) = &wanted.source else { return None };
    let place = dsn.split("//").nth(1)?.split(['/', '?']).next()?;
    let host = place.rsplit('@').next()?.split(':').next()?;
    let of_version = |reported: &str| match CompatibleServer::of_reported(reported) {
        Some(server) => Terms::of_vendor(server.vendor),
        None if wanted.dbms.dialect() == Dialect::Mysql => Terms::of_mysql(reported),
        None => None,
    };
    let mut reported = target.manifests.iter().map(|manifest| manifest.reported.as_str());
    Terms::of_host(host).or_else(|| reported.find_map(of_version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rqps_model::build::{Dbms, Manifest, Version};
    use rqps_model::target::Target;

    fn vendor(dbms: Dbms, dsn: &str, reported: &str) -> Option<&'static str> {
        let target = Target {
            label: "a".to_owned(),
            dbms,
            source: match dbms {
                Dbms::Client => BuildSource::Client(dsn.to_owned()),
                _ => BuildSource::Dsn(dsn.to_owned()),
            },
            config: String::new(),
            storage_engine: None,
        };
        let manifest = Manifest {
            dbms,
            version: Version::new("1"),
            reported: reported.to_owned(),
            origin: String::new(),
            sha256: None,
            compiler: None,
            packages: BTreeMap::new(),
        };
        let facts =
            TargetFacts { target: Some(target), manifests: vec![manifest], ..TargetFacts::of("a") };
        of_target(&facts).map(|terms| terms.vendor)
    }

    #[test]
    fn a_target_is_of_a_vendor_by_its_host_or_its_version() {
        let postgres = |dsn, reported| vendor(Dbms::Postgres, dsn, reported);
        let aurora = "postgres://u@db.abc.rds.amazonaws.com:5432/d?sslmode=require";
        assert_eq!(postgres(aurora, "16.4"), Some("Amazon Web Services"));
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "17.2 [Neon]"), Some("Neon"));
        let snowflake = "snowflake://u@a.snowflakecomputing.com/d";
        assert_eq!(vendor(Dbms::Client, snowflake, ""), Some("Snowflake"));
        assert_eq!(vendor(Dbms::Client, "/opt/duckdb", ""), None);
        // Anybody may run these.
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "13.0.0 [CockroachDB]"), None);
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "17.2"), None);
        let mysql = |reported| vendor(Dbms::Mysql, "mysql://u@h/d", reported);
        assert_eq!(mysql("8.0.33-commercial"), Some("Oracle"));
        assert_eq!(mysql("8.0.33"), None);
    }
}
