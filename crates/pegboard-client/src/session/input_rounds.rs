//! Sends a request in rounds: the server may ask for input first, or for a visit of the user to a web page.

use std::borrow::Cow;

use bytes::Bytes;
use pegboard_protocol::{code, method};
use serde::de::DeserializeOwned;

use super::{
    calls_in_flight::CallInFlight,
    connection::InFlight,
    fault::Fault,
    host::OnBehalf,
    input_answers::InputAnswers,
    json_rpc::Params,
    mcp_session::Session,
    pass_on::{PassOn, ROUND},
    patience::Patience,
    progress::ProgressSubscription,
    raw_result,
    request::Request,
    response::{Response, parse_result},
    round_fields::{RoundFields, WithRound},
};
use crate::session::Era;
use pegboard_base::caller::Principal;
use pegboard_tools::outcome::{ForwardedResult, ResultKind};

/// How often a server may ask for input before it must send a result.
pub(super) const MAX_ROUNDS: usize = 8;

/// A request that may take several rounds. Its params are the same in each.
pub(super) struct RoundsRequest<'a> {
    pub(super) method: Cow<'static, str>,
    /// The name or URI of the tool, prompt or resource.
    pub(super) about: Option<&'a str>,
    /// Arguments that are repeated in HTTP headers, by header.
    pub(super) mirrored: Vec<(String, String)>,
    pub(super) patience: Patience,
    pub(super) on_behalf: OnBehalf<'a>,
    /// Set if the server may ask for input by requests of its own.
    pub(super) in_flight: Option<CallInFlight>,
    pub(super) progress: Option<ProgressSubscription>,
    /// The caller's fields of `_meta`, as JSON without braces.
    pub(super) meta: String,
    /// Whether the request asks for a task instead of a result.
    pub(super) as_task: bool,
    pub(super) pass_on: PassOn<'a>,
}

impl RoundsRequest<'_> {
    /// The params that a client of the program cannot add.
    fn own_params(&self) -> &'static [&'static str] {
        match &*self.method {
            method::TOOLS_CALL => &["_meta", "name", "arguments"],
            _ => &["_meta"],
        }
    }

    /// Keeps a response unparsed if that is what the request wants. Returns `None` for the others, and for those that the host has to answer.
    fn keep<T: RoundsResult>(&self, response: &Response) -> Result<Option<FinalResponse<T>>, Fault> {
        let pass_on = self.pass_on;
        if !(pass_on.keeps_raw || pass_on.returns_input_requests || pass_on.returns_tasks) {
            return Ok(None);
        }
        let raw = raw_result::parse(response, self.as_task)?;
        let is_kept = match raw.kind {
            ResultKind::Complete | ResultKind::Other => pass_on.keeps_raw,
            ResultKind::InputRequired => pass_on.returns_input_requests,
            ResultKind::Task => pass_on.returns_tasks || !T::MAY_BE_TASK,
        };
        Ok(T::from_raw(raw).filter(|_| is_kept).map(FinalResponse::Result))
    }

    /// Notes that the server has responded, so that it asks no more. After other faults it may still ask.
    pub(super) fn complete_if<T>(&mut self, response: &Result<FinalResponse<T>, Fault>) {
        let Some(call) = &mut self.in_flight else { return };
        match response {
            Ok(FinalResponse::Result(_)) => call.complete(),
            Ok(FinalResponse::Task(_)) => call.owner().set_request(0),
            Err(fault) if fault.is_response() => call.complete(),
            Err(_) => {}
        }
    }
}

/// A result that may be preceded by rounds of input.
pub(super) trait RoundsResult: DeserializeOwned {
    /// Whether a task may come in its place.
    const MAY_BE_TASK: bool = false;

    /// Parses a common result and its `resultType` in one pass. Returns `None` to leave the result to serde.
    fn fast_path(_result: &[u8]) -> Option<(Self, Option<String>)> {
        None
    }

    /// Holds the result unparsed. Returns `None` for results that are always parsed.
    fn from_raw(_raw: ForwardedResult) -> Option<Self> {
        None
    }

    /// Parses the result and its round fields.
    fn parse(response: &Response) -> Result<(Self, RoundFields), Fault> {
        if let Some((result, result_type)) = Self::fast_path(response.unverified_result()) {
            let round = RoundFields {
                result_type,
                ..RoundFields::default()
            };
            return Ok((result, round));
        }
        let WithRound(result, round) = parse_result(&response.result()?)?;
        Ok((result, round))
    }
}

/// The response after the last round.
pub(super) enum FinalResponse<T> {
    Result(T),
    /// The unparsed task.
    Task(Bytes),
}

