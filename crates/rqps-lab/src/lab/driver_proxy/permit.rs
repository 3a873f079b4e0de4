//! What a server host may ask for. A request for a driver comes from there, and the driver runs on
//! a host of the user's: it connects to the servers of the block, reads the files of the plan, and
//! nothing else.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

use super::CarrierHost;
use rqps_driver::request::{DriverRequest, RequestBody};
use rqps_model::endpoint::{Address, Endpoint, ServerKey, Tls};

/// Drivers at once: two for each of many targets.
pub(super) const DRIVERS: usize = 256;

/// The rules for one block.
pub(in crate::lab) struct Permit {
    address: IpAddr,
    /// Files of the plan that drivers read.
    files: BTreeSet<PathBuf>,
    /// True if the user allowed scripts to run programs.
    shell: bool,
}

impl Permit {
    pub(in crate::lab) fn new(
        address: IpAddr,
        files: impl Iterator<Item = PathBuf>,
        shell: bool,
    ) -> Permit {
        Permit { address, files: files.collect(), shell }
    }

    /// Checks a request for a driver on this host.
    ///
    /// # Errors
    /// It asks for something else than the plan needs.
    pub(in crate::lab) fn check(&self, request: &str, host: &CarrierHost) -> Result<()> {
        let value: Value = serde_json::from_str(request)?;
        let request: DriverRequest = serde_json::from_str(request)?;
        match (&request.endpoint, &request.task) {
            (Endpoint::Fake { .. }, _) => {}
            (Endpoint::Server(Address::Tcp { host, tls, .. }), _)
                if host.parse() == Ok(self.address) && !names_files(tls) => {}
            _ => bail!("the server host asked for a driver on {:?}", request.endpoint),
        }
        // To open a device may do something by itself.
        if request.scratch.is_some() || request.standstill.is_some() {
            bail!("the server host named a folder for scripts, or a page of a client host");
        }
        if let Some(turns) = &request.turns
            && !is_page(&turns.page)
        {
            bail!("the server host named the page of turns {:?}", turns.page);
        }
        if let RequestBody::Step(step) = &request.task {
            if step.server_pid.is_some() {
                bail!("the server host named a process of a client host");
            }
            if step.cache.as_ref().is_some_and(|cache| *cache != host.datasets) {
                bail!("the server host named the folder {:?}", step.cache);
            }
        }
        self.check_paths(&value["task"], host)
    }

