//! A request whose server may want something in between: input in further rounds, or a visit of the user to a page.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

use super::{
    Fault, FaultKind, Patience, Request, Session,
    connection::InFlight,
    host::{ElicitAnswer, RequestParams},
    json_rpc::Params,
    progress::Steps,
    response::Response,
};
use crate::{status::Era, transport::URL_ELICITATION_REQUIRED};

/// How often a server may ask for more before it must answer.
pub(super) const MAX_ROUNDS: usize = 8;
/// The most that a server may ask us to carry back.
const MAX_STATE: usize = 64 << 10;
/// The most that a server may ask for in one round.
const MAX_REQUESTS: usize = 16;

/// What is asked, and how.
pub(super) struct Asked<'a> {
    pub(super) method: &'static str,
    /// The tool, prompt or resource that it is about.
    pub(super) about: &'a str,
    pub(super) mirrored: Vec<(String, String)>,
    pub(super) patience: Patience,
    /// Who wants to know how far it is.
    pub(super) steps: Option<Steps>,
    /// What goes with it in `_meta`, as JSON without braces.
    pub(super) meta: String,
    /// Whether we asked for a task instead of a result.
    pub(super) as_task: bool,
}

/// A result that may be a question first.
pub(super) trait Rounds: DeserializeOwned {
    /// Whether a task may come in its place.
    const MAY_BE_TASK: bool = false;

    /// Reads it.
    fn of(answer: &Response) -> Result<Self, Fault> {
        read(&answer.proven()?)
    }

    fn result_type(&self) -> Option<&str>;

    fn take_round(&mut self) -> Round;
}

/// What a server wants, each request under a key, unread: the order of a form's fields is in its text.
pub(super) type InputRequests = BTreeMap<String, Box<RawValue>>;

/// One of them.
#[derive(Default, Deserialize)]
struct InputRequest {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

/// What a server wants before it goes on.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) requests: InputRequests,
    /// To be carried back as it came.
    pub(super) state: Option<String>,
}

/// How a request was answered in the end.
pub(super) enum Settled<T> {
    Done(T),
    /// With a task, as it came, of which more may be told.
    Task(Bytes, Option<Steps>),
}

