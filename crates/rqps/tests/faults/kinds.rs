//! The kinds of faults, and which of them a setup can meet.

use rustix::process::Signal;

use crate::setups::{Builds, Place, SETUPS, Setup};
use rqps_model::datagen::rng::Rng;

/// A process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// rqps itself.
    Lab,
    Driver,
    Warden,
    Server,
    /// A process that a server has started.
    Backend,
    /// The rqps that measures a block on another host.
    Far,
    /// The program ssh.
    Ssh,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SIGKILL.
    Kill(Role),
    /// Another signal, to the lab.
    Ask(Signal),
    /// SIGSTOP, and SIGCONT after seconds.
    Stop(Role),
    /// The disk of results and data is full, up to a random byte.
    FullDisk,
    /// A random byte is the last that rqps can write.
    NoRoom,
    /// Files may not grow beyond a random byte (RLIMIT_FSIZE).
    FileSize,
    /// A call on a file fails.
    Error,
    /// Each fsync takes long.
    SlowDisk,
    /// The clock jumps there and back.
    Clock,
    /// The memory of the whole run is used up.
    Memory,
    /// The folder of builds is emptied.
    NoCache,
    /// The result folder becomes read-only.
    ReadOnly,
    /// No port is free.
    Ports,
    /// What rqps would make in /tmp is there and belongs to another.
    Squatter,
    /// A connection to the server is cut after a random byte.
    Cut,
    /// Everything ends, and what is not on the disk is lost.
    PowerCut,
    /// Another rqps for the same result folder.
    SameResults,
    /// Another rqps on the same host.
    SameHost,
}

/// All of them, with how often each is drawn.
pub(crate) const KINDS: [(Kind, u64); 29] = [
    (Kind::Kill(Role::Lab), 6),
    (Kind::Kill(Role::Driver), 4),
    (Kind::Kill(Role::Warden), 4),
    (Kind::Kill(Role::Server), 4),
    (Kind::Kill(Role::Backend), 3),
    (Kind::Kill(Role::Far), 4),
    (Kind::Kill(Role::Ssh), 4),
    (Kind::Ask(Signal::INT), 3),
    (Kind::Ask(Signal::TERM), 3),
    (Kind::Ask(Signal::HUP), 2),
    (Kind::Stop(Role::Lab), 2),
    (Kind::Stop(Role::Driver), 2),
    (Kind::Stop(Role::Warden), 2),
    (Kind::Stop(Role::Server), 2),
    (Kind::FullDisk, 5),
    (Kind::NoRoom, 4),
    (Kind::FileSize, 3),
    (Kind::Error, 6),
    (Kind::SlowDisk, 2),
    (Kind::Clock, 3),
    (Kind::Memory, 3),
    (Kind::NoCache, 3),
    (Kind::ReadOnly, 3),
    (Kind::Ports, 2),
    (Kind::Squatter, 2),
    (Kind::Cut, 8),
    (Kind::PowerCut, 5),
    (Kind::SameResults, 2),
    (Kind::SameHost, 2),
];

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Lab => "lab",
            Role::Driver => "driver",
            Role::Warden => "warden",
            Role::Server => "server",
            Role::Backend => "backend",
            Role::Far => "block elsewhere",
            Role::Ssh => "ssh",
        }
    }

    fn is_in(self, setup: &Setup) -> bool {
        match self {
            Role::Lab | Role::Driver => true,
            Role::Warden | Role::Server => setup.serves,
            Role::Backend => setup.serves && setup.name.starts_with("postgres"),
            Role::Far => matches!(setup.place, Place::Ssh | Place::Slurm),
            Role::Ssh => matches!(setup.place, Place::Ssh | Place::Clients),
        }
    }
}

impl Kind {
    pub(crate) fn name(self) -> String {
        let text = match self {
            Kind::Kill(role) => return format!("kill -9 {}", role.name()),
            Kind::Stop(role) => return format!("SIGSTOP {}", role.name()),
            Kind::Ask(Signal::INT) => "SIGINT lab",
            Kind::Ask(Signal::TERM) => "SIGTERM lab",
            Kind::Ask(_) => "SIGHUP lab",
            Kind::FullDisk => "disk full",
            Kind::NoRoom => "ENOSPC at a byte",
            Kind::FileSize => "RLIMIT_FSIZE",
            Kind::Error => "EIO of a call",
            Kind::SlowDisk => "slow fsync",
            Kind::Clock => "clock jumps",
            Kind::Memory => "memory used up",
            Kind::NoCache => "cache emptied",
            Kind::ReadOnly => "results read-only",
            Kind::Ports => "no free port",
            Kind::Squatter => "name in /tmp taken",
            Kind::Cut => "connection cut",
            Kind::PowerCut => "power cut",
            Kind::SameResults => "second rqps, same results",
            Kind::SameHost => "second rqps, same host",
        };
        text.to_owned()
    }

