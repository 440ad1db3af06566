//! What a client gets for a request that needs a sign-in: a link to the page for it, in the form that the client can take.

use std::time::Duration;

use pegboard::{Advice, Failure, Kind, Principal, Secret, ServerName, login_command};
use pegboard_protocol::{code, meta, method};
use serde_json::{Value, json};

use super::{
    client_tools::ClientTools,
    core::Core,
    failures::{answer_failed_call, needs_auth, request_error},
};
use crate::{
    protocol::{Answer, Client, Exchange, RawResult, RpcError, check_capability},
    sign_in::{NoSignInPage, SignInLink},
};

/// How long a call waits for the sign-in once its client has taken the link. Many clients give up a request after a minute.
const SIGN_IN_TIME: Duration = Duration::from_secs(50);

/// A request that needs a sign-in.
pub(super) struct Need<'a> {
    pub(super) server: &'a ServerName,
    pub(super) failure: &'a Failure,
    /// What the user reads who is asked to open the page.
    pub(super) question: String,
}

/// What comes of the offer of a link.
pub(super) enum Offered {
    /// The person may have signed in: the request can be made again.
    Taken,
    /// The client is told where the person signs in, or that nobody does.
    Told(Told),
    /// A legacy client gets the link as this error.
    Page(RpcError),
}

/// What a client is told, for the model to read.
pub(super) struct Told {
    pub(super) text: String,
    /// The link, for programs.
    url: Option<Secret>,
    /// Whether the text says how the user signs in.
    pub(super) has_way: bool,
}

impl Told {
    fn only(text: String) -> Self {
        Self {
            text,
            url: None,
            has_way: false,
        }
    }

    /// Adds the link to the fields for programs.
    pub(super) fn mark(&self, fields: &mut Value) {
        if let Some(url) = &self.url {
            fields[meta::pegboard::SIGN_IN_URL] = url.expose().into();
        }
    }

    /// The result of a call that failed.
    pub(super) fn answer(&self, failure: &Failure) -> Answer {
        let result = answer_failed_call(failure, || false)?;
        let mut result: Value = serde_json::from_slice(result.json())
            .map_err(|error| RpcError::new(code::INTERNAL_ERROR, format!("the answer cannot be written: {error}")))?;
        result["content"] = json!([{"type": "text", "text": self.text}]);
        self.mark(&mut result["_meta"]);
        RawResult::new(&result)
    }
}

impl Core {
    /// Whether a person can do something about this failure at a page of ours. The request has not run then.
    pub(super) fn can_offer_sign_in(&self, failure: &Failure) -> bool {
        failure.kind == Kind::NeedsAuth && !failure.may_have_executed && self.links.is_served()
    }

    /// The server whose sign-in a failed call needs, and the failure that says so.
    ///
    /// A server that waits for a sign-in has not listed its tools, so at its own endpoint every call is one of an unknown tool.
    pub(super) async fn lacks_sign_in(
        &self,
        tools: &ClientTools,
        name: &str,
        failure: &Failure,
    ) -> Option<(ServerName, Failure)> {
        let own = self.scope.server().cloned();
        if self.can_offer_sign_in(failure) {
            let server = own.or_else(|| tools.toolset.server_of(name))?;
            return Some((server, failure.clone()));
        }
        let server = own.filter(|_| failure.kind == Kind::UnknownTool && self.links.is_served())?;
        let failure = self.missing_sign_in(tools, &server).await?;
        Some((server, failure))
    }

    /// Why a server that waits for a sign-in cannot be used.
    pub(super) async fn missing_sign_in(&self, tools: &ClientTools, server: &ServerName) -> Option<Failure> {
        if !tools.toolset.awaiting_sign_in().contains(server) {
            return None;
        }
        let failure = tools.toolset.server_info(server).await.err()?;
        self.can_offer_sign_in(&failure).then_some(failure)
    }

    /// Offers the client of a failed call a link to sign in. One that can open pages and waits for its user is asked; another gets the link
    /// with the answer.
    pub(super) async fn offer_sign_in(&self, tools: &ClientTools, need: Need<'_>, exchange: &Exchange) -> Offered {
        let (client, server) = (exchange.client(), need.server);
        // Before there is a link, so that no sign-in is missed.
        let mut finished = self.links.watch(client.principal(), Some(server));
        if !client.may_call() {
            return Offered::Told(Told::only(need.failure.text()));
        }
        let link = match self.links.create(client.caller(), Some(server)) {
            Ok(link) => link,
            Err(why) => return Offered::Told(tell_missing_link(&need, client.principal(), why)),
        };
        let page = json!({"mode": "url", "message": need.question, "url": link.url.expose()});
        if !opens_pages(client, &page) {
            return Offered::Told(self.tell_link(need.failure, server, client, &link));
        }
        if !client.version().is_modern() {
            return Offered::Page(elicitation(tools, need.failure, server, &link, page));
        }
        match exchange.ask(method::ELICITATION_CREATE, page).await {
            Ok(answer) if answer["action"] == "accept" => {
                // A later sign-in is found by the next call.
                let _ = tokio::time::timeout(SIGN_IN_TIME, finished.next()).await;
                Offered::Taken
            }
            Ok(answer) => Offered::Told(tell_declined(need.failure, &answer)),
            Err(_) => Offered::Told(self.tell_link(need.failure, server, client, &link)),
        }
    }

