//! [`RunningDaemon`]: a daemon that serves the config of a command.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::{Builder, Config, Reply};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    dialer::{connect, has_ended},
    hello::Hello,
    http,
    refusal::Refusal,
    remote,
    start::Starter,
};
use crate::{logging::LogLine, settings};

/// How long a daemon may take to report its status, or why it refuses a tool.
const STATUS_TIME: Duration = Duration::from_secs(5);

/// A daemon that serves the config of this command.
#[derive(Debug, Clone)]
pub(crate) struct RunningDaemon {
    socket: PathBuf,
    pub(super) hello: Hello,
    /// Starts it again if it has ended.
    starter: Option<Starter>,
    /// Whether this command has started it.
    is_new: bool,
}

/// What is at the place of a daemon.
pub(super) enum Greeting {
    Daemon(Box<RunningDaemon>),
    /// Something that accepts connections and does not answer as a daemon does.
    Refused,
    Nothing,
}

/// What the daemon at a socket says of itself; `None` if there is none.
pub(super) async fn hello_at(socket: &Path) -> Option<Hello> {
    match greet(socket).await {
        Greeting::Daemon(daemon) => Some(daemon.hello),
        Greeting::Refused | Greeting::Nothing => None,
    }
}

/// Asks the daemon at a socket who it is.
pub(super) async fn greet(socket: &Path) -> Greeting {
    let mut stream = match connect(socket).await {
        Ok(stream) => stream,
        Err(error) if has_ended(&error) => return Greeting::Nothing,
        Err(_) => return Greeting::Refused,
    };
    let hello = async { serde_json::from_slice(&http::get(&mut stream, "/local/hello").await.ok()?.body).ok() };
    match hello.await {
        Some(hello) => Greeting::Daemon(Box::new(RunningDaemon {
            socket: socket.to_owned(),
            hello,
            starter: None,
            is_new: false,
        })),
        None => Greeting::Refused,
    }
}

impl RunningDaemon {
    /// The same daemon, which is started again if it ends.
    pub(super) fn with_starter(self, starter: Starter) -> Self {
        Self {
            starter: Some(starter),
            ..self
        }
    }

    /// The same daemon, which this command has started.
    pub(super) fn started_here(self) -> Self {
        Self { is_new: true, ..self }
    }

    /// Whether this command has started it.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// A board whose servers are those of the daemon.
    pub(crate) fn board(&self, config: Config) -> Builder {
        let is_reloading = self.hello.applying.is_some();
        remote::board(config, self.socket.clone(), self.starter.clone(), is_reloading)
    }

    /// The same for a program that serves clients. It lists servers that are slow or down as an earlier run has seen them.
    pub(crate) fn serving_board(&self, config: Config) -> Builder {
        let rules = remote::passing_rules(&config);
        let builder = settings::with_tokens(self.board(config));
        match settings::catalogs_folder() {
            Some(folder) => builder.catalog_store_under(folder, rules),
            None => builder,
        }
    }

    /// Whether nothing listens at its place any more, or another daemon does.
    pub(crate) async fn has_ended(&self) -> bool {
        match timeout(STATUS_TIME, greet(&self.socket)).await {
            Ok(Greeting::Nothing) => true,
            Ok(Greeting::Daemon(daemon)) => daemon.pid() != self.pid(),
            Ok(Greeting::Refused) | Err(_) => false,
        }
    }

    /// The process id of the daemon.
    pub(crate) fn pid(&self) -> u32 {
        self.hello.pid
    }

    /// The status of the daemon's board, or why there is none.
    pub(crate) async fn status(&self) -> Result<Value, String> {
        ask(&self.socket, "/local/status", STATUS_TIME).await
    }

    /// A link that signs one browser in to the dashboard, as `{"url": …}` or `{"error": …}`; or why there is no answer.
    pub(crate) async fn dashboard_link(&self) -> Result<Value, String> {
        ask(&self.socket, "/local/open", STATUS_TIME).await
    }

    /// What a server of the daemon wrote after the line with this number.
    pub(crate) async fn logs(&self, server: &str, number: u64) -> Result<Vec<LogLine>, String> {
        ask(&self.socket, &format!("/local/logs/{server}/{number}"), STATUS_TIME).await
    }

    /// Asks the daemon to read its config files again, and returns what it says of itself then.
    pub(super) async fn reload(self, limit: Duration) -> Self {
        match ask(&self.socket, "/local/reload", limit).await {
            Ok(hello) => Self { hello, ..self },
            // It goes on with the config that it has.
            Err(_) => self,
        }
    }

    /// The reply to a call of a tool that the command does not see, with the daemon's reason if it has one.
    pub(crate) async fn explain_unknown(&self, reply: Reply) -> Reply {
        let tool: String = reply.asked.bytes().map(|byte| format!("%{byte:02X}")).collect();
        match ask::<Refusal>(&self.socket, &format!("/local/refusals/{tool}"), STATUS_TIME).await {
            Ok(refusal) => refusal.explain(reply),
            // The reply says already that the tool is not there.
            Err(_) => reply,
        }
    }
}

/// Asks the daemon at a socket for a document.
pub(super) async fn ask<T: DeserializeOwned>(socket: &Path, path: &str, limit: Duration) -> Result<T, String> {
    let asking = async {
        let mut stream = connect(socket).await?;
        http::get(&mut stream, path).await
    };
    match timeout(limit, asking).await {
        Ok(Ok(response)) if response.status == 200 => {
            serde_json::from_slice(&response.body).map_err(|error| error.to_string())
        }
        Ok(Ok(response)) => Err(format!("it answers with status {}", response.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}
