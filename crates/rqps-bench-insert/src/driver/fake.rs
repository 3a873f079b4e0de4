//! Runs a step on the fake DBMS in one thread: the worker whose clock is furthest behind goes next,
//! so that neither threads nor the host affect the result.

use std::io::Write;
use std::sync::Arc;

use super::prepare::{self, Maker, Post, Worker};
use super::turns::Pair;
use crate::driver::meter::{RoleKind, RoleMeter, WorkerCpu, WorkerRecorder};
use crate::driver::outcome::{self, Ended, WindowEnd};
use crate::driver::turns::{Side, WriterTurn};
use rqps_driver::Stop;
use rqps_driver::clock::{Clock, SECOND};
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::recorder::SeriesOf;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_model::insert::InsertWork;
use rqps_model::run::CpuTime;

/// CPU time of the client per fake statement, microseconds.
const CPU_PER_STATEMENT_US: f64 = 5.0;

/// One worker and its state.
struct Member {
    post: Post,
    worker: Worker,
    clock: Clock,
    over: bool,
    blocked: bool,
    /// A batch taken before its time: intended, ready.
    pending: Option<(u64, u64)>,
}

/// Measures with fake workers.
pub(super) fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let first = request.number_of(0);
    let posts = prepare::posts(task, first);
    let recorders = prepare::recorders(&task.work, &posts);
    let writers = 1 + u32::from(task.work.writes.deletes.is_some());
    let pair = |client| Pair::new(prepare::turns(request, &task.work, client, 0), writers);
    let pairs: Vec<Pair> = (first..first + task.clients).map(pair).collect();
    let maker = Maker { request, task, connector, epoch: 0, gate: None };
    let mut members = members(&maker, posts, &recorders, &pairs)?;
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    // The fake clock begins at 0.
    control.send(&DriverEvent::WindowStart { at_ns: 0 })?;
    let mut meter = RoleMeter::new(&recorders, outcome::main_role(&task.work), 0)
        .for_share_of(request, task.clients);
    let mut series = SeriesOf::default();
    let limit = task.work.limit_seconds.map_or(u64::MAX, |seconds| (seconds * SECOND) as u64);
    let mut over = false;
    while let Some(next) = earliest(&members) {
        let cut = (u64::from(meter.seconds()) + 1) * SECOND as u64;
        over = members[next].clock.now() >= limit && cut > limit;
        if over {
            break;
        }
        if members[next].clock.now() >= cut {
            let interval = meter.interval(cut);
            series.add(&interval);
            control.send(&DriverEvent::Interval(interval))?;
            continue;
        }
        step(request, task, &mut members, next, &pairs)?;
    }
    let writing = members.iter().filter(|member| member.post.role != RoleKind::Query);
    let last = writing.map(|member| member.clock.now()).max().unwrap_or(1);
    let end = if over { limit } else { last };
    let interval = meter.interval(end);
    series.add(&interval);
    control.send(&DriverEvent::Interval(interval))?;
    let end = WindowEnd { window_ns: end, limited: over }.of_all_hosts(request, task, control)?;
    let ended = |member: Member| ended(member, end.window_ns);
    let ended: Vec<Ended> = members.into_iter().map(ended).collect();
    let mut outcome = outcome::outcome((request, task), &recorders, &ended, end.window_ns);
    if !request.is_shared(task.clients) {
        outcome.series = series.into_columns();
    }
    let statements = (outcome.reads + outcome.writes) as f64;
    outcome.client_cpu = CpuTime { user_us: statements * CPU_PER_STATEMENT_US, system_us: 0.0 };
    outcome::speak_for_all(&mut outcome, (request, task), end.limited, control)?;
    outcome.notes.push("fake: latencies and client CPU are scripted".to_owned());
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

fn members(
    maker: &Maker<'_>,
    posts: Vec<Post>,
    recorders: &[Arc<WorkerRecorder>],
    pairs: &[Pair],
) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for (post, recorder) in posts.into_iter().zip(recorders) {
        let session = maker.open(post)?;
        let Connection::Fake(fake) = &session else {
            return Err("failed to fake a session that is not fake".to_owned());
        };
        let clock = fake.clock();
        let pair = &pairs[maker.own(post.client)];
        let worker = maker.worker(post, session, clock.clone(), Arc::clone(recorder), pair)?;
        members.push(Member { post, worker, clock, over: false, blocked: false, pending: None });
    }
    Ok(members)
}

/// The worker that goes next.
fn earliest(members: &[Member]) -> Option<usize> {
    let able = |member: &Member| !member.over && !member.blocked;
    let all = members.iter().enumerate().filter(|(_, member)| able(member));
    all.min_by_key(|(index, member)| (member.clock.now(), *index)).map(|(index, _)| index)
}

/// One statement of one worker.
fn step(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    members: &mut [Member],
    index: usize,
    pairs: &[Pair],
) -> Result<(), String> {
    let member = &mut members[index];
    let client = member.post.client;
    let pair = &pairs[(client - request.number_of(0)) as usize];
    let now = member.clock.now();
    match &mut member.worker {
        Worker::Querier(querier) => {
            if pair.is_over() {
                member.over = true;
            } else {
                querier.query()?;
            }
        }
        Worker::Writer(writer, _) if member.pending.is_some() => {
            if let Some((intended, ready)) = member.pending.take() {
                writer.write(intended, ready)?;
            }
        }
        Worker::Writer(writer, side) => match pair.look(*side, now) {
            WriterTurn::Go { intended, ready, .. } => {
                // Others go first while this one waits.
                member.clock.wait_until(ready);
                member.pending = Some((intended, ready));
            }
            WriterTurn::Resync => {
                writer.resync()?;
                pair.resynced(member.clock.now());
            }
            WriterTurn::Blocked => {
                member.blocked = true;
                return Ok(());
            }
            WriterTurn::Over => {
                let pacer = prepare::pacer(request, &task.work, client, 0);
                member.clock.wait_until(pacer.end(prepare::batches(&task.work)));
                if *side == Side::Insert {
                    let statements = prepare::index_statements(&task.work, client + 1, None);
                    writer.make_indexes(&statements)?;
                }
                pair.done();
                member.over = true;
            }
        },
    }
    // A worker that waited for this one may look again.
    for other in members.iter_mut().filter(|other| other.post.client == client) {
        other.blocked = false;
    }
    Ok(())
}

fn ended(member: Member, end: u64) -> Ended {
    let statements = member.worker_operations();
    let used_ns = (statements as f64 * CPU_PER_STATEMENT_US * 1e3) as u64;
    let share = used_ns as f64 / end.max(1) as f64;
    outcome::ended(member.worker, WorkerCpu { used_ns, share: share.min(1.0) })
}

impl Member {
    fn worker_operations(&self) -> u64 {
        match &self.worker {
            Worker::Writer(writer, _) => writer.recorder.operations(),
            Worker::Querier(querier) => querier.recorder.operations(),
        }
    }
}
