//! Configs that a user brings, by name in a folder or by path: each is read once, so what is asked
//! about and hashed is what servers get.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::config_error::ConfigError;
use rqps_model::bounded;
use rqps_model::build::Dbms;
use rqps_model::target::config_parts;

/// The configs of a plan that are files of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserConfigs {
    folder: Option<PathBuf>,
    found: BTreeMap<(Dbms, String), UserConfig>,
}

/// A config that is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConfig {
    /// The file.
    pub path: PathBuf,
    /// Its name without its ending.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl UserConfigs {
    /// Configs that may stand in `folder`, which holds `DBMS/NAME.conf` or `.cnf`.
    pub fn of(folder: Option<PathBuf>) -> UserConfigs {
        UserConfigs { folder, found: BTreeMap::new() }
    }

    /// Reads the config `name`, or the file of that path; false if there is none, so that the
    /// shipped one counts.
    ///
    /// # Errors
    /// The file cannot be read, or is no text.
    pub fn read(&mut self, dbms: Dbms, config: &str) -> Result<bool, ConfigError> {
        let base = config_parts(config).0;
        Ok((base != config && self.read_named(dbms, config)?) || self.read_named(dbms, base)?)
    }

    fn read_named(&mut self, dbms: Dbms, name: &str) -> Result<bool, ConfigError> {
        for path in self.files(dbms, name) {
            match bounded::text(&path, bounded::WRITTEN_MAX) {
                Ok(text) => {
                    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    let config = UserConfig { name: stem.unwrap_or_default(), path, text };
                    self.found.insert((dbms, name.to_owned()), config);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                    ) =>
                {
                    return Err(ConfigError::NoText { path, dbms });
                }
                Err(source) => return Err(ConfigError::Read { path, source }),
            }
        }
        Ok(false)
    }

    /// Adds a config that is made of another, under a name of its own.
    pub fn add(&mut self, dbms: Dbms, name: &str, text: String) {
        let config = UserConfig { name: name.to_owned(), path: PathBuf::new(), text };
        self.found.insert((dbms, name.to_owned()), config);
    }

    /// The files that may be the config of this name.
    pub fn files(&self, dbms: Dbms, name: &str) -> Vec<PathBuf> {
        if name.contains('/') {
            return vec![PathBuf::from(name)];
        }
        let of_ending =
            |folder: &Path, ending| folder.join(dbms.name()).join(format!("{name}.{ending}"));
        let folder = self.folder.iter();
        folder.flat_map(|folder| ["conf", "cnf"].map(|ending| of_ending(folder, ending))).collect()
    }

    /// The config of this name, or that which the settings in it change; `None` for a shipped one.
    pub fn get(&self, dbms: Dbms, config: &str) -> Option<&UserConfig> {
        let of = |name: &str| self.found.get(&(dbms, name.to_owned()));
        of(config).or_else(|| of(config_parts(config).0))
    }

    /// True if there is a config of this whole name.
    pub(crate) fn has(&self, dbms: Dbms, config: &str) -> bool {
        self.found.contains_key(&(dbms, config.to_owned()))
    }
}
