//! What callers may expect of a server in any interleaving.
//!
//! Runs the supervisor's own steps except the start, which always succeeds with a silent session. The channels are tokio's, which shuttle
//! does not schedule, so callers yield between their steps instead.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use pegboard_base::timestamp::Timestamp;
use shuttle::{future::block_on, thread};
use tokio::sync::Semaphore;

use super::{
    start_attempt::Started,
    state::{NextState, Supervisor},
};
use crate::server::{
    Backoff, BoardShared, LinkContext, Queues, Server, SharedLinks,
    connection_plan::ConnectionPlan,
    known_catalog::KnownCatalog,
    link::Link,
    outage::Cause,
    phase::{Attempt, Phase},
    revision::Revision,
};
use pegboard_base::{
    deadline::Deadline,
    name::ServerName,
    sync::explore::{explore, idle_runtime},
};
use pegboard_client::{
    session::{DesiredState, EraMemory, ListScope, NoHost, Session, Spec},
    transport::Target,
};
use pegboard_config::{BreakerPolicy, Command as Program, EraChoice, Limits, ServerConfig, Transport};
use pegboard_tools::catalog::{Catalog, store::Freshness};

impl Supervisor {
    /// Like [`Supervisor::run`], with starts that connect to no server. Returns the number of starts.
    async fn run_on_silence(mut self) -> u64 {
        let mut step = NextState::Idle;
        loop {
            step = match step {
                NextState::Idle => self.wait_for_command().await,
                NextState::Connect { .. } | NextState::ConnectBehindOutage | NextState::Wait(_) => {
                    self.publish(Phase::Connecting(Attempt {
                        since: Timestamp::now(),
                        after: None,
                        restarts: 0,
                    }));
                    shuttle::future::yield_now().await;
                    let started = Started {
                        session: Session::silent(),
                        catalog: Catalog::default(),
                        freshness: Freshness::default(),
                        process: None,
                    };
                    NextState::Serve(self.record_start(started, Duration::ZERO))
                }
                NextState::Serve(live) => self.serve(live).await,
                NextState::Stop => break,
            }
        }
        self.publish(Phase::Closed);
        self.history.generation
    }
}

/// A server whose supervisor runs in its own thread.
fn server() -> (Server, thread::JoinHandle<u64>) {
    let shared = BoardShared {
        revision: Arc::default(),
        link_context: LinkContext {
            list_scope: ListScope::Tools,
            starts: Arc::new(Semaphore::new(1)),
            processes: Arc::new(Semaphore::new(1)),
            generations: Arc::default(),
            backoff: Backoff::default(),
            closing: Arc::default(),
        },
        links: SharedLinks::default(),
        queues: Queues::new(&BTreeMap::new()),
        breaker: BreakerPolicy::default(),
        catalogs: None,
        next_server: AtomicU64::new(1),
        events: crate::event::EventSender::default(),
        tallies: Arc::default(),
        pins: crate::pin::PinStore::in_memory(),
    };
    let transport = Transport::Stdio(Program::new("none"));
    let spec = Spec {
        credentials: None,
        configured_credentials: None,
        owner: None,
        is_for_questions: false,
        name: ServerName::parse("one").unwrap(),
        target: Target::Configured(Box::new(transport.clone())),
        era: EraChoice::default(),
        limits: Limits::default(),
        desired_state: DesiredState::new(&[]),
        roots: Vec::new(),
        host: Arc::new(NoHost),
        client: Arc::default(),
        memory: Arc::new(EraMemory::new(None)),
        masker: pegboard_mask::ServerMasker::default(),
        budget: pegboard_client::transport::ByteBudget::default(),
    };
    let config = ServerConfig::new(transport);
    let known = Arc::new(KnownCatalog::new(spec.name.clone(), None));
    let plan = ConnectionPlan::new(spec.clone(), &config);
    let (link, supervisor) =
        Link::with_supervisor(plan, known, Arc::default(), Revision::unseen(), &shared.link_context);
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
            thread::spawn(move || block_on(server.ensure_live(deadline())).unwrap().generation)
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
                let live = block_on(server.ensure_live(deadline())).unwrap();
                thread::yield_now();
                if ends {
                    live.session.end();
                } else {
                    server.connections().replace(live.generation);
                }
                thread::yield_now();
                let next = block_on(server.ensure_live_after(live.generation, deadline())).unwrap();
                (live.generation, next.generation)
            })
        });
        let seen = callers.map(|caller| caller.join().unwrap());
        drop(server);
        let sessions = supervisor.join().unwrap();
        // A caller that came so late as to find the second session has ended that one, and no other.
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
            thread::spawn(move || {
                block_on(server.ensure_live(deadline())).map_or_else(|outage| Some(outage.cause), |_| None)
            })
        });
        let operator = {
            let server = server.clone();
            thread::spawn(move || {
                block_on(server.connections().disable().close());
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
