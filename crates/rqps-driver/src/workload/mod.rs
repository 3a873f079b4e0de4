//! Machinery of presets (named sizes and lengths of workloads), `key=value` settings and the
//! selection of steps.

pub mod settings;

use rqps_model::benchmark::{BenchmarkParameters, ClientCount, Group, Phase, Step, Workload};
use rqps_model::units::counted;

/// The preset with this name or alias; `names` has the name of each, and its aliases.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn named<'a, P>(
    all: &'a [P],
    names: fn(&P) -> (&'static str, &'static [&'static str]),
    name: &str,
) -> Result<&'a P, String> {
    let is_it = |known: &&P| names(known).0 == name || names(known).1.contains(&name);
    all.iter().find(is_it).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|preset| names(preset).0).collect();
        format!("use the preset `{name}`: no such preset (known: {})", known.join(", "))
    })
}

/// A preset of a size and a length of steps.
pub struct ScalePreset {
    /// The word after `--preset`.
    pub name: &'static str,
    /// Number of the benchmark's units of data; 1 if a user's workload decides.
    pub size: u32,
    /// Concurrent clients.
    pub clients: u32,
    /// Seconds of each measured window.
    pub seconds: f64,
    /// Seconds of warm-up before each window.
    pub warmup_seconds: f64,
}

impl ScalePreset {
    /// The preset with this name.
    ///
    /// # Errors
    ///
    /// As [`named`].
    pub fn named<'a>(all: &'a [ScalePreset], name: &str) -> Result<&'a ScalePreset, String> {
        named(all, |preset| (preset.name, &[]), name)
    }

    /// A preset of steps with this length; one client, size 1.
    pub const fn lasting(name: &'static str, seconds: f64, warmup_seconds: f64) -> ScalePreset {
        ScalePreset { name, size: 1, clients: 1, seconds, warmup_seconds }
    }

    /// A workload of these parameters with the preset's clients and seconds.
    pub fn workload(&self, shape: BenchmarkParameters) -> Workload {
        Workload {
            clients: self.clients,
            read_seconds: self.seconds,
            write_seconds: self.seconds,
            warmup_seconds: self.warmup_seconds,
            ..Workload::plain(shape)
        }
    }
}

// Selects steps by name: `--steps 'point-*,!*_range=1000'`.

/// Steps that a selection includes automatically.
pub struct Companions {
    /// Warm-up steps: the name of each, and patterns of the steps that it warms.
    pub warm_ups: &'static [(&'static str, &'static [&'static str])],
    /// True for a step that all others need: the load of a benchmark that measures it.
    pub is_needed: fn(&Step) -> bool,
}

/// The names of a step that a pattern may match.
struct StepName<'a> {
    full: &'a str,
    /// The name without its client count, if it has one.
    of_all_counts: Option<&'a str>,
    /// The name without all `.KEY=VALUE` by which its repetitions differ.
    of_all_repetitions: &'a str,
}

impl<'a> StepName<'a> {
    fn of(step: &'a Step) -> StepName<'a> {
        let of_all_counts = step.client_count.as_ref().map(|count| count.step.as_str());
        let full = step.name.as_str();
        let is_key = |at: &usize| {
            let key = full[at + 1..].trim_start_matches(|c: char| c.is_ascii_lowercase());
            key.starts_with('=')
        };
        let end = full.match_indices('.').map(|(at, _)| at).find(is_key).unwrap_or(full.len());
        StepName { full, of_all_counts, of_all_repetitions: &full[..end] }
    }

    fn fits(&self, pattern: &str) -> bool {
        let names = self.of_all_counts.into_iter().chain([self.full, self.of_all_repetitions]);
        names.into_iter().any(|name| matches(pattern, name))
    }
}

impl Companions {
    /// A selection without automatic steps.
    pub const NONE: Companions = Companions { warm_ups: &[], is_needed: |_| false };

