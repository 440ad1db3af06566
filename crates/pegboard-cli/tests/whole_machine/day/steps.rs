//! The steps of a day, each with what must hold after it.

use std::{collections::BTreeSet, thread, time::Duration};

use pegboard_testkit::{FakeServer, Tool, is_alive, kill};
use tokio::time::Instant;

use crate::{
    day::{
        client::{self, Session},
        scene::Scene,
    },
    gateway::Served,
};

/// How long the remote server is away.
const OUTAGE: Duration = Duration::from_secs(25);

/// How long it shows a wrong certificate.
const WRONG: Duration = Duration::from_secs(4);

/// The clients that come together.
const CLIENTS: usize = 3;

/// A day that has begun.
pub(crate) struct Day<'a> {
    scene: &'a Scene,
    pub(crate) served: Served,
    /// A client that stays for the whole day.
    resident: Option<Session>,
}

/// Starts the gateway before its servers can be reached.
pub(crate) fn start_without_servers(scene: &Scene) -> Day<'_> {
    let served = Served::start(&scene.home, &[]);
    assert_eq!(client::get(&served, "/readyz").0, 503);
    assert_eq!(client::not_ready(&served), ["proc", "web"]);
    assert_eq!(client::health(&served).0, "not_ready");
    Day {
        scene,
        served,
        resident: None,
    }
}

/// Servers that come later than all attempts of the preset make the gateway ready by themselves. Under goat the program connects them.
pub(crate) fn late_servers_make_it_ready(day: &mut Day<'_>) {
    let (scene, served) = (day.scene, &day.served);
    if scene.preset != "goat" {
        // More attempts than any preset makes after each other.
        scene.until("the process is started again and again", || {
            let attempts = scene.attempts();
            (attempts >= 5).then_some(()).ok_or(format!("{attempts} attempts"))
        });
        scene.until("there are warnings of both", || {
            let warned = client::warned_of(served);
            (warned == ["proc", "web"]).then_some(()).ok_or(format!("{warned:?}"))
        });
    }
    assert_eq!(client::not_ready(served), ["proc", "web"]);
    scene.install();
    scene.open_web();
    if scene.preset == "goat" {
        for server in ["proc", "web"] {
            scene.until("a server is connected on request", || {
                let (status, document) = client::change(served, "PUT", &format!("/api/v1/mcp/servers/{server}"));
                let is_done = status == 200 || status == 201;
                is_done.then_some(()).ok_or(format!("{status} {document}"))
            });
        }
    }
    day.all_is_well();
    day.resident = Some(Session::open(&day.served));
    day.both_answer();
    day.as_many_processes_as_clients_need(1);
}

/// Kills the processes of a server. Another one takes their place, and the other server does not notice.
pub(crate) fn a_killed_process_is_replaced(day: &mut Day<'_>) {
    let scene = day.scene;
    let before = scene.running("proc");
    for pid in &before {
        kill(*pid);
    }
    let resident = day.resident();
    scene.until("the process is replaced", || {
        let other = resident.call(&day.served, "web__read");
        assert!(other.is_ok(), "the other server is concerned: {other:?}");
        let pid = resident.call(&day.served, "proc__work").ok()?.text();
        let is_new = before.iter().all(|old| old.to_string() != pid);
        is_new.then_some(()).ok_or(pid)
    });
    assert!(!before.iter().any(|pid| is_alive(*pid)));
    day.all_is_well();
    day.as_many_processes_as_clients_need(1);
}

/// The remote server is unreachable. Readiness fails during the whole outage, calls of it get an error, and the other server works.
pub(crate) fn an_outage_concerns_one_server(day: &mut Day<'_>) {
    let (scene, served) = (day.scene, &day.served);
    let resident = day.resident();
    let began = Instant::now();
    scene.stop_web();
    scene.until("the outage is noticed", || {
        let _ = resident.call(served, "web__read");
        let not_ready = client::not_ready(served);
        (not_ready == ["web"]).then_some(()).ok_or(format!("{not_ready:?}"))
    });
    scene.until("operators are told", || {
        let (health, warned) = (client::health(served), client::warned_of(served));
        let is_told = health.0 == "not_ready" && warned == ["web"];
        is_told
            .then_some(())
            .ok_or(format!("{health:?}, warnings of {warned:?}"))
    });
    while began.elapsed() < OUTAGE {
        let visitor = Session::open(served);
        let away = resident.call(served, "web__read");
        assert!(!away.is_ok(), "nobody can have answered this: {away:?}");
        scene.until("the other server works for those who come", || {
            visitor.call(served, "proc__work").ok().map(drop)
        });
        visitor.close(served);
        assert_eq!(client::not_ready(served), ["web"]);
        assert_eq!(client::health(served).0, "not_ready");
    }
    scene.open_web();
    day.both_answer();
    day.all_is_well();
    day.as_many_processes_as_clients_need(1);
}

/// A reload adds a server and leaves the others alone.
pub(crate) fn a_reload_adds_a_server(day: &mut Day<'_>) {
    let (scene, served) = (day.scene, &day.served);
    let before = day.resident().call(served, "proc__work").ok().unwrap().text();
    let extra = FakeServer::new("extra").tool(Tool::new("hello").answers_text("hello"));
    let extra = scene.home.entry("extra", extra, "start = 'eager'\nscope = 'shared'");
    scene.write_config(&extra);
    let (status, document) = client::change(served, "POST", "/api/v1/mcp/reload");
    assert_eq!(status, 200, "{document}");
    let visitor = Session::open(served);
    scene.until("the new server is offered", || {
        let tools = visitor.tools(served);
        let is_there = tools.iter().any(|tool| tool == "extra__hello");
        is_there.then_some(()).ok_or(format!("{tools:?}"))
    });
    let hello = visitor.call(served, "extra__hello").ok().unwrap().text();
    assert_eq!(hello, "hello");
    visitor.close(served);
    let after = day.resident().call(served, "proc__work").ok().unwrap().text();
    if scene.scope != "pool(2)" {
        assert_eq!(after, before, "a server that did not change was started anew");
    }
    assert_eq!(scene.running("extra").len(), 1);
    day.all_is_well();
}

