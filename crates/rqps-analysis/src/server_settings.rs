//! Servers that are set up differently. Between a server that somebody else runs and another, a
//! difference of settings is taken for one of the builds unless it is said; where commits differ in
//! what they flush, steps that write have no verdict. What the user put into the words of the
//! targets is the question itself: it is said, and judged.

use super::comparison::{MissedRate, StepComparison, TargetFacts};
use super::measurement::Extension;
use rqps_model::benchmark::Group;
use rqps_model::build::BuildSource;
use rqps_model::server_settings::{CONNECTION, is_of_durability};
use rqps_model::target::{Target, is_installed};

/// A setting with different values on two servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Its name.
    pub name: String,
    /// The value on the baseline.
    pub baseline: String,
    /// The value on the target.
    pub target: String,
    /// True if the words of a target ask for it.
    pub is_asked: bool,
}

impl SettingDifference {
    /// True if a commit writes or flushes something else.
    pub fn is_of_durability(&self) -> bool {
        is_of_durability(&self.name)
    }
}

/// The recorded settings that differ, those of durability first. Two servers of rqps's own differ in
/// what their configurations and versions say, so only durability counts there.
pub fn setting_differences(baseline: &TargetFacts, target: &TargetFacts) -> Vec<SettingDifference> {
    let (Some(one), Some(other)) = (&baseline.target, &target.target) else { return Vec::new() };
    if one.dbms.dialect() != other.dbms.dialect() {
        return Vec::new();
    }
    let is_guest = |target: &Target| matches!(target.source, BuildSource::Dsn(_));
    let has_guest = is_guest(one) || is_guest(other);
    let innodb = |target: &Target| target.storage_engine.as_ref().is_none_or(|it| it == "innodb");
    let both_innodb = innodb(one) && innodb(other);
    let settings = [baseline, target].map(|facts| &facts.server_settings);
    // What builds have by default is the question.
    let is_asked = one.config != other.config || is_installed(&one.config);
    let asked_by_name = !has_guest && is_asked;
    let difference = |(name, value): (&String, &String)| {
        let theirs = settings[1].get(name)?;
        let counts = match name.as_str() {
            // Without a binary log it has no effect.
            "sync_binlog" => settings.iter().all(|of| value_is_on(of.get("log_bin"))),
            name if name.starts_with("innodb_") => both_innodb,
            _ => true,
        };
        let counts = counts && (has_guest || is_of_durability(name));
        (counts && normal(value) != normal(theirs)).then(|| SettingDifference {
            name: name.clone(),
            baseline: value.clone(),
            target: theirs.clone(),
            is_asked: asked_by_name || [baseline, target].iter().any(|facts| asks(facts, name)),
        })
    };
    let mut found: Vec<SettingDifference> = settings[0].iter().filter_map(difference).collect();
    found.sort_by_key(|difference| (!difference.is_of_durability(), difference.name == CONNECTION));
    found
}

/// True if the words of a target name the setting: by a configuration other than the shipped
/// default that has it.
fn asks(facts: &TargetFacts, name: &str) -> bool {
    let sets = |line: &str| {
        let line = line.trim().to_lowercase().replace('-', "_");
        let set = line.split(['=', ' ']).next().unwrap_or_default();
        set == name || set == format!("skip_{name}")
    };
    let own = facts.configs.iter().filter(|config| config.name != "default");
    own.flat_map(|config| config.text.lines()).any(sets)
}

fn value_is_on(value: Option<&String>) -> bool {
    value.is_some_and(|value| normal(value) == "on")
}

/// One spelling of what servers spell in several.
pub(crate) fn normal(value: &str) -> String {
    let value = value.trim().to_lowercase();
    match value.as_str() {
        "1" | "yes" | "true" => "on".to_owned(),
        "0" | "no" | "false" => "off".to_owned(),
        _ => value,
    }
}

/// Notes on each target of a step that writes why it cannot be compared, if durability differs and
/// nobody asked for that.
pub(super) fn note_settings(targets: &[TargetFacts], step: &mut StepComparison) {
    let writes = matches!(step.group, Group::Write | Group::Load)
        || step.targets.iter().flat_map(|target| &target.samples).any(|sample| {
            let outcome = &sample.record.outcome;
            outcome.writes > 0 || outcome.roles.contains_key("inserts")
        });
    let [baseline, others @ ..] = targets else { return };
    if !writes {
        return;
    }
    for (facts, target) in others.iter().zip(step.targets.iter_mut().skip(1)) {
        let found = setting_differences(baseline, facts);
        let void = found.iter().filter(|it| it.is_of_durability() && !it.is_asked);
        let void: Vec<String> = void
            .map(|it| {
                let SettingDifference { name, baseline: theirs, target: own, .. } = it;
                format!("{name} is {own}, on the baseline {theirs}")
            })
            .collect();
        if !void.is_empty() {
            target.not_comparable.push(format!("durability differs: {}", void.join(", ")));
        }
    }
}

