//! SQLite: no server, a database file that the driver process opens.

use std::path::PathBuf;

use crate::dbms::server::{make_folder, refuse_used};
use crate::dbms::settle::SettleLoad;
use crate::dbms::{ControlPlane, DbmsError, Site};
use crate::domain::endpoint::{Endpoint, Login};

/// A SQLite database.
pub(super) struct Sqlite {
    site: Site,
}

impl Sqlite {
    pub(super) fn new(site: Site) -> Sqlite {
        Sqlite { site }
    }

    fn path(&self) -> PathBuf {
        self.site.data.join("rqps.db")
    }
}

impl ControlPlane for Sqlite {
    fn init(&mut self) -> Result<(), DbmsError> {
        refuse_used(&self.site.data)?;
        make_folder(&self.site.data)
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        let library = self.site.build.root.clone();
        (Endpoint::File { path: self.path(), library }, Login::default())
    }

    fn session_setup(&self) -> Vec<String> {
        self.site.config.text.lines().map(|line| format!("PRAGMA {line}")).collect()
    }

    fn server_pid(&self) -> Option<u32> {
        None
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        Err(DbmsError::Unsupported("ask the version of sqlite: not possible yet".to_owned()))
    }

    fn settle(
        &mut self,
        _load: &SettleLoad,
        _progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        Err(DbmsError::Unsupported("settle sqlite: not possible yet".to_owned()))
    }

    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        Ok(Vec::new())
    }

    fn pause(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn resume(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn check(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
}
