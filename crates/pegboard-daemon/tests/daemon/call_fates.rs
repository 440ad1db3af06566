//! Whatever answers for a call that was admitted says whether it may have run, and no answer invites the client to repeat a call that may have
//! run: every place that answers, in both eras, on every transport, for calls that have not begun, that run and that are done.
//!
//! The client of each cell does what an answer invites it to: after 401 it comes with a new token, after `Retry-After` it sends the call again,
//! and after 404 it shakes hands anew. The tool has then run once at most.

mod clients;
mod world;

use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::call_fates::{
    clients::{Answer, Client, Era, Transport},
    world::{World, within},
};

/// How many cells run at once.
const AT_ONCE: usize = 8;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The token expires.
    Expiry,
    /// The token is removed from the config.
    Withdrawal,
    /// The gateway stops, and the call takes longer than it waits.
    Stop,
    /// The gateway stops, and the call ends while it waits.
    Drain,
    /// The config is reloaded without the server.
    Reload,
    /// The client deletes its session.
    Deletion,
    /// The stream of the call breaks, and the client comes back too late.
    LateReturn,
}

/// How far the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It waits in the queue of its server.
    NotBegun,
    Running,
    Done,
}

/// What the client must read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The result.
    Result,
    /// It is lost: it may have run.
    Lost,
    /// It has not run.
    NotRun,
}

type Cell = (Place, Era, Transport, Progress);

impl Place {
    const ALL: [Self; 7] = [
        Self::Expiry,
        Self::Withdrawal,
        Self::Stop,
        Self::Drain,
        Self::Reload,
        Self::Deletion,
        Self::LateReturn,
    ];

    /// Whether it can happen to a call on this transport.
    fn concerns(self, era: Era, transport: Transport) -> bool {
        match self {
            // The user's own processes have no token.
            Self::Expiry | Self::Withdrawal => transport != Transport::Lines,
            // Only these clients have sessions and streams that outlive their connections.
            Self::Deletion | Self::LateReturn => (era, transport) == (Era::Legacy, Transport::Http),
            Self::Stop | Self::Drain | Self::Reload => true,
        }
    }

