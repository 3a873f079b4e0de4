//! `--sweep KEY=V1,V2`: every combination of values. Settings of servers and libraries make
//! targets, rates of a background writer and client counts repeat steps, and all other settings of
//! the workload make parts.

use anyhow::{Result, bail};

use crate::cli::target_settings::{self, TargetSetting};
use rqps_lab::plan::words;
use rqps_model::target::Target;

/// Most combinations of a sweep.
const MOST: usize = 64;

/// Settings whose values are steps of one plan.
const STEPS: [&str; 3] = ["clients", "threads", "writer_mb"];

/// Short names of options of RocksDB and Speedb.
const SHORT: [(&str, &str); 2] =
    [("fanout", "max_bytes_for_level_multiplier"), ("cache_type", "rqps.cache")];

/// What a sweep asks for.
#[derive(Default)]
pub(super) struct Sweep {
    /// Settings of targets, each a list of `KIND.KEY=VALUE`.
    of_targets: Vec<Vec<String>>,
    /// Settings whose values repeat steps.
    pub(super) of_steps: Vec<String>,
    /// Settings of parts.
    pub(super) of_parts: Vec<Vec<String>>,
}

impl Sweep {
    /// Reads the words of `--sweep`.
    ///
    /// # Errors
    /// A word is malformed, a key is there twice, or there are too many combinations.
    pub(super) fn of(said: &[String]) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        let mut keys: Vec<&str> = Vec::new();
        for word in said {
            let Some((key, values)) = word.split_once('=').filter(|(_, it)| it.contains(','))
            else {
                bail!("sweep {word}: write KEY=VALUE,VALUE,…, such as fanout=8,32");
            };
            if keys.contains(&key) {
                bail!("sweep {word}: {key} is there twice; list all values at once");
            }
            keys.push(key);
            if STEPS.contains(&key) {
                sweep.of_steps.push(word.clone());
                continue;
            }
            let short = SHORT.iter().find(|(short, _)| *short == key).map(|(_, key)| *key);
            let option = key.strip_prefix("option.").or(short);
            let key = option.map_or(key.to_owned(), |option| format!("kv.{option}"));
            let mut all: Vec<String> = Vec::new();
            for value in values.split(',').map(str::trim) {
                let value = if value == "hyperclock" { "hyper_clock" } else { value };
                let setting = format!("{key}={value}");
                if value.is_empty() || all.contains(&setting) {
                    bail!("sweep {word}: name each value once");
                }
                all.push(setting);
            }
            match TargetSetting::of(&all[0])? {
                Some(_) => sweep.of_targets.push(all),
                None => sweep.of_parts.push(all),
            }
        }
        let lists = sweep.of_targets.iter().chain(&sweep.of_parts);
        let number = lists.map(Vec::len).fold(1, usize::saturating_mul);
        if number > MOST {
            bail!(
                "sweep {number} combinations: at most {MOST}; fix some settings with --set, or \
                 leave values out"
            );
        }
        Ok(sweep)
    }

    /// All targets: one for each combination of settings that one of these takes.
    ///
    /// # Errors
    /// No target takes a setting, or one has no word any more.
    pub(super) fn targets(&self, configured: Vec<Target>) -> Result<Vec<Target>> {
        if self.of_targets.is_empty() {
            return Ok(configured);
        }
        let mut targets = Vec::new();
        let mut is_taken = vec![false; self.of_targets.len()];
        for target in configured {
            let mut all = vec![target];
            for (values, is_taken) in self.of_targets.iter().zip(&mut is_taken) {
                let settings = target_settings::divide(values)?.0;
                let takes = |target: &_| settings.iter().any(|it| it.is_of(target));
                if !all.iter().all(takes) {
                    continue;
                }
                *is_taken = true;
                let with = |target: &Target| {
                    let one = |it: &TargetSetting<'_>| {
                        let (key, value) = it.setting;
                        let short = SHORT.iter().find(|(_, long)| *long == key);
                        let shown = short.map_or(key, |(short, _)| *short);
                        let mut target = target.clone();
                        target.label.push_str(&format!(".{shown}-{value}"));
                        target.config.push_str(&format!(",{key}={value}"));
                        target
                    };
                    settings.iter().map(one).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(with).collect();
            }
            targets.extend(all);
        }
        if let Some(at) = is_taken.iter().position(|is_taken| !is_taken) {
            bail!("sweep {}: rqps starts no target that takes it", self.of_targets[at].join(", "));
        }
        Ok(words::targets(&targets.iter().map(words::word).collect::<Vec<_>>())?)
    }
}
