//! What the semaphore guarantees in any interleaving of threads.

use shuttle::{future::block_on, rand::Rng, thread};

use super::*;
use pegboard_base::sync::explore::explore;

const PERMITS: usize = 2;

/// Takes a permit and returns it, or leaves the line before or after a permit was sent.
fn call(semaphore: &Arc<FairSemaphore>, owner: u64, in_flight: &AtomicUsize) {
    let mut random = shuttle::rand::thread_rng();
    if let Some(permit) = semaphore.try_acquire() {
        use_permit(in_flight);
        drop(permit);
        return;
    }
    match semaphore.enter(&QuotaOwner::View(owner)) {
        Admission::Free(permit) => {
            use_permit(in_flight);
            drop(permit);
        }
        Admission::Wait(waiter) if random.gen_range(0..3) == 0 => {
            thread::yield_now();
            drop(waiter);
        }
        Admission::Wait(waiter) => {
            let permit = block_on(waiter).expect("a call that waits gets a permit");
            use_permit(in_flight);
            drop(permit);
        }
        Admission::Full(..) => {}
    }
}

fn use_permit(in_flight: &AtomicUsize) {
    let before = in_flight.fetch_add(1, Ordering::SeqCst);
    assert!(before < PERMITS, "{before} calls hold a permit already");
    thread::yield_now();
    in_flight.fetch_sub(1, Ordering::SeqCst);
}

#[test]
fn each_waiting_call_gets_a_permit_and_none_is_lost_or_given_twice() {
    explore(|| {
        let semaphore = Arc::new(FairSemaphore::new(PERMITS, 4));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                let (semaphore, in_flight) = (semaphore.clone(), in_flight.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        call(&semaphore, caller % 2, &in_flight);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        let idle = Counts {
            capacity: PERMITS,
            in_use: 0,
            waiting: 0,
        };
        assert_eq!(semaphore.counts(), idle);
        assert_eq!(
            semaphore.state.load(Ordering::SeqCst),
            PERMITS * ONE,
            "the lock is needed no longer"
        );
    });
}

#[test]
fn a_change_of_the_capacity_loses_and_adds_no_permit() {
    explore(|| {
        let semaphore = Arc::new(FairSemaphore::new(PERMITS, 4));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let changing = semaphore.clone();
        let changer = thread::spawn(move || {
            changing.resize(1);
            changing.resize(PERMITS);
            changing.resize(1);
        });
        let callers = [0, 1, 2].map(|caller| {
            let (semaphore, in_flight) = (semaphore.clone(), in_flight.clone());
            thread::spawn(move || call(&semaphore, caller, &in_flight))
        });
        changer.join().unwrap();
        for caller in callers {
            caller.join().unwrap();
        }
        let idle = Counts {
            capacity: 1,
            in_use: 0,
            waiting: 0,
        };
        assert_eq!(semaphore.counts(), idle);
        assert_eq!(semaphore.state.load(Ordering::SeqCst), ONE);
    });
}
