//! The fake DBMS: nothing but a file, and, if its config asks for it, a process that sleeps; fails
//! where its config says. For tests of rqps itself.
//!
//! Its config: `mean_us = 100` (service time), `own_luck = true` (latencies are drawn for each
//! target anew, where else all targets of a block draw the same), `canaries = 1, 1, 1.5` (by which
//! factor readings of the host's canaries are slow; `canaries.NODE`, those of a node before a
//! block), `real_time = true` (sleep through steps as a real run would), `process = true` (a server
//! process under a warden), `fail = init|start|settle|check|stop` (that call fails), `refuses = KEY =
//! VALUE` (a start with that line fails). Of several lines with one name, the last counts.

use std::path::Path;

use crate::control::{ControlPlane, DbmsError, Site};
use crate::server::Server;
use crate::spec::DbmsSpec;
use crate::sql_server::SettleLoad;
use rqps_host::process::{StopOrder, StopSignal};
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Endpoint, Login};

/// Service time when the config names none, microseconds.
const DEFAULT_MEAN_US: u64 = 100;

/// The fake one.
struct Fake {
    server: Server,
}

impl Fake {
    fn new(site: Site) -> Fake {
        Fake { server: Server::new(site) }
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.server.site.config.text.lines().rev().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        })
    }

    fn is_set(&self, name: &str) -> bool {
        self.setting(name) == Some("true")
    }

    fn fail_at(&self, place: &str) -> Result<(), DbmsError> {
        if self.setting("fail") == Some(place) {
            let doing = format!("{place} {}", self.server.name());
            return Err(DbmsError::ended(doing, "its config says so (fail)".to_owned()));
        }
        Ok(())
    }
}

impl ControlPlane for Fake {
    fn init(&mut self) -> Result<(), DbmsError> {
        self.fail_at("init")?;
        self.server.fill_data_folder(&[], "", || Ok(()))?;
        self.server.write_config("fake.txt", "the data of the fake DBMS\n").map(drop)
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        self.fail_at("start")?;
        let refused = self.setting("refuses").and_then(|line| line.split_once('='));
        if let Some((key, value)) = refused
            && self.setting(key.trim()) == Some(value.trim())
        {
            let why = format!("error: {} has the invalid value {}", key.trim(), value.trim());
            return Err(DbmsError::ended(format!("start {}", self.server.name()), why));
        }
        if !self.is_set("process") {
            return Ok(());
        }
        let ready = self.server.site.sockets.join("ready");
        let script = "trap 'exit 0' TERM; : > \"$0\"; while :; do sleep 3600 & wait $!; done";
        let args = vec!["-c".to_owned(), script.to_owned(), ready.display().to_string()];
        self.server.launch(Path::new("/bin/sh"), args, StopOrder::HARD)?;
        self.server.wait_for_file(&ready)
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        let mean = self.setting("mean_us").and_then(|text| text.parse().ok());
        let endpoint = Endpoint::Fake {
            mean_us: mean.unwrap_or(DEFAULT_MEAN_US),
            real_time: self.is_set("real_time"),
        };
        (endpoint, Login::default())
    }

    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        Some(self.endpoint())
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        // Data folders of blocks are named b01-1-LABEL.
        let folder = self.server.site.data.file_name().unwrap_or_default().to_string_lossy();
        let label = folder.splitn(3, '-').nth(2);
        let luck = label.filter(|_| self.is_set("own_luck"));
        luck.map(|label| format!("SET luck TO {label}")).into_iter().collect()
    }

    fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        Ok(self.server.site.build.manifest.version.to_string())
    }

    fn settle(
        &mut self,
        _load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        // Its clock is a fake, too: nothing to wait for.
        progress("at rest");
        self.fail_at("settle")
    }

    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        Ok(vec![("fake.txt".to_owned(), self.server.site.config.text.clone())])
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }

    fn check(&mut self) -> Result<(), DbmsError> {
        self.fail_at("check")?;
        if self.is_set("process") { self.server.check() } else { Ok(()) }
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        self.fail_at("stop")?;
        self.server.stop(StopSignal::Term)
    }
}

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Fake,
    configs: &[
        ("default", include_str!("../../../configs/fake/default.conf")),
        ("installed", include_str!("../../../configs/fake/installed.conf")),
    ],
    control: |site| Ok(Box::new(Fake::new(site))),
    ..DbmsSpec::NONE
};
