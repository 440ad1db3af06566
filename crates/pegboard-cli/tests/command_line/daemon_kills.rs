//! Many processes use one daemon while clients, servers and the daemon itself are killed.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool, is_alive};
use serde_json::Value;

use super::{
    agents::{Agent, Told},
    gateway::Served,
    home::{Home, Ran, until},
    mcp::Mcp,
};

/// How many rounds there are unless `PEGBOARD_KILLS` says otherwise: each victim twice.
const ROUNDS: usize = 2 * VICTIMS.len();

/// How many processes of each kind call at once: twenty in all.
const COMMANDS: usize = 12;
const HOSTS: usize = 2;
const AGENTS: usize = 3;
const ALL: usize = COMMANDS + HOSTS + 2 * AGENTS;

/// What is killed in a round, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Command,
    Server,
    Host,
    Daemon,
    RustProgram,
    PythonProgram,
}

const VICTIMS: [Victim; 6] = [
    Victim::Command,
    Victim::Server,
    Victim::Host,
    Victim::Daemon,
    Victim::RustProgram,
    Victim::PythonProgram,
];

fn kill(pid: u32) {
    // The victim may have ended by itself.
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// The processes of this server that run now.
fn alive(home: &Home, server: &str) -> usize {
    home.log(server).spawned.iter().filter(|pid| is_alive(**pid)).count()
}

/// Everything that uses the daemon, and the daemon.
struct Machine {
    home: Home,
    daemon: Option<Served>,
    hosts: Vec<Mcp>,
    rust: Vec<Agent>,
    python: Vec<Agent>,
}

impl Machine {
    fn start() -> Self {
        let home = Home::new();
        let slow = Tool::new("slow").answers_text("done").after(Duration::from_millis(300));
        let fake = |name| FakeServer::new(name).tool(Tool::new("read").read_only().answers_text("read it"));
        let entry = |name, fake| home.entry(name, fake, "stop_timeout = '200ms'");
        home.config(&(entry("fx", fake("fx").tool(slow)) + &entry("gy", fake("gy"))));
        let daemon = Served::start(&home, &[]);
        daemon.has_tool("fx__read");
        daemon.has_tool("gy__read");
        let url = format!("http://{}/mcp", daemon.address);
        let mut hosts: Vec<Mcp> = (0..HOSTS).map(|_| Mcp::start(&home, &[]).0).collect();
        for host in &mut hosts {
            host.ready();
        }
        Self {
            hosts,
            rust: (0..AGENTS).map(|_| Agent::rust(&url)).collect(),
            python: (0..AGENTS).map(|_| Agent::python(&url)).collect(),
            daemon: Some(daemon),
            home,
        }
    }

    /// The endpoint of the daemon. It stays the same when the daemon is started again.
    fn url(&self) -> String {
        format!("http://{}/mcp", self.daemon.as_ref().unwrap().address)
    }

    fn agents(&mut self) -> impl Iterator<Item = &mut Agent> {
        self.rust.iter_mut().chain(&mut self.python)
    }

    /// Begins a slow call in all twenty.
    fn call(&mut self) -> Vec<Child> {
        let one = |_| {
            let args = ["call", "fx.slow", "-o", "json", "--timeout", "20s"];
            let mut command = self.home.pegboard(&args);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let commands = (0..COMMANDS).map(one).collect();
        for host in &mut self.hosts {
            host.call("fx__slow");
        }
        for agent in self.agents() {
            agent.call("fx__slow");
        }
        commands
    }

    fn kill(&mut self, victim: Victim, round: usize, commands: &[Child]) {
        match victim {
            Victim::Command => kill(commands[round % COMMANDS].id()),
            Victim::Server => kill(*self.home.log("fx").spawned.last().unwrap()),
            Victim::Host => kill(self.hosts[round % HOSTS].pid()),
            Victim::RustProgram => kill(self.rust[round % AGENTS].pid()),
            Victim::PythonProgram => kill(self.python[round % AGENTS].pid()),
            Victim::Daemon => {
                let daemon = self.daemon.take().unwrap();
                let address = daemon.address.clone();
                daemon.signal("KILL");
                daemon.code();
                self.daemon = Some(Served::start(&self.home, &["--listen", &address]));
            }
        }
    }

    /// Waits until each of them was told what became of its call. One that was killed is told nothing.
    fn told(&mut self, commands: Vec<Child>) -> Vec<Told> {
        let commands = commands.into_iter().filter_map(|child| of_command(&Ran::end_of(child)));
        let mut told: Vec<Told> = commands.collect();
        let hosts = self.hosts.iter_mut().filter_map(|host| Some(Told::of(&host.answer()?)));
        told.extend(hosts);
        told.extend(self.agents().filter_map(|agent| agent.answer()));
        told
    }

    /// Starts a program again that was killed.
    fn start_again(&mut self, victim: Victim, round: usize) {
        let url = self.url();
        match victim {
            Victim::Command | Victim::Server | Victim::Daemon => {}
            Victim::Host => self.hosts[round % HOSTS] = Mcp::start(&self.home, &[]).0,
            Victim::RustProgram => self.rust[round % AGENTS] = Agent::rust(&url),
            Victim::PythonProgram => self.python[round % AGENTS] = Agent::python(&url),
        }
    }

    /// The next command works at once, and the programs go on.
    fn goes_on(&mut self, round: usize) {
        let read = Told::Done("read it".to_owned());
        for tool in ["fx.read", "gy.read"] {
            let answered = self.home.run(&["call", tool]);
            answered.ends_with(0);
            assert_eq!(answered.out, "read it\n", "round {round}");
        }
        for tool in ["fx__read", "gy__read"] {
            for host in &mut self.hosts {
                let mut last = Value::Null;
                until(&format!("round {round}: the host goes on"), || {
                    host.call(tool);
                    last = host.answer().unwrap();
                    Told::of(&last) == read
                });
            }
            for agent in self.agents() {
                until("the program goes on", || {
                    agent.call(tool);
                    agent.answer().unwrap() == read
                });
            }
        }
    }
}

#[test]
fn twenty_processes_share_one_daemon_and_survive_every_kill() {
    let rounds = std::env::var("PEGBOARD_KILLS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let mut machine = Machine::start();
    machine.goes_on(0);
    assert_eq!(
        machine.home.log("fx").spawned.len(),
        1,
        "twenty clients use one process"
    );
    for round in 0..rounds {
        let victim = VICTIMS[round % VICTIMS.len()];
        let before = machine.home.log("fx");
        let calls = before.count("tools/call");
        let commands = machine.call();
        until("calls have arrived", || {
            machine.home.log("fx").count("tools/call") > calls
        });
        machine.kill(victim, round, &commands);
        let told = machine.told(commands);
        let log = machine.home.log("fx");
        check(round, victim, &told, log.count("tools/call") - calls);
        if !matches!(victim, Victim::Server | Victim::Daemon) {
            assert_eq!(log.spawned.len(), before.spawned.len(), "round {round}: {victim:?}");
        }
        machine.start_again(victim, round);
        machine.goes_on(round);
        for server in ["fx", "gy"] {
            until("one process is left", || alive(&machine.home, server) == 1);
        }
    }
    let daemon = machine.daemon.take().unwrap();
    daemon.signal("TERM");
    let Machine { home, .. } = machine;
    assert_eq!(daemon.code(), Some(0));
    home.assert_gone("fx");
    home.assert_gone("gy");
}

/// What a command says became of its call; `None` if it was killed.
fn of_command(ran: &Ran) -> Option<Told> {
    let code = ran.code?;
    let document: Value = ran.json();
    let told = match document["status"].as_str().unwrap() {
        "done" => Told::Done(document["text"].as_str().unwrap().to_owned()),
        "lost" => Told::Lost,
        "refused" => Told::Refused,
        other => panic!("{other}: {ran:?}"),
    };
    assert_eq!(code == 0, matches!(told, Told::Done(_)), "{ran:?}");
    let may_have_run = document["outcome"]["may_have_executed"] == true;
    assert_eq!(may_have_run, told != Told::Refused, "{ran:?}");
    Some(told)
}

/// Nothing is lost untold: all but a killed client know whether their call is done, may have run or did not, and the server has had no call
/// of which its client was told that it did not run.
fn check(round: usize, victim: Victim, told: &[Told], arrived: usize) {
    let is_client = !matches!(victim, Victim::Server | Victim::Daemon);
    let count = |wanted: &Told| told.iter().filter(|told| *told == wanted).count();
    let (done, refused) = (count(&Told::Done("done".to_owned())), count(&Told::Refused));
    assert_eq!(
        done + refused + count(&Told::Lost),
        told.len(),
        "round {round}: {told:?}"
    );
    // A client may have been answered just before it was killed.
    assert!(
        told.len() >= ALL - usize::from(is_client),
        "round {round}: {victim:?}: {told:?}"
    );
    if is_client {
        assert_eq!(
            done,
            told.len(),
            "a killed {victim:?} costs the others nothing: {told:?}"
        );
    }
    assert!(done <= arrived, "round {round}: {told:?}");
    assert!(
        arrived <= ALL - refused,
        "round {round}, {arrived} calls arrived: {told:?}"
    );
}
