//! Replays a trace: each client carries out sessions of the trace, in their order, and a statement
//! begins only after those that it followed.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use rqps_driver::Stop;
use rqps_driver::attempt::{ClientEvent, ClientStop, StatementError, Tally};
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent};
use rqps_driver::recorder::{Recorder, histograms};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::script::values;
use rqps_driver::step::{self, Clients, MakeEvent};
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;
use rqps_model::run::{Outcome, Role};
use rqps_model::sql_workload::ReplayWork;
use rqps_text::reading;
use rqps_text::trace::{self, ReplayOrder, SentStatement, Trace};
use rqps_wire::{Prepared, Reply, Value, WireError};

use super::{folder, shape_of};

/// Nothing of the replay ends for so long, and twice its longest statement more: then a statement no
/// longer waits. Locks were taken in another order than the log tells.
const STALLED: Duration = Duration::from_secs(2);

/// The window of a replay is at least so long, and twice as long as the recording.
const SECONDS_LEAST: f64 = 60.0;
const SECONDS_MOST: f64 = 86_400.0;

/// Differences that are told.
const TOLD: usize = 5;

/// Longest text of a class, characters.
const TEXT: usize = 100;

/// Classes whose answers are asked per event.
const ASKED: usize = 6;

/// Values of a statement that need no memory of their own.
const VALUES: usize = 32;

/// Reads a trace. The error reads after "failed to", as all here.
fn read(path: &Path) -> Result<Trace, String> {
    let fault = |why: String| format!("read the trace {}: {why}", path.display());
    let input = values::open(path).map_err(fault)?;
    Trace::read(input).map_err(|error| fault(error.to_string()))
}

/// Gives the steps that replay traces their clients and seconds, where the workload says nothing.
///
/// # Errors
/// A trace cannot be read or replayed.
pub fn fit(workload: &mut Workload) -> Result<(), String> {
    let folder = folder(workload).unwrap_or_default();
    let Some(shape) = shape_of(workload) else { return Ok(()) };
    for step in &mut shape.step {
        let Some(name) = &step.trace else { continue };
        let path = folder.join(name);
        let trace = read(&path)?;
        let needed = clients(&trace, &path)?.len() as u32;
        step.clients.get_or_insert(needed);
        let slower = step.speed.map_or(1.0, |speed| speed.min(1.0));
        let seconds = (2.0 * trace.seconds() / slower).clamp(SECONDS_LEAST, SECONDS_MOST);
        step.seconds.get_or_insert(seconds.ceil());
        let expected =
            step.speed.map_or_else(|| trace.busy_seconds(), |speed| trace.seconds() / speed);
        step.expected_seconds.get_or_insert((expected * 10.0).ceil() / 10.0);
    }
    Ok(())
}

fn clients(trace: &Trace, path: &Path) -> Result<Vec<Vec<usize>>, String> {
    trace.clients().map_err(|why| format!("replay the trace {}: {why}", path.display()))
}

/// The loop of a step.
pub(super) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<ReplayWork> = task.own()?;
    let replay = Replay::of(&task.work, request.dialect, task.clients);
    let replay = Arc::new(replay.map_err(|why| format!("failed to {why}"))?);
    let connector = Connector::new(request)?.also(task.work.init.clone());
    let (shared, again) = (Arc::clone(&replay), connector.clone());
    let make: MakeEvent<ReplayClient> = Box::new(move |request, client, _| {
        let asked = || shared.asked.clone();
        let own = shared.clients.get(client as usize).cloned().unwrap_or_default();
        Ok(ReplayClient {
            replay: Arc::clone(&shared),
            again: again.clone(),
            client,
            list: if request.asks { asked() } else { own },
            next: 0,
            session: None,
            prepared: HashMap::new(),
            stopped: None,
        })
    });
    let clients = Clients { is_capped: true, ..Clients::new(connector, make) };
    let mut outcome = step::measure(request, &task, clients, control)?;
    replay.tell(&mut outcome, &task);
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// What all clients share.
struct Replay {
    trace: Trace,
    /// What each client carries out.
    clients: Vec<Vec<usize>>,
    /// Reading statements, one of each class.
    asked: Vec<usize>,
    /// What each statement waits for; empty if none does.
    order: Vec<ReplayOrder>,
    /// How many times as fast as recorded.
    speed: Option<f64>,
    begun: OnceLock<Instant>,
    progress: Mutex<Progress>,
    advanced: Condvar,
    /// Of each text.
    class_of: Vec<usize>,
    /// Of each text: whether it could change a row.
    writes: Vec<bool>,
    classes: Vec<Mutex<ClassFigures>>,
    stalled: Duration,
}

