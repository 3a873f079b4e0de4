//! A program of the user's, and what it is asked (docs/clients.md). Nothing that it says is believed
//! that cannot be.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use rqps_driver::Stop;
use rqps_driver::request::DriverRequest;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{LineChild, LineFault, shown};
use rqps_model::client::{ClientDeclared, ClientStep, ClientWork};
use rqps_model::endpoint::{Address, Endpoint};
use rqps_wire::dsn::encoded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// A load may be silent for so many times the patience of another answer.
const LOAD_FACTOR: u32 = 60;
/// A whole load may take so many times that patience.
const LOAD_WHOLE: u32 = 24 * 60;
/// Most codes of errors of a client.
pub(super) const CODES_MOST: usize = 100;
/// Nanoseconds by which the ends of two clocks' ticks may differ.
const TICK_NS: f64 = 2_000.0;
/// Seeds are smaller, so that every language has a number for them.
const SEEDS: u64 = 1 << 31;
/// A run may be so much shorter than it was asked to be: clocks of languages are coarse.
const WORKED_LEAST: f64 = 0.9;
/// A latency in a histogram may be so much larger than the true one: helpers keep eight bits.
const ROUNDED: f64 = 1.01;

/// What the program is asked.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Question<'a> {
    Hello(u32),
    Open {
        target: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<&'a Path>,
        client: u32,
        clients: u32,
        seed: u64,
        rows: u64,
        options: &'a BTreeMap<String, String>,
    },
    Load(u64),
    Prepare(&'a str),
    Run(u64),
}

impl Question<'_> {
    fn word(&self) -> &'static str {
        match self {
            Question::Hello(_) => "hello",
            Question::Open { .. } => "open",
            Question::Load(_) => "load",
            Question::Prepare(_) => "prepare",
            Question::Run(_) => "run",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    hello: u32,
    steps: Vec<ClientStep>,
    #[serde(default)]
    load: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Opened {
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Loaded {
    Loading(u64),
    Rows(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// An answer to any question.
#[derive(Deserialize)]
struct Failed {
    error: String,
}

/// What a run of events came to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ran {
    /// Events.
    pub(super) n: u64,
    /// Microseconds from the start of the first to the end of the last.
    pub(super) us: f64,
    /// Latency in nanoseconds → events.
    pub(super) hist: BTreeMap<u64, u64>,
    /// Code → events that failed.
    #[serde(default)]
    pub(super) errors: BTreeMap<String, u64>,
    /// Nanoseconds from the question to the answer.
    #[serde(skip)]
    pub(super) wall_ns: u64,
}

impl Ran {
    /// Refuses an answer that cannot be true; it was asked for `asked_us`.
    fn check(&self, asked_us: u64) -> Result<(), Impossible> {
        let Ran { n, us, hist, errors, wall_ns } = self;
        let (n, us, ns) = (*n, *us, us * 1e3);
        if !(ns > 0.0 && ns.is_finite()) {
            return Err(Impossible::NoTime { us });
        }
        if ns > *wall_ns as f64 + TICK_NS {
            return Err(Impossible::Longer { us, wall_us: wall_ns / 1_000 });
        }
        if us < asked_us as f64 * WORKED_LEAST {
            return Err(Impossible::Shorter { us, asked_us });
        }
        if errors.len() > CODES_MOST {
            return Err(Impossible::Codes);
        }
        let events = errors.values().fold(n, |sum, count| sum.saturating_add(*count));
        if events as f64 > ns {
            return Err(Impossible::Dense { events, us });
        }
        if events == 0 {
            return Err(Impossible::Idle);
        }
        let counted = hist.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if counted != n {
            return Err(Impossible::Histogram { counted, n });
        }
        let sum: f64 = hist.iter().map(|(latency, count)| *latency as f64 * *count as f64).sum();
        if sum > ns * ROUNDED + TICK_NS {
            return Err(Impossible::Overlapping { sum_us: sum / 1e3, us });
        }
        Ok(())
    }
}

/// The reason why an answer to `run` cannot be true.
#[derive(Debug, Error)]
pub(super) enum Impossible {
    #[error("its events took {us} us; a run takes time")]
    NoTime { us: f64 },
    #[error(
        "its events took {us} us, but only {wall_us} us passed between question and answer; take \
         both ends from one monotonic clock"
    )]
    Longer { us: f64, wall_us: u64 },
    #[error("its events took {us} us; a run begins events until its {asked_us} us are over")]
    Shorter { us: f64, asked_us: u64 },
    #[error("it has more than {CODES_MOST} codes of errors")]
    Codes,
    #[error("{events} events in {us} us are more than one per nanosecond")]
    Dense { events: u64, us: f64 },
    #[error("it did no event; a run does one at least")]
    Idle,
    #[error("its histogram has {counted} events, and n is {n}")]
    Histogram { counted: u64, n: u64 },
    #[error(
        "its latencies add up to {sum_us:.0} us, and its events took {us} us; a client does one \
         event after the other"
    )]
    Overlapping { sum_us: f64, us: f64 },
}

