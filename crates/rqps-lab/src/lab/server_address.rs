//! The address at which servers listen for clients on other hosts.

use std::net::IpAddr;

use anyhow::{Context, Result, anyhow};

use crate::lab::far::SshLink;
use rqps_model::client_hosts::HostsOfClients;

/// The host of the servers, by its end of a connection of ssh.
#[derive(Clone, Copy)]
pub(super) enum ServersOn {
    /// This host, which connects to a client host.
    ThisHost,
    /// The host that ssh reaches.
    ReachedHost,
}

impl ServersOn {
    /// The advice for an address that cannot be used.
    pub(super) fn hint(self) -> &'static str {
        match self {
            ServersOn::ThisHost => {
                "hint: --server-address ADDRESS names an address of this host that client hosts \
                 reach"
            }
            ServersOn::ReachedHost => {
                "hint: --server-address ADDRESS names an address of the server host that clients \
                 reach"
            }
        }
    }

    /// The address of the servers' host in SSH_CONNECTION: address and port of the end that
    /// connects, then of the other end.
    fn address_in(self, connection: &str) -> Option<IpAddr> {
        let place = match self {
            ServersOn::ThisHost => 0,
            ServersOn::ReachedHost => 2,
        };
        connection.split_whitespace().nth(place)?.parse().ok()
    }
}

/// The address that the user gave, if any.
///
/// # Errors
/// It is no IP address.
pub(super) fn given(asked: &HostsOfClients, servers_on: ServersOn) -> Result<Option<IpAddr>> {
    let Some(text) = &asked.server_address else { return Ok(None) };
    let hint = servers_on.hint();
    let address = text.parse::<IpAddr>();
    address.map(Some).map_err(|_| anyhow!("use --server-address {text}: no IP address\n{hint}"))
}

/// The address that the user gave, or that of the servers' host on the connection of ssh.
///
/// # Errors
/// The user gave no IP address, or the other host does not answer or does not know the connection.
pub(super) fn choose(
    asked: &HostsOfClients,
    link: &SshLink,
    servers_on: ServersOn,
) -> Result<IpAddr> {
    let hint = servers_on.hint();
    if let Some(address) = given(asked, servers_on)? {
        return Ok(address);
    }
    let connection = link.run("echo \"$SSH_CONNECTION\"")?;
    servers_on.address_in(&connection).with_context(|| {
        format!(
            "choose an address for servers: {} does not report the addresses of its ssh \
             connection\n{hint}",
            link.host
        )
    })
}

#[cfg(test)]
mod tests {
    use super::ServersOn::{ReachedHost, ThisHost};

    #[test]
    fn servers_are_at_one_end_of_the_connection() {
        let check = |connection: &str, expected: [Option<&str>; 2]| {
            let found = [ThisHost, ReachedHost].map(|host| host.address_in(connection));
            assert_eq!(found, expected.map(|it| it.map(|it| it.parse().unwrap())), "{connection}");
        };
        check("10.0.0.1 4000 10.0.0.2 22\n", [Some("10.0.0.1"), Some("10.0.0.2")]);
        check("fd00::1 4000 fd00::2 22\n", [Some("fd00::1"), Some("fd00::2")]);
        check("10.0.0.1\n", [Some("10.0.0.1"), None]);
        check("UNKNOWN 65535 UNKNOWN 65535\n", [None, None]);
        check("\n", [None, None]);
    }
}
