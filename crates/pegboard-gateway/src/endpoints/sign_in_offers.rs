//! What a client gets for a call that needs a sign-in: a link to the page for it, in the form that the client can take.

use std::time::Duration;

use pegboard::{Failure, Kind, ServerName};
use serde_json::{Value, json};

use super::{client_tools::ClientTools, core::Core, failures::call_failed};
use crate::{
    protocol::{Answer, Exchange, RawResult, RpcError, check_capability},
    sign_in::{NoSignInPage, SignInLink},
};

/// How long a call waits for the sign-in once its client has taken the link. Many clients give up a request after a minute.
const SIGN_IN_TIME: Duration = Duration::from_secs(50);

/// What comes of the offer of a link.
pub(super) enum Offered {
    /// The person may have signed in: the call can be made again.
    Taken,
    /// The client is answered.
    Answered(Answer),
}

impl Core {
    /// Whether a person can do something about this failure at a page of ours. The call has not run then.
    pub(super) fn can_offer_sign_in(&self, failure: &Failure) -> bool {
        failure.kind == Kind::NeedsAuth && !failure.may_have_executed && self.links.is_served()
    }

    /// Offers the client of a failed call a link to sign in. One that can open pages and waits for its user is asked; another gets the link
    /// with the error.
    pub(super) async fn offer_sign_in(
        &self,
        tools: &ClientTools,
        name: &str,
        failure: &Failure,
        exchange: &Exchange,
    ) -> Offered {
        let client = exchange.client();
        let server = self.scope.server().cloned().or_else(|| tools.toolset.server_of(name));
        let Some(server) = server else {
            return Offered::Answered(call_failed(failure, || false));
        };
        // Before there is a link, so that no sign-in is missed.
        let mut finished = self.links.watch(client.principal(), &server);
        let link = match self.links.create_for(client.principal(), &server) {
            Ok(link) => link,
            Err(why) => return Offered::Answered(unlinked(failure, why)),
        };
        let message = format!("Sign in to the server `{server}`, which the call of `{name}` needs.");
        let mut page = json!({"mode": "url", "message": message, "url": link.url.expose()});
        if check_capability(client.capabilities(), "elicitation/create", &page).is_err() {
            return Offered::Answered(linked(failure, &server, &link));
        }
        if !client.version().is_modern() {
            page["elicitationId"] = link.id.as_str().into();
            let error = RpcError::new(RpcError::URL_ELICITATION_REQUIRED, failure.message.clone());
            return Offered::Answered(Err(error.data(json!({"elicitations": [page]}))));
        }
        match exchange.ask("elicitation/create", page).await {
            Ok(answer) if answer["action"] == "accept" => {
                // A later sign-in is found by the next call.
                let _ = tokio::time::timeout(SIGN_IN_TIME, finished.next()).await;
                Offered::Taken
            }
            Ok(answer) => Offered::Answered(declined(failure, &answer)),
            Err(_) => Offered::Answered(linked(failure, &server, &link)),
        }
    }
}

/// The error of a call with the link as data, for clients that cannot be asked to open a page.
fn linked(failure: &Failure, server: &ServerName, link: &SignInLink) -> Answer {
    let minutes = link.expires_in.as_secs().div_ceil(60);
    let url = link.url.expose();
    let text = format!(
        "{}\nSign-in page of `{server}`, for the user's browser, valid {minutes} min: {url}",
        failure.message
    );
    answered(failure, &text, Some(url))
}

/// The error of a call for which there is no link.
fn unlinked(failure: &Failure, why: NoSignInPage) -> Answer {
    match why {
        NoSignInPage::NotServed | NoSignInPage::NotPossible => call_failed(failure, || false),
        why => answered(
            failure,
            &format!("{}\nThere is no sign-in page: {why}.", failure.message),
            None,
        ),
    }
}

/// The error of a call whose user does not want to sign in.
fn declined(failure: &Failure, answer: &Value) -> Answer {
    let what = match answer["action"].as_str() {
        Some("decline") => "The user declined to sign in.",
        _ => "The user dismissed the sign-in.",
    };
    answered(failure, &format!("{}\n{what}", failure.message), None)
}

fn answered(failure: &Failure, text: &str, url: Option<&str>) -> Answer {
    let result = call_failed(failure, || false)?;
    let mut result: Value = serde_json::from_slice(result.json())
        .map_err(|error| RpcError::new(RpcError::INTERNAL, format!("the answer cannot be written: {error}")))?;
    result["content"] = json!([{"type": "text", "text": text}]);
    if let Some(url) = url {
        result["_meta"]["pegboard/sign_in_url"] = url.into();
    }
    RawResult::new(&result)
}
