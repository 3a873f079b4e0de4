//! Runs rqps and sysbench in turn on the same running servers and puts their figures side by side.
//!
//! In a folder of its own because the smoke test runs it too.

pub(crate) mod options;
mod ratio;
mod report;
mod rqps;
mod sample;
mod subject;
mod sysbench;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::rqps::domain::benchmark::{Idle, Placement};
use ::rqps::os::spinner::Spinner;
use anyhow::{Context, Result, bail};

use self::options::Options;
use self::report::{Duel, Loads, Memory, Report};
use self::rqps::Window;
use self::sample::Sample;
use self::subject::Subject;

/// The program whose driver, warden and spinner are used.
const RQPS: &str = env!("CARGO_BIN_EXE_rqps");

/// What both programs are to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// As the report names it.
    pub(crate) name: &'static str,
    /// The step of rqps.
    step: &'static str,
    /// The script of sysbench.
    script: &'static str,
    fresh: Fresh,
}

/// When the table is loaded anew.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fresh {
    /// Never: nothing is written.
    Kept,
    /// Before the first pair: both programs leave the table as large as they found it, and wear it
    /// in turn.
    Once,
    /// Before every run: each changes the number of rows.
    Always,
}

const CASES: [Case; 7] = [
    Case {
        name: "point-query",
        step: "point-query",
        script: "oltp_point_select",
        fresh: Fresh::Kept,
    },
    Case {
        name: "read-only",
        step: "read-only_range=100",
        script: "oltp_read_only",
        fresh: Fresh::Kept,
    },
    Case {
        name: "update-index",
        step: "update-index",
        script: "oltp_update_index",
        fresh: Fresh::Once,
    },
    Case {
        name: "update-nonindex",
        step: "update-nonindex",
        script: "oltp_update_non_index",
        fresh: Fresh::Once,
    },
    Case { name: "write-only", step: "write-only", script: "oltp_write_only", fresh: Fresh::Once },
    Case { name: "delete", step: "delete", script: "oltp_delete", fresh: Fresh::Always },
    Case { name: "insert", step: "insert", script: "oltp_insert", fresh: Fresh::Always },
];

/// Why nothing can be compared here, if that is so: a program or a build that is not to be had.
#[allow(dead_code, reason = "the smoke test asks")]
pub(crate) fn missing(options: &Options) -> Option<String> {
    let found = sysbench::version().and_then(|_| subject::builds(options, &mut |_| {}));
    found.err().map(|error| format!("{error:#}"))
}

