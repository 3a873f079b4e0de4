//! Clients of servers on another host: the rqps there, which measures, asks the rqps here for
//! drivers, over the connection that it lives by. Their lines go both ways.

mod client_end;
mod permit;
mod server_end;

pub(super) use client_end::DriverProxy;
pub(super) use permit::Permit;
pub use server_end::ClientLine;
pub(super) use server_end::ProxiedDriver;

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A word of the rqps that runs servers to the one that starts drivers. It numbers the drivers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::lab) enum ServerWord {
    /// Start a driver on the host at that place of the list, with this line as its request.
    Start { driver: u32, host: usize, request: String },
    /// Pass a line on to a driver.
    Tell { driver: u32, line: String },
    /// End a driver.
    End { driver: u32 },
}

/// A word of the rqps that starts drivers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::lab) enum ClientWord {
    /// The first word.
    Side(ClientSide),
    /// Nothing, but the connection stands.
    Alive,
    /// A line of a driver.
    Said { driver: u32, line: String },
    /// A driver has ended, or could not be started.
    Ended { driver: u32, why: String },
}

/// Facts of the clients for the rqps that runs their servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::lab) struct ClientSide {
    /// The address at which servers listen for them.
    pub(in crate::lab) address: IpAddr,
    /// Hosts that carry them.
    pub(in crate::lab) hosts: Vec<CarrierHost>,
}

/// A host that carries clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::lab) struct CarrierHost {
    /// As the plan names it.
    pub(in crate::lab) name: String,
    /// Folder there for data that take long to make.
    pub(in crate::lab) datasets: PathBuf,
}