    /// Adds a link to the error of a request that is no tool call, if its server waits for a sign-in. A legacy client that can open pages gets
    /// the error that asks for one, unless it only lists something.
    pub(super) async fn or_sign_in_link(
        &self,
        tools: &ClientTools,
        server: Option<&ServerName>,
        method: &str,
        answer: Answer,
        exchange: &Exchange,
    ) -> Answer {
        let (error, server) = match (answer, server) {
            (Err(error), Some(server)) if self.links.is_served() && exchange.client().may_call() => (error, server),
            (answer, _) => return answer,
        };
        let failure = match needs_auth(&error) {
            true => Failure::new(Kind::NeedsAuth, error.message.clone()).advice(Advice::LeaveToPerson),
            false => match self.missing_sign_in(tools, server).await {
                Some(failure) => failure,
                None => return Err(error),
            },
        };
        let client = exchange.client();
        let link = match self.links.create(client.caller(), Some(server)) {
            Ok(link) => link,
            Err(why) => {
                let question = String::new();
                let need = Need {
                    server,
                    failure: &failure,
                    question,
                };
                return Err(RpcError {
                    message: tell_missing_link(&need, client.principal(), why).text,
                    ..request_error(&failure)
                });
            }
        };
        let question = format!("Sign in to the server `{server}`, which the request `{method}` needs.");
        let page = json!({"mode": "url", "message": question, "url": link.url.expose()});
        if !client.version().is_modern() && !method.ends_with("/list") && opens_pages(client, &page) {
            return Err(elicitation(tools, &failure, server, &link, page));
        }
        let told = self.tell_link(&failure, server, client, &link);
        let mut error = request_error(&failure);
        if let Some(data) = &mut error.data {
            told.mark(data);
        }
        Err(RpcError {
            message: told.text,
            ..error
        })
    }

    /// The text with the link, for clients that cannot be asked to open a page. A model reads it, so the config may keep the link out of it.
    fn tell_link(&self, failure: &Failure, server: &ServerName, client: &Client, link: &SignInLink) -> Told {
        let why = failure.text_with(Advice::Person);
        if !self.board.gateway_settings().serve.links_in_text {
            let base = self.links.base().unwrap_or_default();
            let how = match client.principal() {
                // The page needs no link then.
                None => format!("Tell the user to sign in to `{server}`, at {base}/signin."),
                Some(_) => format!(
                    "Tell the user to sign in to `{server}`, with a link: `POST {base}/api/v1/mcp/servers/{server}/signin` with the token of this \
                     program returns one. The operator can also run `{}` on the machine of the gateway.",
                    login_command(server.as_str(), client.principal().map(Principal::as_str))
                ),
            };
            let text = format!("{why}\n{how}");
            return Told {
                has_way: true,
                ..Told::only(text)
            };
        }
        let minutes = link.expires_in.as_secs().div_ceil(60);
        let url = link.url.expose();
        Told {
            text: format!(
                "{why}\nShow this link to the user, who can open it within {minutes} min to sign in to `{server}`: {url}"
            ),
            url: Some(link.url.clone()),
            has_way: true,
        }
    }
}

/// Whether a client can be asked to open this page.
fn opens_pages(client: &Client, page: &Value) -> bool {
    check_capability(client.capabilities(), method::ELICITATION_CREATE, page).is_ok()
}

/// The error with which a legacy client is asked to open a page. It is told when the person has signed in there.
fn elicitation(
    tools: &ClientTools,
    failure: &Failure,
    server: &ServerName,
    link: &SignInLink,
    mut page: Value,
) -> RpcError {
    tools.exchanges.note_sign_in(&link.id, server);
    page["elicitationId"] = link.id.as_str().into();
    let error = RpcError::new(code::URL_ELICITATION_REQUIRED, failure.text_with(Advice::Person));
    error.data(json!({"elicitations": [page]}))
}

/// What is told if there is no link.
fn tell_missing_link(need: &Need<'_>, principal: Option<&Principal>, why: NoSignInPage) -> Told {
    let Need { server, failure, .. } = need;
    let command = login_command(server.as_str(), principal.map(Principal::as_str));
    Told::only(match why {
        NoSignInPage::NoAddress => {
            let text = format!(
                "{}\nTell the user to run `{command}` in a terminal, which signs in to `{server}`.",
                failure.text_with(Advice::Person)
            );
            return Told {
                has_way: true,
                ..Told::only(text)
            };
        }
        NoSignInPage::NotServed | NoSignInPage::NotPossible => failure.text(),
        NoSignInPage::NeedsPublicUrl | NoSignInPage::PublicUrlNotHttps => format!(
            "{}\nThere is no sign-in page: {why}. The operator can also run `{command}` on the machine of the gateway.",
            failure.text()
        ),
        why => format!("{}\nThere is no sign-in page: {why}.", failure.text()),
    })
}

/// What is told if the user does not want to sign in.
fn tell_declined(failure: &Failure, answer: &Value) -> Told {
    let what = match answer["action"].as_str() {
        Some("decline") => "The user declined to sign in.",
        _ => "The user dismissed the sign-in.",
    };
    Told::only(format!("{}\n{what}", failure.text()))
}