/// Carries out the whole comparison. `say` is told what is being done.
pub(crate) fn run(
    options: &Options,
    stop: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> Result<Report> {
    let cases = cases(options)?;
    let placements = options.placements()?;
    let mut report = Report::new(options, &sysbench::version()?);
    let builds = subject::builds(options, say)?;
    let idle = if options.awake { Idle::Awake } else { Idle::Os };
    let _spinner = match idle {
        Idle::Awake => Some(Spinner::start(RQPS.as_ref()).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    for (target, build) in &builds {
        say(&format!("{}: start", target.label));
        let mut subject = Subject::start(options, target, build, stop)?;
        report.versions.push(format!("{}: {}", subject.label, subject.version));
        let mut bout = Bout { options, subject: &mut subject, say };
        bout.load_table()?;
        report.memory.extend(bout.memory()?);
        for case in &cases {
            for placement in &placements {
                report.duels.push(bout.duel(*case, *placement)?);
            }
        }
        report.loads.extend(bout.loads()?);
        subject.stop()?;
    }
    Ok(report)
}

fn cases(options: &Options) -> Result<Vec<Case>> {
    if options.cases.is_empty() {
        return Ok(CASES.to_vec());
    }
    let find = |name: &String| CASES.into_iter().find(|case| case.name == name);
    let mut cases = Vec::new();
    for name in &options.cases {
        let Some(case) = find(name) else {
            let known: Vec<_> = CASES.iter().map(|case| case.name).collect();
            bail!("compare {name}: there is no such case (known: {})", known.join(", "));
        };
        cases.push(case);
    }
    Ok(cases)
}

/// The two programs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    Rqps,
    Sysbench,
}

/// ABBA: of two neighbouring pairs one begins with rqps and one with sysbench, so that a drift
/// cancels.
fn order(pair: u32) -> [Program; 2] {
    if pair.is_multiple_of(2) {
        [Program::Rqps, Program::Sysbench]
    } else {
        [Program::Sysbench, Program::Rqps]
    }
}

/// All that is done on one server.
struct Bout<'a> {
    options: &'a Options,
    subject: &'a mut Subject,
    say: &'a mut dyn FnMut(&str),
}

impl Bout<'_> {
    fn window(&self, placement: Placement, pair: u32) -> Window {
        Window {
            rows: self.options.rows,
            clients: 1,
            warmup: self.options.warmup,
            seconds: self.options.seconds,
            placement,
            seed: self.options.seed + u64::from(pair),
        }
    }

    /// The same rows whoever runs on them.
    fn load_table(&mut self) -> Result<()> {
        rqps::load(self.subject, self.options.rows, self.options.seed)?;
        self.subject.settle(self.options.rows)
    }

    fn memory(&mut self) -> Result<Option<Memory>> {
        let clients = self.options.memory_clients;
        if clients == 0 {
            return Ok(None);
        }
        let step = rqps::step(self.subject.dialect, "point-query")?;
        let window = Window { clients, ..self.window(Placement::Os, 0) };
        let bytes = rqps::peak_memory(self.subject, &step, window).context("read the memory")?;
        Ok(Some(Memory { target: self.subject.label.clone(), clients, bytes }))
    }

    /// All pairs of one case in one placement.
    fn duel(&mut self, case: Case, placement: Placement) -> Result<Duel> {
        if case.fresh == Fresh::Once {
            self.load_table()?;
        }
        let mut pairs = Vec::new();
        for pair in 0..self.options.alternations {
            let mut samples = [Sample::default(), Sample::default()];
            for program in order(pair) {
                samples[program as usize] = self.measure(case, placement, pair, program)?;
            }
            let [ours, theirs] = samples;
            (self.say)(&format!(
                "{} {} {}: {} of {}: rqps {:.0}, sysbench {:.0} QPS",
                self.subject.label,
                case.name,
                options::name(placement),
                pair + 1,
                self.options.alternations,
                ours.qps,
                theirs.qps
            ));
            pairs.push((ours, theirs));
        }
        let target = self.subject.label.clone();
        Ok(Duel { target, case: case.name, placement, pairs })
    }

    fn measure(
        &mut self,
        case: Case,
        placement: Placement,
        pair: u32,
        program: Program,
    ) -> Result<Sample> {
        self.subject.check()?;
        if case.fresh == Fresh::Always {
            self.load_table()?;
        }
        self.subject.unpin()?;
        let window = self.window(placement, pair);
        let sample = match program {
            Program::Rqps => {
                let step = rqps::step(self.subject.dialect, case.step)?;
                rqps::measure(self.subject, &step, window)
            }
            Program::Sysbench => sysbench::measure(self.subject, case.script, window),
        };
        sample.with_context(|| {
            format!("run {} with {program:?} on {}", case.name, self.subject.label)
        })
    }

    /// Loads by both programs, in turn. Dropping the table and settling after a load are nobody's
    /// time.
    fn loads(&mut self) -> Result<Option<Loads>> {
        let (rows, seed) = (self.options.load_rows, self.options.seed);
        let mut pairs = Vec::new();
        for pair in 0..self.options.load_alternations {
            let mut seconds = [0.0, 0.0];
            for program in order(pair) {
                self.subject.check()?;
                self.subject.unpin()?;
                sysbench::command(self.subject, rows, "cleanup")?;
                seconds[program as usize] = match program {
                    Program::Rqps => rqps::load(self.subject, rows, seed),
                    Program::Sysbench => sysbench::command(self.subject, rows, "prepare"),
                }
                .with_context(|| format!("load with {program:?} on {}", self.subject.label))?;
                self.subject.settle(rows)?;
            }
            let [ours, theirs] = seconds;
            (self.say)(&format!(
                "{} load: {} of {}: rqps {ours:.2} s, sysbench {theirs:.2} s",
                self.subject.label,
                pair + 1,
                self.options.load_alternations
            ));
            pairs.push((ours, theirs));
        }
        let target = self.subject.label.clone();
        Ok((!pairs.is_empty()).then_some(Loads { target, rows, pairs }))
    }
}
