//! Clients of servers on another host: the rqps there, which measures, asks the rqps here for
//! drivers, over the connection that it lives by. Their lines go both ways.

mod client_end;
mod message;
mod permit;
mod server_end;

pub(super) use client_end::Relay;
pub(super) use message::{CarrierHost, ClientSide, ClientWord, ServerWord};
pub(super) use permit::Permit;
pub use server_end::ClientLine;
pub(super) use server_end::FarDriver;
