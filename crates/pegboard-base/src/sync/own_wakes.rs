//! [`OwnWakes`]: polls a future again at once if it wakes itself.
//!
//! hyper wakes the task of a connection from within its poll, for example when the body of a request is asked for. Through the scheduler that takes
//! a place in the queue, wakes another worker to take it over, and moves the connection there: more than all the rest of a call.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

use super::atomic::{AtomicU8, Ordering};

/// How often a future is polled in a row before other tasks get their turn.
const MAX_IN_A_ROW: u32 = 16;

/// The future is not polled, so a wake goes to its task.
const RESTING: u8 = 0;
/// Set while the future is polled.
const POLLED: u8 = 1;
/// Set by each wake.
const WOKEN: u8 = 2;

/// Keeps the wakes of a future that come while it is polled.
pub struct OwnWakes {
    state: Arc<WakeState>,
    waker: Waker,
}

struct WakeState {
    phase: AtomicU8,
    task: AtomicWaker,
}

impl OwnWakes {
    /// For a future that is not polled yet.
    pub fn new() -> Self {
        let state = Arc::new(WakeState {
            phase: AtomicU8::new(RESTING),
            task: AtomicWaker::new(),
        });
        Self {
            waker: state.clone().into(),
            state,
        }
    }

    /// Calls `poll` until it is ready, or was not woken while it ran. Later wakes go to the task of `context`.
    pub fn poll<T>(&self, context: &mut Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.state.task.register(context.waker());
        let phase = &self.state.phase;
        for _ in 0..MAX_IN_A_ROW {
            // Swapped and not stored: what a wake that came before tells of is seen by this poll, and one that comes later finds that it is polled.
            phase.swap(POLLED, Ordering::AcqRel);
            let polled = poll(&mut Context::from_waker(&self.waker));
            let rests = || phase.compare_exchange(POLLED, RESTING, Ordering::AcqRel, Ordering::Acquire);
            if polled.is_ready() {
                phase.swap(RESTING, Ordering::AcqRel);
                return polled;
            }
            if rests().is_ok() {
                return polled;
            }
        }
        phase.swap(RESTING, Ordering::AcqRel);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Default for OwnWakes {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OwnWakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnWakes").finish_non_exhaustive()
    }
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let before = self.phase.fetch_or(WOKEN, Ordering::AcqRel);
        if before & POLLED == 0 {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicU32);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wakes(counted: &Counted) -> u32 {
        counted.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_without_its_task_being_woken() {
        let (counted, own, mut polls) = (Arc::new(Counted::default()), OwnWakes::new(), 0);
        let task = Waker::from(counted.clone());
        let polled = own.poll(&mut Context::from_waker(&task), |context| {
            polls += 1;
            if polls < 3 {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert_eq!((polled, polls, wakes(&counted)), (Poll::Pending, 3, 0));
    }

    #[test]
    fn other_wakes_reach_the_task() {
        let (counted, own) = (Arc::new(Counted::default()), OwnWakes::new());
        let (task, mut kept) = (Waker::from(counted.clone()), None);
        let polled = own.poll(&mut Context::from_waker(&task), |context| {
            kept = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert_eq!((polled, wakes(&counted)), (Poll::Pending, 0));
        kept.unwrap().wake();
        assert_eq!(wakes(&counted), 1);
    }

    #[test]
    fn a_future_that_always_wakes_itself_leaves_room_for_others() {
        let (counted, own, mut polls) = (Arc::new(Counted::default()), OwnWakes::new(), 0);
        let task = Waker::from(counted.clone());
        let polled = own.poll(&mut Context::from_waker(&task), |context| {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((polled, polls, wakes(&counted)), (Poll::Pending, MAX_IN_A_ROW, 1));
    }

    #[test]
    fn a_future_that_is_ready_is_not_polled_again() {
        let (own, mut polls) = (OwnWakes::new(), 0);
        let polled = own.poll(&mut Context::from_waker(Waker::noop()), |context| {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::Ready(7)
        });
        assert_eq!((polled, polls), (Poll::Ready(7), 1));
    }
}