/// How far the replay is.
#[derive(Default)]
struct Progress {
    /// By rank, and by the number of the write.
    done: Vec<bool>,
    written: Vec<bool>,
    /// All before these are done.
    until: usize,
    written_until: usize,
    ended: u64,
    /// Statements that no longer waited.
    unordered: u64,
    last: Option<Instant>,
}

/// The executions of a class.
struct ClassFigures {
    /// A name that sorts: `read-01`, `write-02`.
    name: String,
    text: String,
    count: u64,
    rows: u64,
    time: Duration,
    latency: Recorder,
    /// What differs from the trace → how often, and the first session.
    differences: BTreeMap<String, (u64, u32)>,
}

impl Replay {
    fn of(work: &ReplayWork, dialect: Dialect, count: u32) -> Result<Replay, String> {
        let path = &work.trace;
        let trace = read(path)?;
        let fault = |why: String| Err(format!("replay {}: {why}", path.display()));
        if trace.head.dialect != dialect {
            let (said, own) = (trace.head.dialect, dialect);
            return fault(format!("it is of {said:?}, and the target speaks {own:?}"));
        }
        let clients = clients(&trace, path)?;
        if clients.len() > count as usize {
            let needed = clients.len();
            return fault(format!(
                "{needed} of its sessions were there at once, and the step has {count} clients\n\
                 hint: clients = {needed} in [[step]]"
            ));
        }
        let (class_of, texts) = trace.classes();
        let mut classes: Vec<_> = (1..).zip(texts).map(|(at, text)| figures(at, text)).collect();
        classes.push(Mutex::new(ClassFigures { name: "others".to_owned(), ..ClassFigures::new() }));
        let mut asked: Vec<Option<usize>> = vec![None; classes.len() - 1];
        for (place, one) in trace.sent.iter().enumerate() {
            let text = one.text as usize - 1;
            if let Some(known @ None) = asked.get_mut(class_of[text])
                && !reading::may_write(&trace.texts[text])
            {
                *known = Some(place);
            }
        }
        let order = if work.is_free { Vec::new() } else { trace.order() };
        let longest = trace.sent.iter().filter_map(|one| one.ms).fold(0.0, f64::max);
        let progress = Progress {
            done: vec![false; order.len()],
            written: vec![false; order.iter().filter(|one| one.write.is_some()).count()],
            ..Progress::default()
        };
        Ok(Replay {
            clients,
            asked: asked.into_iter().flatten().collect(),
            order,
            speed: work.speed,
            begun: OnceLock::new(),
            progress: Mutex::new(progress),
            advanced: Condvar::new(),
            writes: trace.texts.iter().map(|text| trace::writes(text)).collect(),
            class_of,
            classes,
            stalled: STALLED + Duration::from_secs_f64(2.0 * longest / 1000.0),
            trace,
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("no client panics while it holds this")
    }

    /// Waits for the turn of a statement. Returns how long to wait on, nanoseconds, with what passed.
    fn wait(&self, place: usize) -> u64 {
        let now = Instant::now();
        let begun = *self.begun.get_or_init(|| now);
        if let Some(order) = self.order.get(place) {
            let mut progress = self.progress();
            while !progress.allows(order) {
                let before = progress.ended;
                let waited = self.advanced.wait_timeout(progress, self.stalled);
                let timeout;
                (progress, timeout) = waited.expect("no client panics while it holds this");
                if timeout.timed_out() && progress.ended == before {
                    progress.unordered += 1;
                    break;
                }
            }
        }
        let waited = now.elapsed();
        let pause = self.speed.map_or(Duration::ZERO, |speed| {
            let due = (self.trace.sent[place].at - self.trace.begin()) / 1000.0 / speed;
            Duration::from_secs_f64(due.max(0.0)).saturating_sub(begun.elapsed())
        });
        (waited + pause).as_nanos() as u64
    }

    /// A statement has ended.
    fn ended(&self, place: usize, time: Duration, reply: &Result<Reply, WireError>) {
        let one = &self.trace.sent[place];
        let class = &self.classes[self.class_of[one.text as usize - 1]];
        let mut class = class.lock().expect("no client panics while it holds this");
        class.count += 1;
        class.time += time;
        let (ns, count) = (time.as_nanos() as u64, class.count);
        class.latency.event(ns, ns, count);
        class.rows += reply.as_ref().map_or(0, |reply| reply.rows);
        if let Some(difference) = self.difference(one, reply) {
            class.differences.entry(difference).or_insert((0, one.session)).0 += 1;
        }
        drop(class);
        let mut progress = self.progress();
        progress.ended += 1;
        progress.last = Some(Instant::now());
        if let Some(order) = self.order.get(place) {
            progress.take(order);
            self.advanced.notify_all();
        }
    }

    /// What the trace tells otherwise.
    fn difference(&self, one: &SentStatement, reply: &Result<Reply, WireError>) -> Option<String> {
        let code = reply.as_ref().err().and_then(WireError::code);
        match (one.error.as_deref(), code) {
            (None, Some(code)) => Some(format!("error {code}, which the trace has not")),
            (Some(error), None) => Some(format!("no error {error}, which the trace has")),
            (Some(error), Some(code)) if error != code && error != "error" => {
                Some(format!("error {code}, in the trace {error}"))
            }
            (None, None) => {
                let rows = one.rows.filter(|_| !self.trace.head.hashed)?;
                let found = reply.as_ref().map_or(0, |reply| reply.rows);
                (rows != found).then(|| "other numbers of rows than in the trace".to_owned())
            }
            _ => None,
        }
    }

    /// Adds to the outcome what only a replay knows.
    fn tell(&self, outcome: &mut Outcome, task: &StepRequest<ReplayWork>) {
        let progress = self.progress();
        let all = self.trace.sent.len() as u64;
        if let (Some(begun), Some(last)) = (self.begun.get(), progress.last) {
            outcome.seconds = last.duration_since(*begun).as_secs_f64();
        }
        if progress.ended < all {
            outcome.cut = Some(format!(
                "{} of {all} statements of the trace were replayed within {} s",
                progress.ended, task.seconds
            ));
        }
        if progress.unordered > 0 {
            outcome.notes.push(format!(
                "{} statements did not wait for those before them: these held locks longer than in \
                 the trace",
                progress.unordered
            ));
        }
        let mut told = Vec::new();
        for class in &self.classes {
            let class = class.lock().expect("all clients have ended");
            for (difference, (count, session)) in &class.differences {
                let name = &class.name;
                told.push(format!(
                    "{count} executions of {name} gave {difference}; the first in session {session}"
                ));
            }
            if class.count == 0 {
                continue;
            }
            if !class.text.is_empty() {
                outcome.facts.insert(class.name.clone(), class.text.clone());
            }
            let role = Role {
                workers: task.clients,
                operations: class.count,
                rows: class.rows,
                latency: histograms(&[&class.latency]).0,
                seconds: (class.name != "others").then(|| class.time.as_secs_f64()),
                ..Role::default()
            };
            outcome.roles.insert(class.name.clone(), role);
        }
        let more = told.len().saturating_sub(TOLD);
        outcome.notes.extend(told.into_iter().take(TOLD));
        outcome.notes.extend((more > 0).then(|| format!("{more} more differences from the trace")));
        let order = if self.order.is_empty() { "free" } else { "recorded" };
        let clients = self.clients.len();
        outcome.facts.insert(
            "replay".to_owned(),
            format!("{all} statements by {clients} clients, order {order}"),
        );
    }
}

fn figures(number: usize, text: &str) -> Mutex<ClassFigures> {
    let kind = if trace::writes(text) { "write" } else { "read" };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match words.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    };
    Mutex::new(ClassFigures { name: format!("{kind}-{number:02}"), text, ..ClassFigures::new() })
}

impl ClassFigures {
    fn new() -> ClassFigures {
        ClassFigures {
            name: String::new(),
            text: String::new(),
            count: 0,
            rows: 0,
            time: Duration::ZERO,
            latency: Recorder::new(false),
            differences: BTreeMap::new(),
        }
    }
}

impl Progress {
    fn allows(&self, order: &ReplayOrder) -> bool {
        self.until >= order.after && order.write.is_none_or(|write| self.written_until >= write)
    }