    fn is_warm_up(&self, name: &str) -> bool {
        self.warm_ups.iter().any(|(warm_up, _)| *warm_up == name)
    }
}

/// The reason for refusing a selection.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectError {
    /// No step has such a name.
    #[error(
        "choose steps: no step matches `{glob}`; {known}\nhint: `rqps plan` with the same words lists all steps"
    )]
    NoMatch {
        /// The pattern.
        glob: String,
        /// Similar names, or the first ones if none is similar.
        known: String,
    },
    /// A `[` without its `]`, or an empty pattern.
    #[error("choose steps: invalid pattern `{glob}`: {why}; use names with *, ? and [abc]")]
    Malformed {
        /// The pattern.
        glob: String,
        /// The fault of the pattern.
        why: &'static str,
    },
    /// The patterns exclude every step that they include.
    #[error("choose steps: `{globs}` excludes every step; remove a pattern that begins with `!`")]
    NothingLeft {
        /// All patterns.
        globs: String,
    },
}

/// Keeps the steps whose name matches one of `globs` and none that begins with `!`. With only `!`
/// patterns, it keeps all others; without patterns, all.
///
/// `*` stands for any text, `?` for one character, `[abc]`, `[a-z]` and `[!a]` for one of a class.
/// Case counts, and a pattern must match the whole name. One string may hold several patterns with
/// commas. A step that exists per client count, or per rate of a background writer, matches with and
/// without it in its name.
///
/// A warm-up step stays with the steps that it warms, unless a pattern excludes it; `companions`
/// has the list. A [`Phase::Settle`] or [`Phase::Restore`] stays if a kept write comes before it
/// and a kept step after it.
///
/// # Errors
///
/// A pattern is malformed or matches no step of `phases`; no step is left.
pub fn select(
    phases: Vec<Phase>,
    globs: &[String],
    companions: &Companions,
) -> Result<Vec<Phase>, SelectError> {
    let patterns: Vec<&str> = globs.iter().flat_map(|glob| split(glob)).map(str::trim).collect();
    if patterns.is_empty() {
        return Ok(phases);
    }
    let names: Vec<StepName<'_>> = phases.iter().filter_map(name).collect();
    for pattern in &patterns {
        check(pattern, &names)?;
    }
    let (excluding, including): (Vec<&str>, Vec<&str>) =
        patterns.iter().partition(|pattern| pattern.starts_with('!'));
    let excluded = |name: &StepName<'_>| excluding.iter().any(|pattern| name.fits(&pattern[1..]));
    let chosen = |name: &StepName<'_>| {
        let included = including.is_empty() || including.iter().any(|pattern| name.fits(pattern));
        included && !excluded(name)
    };
    let is_warm_up = |name: &StepName<'_>| companions.is_warm_up(name.full);
    let is_needed =
        |phase: &Phase| matches!(phase, Phase::Measure(step) if (companions.is_needed)(step));
    // Warm-up steps alone are no reason to run.
    if !names.iter().any(|name| chosen(name) && !(including.is_empty() && is_warm_up(name))) {
        return Err(SelectError::NothingLeft { globs: patterns.join(",") });
    }
    let needed = |name: &StepName<'_>| {
        let of = companions.warm_ups.iter().find(|(warm_up, _)| *warm_up == name.full);
        let Some((_, warmed)) = of else { return false };
        let warms = |other: &StepName<'_>| {
            !is_warm_up(other) && warmed.iter().any(|pattern| other.fits(pattern))
        };
        !excluded(name) && names.iter().any(|other| warms(other) && chosen(other))
    };
    let asked = |name: &StepName<'_>| including.iter().any(|pattern| name.fits(pattern));
    let keep: Vec<bool> = phases
        .iter()
        .map(|phase| match name(phase) {
            _ if is_needed(phase) => true,
            Some(name) if is_warm_up(&name) => needed(&name) || (asked(&name) && !excluded(&name)),
            Some(name) => chosen(&name),
            None => true,
        })
        .collect();
    let kept = phases.into_iter().zip(keep).filter(|(_, keep)| *keep);
    Ok(settled(kept.map(|(phase, _)| phase).collect()))
}

