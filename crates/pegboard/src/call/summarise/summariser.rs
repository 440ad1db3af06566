//! The summariser that a program may provide, and the request that it gets.

use pegboard_base::BoxFuture;
use std::sync::Arc;

use pegboard_base::caller::Caller;
use pegboard_tools::outcome::truncate::{self, Bounds, Part};

/// The most of a result that a summariser gets, in tokens.
const INPUT_TOKENS: usize = 100_000;
/// The most of a conversation that a summariser gets, in bytes.
const CONTEXT_BYTES: usize = 64 << 10;

/// Writes summaries. See [`SummaryRequest`] for the input.
pub trait Summariser: Send + Sync + 'static {
    /// Writes a summary. An empty one counts as a failure. Dropping the future cancels the request.
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a>;
}

impl<T: Summariser + ?Sized> Summariser for Arc<T> {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        (**self).summarise(request)
    }
}

impl Summariser for Box<dyn Summariser> {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        (**self).summarise(request)
    }
}

/// Makes a [`Summariser`] of an async function.
///
/// ```
/// use pegboard::{View, summary::summariser};
///
/// let view = View::new().summariser(summariser(|request| {
///     Box::pin(async move { Ok(request.text.chars().take(1000).collect()) })
/// }));
/// ```
pub fn summariser<F>(summarise: F) -> impl Summariser
where
    F: for<'a> Fn(&'a SummaryRequest<'a>) -> Summary<'a> + Send + Sync + 'static,
{
    SummaryFunction(summarise)
}

struct SummaryFunction<F>(F);

impl<F> Summariser for SummaryFunction<F>
where
    F: for<'a> Fn(&'a SummaryRequest<'a>) -> Summary<'a> + Send + Sync + 'static,
{
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        (self.0)(request)
    }
}

/// The future of a summary.
pub type Summary<'a> = BoxFuture<'a, Result<String, SummaryError>>;

/// The text to summarise, and the conversation it was requested for.
///
/// [`SummaryRequest::system_prompt`] and [`SummaryRequest::user_prompt`] render it as prompts for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryRequest<'a> {
    /// The call whose result it is, its view and its principal.
    pub caller: Caller<'a>,
    /// The server that the result comes from.
    pub server: String,
    /// The tool that was called.
    pub tool: String,
    /// The conversation that led to the call, if the caller passed it.
    pub context: Option<String>,
    /// The result: masked, and at most 100,000 tokens of it.
    pub text: String,
    /// The most tokens that the summary may have.
    pub max_tokens: usize,
}

impl<'a> SummaryRequest<'a> {
    /// Creates a request for a summary of `text`. Programs need this only to test their own summarisers. A longer text than
    /// summarisers get is truncated.
    pub fn new(server: &str, tool: &str, text: &str, max_tokens: usize, caller: Caller<'a>) -> Self {
        Self {
            caller,
            server: server.to_owned(),
            tool: tool.to_owned(),
            context: None,
            text: shorten(text, 4 * INPUT_TOKENS, Part::Head),
            max_tokens,
        }
    }

    /// Sets the conversation that led to the call.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        // Keeps both ends: the first request and the latest messages matter most.
        self.context = Some(shorten(context, CONTEXT_BYTES, Part::Ends));
        self
    }
}

fn shorten(text: &str, bytes: usize, part: Part) -> String {
    let marker = |sizes: truncate::Sizes| format!("[{} of {} bytes are shown]", sizes.kept, sizes.bytes);
    truncate::fit(text, &Bounds::bytes(bytes), part, marker).unwrap_or_else(|| text.to_owned())
}

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SummaryError(String);

impl SummaryError {
    /// Creates an error with a message for a person. It should not quote the result.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