/// `fsync off (a), on (b)` of differences, in their order.
pub fn spell_differences(found: &[&SettingDifference], baseline: &str, target: &str) -> String {
    let all = found.iter().map(|it| {
        let SettingDifference { name, baseline: theirs, target: own, .. } = it;
        format!("{name}: {} ({baseline}), {} ({target})", shown(theirs), shown(own))
    });
    all.collect::<Vec<_>>().join("; ")
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "nothing" } else { value }
}

// Steps whose writers did not keep their rate beside the queries. Fewer writes leave more of the
// machine for queries, so their rates and costs are not comparable with those of a server that did
// all its writes (the published reports leave such results out).

/// Notes for each target of a step whether it missed its write rate, and that the step is not
/// comparable where it or the baseline did.
pub(super) fn note_write_rate(
    targets: &[TargetFacts],
    step: &mut StepComparison,
    extensions: &[&Extension],
) {
    for (facts, target) in targets.iter().zip(&mut step.targets) {
        let clients = facts.workloads.first().map_or(0, |workload| workload.clients);
        target.missed_rate = extensions.iter().find_map(|own| (own.missed_rate)(target, clients));
    }
    let Some((baseline, others)) = step.targets.split_first_mut() else { return };
    let of_baseline = baseline.missed_rate.as_ref();
    for target in others {
        let of_baseline = of_baseline.map(|missed| format!("the baseline {}", missed.text()));
        let own = target.missed_rate.as_ref().map(MissedRate::text);
        target.not_comparable.extend(own.into_iter().chain(of_baseline));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::build::{Dbms, Version};
    use rqps_model::target::Config;

    const GUEST: &str = "mysql://me@db/app";

    fn facts(dsn: Option<&str>, config: (&str, &str), settings: &[(&str, &str)]) -> TargetFacts {
        let source = match dsn {
            Some(dsn) => BuildSource::Dsn(dsn.to_owned()),
            None => BuildSource::Version { version: Version::new("8.0.33"), variant: None },
        };
        let target = Target {
            label: "a".to_owned(),
            dbms: Dbms::Mysql,
            source,
            config: config.0.to_owned(),
            storage_engine: None,
        };
        let (name, text) = (config.0.to_owned(), config.1.to_owned());
        let config = Config { name, text, hash: String::new() };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        TargetFacts {
            target: Some(target),
            configs: vec![config],
            server_settings: settings.iter().map(pair).collect(),
            ..TargetFacts::of("a")
        }
    }

    fn check(one: &TargetFacts, other: &TargetFacts, expected: &[(&str, bool)]) {
        let found = setting_differences(one, other);
        let found: Vec<(&str, bool)> =
            found.iter().map(|it| (it.name.as_str(), it.is_asked)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_guest_that_is_set_up_differently_is_told_unless_somebody_asked() {
        let flush = "innodb_flush_log_at_trx_commit";
        let ours = [(flush, "2"), ("log_bin", "OFF"), ("sync_binlog", "0"), ("sql_mode", "A")];
        let theirs = [(flush, "1"), ("log_bin", "ON"), ("sync_binlog", "1"), ("sql_mode", "B")];
        let default = ("default", "innodb_flush_log_at_trx_commit = 2\nskip_log_bin\n");
        let build = facts(None, default, &ours);
        let guest = facts(Some(GUEST), ("default", ""), &theirs);
        check(&build, &guest, &[(flush, false), ("log_bin", false), ("sql_mode", false)]);
        let named = facts(None, ("mine", default.1), &ours);
        check(&guest, &named, &[(flush, true), ("log_bin", true), ("sql_mode", false)]);
        // Two configurations of builds are the question.
        let other = facts(None, ("binlog", ""), &theirs);
        check(&build, &other, &[(flush, true), ("log_bin", true)]);
        // The same configuration, read differently by two versions.
        let newer = facts(None, default, &theirs);
        check(&build, &newer, &[(flush, false), ("log_bin", false)]);
        // What two builds have by default.
        let [one, other] = [&ours, &theirs].map(|all| facts(None, ("installed", ""), all));
        check(&one, &other, &[(flush, true), ("log_bin", true)]);
    }

    #[test]
    fn spellings_and_settings_without_effect_are_no_difference() {
        let one = [("log_bin", "OFF"), ("sync_binlog", "0"), ("innodb_doublewrite", "ON")];
        let other = [("log_bin", "0"), ("sync_binlog", "1"), ("innodb_doublewrite", "1")];
        let of = |settings| facts(Some(GUEST), ("default", ""), settings);
        check(&of(&one), &of(&other), &[]);
        // What one side does not tell is unknown.
        check(&of(&one), &of(&[]), &[]);
    }
}
