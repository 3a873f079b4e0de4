//! Hosts of clients and of servers, where clients run on other hosts than the servers.

use serde::{Deserialize, Serialize};

/// The hosts that carry the clients of every step, and the host of the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsOfClients {
    /// As ssh takes them: `user@host` or a name of its configuration. They share the clients of a
    /// step evenly; where some are left over, the first have one more each. Empty for the host of
    /// rqps, where `server_host` names another for the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Number of nodes of Slurm, in place of `hosts`: each block gets them beside that of its
    /// servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Address of the server's host that servers listen at; `None` for the one that the first
    /// client host sees, or by which ssh reaches `server_host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<String>,
    /// The host that runs and loads the servers, as ssh takes it; `None` for that of rqps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<String>,
}

impl HostsOfClients {
    /// Number of hosts for clients; 0 for that of rqps.
    pub fn count(&self) -> usize {
        self.nodes.map_or(self.hosts.len(), |nodes| nodes as usize)
    }

    /// The clients of each host: evenly, and where some are left over one more for the first.
    pub fn shares(&self, clients: u32) -> Vec<u32> {
        let hosts = (self.count() as u32).max(1);
        (0..hosts).map(|host| clients / hosts + u32::from(host < clients % hosts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_clients_evenly_and_the_first_have_one_more() {
        let hosts = |count: usize| HostsOfClients {
            hosts: vec![String::new(); count],
            ..HostsOfClients::default()
        };
        assert_eq!(hosts(1).shares(5), [5]);
        assert_eq!(hosts(2).shares(8), [4, 4]);
        assert_eq!(hosts(3).shares(8), [3, 3, 2]);
        assert_eq!(hosts(2).shares(1), [1, 0]);
        assert_eq!(HostsOfClients { nodes: Some(2), ..hosts(0) }.shares(3), [2, 1]);
    }
}