    /// Drivers work in the root folder, so a path is what begins there.
    fn check_paths(&self, value: &Value, host: &CarrierHost) -> Result<()> {
        match value {
            Value::String(text) => {
                let path = Path::new(text);
                let is_known = self.files.contains(path) || *path == host.datasets;
                if may_be_path(text) && !is_known && !self.is_folder_of_file(path) {
                    bail!("the server host named {:?}, which is no file of the plan", text);
                }
                Ok(())
            }
            Value::Array(all) => all.iter().try_for_each(|one| self.check_paths(one, host)),
            Value::Object(all) if !self.shell && all.get("shell") == Some(&Value::Bool(true)) => {
                bail!("the server host has a script run programs")
            }
            Value::Object(all) => all.values().try_for_each(|one| self.check_paths(one, host)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn is_folder_of_file(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.parent() == Some(path))
    }
}

/// True if a login would read certificates or keys, which servers that rqps runs do not need.
fn names_files(tls: &Tls) -> bool {
    let has_key = matches!(tls.consent.key, ServerKey::File(_));
    tls.roots.is_some() || tls.identity.is_some() || has_key
}

/// True if a text may be a path from the root folder: it begins with a slash, or with the name of a
/// folder there, or is that of a file there.
fn may_be_path(text: &str) -> bool {
    const AT_ROOT: [&str; 20] = [
        "", ".", "..", "bin", "boot", "data", "dev", "etc", "home", "lib", "media", "mnt", "opt",
        "proc", "root", "run", "srv", "tmp", "usr", "var",
    ];
    let Some((first, _)) = text.split_once('/') else {
        return !text.is_empty() && Path::new("/").join(text).is_file();
    };
    let is_comment = text.starts_with("/*");
    !is_comment && (AT_ROOT.contains(&first) || Path::new("/").join(first).is_dir())
}

/// `/proc/17/fd/5`: a page is memory of a process. The driver checks that it is no file.
fn is_page(path: &Path) -> bool {
    let parts: Vec<&str> = path.to_str().unwrap_or_default().split('/').collect();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    matches!(parts.as_slice(), ["", "proc", pid, "fd", fd] if is_number(pid) && is_number(fd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::turns::token::TurnRules;

    fn request(change: &dyn Fn(&mut Value)) -> String {
        let (order, round, ns) = (vec![0, 1], 2, 1);
        let rules = TurnRules { order, round, turn_ns: ns, warmup_ns: ns, window_ns: ns };
        let mut request = DriverRequest::keep_turns(rules);
        let host = "10.0.0.1".to_owned();
        request.endpoint = Endpoint::Server(Address::Tcp { host, port: 5432, tls: Tls::OFF });
        let mut value = serde_json::to_value(&request).unwrap();
        change(&mut value);
        value.to_string()
    }

    #[test]
    fn a_request_names_nothing_but_what_the_plan_has() {
        let files = ["/home/me/plan/a.csv"].map(PathBuf::from);
        let permit = Permit::new([10, 0, 0, 1].into(), files.into_iter(), false);
        let host = CarrierHost { name: "h".to_owned(), datasets: PathBuf::from("/cache/datasets") };
        let check = |change: &dyn Fn(&mut Value), fits: bool| {
            let made = request(change);
            assert_eq!(permit.check(&made, &host).is_ok(), fits, "{made}");
        };
        check(&|_| {}, true);
        check(
            &|value| {
                value["endpoint"] =
                    serde_json::json!({"file": {"path": "/x", "library": "/tmp/evil.so"}})
            },
            false,
        );
        check(&|value| value["endpoint"]["server"]["tcp"]["host"] = "10.0.0.2".into(), false);
        check(&|value| value["scratch"] = "/home/me".into(), false);
        check(&|value| value["standstill"] = "/dev/watchdog".into(), false);
        for (key, files) in [
            ("roots", serde_json::json!("/home/me/ca.pem")),
            ("identity", serde_json::json!({"certificate": "/home/me/c.pem", "key": "/home/me/k"})),
            ("consent", serde_json::json!({"key": {"file": "/home/me/k"}, "clear": false})),
        ] {
            check(&|value| value["endpoint"]["server"]["tcp"]["tls"][key] = files.clone(), false);
        }
        for (text, fits) in [
            ("/home/me/.ssh/id_rsa", false),
            ("home/me/.ssh/id_rsa", false),
            ("../home/me/.ssh/id_rsa", false),
            ("/home/me/plan/a.csv", true),
            ("/cache/datasets", true),
            ("SELECT 1 / 2", true),
            ("/* a */ SELECT 1", true),
            ("N/A", true),
        ] {
            let task = serde_json::json!({"read_tables": {"names": [text], "bytes_most": 1}});
            check(&|value| value["task"] = task.clone(), fits);
        }
        let script = |shell: bool| serde_json::json!({"task": {"work": {"lua": {"shell": shell}}}});
        assert!(permit.check_paths(&script(false), &host).is_ok());
        assert!(permit.check_paths(&script(true), &host).is_err());
        let at_root = std::fs::read_dir("/").unwrap().flatten().find(|it| it.path().is_file());
        if let Some(name) = at_root.and_then(|file| file.file_name().into_string().ok()) {
            assert!(may_be_path(&name) && !may_be_path("home"), "{name}");
        }
        assert!(is_page(Path::new("/proc/17/fd/5")));
        assert!(!is_page(Path::new("/proc/17/fd/../environ")) && !is_page(Path::new("/home/me/a")));
    }
}
