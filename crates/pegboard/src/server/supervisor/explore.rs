//! What callers may expect of a server's life whatever the order in which they ask.
//!
//! The supervisor's own steps are run, all but the start itself: that always succeeds and gives a session without a server. The
//! channels between are tokio's, at which no other thread runs; callers let others run between their steps instead.

use std::collections::BTreeMap;

use shuttle::{future::block_on, thread};

use super::*;
use crate::{
    config::{BreakerPolicy, Command as Program, EraChoice, Limits, ServerConfig, Transport},
    deadline::Deadline,
    name::ServerName,
    server::{Backoff, Links, Queues, Server, Shared, known_catalog::KnownCatalog, link::Link},
    session::{DesiredState, EraMemory, NoHost, Session, Spec},
    sync::explore::{explore, idle_runtime},
    transport::Target,
};

impl Supervisor {
    /// As [`Supervisor::run`], with starts that reach nobody. Returns how many there were.
    async fn run_on_silence(mut self) -> u64 {
        let mut step = Step::Rest;
        loop {
            step = match step {
                Step::Rest => self.resting().await,
                Step::Dial { .. } | Step::DialBehind | Step::Wait(_) => {
                    self.show(Phase::Connecting(Attempt {
                        since: Timestamp::now(),
                        after: None,
                        restarts: 0,
                    }));
                    shuttle::future::yield_now().await;
                    let reached = Reached {
                        session: Session::silent(),
                        catalog: Catalog::default(),
                        freshness: Freshness::default(),
                        process: None,
                    };
                    Step::Serve(self.live(reached, Duration::ZERO))
                }
                Step::Serve(live) => self.serving(live).await,
                Step::Stop => break,
            }
        }
        self.show(Phase::Closed);
        self.memory.generation
    }
}

/// A server whose supervisor runs in a thread of its own.
fn server() -> (Server, thread::JoinHandle<u64>) {
    let shared = Shared {
        survey: ListScope::Tools,
        revision: Arc::default(),
        starts: Arc::new(Semaphore::new(1)),
        backoff: Backoff::default(),
        queues: Queues::new(&BTreeMap::new()),
        breaker: BreakerPolicy::default(),
        catalogs: None,
        processes: Arc::new(Semaphore::new(1)),
        generations: Arc::default(),
        links: Links::default(),
        ending: Arc::default(),
        made: AtomicU64::new(1),
        events: crate::event::EventSender::default(),
        tallies: Arc::default(),
    };
    let transport = Transport::Stdio(Program::new("none"));
    let spec = Spec {
        name: ServerName::parse("one").unwrap(),
        target: Target::Configured(Box::new(transport.clone())),
        era: EraChoice::default(),
        limits: Limits::default(),
        desired_state: DesiredState::new(&[]),
        roots: Vec::new(),
        host: Arc::new(NoHost),
        client: Arc::default(),
        memory: Arc::new(EraMemory::new(None)),
        masker: crate::mask::ServerMasker::default(),
        budget: crate::transport::ByteBudget::default(),
    };
    let config = ServerConfig::new(transport);
    let known = Arc::new(KnownCatalog::new(spec.name.clone(), None));
    let plan = Plan::new(spec.clone(), &config);
    let (link, supervisor) = Link::unattended(plan, known, Arc::default(), Revision::unseen(), &shared);
    let server = Server::over(&link, config, spec, &Arc::new(shared));
    (server, thread::spawn(move || block_on(supervisor.run_on_silence())))
}

fn deadline() -> Deadline {
    Deadline::within(Duration::from_secs(60))
}

#[test]
fn callers_that_come_together_share_one_start() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let (server, supervisor) = server();
        let callers = [(); 3].map(|()| {
            let server = server.clone();
            thread::spawn(move || block_on(server.live(deadline())).unwrap().generation)
        });
        for caller in callers {
            assert_eq!(caller.join().unwrap(), 1);
        }
        drop(server);
        assert_eq!(supervisor.join().unwrap(), 1);
    });
}

#[test]
fn callers_that_saw_one_session_die_share_the_next_and_end_none_but_the_first() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let (server, supervisor) = server();
        let callers = [true, false, false].map(|ends| {
            let server = server.clone();
            thread::spawn(move || {
                let live = block_on(server.live(deadline())).unwrap();
                thread::yield_now();
                if ends {
                    live.session.end();
                } else {
                    server.replace(live.generation);
                }
                thread::yield_now();
                let next = block_on(server.live_after(live.generation, deadline())).unwrap();
                (live.generation, next.generation)
            })
        });
        let seen = callers.map(|caller| caller.join().unwrap());
        drop(server);
        let sessions = supervisor.join().unwrap();
        // Whoever came so late as to find the second session has ended that one, and nobody more.
        let last_ended = seen.iter().map(|(ended, _)| *ended).max().unwrap();
        assert_eq!(sessions, last_ended + 1, "{seen:?}");
        assert!(seen.iter().all(|(ended, next)| next > ended), "{seen:?}");
    });
}

#[test]
fn whoever_waits_for_a_server_that_is_closed_or_switched_off_is_told() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let (server, supervisor) = server();
        let callers = [(); 2].map(|()| {
            let server = server.clone();
            thread::spawn(move || block_on(server.live(deadline())).map_or_else(|outage| Some(outage.cause), |_| None))
        });
        let operator = {
            let server = server.clone();
            thread::spawn(move || {
                block_on(server.disable());
                assert!(matches!(server.phase(), Phase::Disabled | Phase::Closed));
            })
        };
        let closer = {
            let server = server.clone();
            thread::spawn(move || block_on(server.close()))
        };
        for caller in callers {
            let cause = caller.join().unwrap();
            assert!(
                matches!(cause, None | Some(Cause::Disabled | Cause::Closed)),
                "{cause:?}"
            );
        }
        operator.join().unwrap();
        closer.join().unwrap();
        supervisor.join().unwrap();
        assert!(matches!(server.phase(), Phase::Closed));
    });
}
