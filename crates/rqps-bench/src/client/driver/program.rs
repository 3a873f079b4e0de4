//! A program of the user's, and what it is asked (docs/clients.md). Nothing that it says is believed
//! that cannot be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use rqps_driver::Stop;
use rqps_driver::request::DriverRequest;
use rqps_host::child::{self, ChildTask};
use rqps_host::line_child::{LineChild, LineFault, shown};
use rqps_model::client::{ClientDeclared, ClientStep, ClientWork};
use rqps_model::endpoint::{Address, Endpoint};

/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// A load may be silent for so many times longer than another answer may take.
const LOAD_FACTOR: u32 = 60;
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
}

impl Ran {
    /// Refuses what cannot be, where `asked_us` were asked for, and `wall_ns` passed between question
    /// and answer.
    fn check(&self, asked_us: u64, wall_ns: u64) -> Result<(), String> {
        let Ran { n, us, hist, errors } = self;
        let ns = us * 1e3;
        if !(ns > 0.0 && ns.is_finite()) {
            return Err(format!("its events took {us} us; a run takes time"));
        }
        if ns > wall_ns as f64 + TICK_NS {
            return Err(format!(
                "its events took {us} us, but only {} us passed between question and answer; \
                 take both ends from one monotonic clock",
                wall_ns / 1_000
            ));
        }
        if *us < asked_us as f64 * WORKED_LEAST {
            return Err(format!(
                "its events took {us} us; a run begins events until its {asked_us} us are over"
            ));
        }
        let all = errors.values().fold(*n, |sum, count| sum.saturating_add(*count));
        if errors.len() > CODES_MOST {
            return Err(format!("it has more than {CODES_MOST} codes of errors"));
        }
        if all as f64 > ns {
            return Err(format!("{all} events in {us} us are more than one per nanosecond"));
        }
        if *n == 0 && errors.is_empty() {
            return Err("it did no event; a run does one at least".to_owned());
        }
        let counted = hist.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if counted != *n {
            return Err(format!("its histogram has {counted} events, and n is {n}"));
        }
        let sum: f64 = hist.iter().map(|(latency, count)| *latency as f64 * *count as f64).sum();
        if sum > ns * ROUNDED + TICK_NS {
            return Err(format!(
                "its latencies add up to {:.0} us, and its events took {us} us; a client does one \
                 event after the other",
                sum / 1e3
            ));
        }
        Ok(())
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
    /// Starts it. Errors are complete messages, here and below.
    pub(super) fn start(path: &Path, name: &str, seconds: f64) -> Result<Program, String> {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name} of {file}");
        let mode = fs::metadata(path).map(|file| file.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o111 == 0) {
            return Err(format!(
                "failed to run {name}: it is not executable\nhint: chmod +x {file}, and begin a \
                 script with a line such as #!/usr/bin/env python3"
            ));
        }
        let started = LineChild::start(child::command(path, ChildTask::Library));
        let child = started.map_err(|error| {
            format!("failed to run {name}: {error}\nhint: its first line names its interpreter")
        })?;
        Ok(Program { child, name, patience: Duration::from_secs_f64(seconds) })
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// An error of this program.
    pub(super) fn fault(&self, what: &str) -> String {
        format!("failed to run {}: {what}", self.name)
    }

    /// Returns the word of the question, for errors: its values may hold a password.
    fn say(&mut self, question: &Question<'_>) -> Result<&'static str, String> {
        let line =
            serde_json::to_string(question).map_err(|error| self.fault(&error.to_string()))?;
        let asked = question.word();
        let said = self.child.say(&line, self.patience);
        said.map_err(|fault| self.fault(&format!("before `{asked}`, it {fault}")))?;
        Ok(asked)
    }

    fn hear<A: DeserializeOwned>(&mut self, asked: &str, patience: Duration) -> Result<A, String> {
        let line = self.child.hear(patience).map_err(|fault| {
            let way = match &fault {
                LineFault::Silent(_) => "\nhint: --set timeout=SECONDS gives it longer",
                LineFault::Ended(_) => "\nhint: its standard error is in the log of the driver",
                _ => "",
            };
            self.fault(&format!("asked to `{asked}`, it {fault}{way}"))
        })?;
        let wrong = |error: serde_json::Error| {
            self.fault(&format!(
                "it answered `{asked}` with `{}`: {}\nhint: docs/clients.md has every answer",
                shown(&line),
                // It quotes the answer.
                shown(&error.to_string())
            ))
        };
        let value: Value = serde_json::from_str(&line).map_err(wrong)?;
        if let Some(error) = value.get("error") {
            let said = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(
                self.fault(&format!("it answered `{asked}` with an error: {}", shown(&said)))
            );
        }
        serde_json::from_value(value).map_err(wrong)
    }

    fn ask<A: DeserializeOwned>(
        &mut self,
        question: &Question<'_>,
        patience: Duration,
    ) -> Result<A, String> {
        let asked = self.say(question)?;
        self.hear(asked, patience)
    }

    /// Its declarations.
    pub(super) fn hello(&mut self) -> Result<ClientDeclared, String> {
        let said: Hello = self.ask(&Question::Hello(PROTOCOL), self.patience)?;
        if said.hello != PROTOCOL {
            let theirs = said.hello;
            return Err(self.fault(&format!(
                "it speaks version {theirs} of the protocol, and this rqps version {PROTOCOL}"
            )));
        }
        Ok(ClientDeclared { steps: said.steps, load: said.load })
    }

    /// Has it connect as client `client` of `clients`. Returns the version of what it talks to.
    pub(super) fn open(
        &mut self,
        request: &DriverRequest,
        work: &ClientWork,
        (client, clients): (u32, u32),
    ) -> Result<Option<String>, String> {
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
        loop {
            match self.hear(asked, self.patience * LOAD_FACTOR)? {
                Loaded::Loading(rows) => tell(rows)?,
                Loaded::Rows(rows) => return Ok(rows),
            }
        }
    }

    /// Has it prepare a step.
    pub(super) fn prepare(&mut self, step: &str) -> Result<(), String> {
        self.ask(&Question::Prepare(step), self.patience).map(|Nothing {}| ())
    }

    /// Has it do events for so many microseconds, one at least. `now` is the clock.
    pub(super) fn run(&mut self, us: u64, now: &dyn Fn() -> u64) -> Result<(Ran, u64), String> {
        let begun = now();
        let ran: Ran = self.ask(&Question::Run(us), self.patience + Duration::from_micros(us))?;
        let wall_ns = now().saturating_sub(begun);
        let checked = ran.check(us, wall_ns);
        checked.map_err(|what| self.fault(&format!("its answer to run {us} cannot be: {what}")))?;
        Ok((ran, wall_ns))
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

/// A part of an address.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one =
        |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(text: &str) -> Result<Ran, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn answers_that_cannot_be_are_refused() {
        let check = |text: &str, words: &str| {
            // 10 ms passed.
            let said = ran(text).and_then(|ran| ran.check(1, 10_000_000)).expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        };
        ran(r#"{"n":2,"us":9999.5,"hist":{"5000000":1,"4000000":1}}"#)
            .and_then(|ran| ran.check(10_000, 10_000_000))
            .unwrap();
        ran(r#"{"n":0,"us":1,"hist":{},"errors":{"busy":3}}"#)
            .and_then(|ran| ran.check(1, 10_000_000))
            .unwrap();
        let early = ran(r#"{"n":1,"us":5,"hist":{"1":1}}"#).unwrap();
        assert!(early.check(10, 10_000_000).unwrap_err().contains("until its 10 us are over"));
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
