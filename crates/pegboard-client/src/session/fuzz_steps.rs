//! The dispatch of one inbound message, exposed to the fuzz targets.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    call_result::CallResult,
    dispatch::Dispatcher,
    input_rounds::RoundsResult as _,
    response::{Response, parse_result},
};
use crate::transport::{ByteBudget, Inbox as _};
use pegboard_base::name::ServerName;
use pegboard_mask::ServerMasker;

/// How many requests are in flight when a message arrives. [`Received::responses`] has their ids.
pub const PENDING: usize = 4;

/// What one inbound message has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The requests of the server: id, method and params as JSON.
    pub requests: Vec<(String, String, Option<String>)>,
    /// For each request in flight, its id and the response: the result as JSON, or the error.
    pub responses: Vec<(u64, Option<Result<Vec<u8>, String>>)>,
    /// The results of tool calls among the responses: as parsed by the fast path where that applies, and as parsed by serde.
    pub call_results: Vec<[Result<String, String>; 2]>,
}

/// Dispatches one message.
pub fn receive(message: &[u8], batches: bool) -> Option<Received> {
    let name = ServerName::parse("fuzz").ok()?;
    let (dispatcher, mut requests) = Dispatcher::new(name, ServerMasker::default(), ByteBudget::default());
    dispatcher.rules().accept_batches(batches);
    let mut receivers = Vec::new();
    for _ in 0..PENDING {
        receivers.push(dispatcher.pending_requests().register().ok()?);
    }
    dispatcher.message(Bytes::copy_from_slice(message));
    let mut received = Received::default();
    while let Ok(request) = requests.try_recv() {
        let params = request.params.as_deref().map(RawValue::get).map(str::to_owned);
        received.requests.push((request.id, request.method, params));
    }
    for mut receiver in receivers {
        let response = receiver.response.try_recv().ok();
        if let Some(Ok(response)) = &response {
            received.call_results.push(call_results(response));
        }
        let result = response.map(|response| match response.and_then(|response| response.result()) {
            Ok(result) => Ok(result.to_vec()),
            Err(fault) => Err(format!("{fault:?}")),
        });
        received.responses.push((receiver.id, result));
    }
    Some(received)
}

fn call_results(response: &Response) -> [Result<String, String>; 2] {
    let fast = CallResult::parse(response).map(|(result, _)| format!("{result:?}"));
    let slow = response
        .result()
        .and_then(|result| parse_result::<CallResult>(&result))
        .map(|result| format!("{result:?}"));
    [fast, slow].map(|result| result.map_err(|fault| format!("{fault:?}")))
}