impl Session {
    /// ServerRequests until there is a result. Every round is a new request with the same parameters.
    pub(super) async fn rounds<T: Rounds>(
        &self,
        asked: &mut Asked<'_>,
        params: impl Fn() -> Params,
    ) -> Result<Settled<T>, Fault> {
        let mut round = Params::default();
        for _ in 0..=MAX_ROUNDS {
            let answer = self.asking(asked, params().and(&round))?.answer(asked.patience).await;
            let answer = match answer {
                Err(fault) if self.may_visit(&fault) => {
                    Box::pin(self.visit(fault, asked.patience)).await?;
                    continue;
                }
                answer => answer?,
            };
            if asked.as_task {
                return Ok(Settled::Task(answer.proven()?, asked.steps.take()));
            }
            let mut result = T::of(&answer)?;
            match result.result_type() {
                None | Some("complete") => return Ok(Settled::Done(result)),
                Some("input_required") => {
                    round = Box::pin(self.next_round(result.take_round(), asked.patience)).await?;
                }
                Some("task") if T::MAY_BE_TASK => {
                    return Ok(Settled::Task(answer.proven()?, asked.steps.take()));
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
    fn asking(&self, asked: &mut Asked<'_>, params: Params) -> Result<InFlight<'_>, Fault> {
        let request = Request {
            mirrored: &asked.mirrored,
            meta: &asked.meta,
            ..Request::new(asked.method, params).about(asked.about)
        };
        let steps = asked.steps.as_mut();
        self.connection
            .ask(&request, |id| steps.into_iter().for_each(|steps| steps.rebind(id)))
    }

    /// Like [`Session::rounds`], for what can only be a result.
    pub(super) async fn rounds_to_result<T: Rounds>(
        &self,
        mut asked: Asked<'_>,
        params: impl Fn() -> Params,
    ) -> Result<T, Fault> {
        match self.rounds(&mut asked, params).await? {
            Settled::Done(result) => Ok(result),
            Settled::Task(..) => Err(Fault::unreadable("a task came where none may be")),
        }
    }

    /// What the next request carries besides the call itself: the answers, and the server's state as it gave it.
    async fn next_round(&self, round: Round, patience: Patience) -> Result<Params, Fault> {
        if let Some(state) = &round.state
            && state.len() > MAX_STATE
        {
            let text = format!(
                "the server wants {} bytes of state carried back, and {MAX_STATE} are allowed",
                state.len()
            );
            return Err(Fault::unreadable(text));
        }
        let answers = self.inputs(round.requests, patience).await?;
        if answers.is_empty() && round.state.is_none() {
            return Err(Fault::unreadable("the server wants input and does not say what"));
        }
        let mut params = Params::default();
        if !answers.is_empty() {
            params = params.with("inputResponses", &answers);
        }
        Ok(params.with_some("requestState", round.state.as_deref()))
    }

    /// The host's answers to what a server wants, each under the key that the server gave it.
    pub(super) async fn inputs(
        &self,
        requests: InputRequests,
        patience: Patience,
    ) -> Result<Map<String, Value>, Fault> {
        if requests.len() > MAX_REQUESTS {
            let text = format!(
                "the server wants {} things at once, and {MAX_REQUESTS} are allowed",
                requests.len()
            );
            return Err(Fault::unreadable(text));
        }
        let started = Instant::now();
        let mut answers = Map::new();
        for (key, request) in requests {
            let InputRequest { method, params } = serde_json::from_str(request.get()).unwrap_or_default();
            let question = RequestParams::read(params.as_deref());
            let answered = patience.total.run(self.host.answer(&method, question)).await;
            match answered.map_err(|_| Fault::late(started))? {
                Ok(answer) => answers.insert(key, answer),
                Err((_, problem)) => {
                    let text = format!("the server asked for `{}` in between: {problem}", method.escape_debug());
                    return Err(Fault::unreadable(text));
                }
            };
        }
        Ok(answers)
    }

    /// Whether the request failed only because the user must visit a page first, and can be sent there.
    fn may_visit(&self, fault: &Fault) -> bool {
        fault.code() == Some(URL_ELICITATION_REQUIRED) && self.facts.era == Era::Legacy && self.host.visits_pages()
    }

    /// Sends the user to the pages that the error names and waits until all is done there. The error itself when that does not happen.
    async fn visit(&self, fault: Fault, patience: Patience) -> Result<(), Fault> {
        let FaultKind::Error(error) = &fault.kind else {
            return Err(fault);
        };
        let pages = error.data.as_ref().and_then(|data| data.get("elicitations"));
        let pages = pages.and_then(Value::as_array).cloned().unwrap_or_default();
        if pages.is_empty() || pages.len() > MAX_REQUESTS {
            return Err(fault);
        }
        let visiting = async {
            for page in pages {
                match self.host.visit(page).await {
                    Ok((ElicitAnswer::Finished, _)) => {}
                    Ok((ElicitAnswer::Accept(_), Some(id))) => match self.connection.pending().notifications() {
                        Some(notifications) => notifications.until_completed(&id).await,
                        None => return false,
                    },
                    Ok((ElicitAnswer::Accept(_), None)) => {}
                    Ok((ElicitAnswer::Decline | ElicitAnswer::Cancel, _)) | Err(_) => return false,
                }
            }
            true
        };
        match patience.total.run(visiting).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(fault),
        }
    }
}

/// A server that asks for input again and again.
pub(super) fn too_many_rounds() -> Fault {
    Fault::unreadable(format!("the server still wants input after {MAX_ROUNDS} rounds"))
}

/// Reads a result.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Fault> {
    // A list would be taken for the fields in order.
    if answer.first() != Some(&b'{') {
        return Err(Fault::unreadable("the result is no object"));
    }
    serde_json::from_slice(answer).map_err(|error| Fault::unreadable(error.to_string()))
}