/// The remote server has a wrong certificate for a while. Afterwards it is used again, without anybody's help.
pub(crate) fn a_wrong_certificate_is_forgotten(day: &mut Day<'_>) {
    let (scene, served) = (day.scene, &day.served);
    let resident = day.resident();
    let began = Instant::now();
    scene.open_web_with_wrong_certificate();
    scene.until("the certificate is the reason", || {
        let answer = resident.call(served, "web__read");
        assert!(!answer.is_ok(), "it was believed: {answer:?}");
        let (_, status) = client::get(served, "/api/v1/mcp/servers/web");
        let is_noticed = client::not_ready(served) == ["web"];
        let text = status.to_string();
        let is_told = is_noticed && text.contains("certificate");
        is_told.then_some(()).ok_or(text)
    });
    while began.elapsed() < WRONG {
        assert!(!resident.call(served, "web__read").is_ok());
        assert_eq!(client::not_ready(served), ["web"]);
        assert!(resident.call(served, "proc__work").is_ok());
    }
    scene.open_web();
    day.both_answer();
    day.all_is_well();
}

/// Clients that come at the same time each get what the scope says, and what was started for them ends with them.
pub(crate) fn clients_come_and_go(day: &mut Day<'_>) {
    let (scene, served) = (day.scene, &day.served);
    for _ in 0..2 {
        let visitors: Vec<Session> = (0..CLIENTS).map(|_| Session::open(served)).collect();
        let mut pids = BTreeSet::new();
        for visitor in &visitors {
            scene.until("a client that comes is served", || {
                pids.insert(visitor.call(served, "proc__work").ok()?.text());
                visitor.call(served, "web__read").ok().map(drop)
            });
        }
        match scene.scope {
            "session" => assert!(pids.len() >= CLIENTS, "clients share processes: {pids:?}"),
            "shared" => assert_eq!(pids.len(), 1),
            _ => assert!(pids.len() <= 2, "more processes than the pool has: {pids:?}"),
        }
        day.as_many_processes_as_clients_need(CLIENTS + 1);
        for visitor in visitors {
            visitor.close(served);
        }
        day.as_many_processes_as_clients_need(1);
    }
    day.both_answer();
    day.all_is_well();
}

/// The gateway is told to stop while a call is in flight: the call is answered, and nothing is left running.
pub(crate) fn stop_with_a_call_in_flight(day: Day<'_>) {
    let (scene, served, resident) = (day.scene, day.served, day.resident.unwrap());
    let answer = thread::scope(|scope| {
        let call = scope.spawn(|| resident.call(&served, "proc__slow"));
        scene.until("the call has reached the server", || {
            let requests = scene.home.log("proc").requests;
            let is_there = requests.iter().any(|request| request.tool() == Some("slow"));
            is_there.then_some(()).ok_or("it has not".to_owned())
        });
        served.signal("TERM");
        call.join().unwrap()
    });
    assert!(!answer.is_ok(), "the server never answered this: {answer:?}");
    let code = served.code();
    assert_eq!(code, Some(0));
    scene.until("nothing is left running", || {
        let left = scene.processes();
        left.is_empty().then_some(()).ok_or(format!("{left:#?}"))
    });
}

impl Day<'_> {
    fn resident(&self) -> Session {
        self.resident.clone().unwrap()
    }

    /// Waits until both servers answer the client that stays.
    fn both_answer(&self) {
        let resident = self.resident();
        for (tool, expected) in [("proc__work", None), ("web__read", Some("read it"))] {
            self.scene.until("the server answers", || {
                let text = resident.call(&self.served, tool).ok()?.text();
                let is_right = expected.is_none_or(|expected| text == expected);
                is_right.then_some(()).ok_or(text)
            });
        }
    }

    /// Waits until the gateway is ready, healthy, and warns of nothing.
    fn all_is_well(&self) {
        self.scene.until("the gateway is ready and warns of nothing", || {
            let not_ready = client::not_ready(&self.served);
            let (health, warned) = (client::health(&self.served), client::warned_of(&self.served));
            let is_well = not_ready.is_empty() && health.0 == "ready" && health.1.is_empty() && warned.is_empty();
            is_well.then_some(()).ok_or(format!(
                "not ready: {not_ready:?}, health {health:?}, warnings of {warned:?}"
            ))
        });
        assert_eq!(self.served.send("GET", "/livez", &[], "").status, 200);
    }

    /// Waits until the process server has as many processes as its scope allows for these clients: with a scope of sessions one for each, and one
    /// that waits for the next.
    fn as_many_processes_as_clients_need(&self, clients: usize) {
        let most = match self.scene.scope {
            "session" => clients + 1,
            "shared" => 1,
            _ => 2,
        };
        self.scene.until("there are no more processes than needed", || {
            let running = self.scene.running("proc");
            let fits = !running.is_empty() && running.len() <= most;
            fits.then_some(()).ok_or(format!("{running:?}, at most {most}"))
        });
    }
}
