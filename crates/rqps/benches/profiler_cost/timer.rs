//! What the interrupts of a timer alone cost: the speed of a loop on one CPU while a timer
//! interrupts it, relative to the speed without. A sampling profiler needs one for each sample.

use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rqps_host::affinity;
use rqps_model::datagen::rng::Rng;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::Options;

/// ln(speed with / speed without) of each pair of neighbouring periods.
pub(crate) fn differences(options: &Options, stop: &AtomicBool) -> Result<Vec<f64>> {
    let on_cpu = || {
        let cpu: Vec<usize> = affinity::allowed_cpus().into_iter().take(1).collect();
        affinity::pin_thread(&cpu).context("place the loop")?;
        take_turns(options, stop)
    };
    // The thread keeps its place, so it does nothing else.
    thread::scope(|scope| {
        scope.spawn(on_cpu).join().unwrap_or_else(|_| bail!("run the loop: it panicked"))
    })
}

fn take_turns(options: &Options, stop: &AtomicBool) -> Result<Vec<f64>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
        .context("make a timer")?;
    let mut rng = Rng::new(options.seed);
    let mut differences = Vec::new();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let first = rng.below(2) == 0;
        let mut speeds = [0.0; 2];
        for ticks in [first, !first] {
            set(&timer, if ticks { options.hertz } else { 0 })?;
            speeds[usize::from(ticks)] = speed(&timer, Duration::from_millis(options.period))?;
        }
        differences.push((speeds[1] / speeds[0]).ln());
    }
    Ok(differences)
}

/// Lets the timer interrupt so often per second; 0: not at all.
fn set(timer: &OwnedFd, hertz: u32) -> Result<()> {
    let nanoseconds = 1_000_000_000u64.checked_div(u64::from(hertz)).unwrap_or(0);
    let time = Timespec { tv_sec: 0, tv_nsec: nanoseconds as i64 };
    let period = Itimerspec { it_interval: time, it_value: time };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &period).context("set the timer")?;
    Ok(())
}

/// Loops per second. Each loop also looks at the timer, which ticks on only after a look.
fn speed(timer: &OwnedFd, period: Duration) -> Result<f64> {
    let started = Instant::now();
    let mut loops = 0u64;
    loop {
        for add in 0..2000 {
            black_box(add);
        }
        loops += 1;
        match rustix::io::read(timer, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error).context("read the timer"),
        }
        let passed = started.elapsed();
        if passed >= period {
            return Ok(loops as f64 / passed.as_secs_f64());
        }
    }
}
