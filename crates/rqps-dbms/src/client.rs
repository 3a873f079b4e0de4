//! Whatever a program of the user's talks to. rqps starts nothing: it keeps a folder for the data of
//! a program that has a library, and looks which process of this host listens at an address.

use std::path::Path;

use crate::control::{ControlPlane, DbmsError, Site};
use crate::external::is_loopback;
use crate::server::{check_library, hand_over_data};
use crate::spec::DbmsSpec;
use rqps_host::process::owner_of_port;
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Endpoint, Login};

struct Client {
    site: Site,
    /// The server, if it listens on this host.
    server: Option<u32>,
}

/// Host and port of an address with a scheme.
fn address(text: &str) -> Option<(&str, u16)> {
    let (_, rest) = text.split_once("://")?;
    let rest = rest.split(['/', '?']).next()?;
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let (host, port) = place.rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']), port.parse().ok()?))
}

impl ControlPlane for Client {
    fn init(&mut self) -> Result<(), DbmsError> {
        hand_over_data(&self.site).map(drop)
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        if Path::new(&self.site.data).exists() {
            check_library(&self.site)?;
        }
        let place = address(&self.site.build.manifest.origin);
        let near = place.filter(|(host, _)| is_loopback(host));
        self.server = near.and_then(|(_, port)| owner_of_port(port));
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::File { path: self.site.data.clone(), library: None }, Login::default())
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn server_pid(&self) -> Option<u32> {
        self.server
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        Ok(self.site.build.manifest.origin.clone())
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
}

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Client,
    control: |site| Ok(Box::new(Client { site, server: None })),
    ..DbmsSpec::NONE
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_host_and_port() {
        assert_eq!(address("redis://u:p@127.0.0.1:7001/0?a=b:1"), Some(("127.0.0.1", 7001)));
        assert_eq!(address("redis://[::1]:7001"), Some(("::1", 7001)));
        for none in ["redis://host", "/opt/duckdb", "redis://h:seven"] {
            assert_eq!(address(none), None, "{none}");
        }
    }
}
