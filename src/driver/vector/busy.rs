//! A step that is one piece of work and ends by itself: loading, building, cleaning.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::dataset::Dataset;
use crate::domain::run::{CpuTime, Outcome};
use crate::driver::Stop;
use crate::driver::protocol::{Interval, Message};
use crate::driver::recorder::histograms;
use crate::driver::session::{Opener, Session};
use crate::driver::talk::Talk;
use crate::os::tree;

const SECOND: Duration = Duration::from_secs(1);

/// What the working thread says.
enum News<T> {
    /// The session is open and the work begins.
    Begun(Instant),
    /// What came of it.
    Done(Result<T, String>, Instant),
}

/// Carries out `work` on a session of `opener` as the measured window. `work` adds to the counter
/// what it has done; each second that is said. Returns what the work returned, and an outcome whose
/// statements are that counter.
pub(super) fn busy<W: Write, T: Send>(
    bench: &mut Bench<'_, W>,
    opener: &Opener,
    work: impl FnOnce(&mut Session, &Dataset, &AtomicU64) -> Result<T, String> + Send,
) -> Result<(T, Outcome), Stop> {
    let done = AtomicU64::new(0);
    let Bench { talk, data, .. } = bench;
    let (sender, receiver) = channel();
    let (result, seconds, cpu) = thread::scope(|scope| {
        let (counter, data) = (&done, &*data);
        scope.spawn(move || {
            let result = opener.open(0).and_then(|mut session| {
                // Without a receiver there is nobody to tell, here and below.
                let _ = sender.send(News::Begun(Instant::now()));
                work(&mut session, data, counter)
            });
            let _ = sender.send(News::Done(result, Instant::now()));
        });
        follow(talk, &receiver, counter)
    })?;
    let result = result?;
    let done = done.load(Ordering::Relaxed);
    let (latency, _) = histograms(&[]);
    let outcome = Outcome {
        seconds,
        statements: done,
        writes: done,
        latency,
        client_cpu: cpu,
        client_busiest: cpu.total_us() / 1e6 / seconds.max(1e-9),
        ..Outcome::default()
    };
    Ok((result, outcome))
}

/// Waits for the end, and says each second how far the counter is.
fn follow<W: Write, T>(
    talk: &mut Talk<W>,
    news: &Receiver<News<T>>,
    counter: &AtomicU64,
) -> Result<(Result<T, String>, f64, CpuTime), Stop> {
    let mut cpu = tree::own_cpu();
    let mut start = Instant::now();
    let mut intervals = Intervals { second: 0, from: start, done: 0 };
    loop {
        let next = start + SECOND * (intervals.second + 1);
        match news.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(News::Begun(begun)) => {
                talk.say(&Message::WindowStart)?;
                (start, cpu) = (begun, tree::own_cpu());
                intervals.from = begun;
            }
            Ok(News::Done(result, end)) => {
                let interval = intervals.cut(end, counter.load(Ordering::Relaxed));
                talk.say(&Message::Interval(interval))?;
                let seconds = end.saturating_duration_since(start).as_secs_f64();
                return Ok((result, seconds, tree::own_cpu().since(cpu)));
            }
            Err(RecvTimeoutError::Timeout) => {
                let interval = intervals.cut(Instant::now(), counter.load(Ordering::Relaxed));
                talk.say(&Message::Interval(interval))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Stop::Fault("failed to measure: the work ended early".to_owned()));
            }
        }
    }
}

struct Intervals {
    second: u32,
    from: Instant,
    done: u64,
}

impl Intervals {
    fn cut(&mut self, now: Instant, done: u64) -> Interval {
        self.second += 1;
        let interval = Interval {
            second: self.second,
            seconds: now.saturating_duration_since(self.from).as_secs_f64(),
            statements: done - self.done,
            ..Interval::default()
        };
        (self.from, self.done) = (now, done);
        interval
    }
}
