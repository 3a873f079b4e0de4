//! A client: a program that does events for as long as it is asked to, and tells how many they were.

use std::sync::Arc;

use super::program::{CODES_MOST, Fault, Program};
use rqps_driver::client::Counts;
use rqps_driver::clock::Clock;
use rqps_driver::recorder::Recorder;
use rqps_driver::turns::TurnMember;
use rqps_host::tree::{Cpu, TreeCpu};
use rqps_model::run::CpuTime;

/// Nanoseconds of a run where no other target waits.
const PIECE_NS: u64 = 100_000_000;

/// Counts and costs of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) counts: Counts,
    /// CPU time of its process and of what that started.
    pub(super) cpu: CpuTime,
    /// Nanoseconds from questions to answers.
    pub(super) wall_ns: u64,
    /// The version that it talks to.
    pub(super) version: Option<String>,
}

/// The client.
pub(super) struct Member {
    program: Program,
    clock: Clock,
    recorder: Arc<Recorder>,
    only_reads: bool,
    tree: TreeCpu,
    /// CPU time at the start of the window; `None` before it.
    begun: Option<Cpu>,
    counted: Counted,
}

impl Member {
    /// A client of a program that is prepared.
    pub(super) fn new(
        program: Program,
        clock: Clock,
        recorder: Arc<Recorder>,
        only_reads: bool,
        version: Option<String>,
    ) -> Result<Member, String> {
        let tree = TreeCpu::new(program.pid());
        let tree = tree.map_err(|error| format!("failed to watch the program: {error}"))?;
        let counted = Counted { version, ..Counted::default() };
        Ok(Member { program, clock, recorder, only_reads, tree, begun: None, counted })
    }

    /// Works until a moment.
    pub(super) fn run_to(&mut self, end: u64) -> Result<(), String> {
        while self.clock.now() < end {
            let piece = self.clock.now().saturating_add(PIECE_NS);
            self.turn(piece.min(end))?;
        }
        Ok(())
    }

    fn cpu(&mut self) -> Cpu {
        self.tree.read().unwrap_or_default()
    }
}

impl TurnMember for Member {
    type Counts = Counted;

    fn turn(&mut self, until: u64) -> Result<(u64, u64), String> {
        let begun = self.clock.now();
        let us = (until.saturating_sub(begun) / 1_000).max(1);
        let clock = self.clock.clone();
        let ran = self.program.run(us, &|| clock.now())?;
        let ns = (ran.us * 1e3) as u64;
        if self.begun.is_some() {
            let Counted { counts, wall_ns: wall, .. } = &mut self.counted;
            *wall += ran.wall_ns;
            counts.window_ns += ns;
            counts.events += ran.n;
            counts.tally.statements += ran.n;
            let kind =
                if self.only_reads { &mut counts.tally.reads } else { &mut counts.tally.writes };
            *kind += ran.n;
            for (latency, count) in &ran.hist {
                self.recorder.events(*latency, *count, counts.tally.statements);
            }
            for (code, count) in ran.errors {
                let code = rqps_host::command_output::shown(&code);
                *counts.errors.entry(code).or_insert(0) += count;
                self.recorder.errors(count);
            }
            if counts.errors.len() > CODES_MOST {
                return Err(self.program.error(Fault::Codes).into());
            }
        }
        // What it does beside its events, such as to write its answer, is no time of the target.
        Ok((begun + ns, ran.n))
    }

    fn open_window(&mut self, _: u64) {
        self.begun = Some(self.cpu());
    }

    fn close_window(&mut self) -> Counted {
        let spent = self.begun.take().map(|begun| self.cpu().since(begun));
        self.counted.cpu = spent.unwrap_or_default();
        std::mem::take(&mut self.counted)
    }
}
