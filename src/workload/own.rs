//! Settings that one benchmark has for itself, beside those of all benchmarks that it takes.

use crate::domain::benchmark::{BenchmarkParameters, Workload};
use crate::workload::settings::{self, SetError};

/// A setting of the benchmark whose parameters are an `S`.
pub struct OwnSetting<S> {
    /// The word before `=`.
    pub key: &'static str,
    /// Puts the value in. The error says what was expected.
    pub apply: fn(&mut Workload, &mut S, &str) -> Result<(), String>,
}

/// All settings of a benchmark.
pub struct Settings<S: 'static> {
    /// The name of the benchmark, for messages.
    pub benchmark: &'static str,
    /// Those that only it has.
    pub own: &'static [OwnSetting<S>],
    /// Settings of all benchmarks that mean something here: the name here and the name there.
    pub common: &'static [(&'static str, &'static str)],
    /// True if all settings mean something here but those of rqps's own tables.
    pub others: bool,
    /// What else may be set, for the list of what is known.
    pub open: &'static [&'static str],
    /// The benchmark's parameters, if the shape is of it.
    pub of: fn(&mut BenchmarkParameters) -> Option<&mut S>,
}

impl<S: Clone> Settings<S> {
    /// Changes a workload of this benchmark by one `key=value`. Nothing is changed on an error.
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

/// Writes a table of settings: a key, and what it does with the workload, the benchmark's
/// parameters and the value.
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
