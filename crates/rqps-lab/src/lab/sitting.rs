//! The time between the sittings of a plan.

use std::thread;
use std::time::{Duration, Instant};

use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::lab::resume::History;
use crate::plan::cost;
use rqps_host::clock;
use rqps_model::units;

/// How often a wait looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);

/// The sitting that is under way.
#[derive(Default)]
pub(super) struct CurrentSitting {
    begun: Option<(u32, Instant)>,
}

impl CurrentSitting {
    /// Before a block: if it begins a sitting of the plan, waits until that may begin.
    ///
    /// While rqps runs, the monotonic clock decides. A plan that was resumed knows the beginning of
    /// the sitting before by the wall clock alone; if that was set back, it waits the whole time.
    pub(super) fn before(
        &mut self,
        execution: &Execution<'_>,
        (block, history): (u32, &History),
        progress: &mut Progress<'_>,
    ) {
        let plan = &execution.options.plan;
        let Some(sittings) = &plan.sittings else { return };
        let number = plan.sitting_of(block);
        if self.begun.is_some_and(|(begun, _)| begun == number) {
            return;
        }
        let every = sittings.every;
        let blocks_of = |wanted: u32| {
            (1..=plan.blocks.most()).filter(move |block| plan.sitting_of(*block) == wanted)
        };
        let went = match self.begun {
            Some((_, at)) => Some(at.elapsed()),
            None => {
                let started =
                    blocks_of(number - 1).filter_map(|block| history.started(block)).min();
                started.map(|started| clock::since(started).unwrap_or_default())
            }
        };
        // The rest of a sitting that was interrupted waits for nothing.
        let is_rest = self.begun.is_none() && blocks_of(number).any(|it| history.is_done(it));
        let left = match went {
            Some(went) if !is_rest => every.saturating_sub(went),
            _ => Duration::ZERO,
        };
        let what = format!("sitting {number} of {}", sittings.number);
        if !left.is_zero() {
            let task = cost::wait(plan);
            progress.begin(task);
            progress.note(&format!("{what} begins in {}", units::duration(left)));
            let until = Instant::now() + left;
            while !execution.stopped() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let text = format!("wait {} for {what}", units::duration(left));
                progress.doing("", &text, None);
                thread::sleep(left.min(LOOK));
            }
            progress.end(task);
        }
        if is_rest {
            progress.note(&format!("the rest of {what} is a sitting of its own: time went by"));
        }
        self.begun = Some((number, Instant::now()));
    }
}