impl Session {
    /// Sends a request, and repeats it with the requested input until there is a result or a task.
    pub(super) async fn send_in_rounds<T: RoundsResult>(
        &self,
        request: &mut RoundsRequest<'_>,
        params: impl Fn() -> Params,
    ) -> Result<FinalResponse<T>, Fault> {
        let mut input = request.pass_on.params_without(&[request.own_params()]);
        for _ in 0..=MAX_ROUNDS {
            let response = self
                .send_round(request, params().and(&input))?
                .response(request.patience)
                .await;
            let response = match response {
                Err(fault) if self.needs_url_elicitation(&fault, request) => {
                    Box::pin(self.answers().elicit_urls(fault, request.patience, request.on_behalf)).await?;
                    continue;
                }
                response => response?,
            };
            if let Some(kept) = request.keep(&response)? {
                return Ok(kept);
            }
            if request.as_task {
                return Ok(FinalResponse::Task(response.result()?));
            }
            let (result, round) = T::parse(&response)?;
            match round.result_type.as_deref() {
                None | Some("complete") => return Ok(FinalResponse::Result(result)),
                Some("input_required") => {
                    let answers = Box::pin(self.answers().collect(round, request.patience, request.on_behalf)).await?;
                    input = request
                        .pass_on
                        .params_without(&[request.own_params(), ROUND])
                        .and(&answers);
                }
                Some("task") if T::MAY_BE_TASK => {
                    return Ok(FinalResponse::Task(response.result()?));
                }
                Some(other) => {
                    let text = format!("its resultType is `{}`", other.escape_debug());
                    return Err(Fault::unreadable(text));
                }
            }
        }
        Err(too_many_rounds())
    }

    /// Sends the request of one round.
    fn send_round(&self, request: &mut RoundsRequest<'_>, params: Params) -> Result<InFlight<'_>, Fault> {
        let round = Request {
            mirrored: &request.mirrored,
            meta: &request.meta,
            offers: request.on_behalf.offers(),
            owner: request.in_flight.as_ref().map(CallInFlight::owner),
            capabilities: request.pass_on.capabilities,
            name: request.about,
            takes_progress: request.progress.is_some() || request.method == method::TOOLS_CALL,
            ..Request::new(request.method.clone(), params)
        };
        let (progress, owner) = (request.progress.as_mut(), round.owner);
        self.connection.send_request(&round, |id| {
            owner.into_iter().for_each(|owner| owner.set_request(id));
            progress.into_iter().for_each(|progress| progress.rebind(id));
        })
    }

    /// Like [`Session::send_in_rounds`], for requests that cannot become tasks.
    pub(super) async fn send_for_result<T: RoundsResult>(
        &self,
        mut request: RoundsRequest<'_>,
        params: impl Fn() -> Params,
    ) -> Result<T, Fault> {
        let response = self.send_in_rounds(&mut request, params).await;
        request.complete_if(&response);
        match response? {
            FinalResponse::Result(result) => Ok(result),
            FinalResponse::Task(_) => Err(Fault::unreadable("a task came where none may be")),
        }
    }

    /// Notes a caller as a user of the connection. Registers it if the server may ask it for input by requests of its own (in the eras that have
    /// such requests, and if the handshake offered it), or if its request asks for logs.
    pub(super) fn register(&self, on_behalf: OnBehalf<'_>) -> Option<CallInFlight> {
        let calls = self.connection.dispatcher().calls();
        calls.users().note(on_behalf.caller.principal);
        let may_ask = self.peer.era == Era::Legacy && self.responder.offers().are_any();
        let may_log = self.connection.log_level().get().is_some();
        (may_ask || may_log).then(|| calls.register(on_behalf))
    }

    /// Notes that a principal uses the connection otherwise than by a call.
    pub fn note_user(&self, principal: Option<&Principal>) {
        self.connection.dispatcher().calls().users().note(principal);
    }

    /// Returns `true` if the request failed because the user must visit a page first, and the host can send the user there.
    fn needs_url_elicitation(&self, fault: &Fault, request: &RoundsRequest<'_>) -> bool {
        fault.code() == Some(code::URL_ELICITATION_REQUIRED)
            && self.peer.era == Era::Legacy
            && !request.pass_on.returns_input_requests
            && self.responder.offers_url_elicitation(request.on_behalf)
    }

    /// Answers the server's requests for input.
    pub(super) fn answers(&self) -> InputAnswers<'_> {
        InputAnswers {
            responder: &self.responder,
            notifications: self.connection.dispatcher().notifications(),
        }
    }
}

/// The fault of a server that never stops asking for input.
pub(super) fn too_many_rounds() -> Fault {
    Fault::unreadable(format!("the server still wants input after {MAX_ROUNDS} rounds"))
}