/// A program that cannot be used; a complete message.
#[derive(Debug, Error)]
#[error("failed to run {name}: {fault}")]
pub(super) struct ProgramError {
    name: String,
    fault: Fault,
}

impl From<ProgramError> for String {
    fn from(error: ProgramError) -> String {
        error.to_string()
    }
}

impl From<ProgramError> for Stop {
    fn from(error: ProgramError) -> Stop {
        Stop::Fault(error.to_string())
    }
}

/// What is wrong with it.
#[derive(Debug, Error)]
pub(super) enum Fault {
    #[error(
        "it is not executable\nhint: chmod +x {0}, and begin a script with a line such as \
         #!/usr/bin/env python3"
    )]
    NotExecutable(String),
    #[error("{0}\nhint: its first line names its interpreter")]
    Start(io::Error),
    #[error("it cannot be asked: {0}")]
    Question(serde_json::Error),
    #[error("before `{asked}`, it {fault}")]
    Unasked { asked: &'static str, fault: LineFault },
    #[error("asked to `{asked}`, it {fault}{}", way_out(fault))]
    Unanswered { asked: &'static str, fault: LineFault },
    /// The error quotes the answer.
    #[error(
        "it answered `{asked}` with `{}`: {}\nhint: docs/clients.md has every answer",
        shown(answer), shown(&error.to_string())
    )]
    Answer { asked: &'static str, answer: String, error: serde_json::Error },
    #[error("it answered `{asked}` with an error: {}", shown(words))]
    Refused { asked: &'static str, words: String },
    #[error("its load told of no more rows within {} s{LONGER}", .0.as_secs_f64())]
    Idle(Duration),
    #[error("its load was not done within {} s{LONGER}", .0.as_secs_f64())]
    Slow(Duration),
    #[error("it speaks version {0} of the protocol, and this rqps version {PROTOCOL}")]
    Version(u32),
    #[error("it answered `run` ({us} us) with what cannot be true: {what}")]
    Run { us: u64, what: Impossible },
    #[error("it has more than {CODES_MOST} codes of errors")]
    Codes,
}

impl Fault {
    fn is_silence(&self) -> bool {
        matches!(self, Fault::Unanswered { fault: LineFault::Silent(_), .. })
    }
}

const LONGER: &str = "\nhint: --set timeout=SECONDS gives it longer";

/// The way out, behind the fault.
fn way_out(fault: &LineFault) -> &'static str {
    match fault {
        LineFault::Silent(_) => LONGER,
        LineFault::Ended(_) => "\nhint: its standard error is in the log of the driver",
        _ => "",
    }
}

/// The program of one client.
pub(super) struct Program {
    child: LineChild,
    /// `client 0 of redis_client.py`.
    name: String,
    patience: Duration,
}

impl Program {
    /// Starts it.
    pub(super) fn start(path: &Path, name: &str, seconds: f64) -> Result<Program, ProgramError> {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name} of {file}");
        let mode = fs::metadata(path).map(|file| file.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o111 == 0) {
            return Err(ProgramError { name, fault: Fault::NotExecutable(file.into_owned()) });
        }
        match LineChild::start(child::command(path, ChildTask::Library)) {
            Ok(child) => Ok(Program { child, name, patience: Duration::from_secs_f64(seconds) }),
            Err(error) => Err(ProgramError { name, fault: Fault::Start(error) }),
        }
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// An error of this program.
    pub(super) fn error(&self, fault: Fault) -> ProgramError {
        ProgramError { name: self.name.clone(), fault }
    }

