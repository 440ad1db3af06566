//! The tools of the gateway with which a client finds the sign-in page of a server, or the command where there are no pages: a server that waits
//! for a sign-in has no tools that the client could call to be told.

use std::{sync::Arc, time::Duration};

use pegboard::{
    Failure, Kind, ServerName,
    toolset::{ListedTool, Listing},
};
use serde_json::{Map, Value, json};

use super::{
    client_tools::ClientTools,
    core::Core,
    failures::answer_failed_call,
    sign_in_offers::{Need, Offered},
};
use crate::protocol::{Answer, Client, Exchange, RawResult};

/// The name of the tool, as if the server had it.
const NAME: &str = "sign_in";

/// How long a call waits for a server that is being connected.
const PATIENCE: Duration = Duration::from_secs(60);

impl Core {
    /// Adds a tool to a listing for each server that waits for the sign-in of this client's principal, unless another tool has its name. A client
    /// that may not call tools gets none.
    pub(super) fn add_sign_in_tools(&self, tools: &ClientTools, client: &Client, listing: &mut Listing) {
        if !client.may_call() {
            return;
        }
        let gives_links = self.board.gateway_settings().serve.links_in_text;
        for (server, name) in self.sign_in_tools(tools) {
            if listing.tools.iter().any(|listed| listed.name == name) {
                continue;
            }
            let does = match self.links.page(Some(&server)) {
                Ok(_) if gives_links => format!(
                    "Returns a link with which the user signs in to the server `{server}`. The user must open the link in a browser."
                ),
                Ok(_) => format!("Says how the user signs in to the server `{server}`."),
                Err(_) => format!(
                    "Returns the command with which the user signs in to the server `{server}`. The user must run the command in a terminal."
                ),
            };
            let description = format!("{does} The other tools of `{server}` are not available before that.");
            let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
            match ListedTool::new(name, description, schema) {
                Ok(mut listed) => {
                    let tool = Arc::make_mut(&mut listed.tool);
                    tool.title = Some(format!("Sign in to {server}"));
                    tool.annotations = Some(annotations());
                    listing.tools.push(listed);
                }
                Err(error) => tracing::debug!(%server, %error, "the sign-in of a server cannot be listed"),
            }
        }
    }

    /// The server whose sign-in a called tool is for. `None` if it is another tool.
    pub(super) fn sign_in_tool(&self, tools: &ClientTools, name: &str) -> Option<ServerName> {
        if !name.ends_with(NAME) || !self.links.is_served() || tools.toolset.known_tool(name).is_some() {
            return None;
        }
        let mut waiting = self.sign_in_tools(tools).into_iter();
        if let Some((server, _)) = waiting.find(|(_, listed)| listed == name) {
            return Some(server);
        }
        // The names were others when the client listed them, or the user has signed in since.
        let server = match self.scope.server() {
            Some(server) => Some(server.clone()).filter(|_| name == NAME),
            None => tools.toolset.server_of(name),
        };
        let server = server.filter(|server| self.links.signs_in_to(server))?;
        let prefix = name.strip_suffix(NAME)?.trim_end_matches(['_', '.']);
        let before = prefix.strip_suffix(server.as_str());
        let is_own = prefix.is_empty() || before.is_some_and(|before| ["", "mcp_", "mcp__"].contains(&before));
        is_own.then_some(server)
    }

    /// Answers a call of the tool `name`. `None` if the server turns out to have a tool of this name itself.
    pub(super) async fn call_sign_in_tool(
        &self,
        tools: &ClientTools,
        (server, name): (&ServerName, &str),
        exchange: &Exchange,
    ) -> Option<Answer> {
        let failure = match reach(tools, server).await {
            // It has not listed its tools before.
            Ok(()) if tools.toolset.known_tool(name).is_some() => return None,
            Ok(()) => return Some(report_sign_in(server)),
            Err(failure) => failure,
        };
        Some(match self.can_offer_sign_in(&failure) {
            true => self.answer_sign_in_tool(tools, server, &failure, exchange).await,
            false => answer_failed_call(&failure, || false),
        })
    }

    async fn answer_sign_in_tool(
        &self,
        tools: &ClientTools,
        server: &ServerName,
        failure: &Failure,
        exchange: &Exchange,
    ) -> Answer {
        let need = Need {
            server,
            failure,
            question: format!("Sign in to the server `{server}`."),
        };
        match self.offer_sign_in(tools, need, exchange).await {
            Offered::Page(error) => Err(error),
            Offered::Told(told) if told.has_way => {
                let mut meta = json!({});
                told.mark(&mut meta);
                text_result(&told.text, meta)
            }
            Offered::Told(told) => told.answer(failure),
            Offered::Taken => match reach(tools, server).await {
                Ok(()) => report_sign_in(server),
                Err(failure) => answer_failed_call(&failure, || false),
            },
        }
    }

    /// The servers that wait for the sign-in of this client's principal, and the names of their tools.
    fn sign_in_tools(&self, tools: &ClientTools) -> Vec<(ServerName, String)> {
        if !self.links.is_served() {
            return Vec::new();
        }
        let mut servers = tools.toolset.awaiting_sign_in();
        servers.retain(|server| self.links.signs_in_to(server));
        let pairs: Vec<_> = servers.iter().map(|server| (server.as_str(), NAME)).collect();
        let names = tools.toolset.exposed_names(&pairs);
        servers.into_iter().zip(names).collect()
    }
}

/// A link changes nothing that matters, and the sign-in itself is up to the user. The page is of another site.
fn annotations() -> Map<String, Value> {
    let hints = [
        ("readOnlyHint", false),
        ("destructiveHint", false),
        ("idempotentHint", true),
        ("openWorldHint", true),
    ];
    hints
        .into_iter()
        .map(|(name, hint)| (name.to_owned(), hint.into()))
        .collect()
}

/// Waits for a server that is being connected.
async fn reach(tools: &ClientTools, server: &ServerName) -> Result<(), Failure> {
    match tokio::time::timeout(PATIENCE, tools.toolset.server_info(server)).await {
        Ok(reached) => reached.map(drop),
        Err(_) => {
            let message = format!("server `{server}` is unavailable: it is still being connected. Try again later.");
            Err(Failure::new(Kind::Unavailable, message))
        }
    }
}

fn report_sign_in(server: &ServerName) -> Answer {
    text_result(
        &format!("The user is signed in to `{server}`. List the tools again: those of `{server}` are among them now."),
        json!({}),
    )
}

fn text_result(text: &str, meta: Value) -> Answer {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": false});
    if meta.as_object().is_some_and(|fields| !fields.is_empty()) {
        result["_meta"] = meta;
    }
    RawResult::new(&result)
}