    fn take(&mut self, order: &ReplayOrder) {
        fn advance(done: &mut [bool], until: &mut usize, place: usize) {
            done[place] = true;
            while done.get(*until) == Some(&true) {
                *until += 1;
            }
        }
        advance(&mut self.done, &mut self.until, order.rank);
        if let Some(write) = order.write {
            advance(&mut self.written, &mut self.written_until, write);
        }
    }
}

/// A client: one session of the trace after the other.
struct ReplayClient {
    replay: Arc<Replay>,
    again: Connector,
    client: u32,
    /// Its statements.
    list: Vec<usize>,
    next: usize,
    session: Option<u32>,
    /// By the number of the text, for this session.
    prepared: HashMap<u32, Prepared>,
    stopped: Option<ClientStop>,
}

impl ReplayClient {
    /// Carries out the statement at this place of the trace.
    fn send(&mut self, place: usize, session: &mut Connection) -> Result<Reply, WireError> {
        let one = &self.replay.trace.sent[place];
        let text = &self.replay.trace.texts[one.text as usize - 1];
        if one.values.is_empty() && !one.prepared {
            return session.simple(text);
        }
        let (mut few, many): ([Value<'_>; VALUES], Vec<Value<'_>>);
        let values = if one.values.len() <= VALUES {
            few = [Value::Null; VALUES];
            for (place, value) in few.iter_mut().zip(&one.values) {
                *place = bound(value);
            }
            &few[..one.values.len()]
        } else {
            many = one.values.iter().map(bound).collect();
            &many[..]
        };
        if !one.prepared && matches!(session, Connection::Postgres(_)) {
            return session.parse_and_execute(text, values, None);
        }
        let prepared = match self.prepared.get(&one.text) {
            Some(prepared) => *prepared,
            None => {
                let prepared = session.prepare_text(text, values.len())?;
                self.prepared.insert(one.text, prepared);
                prepared
            }
        };
        session.execute_text(prepared, values, None)
    }

    /// Has the session of the statement: each session of the trace is one of the server.
    fn enter(&mut self, place: usize, session: &mut Connection) -> Result<(), StatementError> {
        let own = Some(self.replay.trace.sent[place].session);
        if self.session != own && self.session.is_some() {
            let opened = self.again.open(self.client).map_err(|why| StatementError {
                kind: "the next session of the trace".to_owned(),
                error: WireError::Protocol(why),
            });
            *session = opened?;
            self.prepared.clear();
        }
        self.session = own;
        Ok(())
    }
}

fn bound(value: &Option<String>) -> Value<'_> {
    value.as_ref().map_or(Value::Null, |text| Value::Text(text.as_bytes()))
}

impl ClientEvent for ReplayClient {
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        let asked = session.is_asked();
        for _ in 0..if asked { ASKED } else { 1 } {
            let Some(place) = self.list.get(self.next).copied() else {
                self.stopped = Some(ClientStop::Together);
                return Ok(());
            };
            self.next += 1;
            if !asked {
                self.enter(place, session)?;
            }
            let begun = Instant::now();
            let reply = self.send(place, session);
            if !asked {
                self.replay.ended(place, begun.elapsed(), &reply);
            }
            match reply {
                Ok(reply) => {
                    let no_ops = tally.no_ops;
                    tally.count(reply);
                    let text = self.replay.trace.sent[place].text as usize - 1;
                    if !self.replay.writes[text] {
                        // The frame of a transaction meets no row.
                        tally.no_ops = no_ops;
                    }
                }
                Err(error) if asked || error.code().is_none() => {
                    let kind = format!("statement {} of the trace", place + 1);
                    return Err(StatementError { kind, error });
                }
                // The trace may have it, too: differences are told.
                Err(_) => {
                    tally.statements += 1;
                    tally.others += 1;
                }
            }
        }
        Ok(())
    }

    fn wait_ns(&mut self) -> u64 {
        self.list.get(self.next).map_or(0, |place| self.replay.wait(*place))
    }

    fn stopped(&self) -> Option<ClientStop> {
        self.stopped
    }
}