/// Drops each [`Phase::Settle`] and [`Phase::Restore`] that no step follows, or before which no
/// step has written since the last one.
fn settled(phases: Vec<Phase>) -> Vec<Phase> {
    let mut kept: Vec<Phase> = Vec::new();
    let mut dirty = false;
    for phase in phases {
        match &phase {
            Phase::Settle | Phase::Restore => {
                if dirty {
                    kept.push(phase);
                }
                dirty = false;
            }
            Phase::Measure(step) => {
                dirty |= step.group == Group::Write;
                kept.push(phase);
            }
        }
    }
    while matches!(kept.last(), Some(Phase::Settle | Phase::Restore)) {
        kept.pop();
    }
    kept
}

fn name(phase: &Phase) -> Option<StepName<'_>> {
    match phase {
        Phase::Measure(step) => Some(StepName::of(step)),
        Phase::Settle | Phase::Restore => None,
    }
}

/// Splits at the commas outside of `[…]`.
fn split(globs: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut in_class) = (0, false);
    for (at, byte) in globs.bytes().enumerate() {
        match byte {
            b'[' => in_class = globs[at..].contains(']'),
            b']' => in_class = false,
            b',' if !in_class => {
                parts.push(&globs[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&globs[start..]);
    parts
}

fn check(pattern: &str, names: &[StepName<'_>]) -> Result<(), SelectError> {
    let glob = pattern.strip_prefix('!').unwrap_or(pattern);
    let malformed = |why| Err(SelectError::Malformed { glob: pattern.to_string(), why });
    if glob.is_empty() {
        return malformed("it is empty");
    }
    if compiled(glob).is_none() {
        return malformed("a [ without ]");
    }
    if names.iter().any(|name| name.fits(glob)) {
        return Ok(());
    }
    let mut all: Vec<&str> = names.iter().filter_map(|name| name.of_all_counts).collect();
    all.dedup();
    all.extend(names.iter().map(|name| name.full));
    let known = match near(glob, &all) {
        close if close.is_empty() => {
            let more = all.len().saturating_sub(NEAR_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("steps: {}{more}", all[..all.len().min(NEAR_MAX)].join(", "))
        }
        close => format!("similar names: {}", close.join(", ")),
    };
    Err(SelectError::NoMatch { glob: pattern.to_string(), known })
}

/// The names similar to `glob`: those that contain its letters first, then by edit distance.
fn near<'a>(glob: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted: String = glob.chars().filter(|c| !"*?[]!".contains(*c)).collect();
    let wanted = wanted.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = names
        .iter()
        .map(|name| {
            let contained = !wanted.is_empty() && name.contains(&wanted);
            (if contained { 0 } else { strsim::levenshtein(&wanted, name) }, *name)
        })
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.dedup_by_key(|(_, name)| *name);
    // Most of the letters agree.
    let resembles = |distance: usize, name: &str| distance * 2 < wanted.len().max(name.len());
    let close = ranked.iter().filter(|(distance, name)| resembles(*distance, name));
    close.map(|(_, name)| *name).take(NEAR_MAX).collect()
}

/// Most names in the list.
const NEAR_MAX: usize = 5;

/// True if `glob` matches the whole of `name`.
fn matches(glob: &str, name: &str) -> bool {
    compiled(glob).is_some_and(|pattern| pattern.matches(name))
}

/// Names have no folders: two stars are one.
fn compiled(glob: &str) -> Option<glob::Pattern> {
    let mut single = glob.to_owned();
    while single.contains("**") {
        single = single.replace("**", "*");
    }
    glob::Pattern::new(&single).ok()
}

// Repeats each measured step per client count: `--clients 1,4,16`.

/// The phases of a workload, in which each reported step runs once per client count, from the
/// fewest to the most. Loads and warm-up steps run once, with the most clients. With a single
/// count, these are the benchmark's own phases.
///
/// A step behind a [`Phase::Restore`] has one before each of its counts. One before the first step
/// is left out: a block begins on a copy anyway.
///
/// `phases` makes the phases for one count; it must make the same ones for each count.
pub fn at_each_count(workload: &Workload, phases: impl Fn(&Workload) -> Vec<Phase>) -> Vec<Phase> {
    let of_count = |clients: &u32| {
        let clients = *clients;
        let single = Workload { clients, client_counts: Vec::new(), ..workload.clone() };
        (clients, phases(&single))
    };
    let counted: Vec<(u32, Vec<Phase>)> = workload.client_counts.iter().map(of_count).collect();
    let Some((_, largest)) = counted.last() else { return begun_on_a_copy(phases(workload)) };
    let is_restored = |place: usize| matches!(largest.get(place), Some(Phase::Restore));
    let mut all = Vec::new();
    for (place, phase) in largest.iter().enumerate() {
        match phase {
            Phase::Measure(step) if step.reported && step.group != Group::Load => {
                let is_fresh = place > 0 && is_restored(place - 1);
                for (number, (clients, phases)) in counted.iter().enumerate() {
                    let Some(Phase::Measure(step)) = phases.get(place) else { continue };
                    if number > 0 && is_fresh {
                        all.push(Phase::Restore);
                    }
                    all.push(counted_step(step, *clients));
                }
            }
            once => all.push(once.clone()),
        }
    }
    begun_on_a_copy(all)
}

/// The phases of a block, which begins on a copy of the loaded data.
fn begun_on_a_copy(mut phases: Vec<Phase>) -> Vec<Phase> {
    if matches!(phases.first(), Some(Phase::Restore)) {
        phases.remove(0);
    }
    phases
}

fn counted_step(step: &Step, clients: u32) -> Phase {
    let count = ClientCount { step: step.name.clone(), clients };
    Phase::Measure(Box::new(Step {
        name: count.name(),
        detail: format!("{}; {}", step.detail, counted(clients as usize, "client")),
        client_count: Some(count),
        ..step.clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let all =
            [ScalePreset::lasting("quick", 2.0, 0.5), ScalePreset::lasting("full", 300.0, 10.0)];
        assert_eq!(ScalePreset::named(&all, "full").map(|found| found.seconds), Ok(300.0));
        let refused = ScalePreset::named(&all, "fulll").map(|found| found.name);
        let said = "use the preset `fulll`: no such preset (known: quick, full)".to_owned();
        assert_eq!(refused, Err(said));
    }

    #[test]
    fn globs_match_as_in_a_shell() {
        let check = |glob: &str, name: &str, want: bool| {
            assert_eq!(matches(glob, name), want, "{glob} {name}");
        };
        check("", "", true);
        check("*", "", true);
        check("?", "", false);
        check("a*b*c", "axxbyybzc", true);
        check("a*b*c", "axxbyybz", false);
        check("*ab", "aab", true);
        check("**", "x", true);
        check("[]x]", "]", true);
        check("[!]]", "]", false);
        check("[a-c]", "b", true);
        check("[a-c]", "-", false);
        check("[a-]", "-", true);
        check("A", "a", false);
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_panics(glob in "[a-c*?!,\\[\\]-]{0,12}", name in "[a-c-]{0,8}") {
            let _ = matches(&glob, &name);
            let _ = select(Vec::new(), &[glob], &Companions::NONE);
        }

        #[test]
        fn a_name_matches_itself_with_any_part_starred(
            name in "[a-c-]{0,8}",
            from in 0usize..9,
            to in 0usize..9,
        ) {
            let (from, to) = (from.min(name.len()), to.min(name.len()));
            let (from, to) = (from.min(to), from.max(to));
            let glob = format!("{}*{}", &name[..from], &name[to..]);
            proptest::prop_assert!(matches(&glob, &name));
        }
    }
}
