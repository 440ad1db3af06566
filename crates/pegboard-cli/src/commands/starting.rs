//! Shows on the spinner which servers are starting.

use std::{collections::BTreeMap, convert::Infallible, future::Future, time::Duration};

use pegboard::{Config, Pegboard, ServerName, State, config::Transport};

use crate::output::Output;

/// How often the servers' states are read for the spinner.
const POLL: Duration = Duration::from_millis(300);
/// How many servers the spinner names.
const NAMED: usize = 3;

/// Follows the starts of a board's servers.
pub(super) struct StartingServers {
    /// The programs that download a server before they start it, by server.
    fetchers: BTreeMap<ServerName, String>,
}

impl StartingServers {
    pub(super) fn new(config: &Config) -> Self {
        let fetchers = config.servers.iter().filter_map(|(name, server)| {
            let Transport::Stdio(command) = &server.transport else {
                return None;
            };
            command.fetches_first().then(|| (name.clone(), command.program.clone()))
        });
        Self {
            fetchers: fetchers.collect(),
        }
    }

    /// Runs `work`. Meanwhile the spinner shows `what` and the servers that are starting.
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
        let mut shown = None;
        loop {
            tokio::time::sleep(POLL).await;
            let status = board.status();
            let starting = status.servers.iter().filter(|one| one.state == State::Connecting);
            let starting: Vec<&ServerName> = starting.map(|server| &server.name).collect();
            let text = self.text(&starting);
            // Only on a change, so that the progress of a call is not overwritten once all servers run.
            if text != shown {
                output.show_waiting(&match &text {
                    Some(text) => format!("{what}: {text}"),
                    None => what.to_owned(),
                });
                shown = text;
            }
        }
    }

    /// A text about the servers that are starting; `None` if there are none.
    fn text(&self, starting: &[&ServerName]) -> Option<String> {
        let one = |name: &&ServerName| match self.fetchers.get(*name) {
            Some(program) => {
                let program = program.rsplit(['/', '\\']).next().unwrap_or(program);
                format!("`{name}` is starting, {program} may be fetching it")
            }
            None => format!("`{name}` is starting"),
        };
        let mut parts: Vec<String> = starting.iter().take(NAMED).map(one).collect();
        match starting.len().saturating_sub(NAMED) {
            0 => {}
            more => parts.push(format!("{more} more")),
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
