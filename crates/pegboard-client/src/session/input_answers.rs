//! Answers a server's requests for input: from the host, or by a visit of the user to a web page.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

use super::{
    fault::{Fault, FaultKind},
    host::{ElicitAnswer, OnBehalf, RequestParams, Responder},
    json_rpc::Params,
    notifications::Notifications,
    patience::Patience,
    round_fields::{InputRequests, RoundFields},
};

/// The longest `requestState` that is sent back.
const MAX_STATE: usize = 64 << 10;
/// The most input requests in one round.
const MAX_REQUESTS: usize = 16;

/// Answers the requests for input of one server.
#[derive(Clone, Copy)]
pub(super) struct InputAnswers<'a> {
    pub(super) responder: &'a Responder,
    pub(super) notifications: Option<&'a Arc<Notifications>>,
}

impl InputAnswers<'_> {
    /// Collects the params that the next round adds: the requested input and the server's state.
    pub(super) async fn collect(
        self,
        round: RoundFields,
        patience: Patience,
        on_behalf: OnBehalf<'_>,
    ) -> Result<Params, Fault> {
        if let Some(state) = &round.state
            && state.len() > MAX_STATE
        {
            let text = format!(
                "the server wants {} bytes of state carried back, and {MAX_STATE} are allowed",
                state.len()
            );
            return Err(Fault::unreadable(text));
        }
        let responses = self
            .respond(round.requests.unwrap_or_default(), patience, on_behalf)
            .await?;
        if responses.is_empty() && round.state.is_none() {
            return Err(Fault::unreadable("the server wants input and does not say what"));
        }
        let mut params = Params::default();
        if !responses.is_empty() {
            params = params.with("inputResponses", &responses);
        }
        Ok(params.with_some("requestState", round.state.as_deref()))
    }

    /// Returns the host's responses to input requests, by the server's keys.
    pub(super) async fn respond(
        self,
        requests: InputRequests,
        patience: Patience,
        on_behalf: OnBehalf<'_>,
    ) -> Result<Map<String, Value>, Fault> {
        if requests.len() > MAX_REQUESTS {
            let text = format!(
                "the server wants {} things at once, and {MAX_REQUESTS} are allowed",
                requests.len()
            );
            return Err(Fault::unreadable(text));
        }
        let started = Instant::now();
        let mut responses = Map::new();
        for (key, request) in requests {
            let InputRequest { method, params } = serde_json::from_str(request.get()).unwrap_or_default();
            let params = RequestParams::parse(params.as_deref()).with_name(Some(key.clone()));
            let asked = self.responder.select_host(on_behalf);
            let responding = self.responder.respond_directly(&method, params, asked);
            let response = patience.total.run(responding).await;
            match response.map_err(|_| Fault::timed_out(started))? {
                Ok(response) => responses.insert(key, response),
                Err((_, problem)) => {
                    let text = format!("the server asked for `{}` in between: {problem}", method.escape_debug());
                    return Err(Fault::unreadable(text));
                }
            };
        }
        Ok(responses)
    }

    /// Sends the user to the pages in the error, and waits until the user has finished there. Returns the error if that fails.
    pub(super) async fn elicit_urls(
        self,
        fault: Fault,
        patience: Patience,
        on_behalf: OnBehalf<'_>,
    ) -> Result<(), Fault> {
        let FaultKind::Error(error) = &fault.kind else {
            return Err(fault);
        };
        let requests = error.data.as_ref().and_then(|data| data.get("elicitations"));
        let requests = requests.and_then(Value::as_array).cloned().unwrap_or_default();
        if requests.is_empty() || requests.len() > MAX_REQUESTS {
            return Err(fault);
        }
        let eliciting = async {
            for request in requests {
                let asked = self.responder.select_host(on_behalf);
                match self.responder.elicit_url(request, asked).await {
                    Ok((ElicitAnswer::Finished, _)) => {}
                    Ok((ElicitAnswer::Accept(_), Some(id))) => match self.notifications {
                        Some(notifications) => notifications.until_completed(&id).await,
                        None => return false,
                    },
                    Ok((ElicitAnswer::Accept(_), None)) => {}
                    Ok((ElicitAnswer::Decline | ElicitAnswer::Cancel, _)) | Err(_) => return false,
                }
            }
            true
        };
        match patience.total.run(eliciting).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(fault),
        }
    }
}

/// One input request.
#[derive(Default, Deserialize)]
struct InputRequest {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}
