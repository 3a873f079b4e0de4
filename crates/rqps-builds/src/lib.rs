//! Builds to run: fetched by version through the user's own package client and kept in a cache,
//! found in an installed tree, compiled in, or merely named by the address of a server.
//!
//! No registry host is named here and nothing is downloaded by this program itself. Starts no
//! server: binaries are asked for their version, nothing else.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod catalogue;
mod downloads;
pub mod layout;

mod cache;
mod client;
mod debian;
mod error;
mod fetch;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod installed;
pub mod source;
mod unpack;

pub use cache::{Cache, closed_folder};
pub use client::PackageClients;
pub use client::{Hear, Said};
pub use error::{ObtainError, Reason};
pub use fetch::{fetch, obtain, obtain_with};
pub use find::{Found, Wanted, find};
pub use installed::files_of;
