//! What the desk promises whatever the order of its threads.

use shuttle::{future::block_on, rand::Rng, thread};

use super::*;
use crate::sync::explore::explore;

/// What became of one request.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The desk took no request any more.
    Refused,
    /// Its answer came.
    Answered,
    /// The server's error, or that of the wire.
    Failed,
    /// The wire ended first.
    Ended,
    /// It was given up, and no answer came before.
    Left,
}

fn answer_to(id: u64) -> Bytes {
    format!(r#"{{"id":{id},"result":{id}}}"#).into()
}

fn fate_of(id: u64, answer: Result<Bytes, Unanswered>) -> Fate {
    match answer {
        Ok(result) => {
            assert_eq!(result, id.to_string(), "an answer reached another request");
            Fate::Answered
        }
        Err(Unanswered::Wire(failure)) => {
            assert_eq!(failure.message, id.to_string(), "a failure reached another request");
            Fate::Failed
        }
        Err(Unanswered::Ended { .. }) => Fate::Ended,
        Err(other) => panic!("{other:?}"),
    }
}

/// Makes a request, and waits for it or gives it up.
fn request(pending: &PendingRequests, patient: bool) -> Fate {
    let Ok(mut place) = pending.place() else {
        return Fate::Refused;
    };
    if patient {
        let answer = block_on(&mut place.answer).expect("a request that is not left is resolved");
        assert!(!pending.waits_for(place.id), "resolved, and still waited for");
        return fate_of(place.id, answer.and_then(|answer| answer.proven()));
    }
    pending.leave(place.id);
    assert!(!pending.waits_for(place.id), "left, and still waited for");
    match place.answer.try_recv() {
        Ok(answer) => fate_of(place.id, answer.and_then(|answer| answer.proven())),
        Err(_) => Fate::Left,
    }
}

/// Says something about each request, often twice, sometimes before it is made.
fn serve(pending: &PendingRequests) {
    for id in 1..=3 {
        if shuttle::rand::thread_rng().gen_bool(0.5) {
            pending.message(answer_to(id));
        } else {
            pending.failed(
                id,
                WireFailure::new(FailureKind::ConnectionLost, Sent::Maybe, id.to_string()),
            );
        }
    }
}

#[test]
fn every_request_is_refused_answered_ended_or_left_and_none_waits_for_ever() {
    explore(|| {
        let pending = PendingRequests::new().0;
        let callers: Vec<_> = [true, true, false]
            .map(|patient| {
                let pending = pending.clone();
                thread::spawn(move || request(&pending, patient))
            })
            .into();
        let others: Vec<_> = [true, true, false]
            .map(|serves| {
                let pending = pending.clone();
                thread::spawn(move || {
                    if serves {
                        serve(&pending);
                    } else {
                        pending.ended(WireEnd::new(EndReason::Eof));
                        assert_eq!(request(&pending, true), Fate::Refused, "accepted after the end");
                    }
                })
            })
            .into();
        let watcher = {
            let pending = pending.clone();
            thread::spawn(move || assert_eq!(block_on(pending.until_ended()).reason, EndReason::Eof))
        };
        for (caller, patient) in callers.into_iter().zip([true, true, false]) {
            let fate = caller.join().unwrap();
            assert!(!patient || fate != Fate::Left);
        }
        for other in others {
            other.join().unwrap();
        }
        watcher.join().unwrap();
        assert!(pending.lock().waiting.is_empty(), "a request was left behind");
    });
}

#[test]
fn of_two_ends_the_first_stands_for_everybody() {
    explore(|| {
        let pending = PendingRequests::new().0;
        let ending = [EndReason::Eof, EndReason::Closed].map(|reason| {
            let pending = pending.clone();
            thread::spawn(move || pending.ended(WireEnd::new(reason)))
        });
        let asking = [(); 2].map(|()| {
            let pending = pending.clone();
            thread::spawn(move || match pending.place() {
                Ok(mut place) => block_on(&mut place.answer).expect("resolved").unwrap_err(),
                Err(refused) => refused,
            })
        });
        let told = asking.map(|asking| asking.join().unwrap());
        ending.into_iter().for_each(|ending| ending.join().unwrap());
        let end = block_on(pending.until_ended());
        let sent = Sent::No;
        let expected = Unanswered::Ended { end, sent };
        assert!(told.iter().all(|told| *told == expected), "{told:?}");
    });
}

#[test]
fn a_request_that_ends_as_unsent_is_never_written() {
    explore(|| {
        let pending = PendingRequests::new().0;
        let mut place = pending.place().unwrap();
        let writer = {
            let delivery = place.delivery.clone();
            thread::spawn(move || {
                let written = delivery.begin();
                if written {
                    delivery.done();
                }
                written
            })
        };
        let reader = {
            let pending = pending.clone();
            thread::spawn(move || pending.ended(WireEnd::new(EndReason::Protocol("nonsense".to_owned()))))
        };
        let answer = block_on(&mut place.answer).expect("resolved");
        reader.join().unwrap();
        let written = writer.join().unwrap();
        let Err(Unanswered::Ended { sent, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert!(!(written && sent == Sent::No), "written, and reported as unsent");
    });
}