    /// The setup can meet it.
    pub(crate) fn fits(self, setup: &Setup) -> bool {
        let here = matches!(setup.place, Place::Here | Place::Dsn);
        match self {
            Kind::Kill(role) | Kind::Stop(role) => role.is_in(setup),
            Kind::Ask(_) | Kind::FullDisk | Kind::NoRoom | Kind::FileSize | Kind::Error => true,
            Kind::SlowDisk | Kind::Clock | Kind::ReadOnly | Kind::PowerCut => true,
            Kind::Memory => here,
            Kind::NoCache => matches!(setup.name, "mysql" | "rocksdb-kv"),
            Kind::Ports => matches!(setup.place, Place::Ssh | Place::Clients | Place::Slurm),
            Kind::Squatter => setup.serves && here,
            Kind::Cut => setup.place == Place::Dsn,
            Kind::SameResults => true,
            Kind::SameHost => here,
        }
    }

    /// It can be met by a user without rights, too.
    pub(crate) fn fits_nobody(self, setup: &Setup) -> bool {
        let groups = setup.name == "postgres-memory" || self == Kind::Memory;
        setup.place == Place::Here && !groups
    }

    /// It strikes nothing until rqps makes a certain call.
    pub(crate) fn waits_for_a_call(self) -> bool {
        matches!(self, Kind::NoRoom | Kind::Error)
    }

    /// rqps gets the library that makes calls fail.
    pub(crate) fn needs_shim(self) -> bool {
        matches!(self, Kind::NoRoom | Kind::Error | Kind::SlowDisk | Kind::Clock)
    }
}

// Draws a trial: a setup, a fault and a moment, all by the seed of the campaign and the number of
// the trial.

/// Longest wait after the line of progress that a fault follows.
const LONGEST_DELAY: u64 = 500;

/// One fault in one run.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) setup: &'static Setup,
    pub(crate) kind: Kind,
    /// rqps runs as a user without rights.
    pub(crate) as_nobody: bool,
    /// The fault strikes so many lines of progress after the start …
    pub(crate) after_lines: u64,
    /// … and so many milliseconds.
    pub(crate) delay: u64,
    /// What else the fault depends on.
    pub(crate) dice: u64,
}

/// The next one of these with their weights.
fn weighted<T: Copy>(rng: &mut Rng, of: &[(T, u64)]) -> Option<T> {
    let total: u64 = of.iter().map(|(_, weight)| weight).sum();
    let mut left = if total == 0 { return None } else { rng.below(total) };
    for (thing, weight) in of {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return Some(*thing),
        }
    }
    None
}

impl Trial {
    /// Trial `number` of the campaign `seed`, among the setups that are possible and wanted.
    pub(crate) fn draw(
        (seed, number): (u64, u64),
        builds: &Builds,
        wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Trial> {
        let mut rng = Rng::stream(seed, "faults", number);
        let of = |setup: &'static Setup| {
            let kinds = KINDS.iter().filter(move |(kind, _)| kind.fits(setup));
            kinds.filter(move |(kind, _)| wanted(setup.name, &kind.name())).copied()
        };
        let setups: Vec<(&Setup, u64)> = SETUPS
            .iter()
            .filter(|setup| setup.is_possible(builds) && of(setup).next().is_some())
            .map(|setup| (setup, setup.weight))
            .collect();
        let setup = weighted(&mut rng, &setups)?;
        let kinds: Vec<(Kind, u64)> = of(setup).collect();
        let kind = weighted(&mut rng, &kinds)?;
        let as_nobody = rng.below(4) == 0 && kind.fits_nobody(setup);
        Some(Trial {
            seed,
            number,
            setup,
            kind,
            as_nobody,
            after_lines: rng.below(setup.lines),
            delay: rng.below(LONGEST_DELAY),
            dice: rng.next_u64(),
        })
    }
}