    /// Returns the word of the question, for errors: its values may hold a password.
    fn say(&mut self, question: &Question<'_>) -> Result<&'static str, ProgramError> {
        let line = serde_json::to_string(question);
        let line = line.map_err(|error| self.error(Fault::Question(error)))?;
        let asked = question.word();
        let said = self.child.say(&line, self.patience);
        said.map_err(|fault| self.error(Fault::Unasked { asked, fault }))?;
        Ok(asked)
    }

    fn hear<A: DeserializeOwned>(
        &mut self,
        asked: &'static str,
        patience: Duration,
    ) -> Result<A, ProgramError> {
        let heard = self.child.hear(patience);
        let answer = heard.map_err(|fault| self.error(Fault::Unanswered { asked, fault }))?;
        serde_json::from_str(&answer).map_err(|error| {
            self.error(match serde_json::from_str(&answer) {
                Ok(Failed { error }) => Fault::Refused { asked, words: error },
                Err(_) => Fault::Answer { asked, answer, error },
            })
        })
    }

    fn ask<A: DeserializeOwned>(
        &mut self,
        question: &Question<'_>,
        patience: Duration,
    ) -> Result<A, ProgramError> {
        let asked = self.say(question)?;
        self.hear(asked, patience)
    }

    /// Its declarations.
    pub(super) fn hello(&mut self) -> Result<ClientDeclared, ProgramError> {
        let said: Hello = self.ask(&Question::Hello(PROTOCOL), self.patience)?;
        if said.hello != PROTOCOL {
            return Err(self.error(Fault::Version(said.hello)));
        }
        Ok(ClientDeclared { steps: said.steps, load: said.load })
    }

    /// Has it connect as client `client` of `clients`. Returns the version of what it talks to.
    pub(super) fn open(
        &mut self,
        request: &DriverRequest,
        work: &ClientWork,
        client: u32,
        clients: u32,
    ) -> Result<Option<String>, ProgramError> {
        let target = target(request);
        let folder = match &request.endpoint {
            Endpoint::File { path, .. } if path.is_dir() => Some(path.as_path()),
            _ => None,
        };
        let question = Question::Open {
            target: &target,
            folder,
            client,
            clients,
            seed: request.seed % SEEDS,
            rows: request.rows,
            options: &work.options,
        };
        let said: Opened = self.ask(&question, self.patience)?;
        Ok(said.version.map(|version| shown(&version)))
    }

    /// Has it load. `tell` hears the rows so far. Returns all rows.
    pub(super) fn load(
        &mut self,
        rows: u64,
        tell: &mut dyn FnMut(u64) -> Result<(), Stop>,
    ) -> Result<u64, Stop> {
        let asked = self.say(&Question::Load(rows))?;
        let silence = self.patience * LOAD_FACTOR;
        let latest = Instant::now() + self.patience * LOAD_WHOLE;
        let (mut known, mut until) = (None, Instant::now() + silence);
        loop {
            // Only more rows are news: a line that tells of none gives it no more time.
            let left = until.min(latest).saturating_duration_since(Instant::now());
            if left.is_zero() {
                let whole = self.patience * LOAD_WHOLE;
                let fault = if until < latest { Fault::Idle(silence) } else { Fault::Slow(whole) };
                return Err(self.error(fault).into());
            }
            let heard = match self.hear(asked, left) {
                Err(ProgramError { fault, .. }) if fault.is_silence() => continue,
                heard => heard?,
            };
            match heard {
                Loaded::Loading(rows) if known.is_none_or(|known| rows > known) => {
                    known = Some(rows);
                    until = Instant::now() + silence;
                    tell(rows)?;
                }
                Loaded::Loading(_) => {}
                Loaded::Rows(rows) => return Ok(rows),
            }
        }
    }

    /// Has it prepare a step.
    pub(super) fn prepare(&mut self, step: &str) -> Result<(), ProgramError> {
        self.ask(&Question::Prepare(step), self.patience).map(|Nothing {}| ())
    }

    /// Has it do events for so many microseconds, one at least. `now` is the clock.
    pub(super) fn run(&mut self, us: u64, now: &dyn Fn() -> u64) -> Result<Ran, ProgramError> {
        let begun = now();
        let mut ran: Ran =
            self.ask(&Question::Run(us), self.patience + Duration::from_micros(us))?;
        ran.wall_ns = now().saturating_sub(begun);
        match ran.check(us) {
            Ok(()) => Ok(ran),
            Err(what) => Err(self.error(Fault::Run { us, what })),
        }
    }
}

/// The text that names the target to the program: its own, or the address of a server that rqps
/// runs or knows.
fn target(request: &DriverRequest) -> String {
    if let Some(text) = &request.target {
        return text.clone();
    }
    let login = &request.login;
    let scheme = if request.dialect == rqps_model::dialect::Dialect::Postgres {
        "postgresql"
    } else {
        "mysql"
    };
    let password = match login.password.as_str() {
        "" => String::new(),
        password => format!(":{}", encoded(password)),
    };
    let user = format!("{}{password}@", encoded(&login.user));
    let database = encoded(&login.database);
    match &request.endpoint {
        Endpoint::Server(Address::Tcp { host, port, .. }) => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            format!("{scheme}://{user}{host}:{port}/{database}")
        }
        Endpoint::Server(Address::Unix(path)) if scheme == "mysql" => {
            format!(
                "{scheme}://{user}localhost/{database}?socket={}",
                encoded(&path.to_string_lossy())
            )
        }
        Endpoint::Server(Address::Unix(path)) => {
            // libpq takes the folder; the port is the end of the file's name.
            let folder = path.parent().unwrap_or(path).to_string_lossy();
            let port = path.extension().unwrap_or_default().to_string_lossy();
            format!("{scheme}://{user}/{database}?host={}&port={port}", encoded(&folder))
        }
        Endpoint::File { path, .. } => format!("sqlite:{}", path.display()),
        Endpoint::Fake { .. } => "fake".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 ms passed.
    fn checked(text: &str, asked_us: u64) -> Result<(), String> {
        let ran: Ran = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let ran = Ran { wall_ns: 10_000_000, ..ran };
        ran.check(asked_us).map_err(|what| what.to_string())
    }

    /// A load that says `fault` without end, by a program with this patience.
    fn loaded(fault: &str, patience_ms: u64) -> (String, u64) {
        use rqps_driver::request::RequestBody;
        use rqps_model::benchmark::LoadBody;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rqps/tests/data/client/fake.sh");
        let work = ClientWork {
            program: path.clone(),
            options: [("fault".to_owned(), fault.to_owned())].into(),
            timeout_seconds: 60.0,
            step: String::new(),
            only_reads: true,
        };
        let mut program = Program::start(&path, "the load", work.timeout_seconds).unwrap();
        program.hello().unwrap();
        let load = RequestBody::LoadOwn(LoadBody::Client(work.clone()));
        program.open(&DriverRequest::fake(load), &work, 0, 1).unwrap();
        program.patience = Duration::from_millis(patience_ms);
        let mut told = 0;
        let ended = program.load(10, &mut |_| {
            told += 1;
            Ok(())
        });
        let Err(Stop::Fault(fault)) = ended else { panic!("{fault}: it ended well") };
        (fault, told)
    }

    #[test]
    fn a_load_that_tells_of_rows_without_end_is_ended() {
        let (fault, told) = loaded("same", 5);
        assert!(fault.contains("told of no more rows within 0.3 s\nhint: --set"), "{fault}");
        assert_eq!(told, 1);
        // Four seconds; nothing that it says makes them more. A busy host may hold it up before.
        let (fault, told) = loaded("more", 3);
        let is_held_up = fault.contains("told of no more rows within 0.18 s");
        assert!(is_held_up || fault.contains("its load was not done within 4.32 s"), "{fault}");
        assert!(told > 1, "{told}");
    }

    #[test]
    fn answers_that_cannot_be_are_refused() {
        let check = |text: &str, words: &str| {
            let said = checked(text, 1).expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        };
        checked(r#"{"n":2,"us":9999.5,"hist":{"5000000":1,"4000000":1}}"#, 10_000).unwrap();
        checked(r#"{"n":0,"us":1,"hist":{},"errors":{"busy":3}}"#, 1).unwrap();
        let early = checked(r#"{"n":1,"us":5,"hist":{"1":1}}"#, 10).unwrap_err();
        assert!(early.contains("until its 10 us are over"), "{early}");
        check(r#"{"n":1,"us":20000,"hist":{"1":1}}"#, "only 10000 us passed");
        check(r#"{"n":1,"us":0,"hist":{"1":1}}"#, "a run takes time");
        check(r#"{"n":1,"us":-5,"hist":{"1":1}}"#, "a run takes time");
        check(r#"{"n":-1,"us":5,"hist":{}}"#, "invalid value: integer `-1`, expected u64");
        check(r#"{"n":1.5,"us":5,"hist":{}}"#, "expected u64");
        check(r#"{"n":NaN,"us":5,"hist":{}}"#, "expected");
        check(r#"{"n":1,"us":1e999,"hist":{}}"#, "number out of range");
        check(r#"{"n":0,"us":5,"hist":{}}"#, "it did no event");
        check(r#"{"n":6000,"us":5,"hist":{"0":6000}}"#, "more than one per nanosecond");
        let many = r#"{"n":1,"us":5,"hist":{"1":1},"errors":{"busy":18446744073709551615}}"#;
        check(many, "more than one per nanosecond");
        check(r#"{"n":5,"us":5,"hist":{"1":4}}"#, "its histogram has 4 events, and n is 5");
        check(r#"{"n":2,"us":5,"hist":{"4000":2,"0":0}}"#, "its latencies add up to 8 us");
        check(r#"{"n":2,"us":5}"#, "missing field `hist`");
        check(r#"{"n":2,"us":5,"hist":{},"hits":1}"#, "unknown field `hits`");
    }
}
