//! Presets: named sizes and lengths of workloads.

use rqps_model::benchmark::{BenchmarkParameters, Workload};

/// A preset with a name.
pub trait NamedPreset {
    /// The word after `--preset`.
    fn name(&self) -> &'static str;

    /// Other names.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
}

/// The preset with this name or alias.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn named<'a, P: NamedPreset>(all: &'a [P], name: &str) -> Result<&'a P, String> {
    let is_it = |known: &&P| known.name() == name || known.aliases().contains(&name);
    all.iter().find(is_it).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(P::name).collect();
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

impl NamedPreset for ScalePreset {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl ScalePreset {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let all =
            [ScalePreset::lasting("quick", 2.0, 0.5), ScalePreset::lasting("full", 300.0, 10.0)];
        assert_eq!(named(&all, "full").map(|found| found.seconds), Ok(300.0));
        let refused = named(&all, "fulll").map(|found| found.name);
        let said = "use the preset `fulll`: no such preset (known: quick, full)".to_owned();
        assert_eq!(refused, Err(said));
    }
}
