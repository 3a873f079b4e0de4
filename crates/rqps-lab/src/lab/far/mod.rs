//! Other hosts that ssh reaches, with this rqps on them.

mod host;
mod link;
mod program;
mod shell;
mod sockets;

pub(super) use host::{FarHost, check_machine};
pub(super) use link::{CONNECTION_FAILED, SshLink, bound_files};
pub(super) use program::{digest_of, program_name};
pub(super) use shell::{quoted, shell_word};
pub(super) use sockets::SocketFolder;