    /// What the client may read. There are two where the moment decides.
    fn fates(self, progress: Progress) -> &'static [Fate] {
        match (self, progress) {
            // What is removed from the config may take no call from its queue any more.
            (Self::Reload, Progress::NotBegun) => &[Fate::Result, Fate::NotRun],
            // The response may be dropped by then.
            (Self::LateReturn, Progress::Done) => &[Fate::Result, Fate::Lost],
            (Self::Expiry | Self::Drain | Self::Reload, _) | (_, Progress::Done) => &[Fate::Result],
            (Self::Withdrawal | Self::Stop | Self::Deletion | Self::LateReturn, Progress::Running) => &[Fate::Lost],
            (Self::Withdrawal | Self::Stop | Self::Deletion | Self::LateReturn, Progress::NotBegun) => &[Fate::NotRun],
        }
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for place in Place::ALL {
        for (era, transport) in clients::KINDS {
            for progress in [Progress::NotBegun, Progress::Running, Progress::Done] {
                // A call gets a stream that it can lose with its first event, or after 15 seconds.
                let has_no_stream = place == Place::LateReturn && progress == Progress::NotBegun;
                if place.concerns(era, transport) && !has_no_stream {
                    cells.push((place, era, transport, progress));
                }
            }
        }
    }
    cells
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_says_whether_the_call_may_have_run_and_none_makes_it_run_twice() {
    let cells = cells();
    assert!(cells.len() > 80, "{}", cells.len());
    let checks = cells.into_iter().map(|cell| async move {
        // In a task of its own, so that a failure names its cell.
        let checked = tokio::spawn(check(cell)).await;
        checked.map_err(|error| format!("{cell:?}: {error}"))
    });
    let outcomes: Vec<Result<(), String>> = stream::iter(checks).buffer_unordered(AT_ONCE).collect().await;
    let failures: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

async fn check((place, era, transport, progress): Cell) {
    let drain = match place {
        Place::Drain => Duration::from_secs(60),
        _ => Duration::from_millis(50),
    };
    let mut world = World::new(drain).await;
    let mut client = Client::connect(&world, era, transport).await;
    let mut holder = None;
    match progress {
        Progress::NotBegun => {
            let mut other = Client::connect(&world, era, transport).await;
            other.call("hold").await;
            world.until_called("hold").await;
            client.call("act").await;
            world.until_queued(1).await;
            holder = Some(other);
        }
        Progress::Running if place == Place::LateReturn => client.call("report").await,
        Progress::Done if place == Place::LateReturn => client.call("brief").await,
        Progress::Running => {
            client.call("act").await;
            world.until_called("act").await;
        }
        Progress::Done => {
            world.fx.open_gate("act");
            client.call("act").await;
        }
    }
    let early = match (progress, place) {
        (Progress::Done, Place::LateReturn) => None,
        (Progress::Done, _) => Some(client.answer().await),
        _ => None,
    };
    happen(place, progress, &mut world, &mut client).await;
    let answer = match early {
        Some(answer) => answer,
        None => client.answer().await,
    };
    let (ran, fate) = (world.runs(), fate_of(&answer));
    assert!(place.fates(progress).contains(&fate), "{answer:?}");
    match fate {
        Fate::Result => assert_eq!(ran, 1),
        Fate::Lost => {
            assert_eq!(ran, 1);
            assert!(!answer.invites(), "{answer:?}");
        }
        Fate::NotRun => assert_eq!(ran, 0, "{answer:?}"),
    }
    assert_ne!(answer.status, Some(401), "the call was admitted");
    answer.assert_complete();
    if answer.invites() {
        world.fx.open_gate("hold");
        world.fx.open_gate("act");
        let mut again = Client::connect(&world.successor(), era, transport).await;
        again.call("act").await;
        assert_eq!(fate_of(&again.answer().await), Fate::Result);
    }
    assert!(world.runs() <= 1, "the tool has run {} times", world.runs());
    drop(holder);
}

/// Lets it happen, and lets the call end where it can.
async fn happen(place: Place, progress: Progress, world: &mut World, client: &mut Client) {
    match place {
        Place::Expiry => {
            world.expire_token().await;
            world.fx.open_gate("hold");
            world.fx.open_gate("act");
        }
        Place::Withdrawal => world.withdraw_token(),
        Place::Stop => world.stop(),
        Place::Drain => {
            world.stop();
            world.until_closed().await;
            world.fx.open_gate("hold");
            world.fx.open_gate("act");
        }
        Place::Reload => {
            world.remove_server().await;
            world.fx.open_gate("hold");
            world.fx.open_gate("act");
        }
        Place::Deletion => client.delete_session().await,
        Place::LateReturn => {
            client.lose_stream().await;
            if progress == Progress::Running {
                within("the call is cancelled", world.until_cancelled()).await;
            }
            client.come_back().await;
        }
    }
}

/// What a client reads in an answer.
fn fate_of(answer: &Answer) -> Fate {
    match answer.may_have_executed() {
        None => {
            assert!(answer.is_result(), "{answer:?}");
            Fate::Result
        }
        Some(true) => Fate::Lost,
        Some(false) => Fate::NotRun,
    }
}

#[tokio::test]
async fn a_request_beyond_the_limit_of_a_gateway_is_not_run_and_may_be_sent_again() {
    for (era, transport) in clients::KINDS {
        // On a connection, requests are counted by it.
        if !matches!(transport, Transport::Http | Transport::Api) {
            continue;
        }
        let world = World::with_room_for(1).await;
        let mut other = Client::connect(&world, era, transport).await;
        let mut client = Client::connect(&world, era, transport).await;
        other.call("hold").await;
        world.until_called("hold").await;
        client.call("act").await;
        let refused = client.answer().await;
        assert_eq!((refused.status, refused.invites()), (Some(503), true), "{refused:?}");
        assert_eq!(world.runs(), 0);
        world.fx.open_gate("hold");
        world.fx.open_gate("act");
        other.answer().await;
        client.call("act").await;
        assert_eq!(fate_of(&client.answer().await), Fate::Result);
        assert_eq!(world.runs(), 1);
    }
}
