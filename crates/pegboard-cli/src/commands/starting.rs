//! Shows what each server does while a command waits: one line per server at a terminal.

use std::{collections::BTreeMap, convert::Infallible, future::Future, time::Duration};

use pegboard::{Config, Pegboard, ServerName, State, config::Transport, status::ServerStatus};
use tokio::time::Instant;

use crate::output::{Output, one_line};

/// How often the servers' states are read.
const POLL: Duration = Duration::from_millis(200);

/// Follows the starts of a board's servers.
pub(super) struct StartingServers {
    /// How each server is reached, for servers of which more can be said than that they start.
    ways: BTreeMap<ServerName, String>,
}

impl StartingServers {
    pub(super) fn new(config: &Config) -> Self {
        let ways = config.servers.iter().filter_map(|(name, server)| {
            let Transport::Stdio(command) = &server.transport else {
                return Some((name.clone(), "connecting".to_owned()));
            };
            let program = command.program.rsplit(['/', '\\']).next().unwrap_or(&command.program);
            command
                .fetches_first()
                .then(|| (name.clone(), format!("starting, {program} may be fetching it")))
        });
        Self { ways: ways.collect() }
    }

    /// Runs `work`. Meanwhile a terminal shows `what` and the servers that are starting.
    pub(super) async fn during<T>(
        &self,
        what: &str,
        output: &Output,
        board: &Pegboard,
        work: impl Future<Output = T>,
    ) -> T {
        output.show_waiting(what);
        if !output.has_spinner() {
            return work.await;
        }
        tokio::select! {
            done = work => done,
            never = self.show(what, output, board) => match never {},
        }
    }

    async fn show(&self, what: &str, output: &Output, board: &Pegboard) -> Infallible {
        let mut progress = self.progress();
        let mut is_waiting = false;
        loop {
            tokio::time::sleep(POLL).await;
            let status = board.status();
            let rows = progress.rows(status.servers.iter().map(Seen::from));
            // Once all servers run, the progress of a call is shown, which must not be overwritten.
            if !rows.is_empty() {
                output.show_waiting_for(what, &rows);
            } else if is_waiting {
                output.show_waiting(what);
            }
            is_waiting = !rows.is_empty();
        }
    }

    /// The progress of the servers from now on.
    pub(super) fn progress(&self) -> ServerProgress<'_> {
        ServerProgress {
            ways: &self.ways,
            since: Instant::now(),
            took: BTreeMap::new(),
        }
    }
}

/// What is seen of a server at one moment.
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) tools: usize,
    pub(super) error: Option<String>,
}

impl From<&ServerStatus> for Seen {
    fn from(server: &ServerStatus) -> Self {
        Self {
            name: server.name.to_string(),
            state: server.state,
            tools: server.tools,
            error: server.last_error.as_ref().map(|error| error.message.clone()),
        }
    }
}

/// The starts that were seen so far.
pub(super) struct ServerProgress<'a> {
    ways: &'a BTreeMap<ServerName, String>,
    /// When the command began to wait.
    since: Instant,
    /// How long the starts took that are over.
    took: BTreeMap<String, Duration>,
}

impl ServerProgress<'_> {
    /// One line for each server that is used, those that are starting first; none if no server is starting.
    pub(super) fn rows(&mut self, servers: impl Iterator<Item = Seen>) -> Vec<String> {
        use State::{Closed, Connecting, Disabled, Idle, Misconfigured, PendingTrust};
        let (mut starting, mut done) = (Vec::new(), Vec::new());
        let is_used = |server: &Seen| !matches!(server.state, Idle | Disabled | Misconfigured | PendingTrust | Closed);
        for server in servers.filter(is_used) {
            let elapsed = self.since.elapsed();
            if server.state == Connecting {
                self.took.remove(&server.name);
                starting.push((server, elapsed));
            } else {
                let took = *self.took.entry(server.name.clone()).or_insert(elapsed);
                done.push((server, took));
            }
        }
        if starting.is_empty() {
            return Vec::new();
        }
        let all = || starting.iter().chain(&done);
        let widest = all().map(|(server, _)| server.name.len()).max().unwrap_or(0);
        let row = |(server, took): &(Seen, Duration)| {
            format!(
                "{:widest$}  {:>5.1} s  {}",
                server.name,
                took.as_secs_f64(),
                self.doing(server)
            )
        };
        all().map(row).collect()
    }

    /// What a server does, or how its start ended.
    fn doing(&self, server: &Seen) -> String {
        match (server.state, &server.error) {
            (State::Connecting, _) => match self.ways.get(server.name.as_str()) {
                Some(way) => way.clone(),
                None => "starting".to_owned(),
            },
            (State::Ready, _) => match server.tools {
                1 => "ready, 1 tool".to_owned(),
                tools => format!("ready, {tools} tools"),
            },
            (State::NeedsAuth, _) => "needs a sign-in".to_owned(),
            (state, Some(error)) => format!("{}: {}", state.as_str(), one_line(error)),
            (state, None) => state.as_str().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, state: State) -> Seen {
        let error = (state == State::Down).then(|| "no such\nprogram".to_owned());
        Seen {
            name: name.to_owned(),
            state,
            tools: 9,
            error,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_says_how_long_a_server_takes_and_what_it_does() {
        let ways = BTreeMap::from([(
            ServerName::parse("git").unwrap(),
            "starting, npx may be fetching it".to_owned(),
        )]);
        let mut progress = ServerProgress {
            ways: &ways,
            since: Instant::now(),
            took: BTreeMap::new(),
        };
        assert!(progress.rows([seen("git", State::Idle)].into_iter()).is_empty());
        let all = |git, time, files| [seen("git", git), seen("time", time), seen("files", files)].into_iter();
        progress.rows(all(State::Connecting, State::Connecting, State::Connecting));
        tokio::time::advance(Duration::from_millis(1500)).await;
        progress.rows(all(State::Connecting, State::Ready, State::Down));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(
            progress.rows(all(State::Connecting, State::Ready, State::Down)),
            [
                "git     11.5 s  starting, npx may be fetching it",
                "time     1.5 s  ready, 9 tools",
                "files    1.5 s  down: no such program",
            ]
        );
        // Nothing starts any more.
        assert!(progress.rows(all(State::Ready, State::Ready, State::Down)).is_empty());
    }
}
