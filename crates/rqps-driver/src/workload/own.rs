//! Settings of one benchmark, and the settings of all benchmarks that it accepts.

use crate::workload::settings::{self, SetError};
use rqps_model::benchmark::{BenchmarkParameters, Workload};

/// A setting of the benchmark with parameters `S`.
pub struct OwnSetting<S> {
    /// The key, before the `=`.
    pub key: &'static str,
    /// Sets the value. The error names the expected values.
    pub apply: fn(&mut Workload, &mut S, &str) -> Result<(), String>,
}

/// All settings of a benchmark.
pub struct Settings<S: 'static> {
    /// The name of the benchmark, for messages.
    pub benchmark: &'static str,
    /// Its own settings.
    pub own: &'static [OwnSetting<S>],
    /// Settings of all benchmarks that it accepts: its name for each, and the common name.
    pub common: &'static [(&'static str, &'static str)],
    /// True if it also accepts all other settings, except those of rqps's own tables.
    pub others: bool,
    /// Further keys in the list of valid keys.
    pub open: &'static [&'static str],
    /// The benchmark's parameters in a shape of this benchmark.
    pub of: fn(&mut BenchmarkParameters) -> Option<&mut S>,
}

impl<S: Clone> Settings<S> {
    /// Changes a workload of this benchmark by one `key=value`. On an error, nothing changes.
    pub fn set(&self, workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
        let (key, value) = settings::parts(assignment)?;
        if let Some((_, there)) = self.common.iter().find(|(here, _)| *here == key) {
            return settings::set(workload, &format!("{there}={value}"));
        }
        if self.others && settings::without_tables().any(|known| known == key) {
            return settings::set(workload, assignment);
        }
        let Some(setting) = self.own.iter().find(|setting| setting.key == key) else {
            return Err(self.unknown(key));
        };
        let Some(mut shape) = (self.of)(&mut workload.shape).cloned() else {
            return Err(self.unknown(key));
        };
        let mut changed = workload.clone();
        (setting.apply)(&mut changed, &mut shape, value).map_err(|why| SetError::BadValue {
            key: setting.key,
            value: value.to_owned(),
            why,
        })?;
        if let Some(place) = (self.of)(&mut changed.shape) {
            *place = shape;
        }
        *workload = changed;
        Ok(())
    }

    fn unknown(&self, key: &str) -> SetError {
        let own = self.own.iter().map(|setting| setting.key);
        let common = self.common.iter().map(|(here, _)| *here);
        let others = settings::without_tables().filter(|_| self.others);
        let open = self.open.iter().copied();
        let known: Vec<&str> = own.chain(common).chain(others).chain(open).collect();
        SetError::UnknownKeyOf {
            key: key.to_owned(),
            benchmark: self.benchmark,
            known: known.join(", "),
        }
    }
}

/// Writes a table of settings: a key, and a function of the workload, the benchmark's parameters
/// and the value.
#[macro_export]
macro_rules! own_settings {
    ($shape_type:ty: $($key:literal, |$workload:pat_param, $shape:pat_param, $value:ident|
        $apply:expr;)*) => {
        const OWN: &[$crate::workload::own::OwnSetting<$shape_type>] =
            &[$($crate::workload::own::OwnSetting {
                key: $key,
                apply: |$workload, $shape, $value| { $apply; Ok(()) },
            }),*];
    };
}
pub use crate::own_settings;
