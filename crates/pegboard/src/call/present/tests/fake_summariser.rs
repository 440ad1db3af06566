//! A summariser that records its requests.

use std::sync::Arc;

use pegboard_base::sync::Mutex;

use crate::call::summarise::{Summariser, Summary, SummaryError, SummaryRequest};

/// What a fake summariser does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Behaviour {
    Text(&'static str),
    Failure,
    NeverEnds,
    TooMuch,
}

/// A request that the summariser got.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) call: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) context: Option<String>,
    pub(super) text: String,
    pub(super) max_tokens: usize,
}

impl Seen {
    fn new(request: &SummaryRequest<'_>) -> Self {
        Self {
            call: request.caller.call.to_owned(),
            server: request.server.clone(),
            tool: request.tool.clone(),
            context: request.context.clone(),
            text: request.text.clone(),
            max_tokens: request.max_tokens,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Fake {
    pub(super) behaviour: Behaviour,
    pub(super) requests: Arc<Mutex<Vec<Seen>>>,
}

impl Summariser for Fake {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        self.requests.lock().push(Seen::new(request));
        Box::pin(async {
            match self.behaviour {
                Behaviour::Text(text) => Ok(text.to_owned()),
                Behaviour::Failure => Err(SummaryError::new("the model is away")),
                Behaviour::NeverEnds => std::future::pending().await,
                Behaviour::TooMuch => Ok("word ".repeat(100_000)),
            }
        })
    }
}
