//! Pending requests under every order of threads.

use shuttle::{future::block_on, rand::Rng, thread};

use super::*;
use crate::session::fault::FaultKind;
use pegboard_base::sync::explore::explore;

/// The outcome of one request.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The connection accepted no more requests.
    Refused,
    /// Its response came.
    Answered,
    /// The wire failed it.
    Failed,
    /// The connection ended first.
    Ended,
    /// It was cancelled before a response came.
    Cancelled,
}

fn response_to(id: u64) -> Bytes {
    format!(r#"{{"id":{id},"result":{id}}}"#).into()
}

fn fate_of(id: u64, response: Result<Response, Fault>) -> Fate {
    match response.and_then(|response| response.result()) {
        Ok(result) => {
            assert_eq!(result, id.to_string(), "a response reached another request");
            Fate::Answered
        }
        Err(fault) => match fault.kind {
            FaultKind::Wire(failure) => {
                assert_eq!(failure.message, id.to_string(), "a failure reached another request");
                Fate::Failed
            }
            FaultKind::Ended(_) => Fate::Ended,
            other => panic!("{other:?}"),
        },
    }
}

/// Makes a request, and waits for it or cancels it.
fn request(dispatcher: &Dispatcher, patient: bool) -> Fate {
    let Ok(mut receiver) = dispatcher.pending.register() else {
        return Fate::Refused;
    };
    if patient {
        let response = block_on(&mut receiver.response).expect("a request that is not cancelled is resolved");
        assert!(!dispatcher.waits_for(receiver.id), "resolved, and still pending");
        return fate_of(receiver.id, response);
    }
    dispatcher.pending.remove(receiver.id);
    assert!(!dispatcher.waits_for(receiver.id), "cancelled, and still pending");
    match receiver.response.try_recv() {
        Ok(response) => fate_of(receiver.id, response),
        Err(_) => Fate::Cancelled,
    }
}

/// Responds to each request, often twice, sometimes before it is made.
fn serve(dispatcher: &Dispatcher) {
    for id in 1..=3 {
        if shuttle::rand::thread_rng().gen_bool(0.5) {
            dispatcher.message(response_to(id));
        } else {
            dispatcher.report_failure(
                id,
                WireFailure::new(FailureKind::ConnectionLost, Sent::Maybe, id.to_string()),
            );
        }
    }
}

#[test]
fn every_request_is_refused_answered_ended_or_cancelled_and_none_waits_for_ever() {
    explore(|| {
        let dispatcher = Dispatcher::for_tests().0;
        let callers: Vec<_> = [true, true, false]
            .map(|patient| {
                let dispatcher = dispatcher.clone();
                thread::spawn(move || request(&dispatcher, patient))
            })
            .into();
        let others: Vec<_> = [true, true, false]
            .map(|serves| {
                let dispatcher = dispatcher.clone();
                thread::spawn(move || {
                    if serves {
                        serve(&dispatcher);
                    } else {
                        dispatcher.report_end(WireEnd::new(EndReason::Eof));
                        assert_eq!(request(&dispatcher, true), Fate::Refused, "accepted after the end");
                    }
                })
            })
            .into();
        let watcher = {
            let dispatcher = dispatcher.clone();
            thread::spawn(move || assert_eq!(block_on(dispatcher.pending.until_ended()).reason, EndReason::Eof))
        };
        for (caller, patient) in callers.into_iter().zip([true, true, false]) {
            let fate = caller.join().unwrap();
            assert!(!patient || fate != Fate::Cancelled);
        }
        for other in others {
            other.join().unwrap();
        }
        watcher.join().unwrap();
        assert!(dispatcher.pending.count() == 0, "a request was left behind");
    });
}

#[test]
fn of_two_ends_the_first_counts_for_every_request() {
    explore(|| {
        let dispatcher = Dispatcher::for_tests().0;
        let ending = [EndReason::Eof, EndReason::Closed].map(|reason| {
            let dispatcher = dispatcher.clone();
            thread::spawn(move || dispatcher.report_end(WireEnd::new(reason)))
        });
        let asking = [(); 2].map(|()| {
            let dispatcher = dispatcher.clone();
            thread::spawn(move || match dispatcher.pending.register() {
                Ok(mut receiver) => block_on(&mut receiver.response).expect("resolved").unwrap_err(),
                Err(refused) => refused,
            })
        });
        let faults = asking.map(|asking| asking.join().unwrap());
        ending.into_iter().for_each(|ending| ending.join().unwrap());
        let end = block_on(dispatcher.pending.until_ended());
        let expected = Fault::ended(end, Sent::No);
        assert!(faults.iter().all(|fault| *fault == expected), "{faults:?}");
    });
}

#[test]
fn a_request_that_ends_as_unsent_is_never_written() {
    explore(|| {
        let dispatcher = Dispatcher::for_tests().0;
        let mut receiver = dispatcher.pending.register().unwrap();
        let writer = {
            let delivery = receiver.delivery.clone();
            thread::spawn(move || {
                let written = delivery.begin();
                if written {
                    delivery.mark_sent();
                }
                written
            })
        };
        let reader = {
            let dispatcher = dispatcher.clone();
            thread::spawn(move || dispatcher.report_end(WireEnd::new(EndReason::Protocol("nonsense".to_owned()))))
        };
        let response = block_on(&mut receiver.response).expect("resolved");
        reader.join().unwrap();
        let written = writer.join().unwrap();
        let fault = response.unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Ended(_)), "{fault:?}");
        assert!(!(written && fault.sent == Sent::No), "written, and reported as unsent");
    });
}
