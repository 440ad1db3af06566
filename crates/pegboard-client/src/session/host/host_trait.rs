//! [`Host`]: the callbacks with which the embedding program answers servers.

use pegboard_base::BoxFuture;
use std::sync::Arc;

use pegboard_protocol::code;
use serde_json::Value;

use super::{
    elicitation::{ElicitAnswer, Elicitation},
    host_context::HostContext,
};

/// Answers the requests of servers to the embedding program. Servers are offered only the capabilities whose `offers_…` method returns `true`.
///
/// A host that is set with `Builder::host` serves the whole board; one that is set with
/// `View::host` serves the calls of one view. [`HostContext`] names the server and the call that a request belongs to.
///
/// The `offers_…` methods are called when a session with a server starts, and for the host of a view when it is set. The returned futures may be
/// dropped at any time: when the call that they belong to is cancelled, or when its deadline passes.
pub trait Host: Send + Sync + 'static {
    /// Whether servers may use [`Host::elicit`].
    fn offers_elicitation(&self) -> bool {
        false
    }

    /// Whether [`Host::elicit`] can also send a user to a web page. Ignored unless elicitation is offered.
    fn offers_pages(&self) -> bool {
        true
    }

    /// Asks the user for input that a server requests.
    fn elicit<'a>(&'a self, context: HostContext<'a>, request: Elicitation) -> BoxFuture<'a, ElicitAnswer> {
        let _ = (context, request);
        Box::pin(std::future::ready(ElicitAnswer::Decline))
    }

    /// Whether servers may use [`Host::sample`].
    fn offers_sampling(&self) -> bool {
        false
    }

    /// Whether servers may pass tools to the model (`tools` and `toolChoice`). Otherwise, such requests are rejected.
    fn offers_sampling_tools(&self) -> bool {
        false
    }

    /// Whether [`Host::sample`] supports `includeContext`. Otherwise, that field is removed.
    fn offers_sampling_context(&self) -> bool {
        false
    }

    /// Limits the sampling of each server.
    fn sampling_limits(&self) -> SamplingLimits {
        SamplingLimits::default()
    }

    /// Decides whether a request may reach the model, for hosts that ask their user first. `params` are those of
    /// `sampling/createMessage`, with the limits applied.
    fn approve_sampling<'a>(&'a self, context: HostContext<'a>, params: &'a Value) -> BoxFuture<'a, bool> {
        let _ = (context, params);
        Box::pin(std::future::ready(true))
    }

    /// Samples a model for a server. `params` and the result are those of `sampling/createMessage`. A result without `role`, `model` or
    /// valid `content` is not sent.
    fn sample<'a>(&'a self, context: HostContext<'a>, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        let _ = (context, params);
        Box::pin(std::future::ready(Err("no model is offered to servers".to_owned())))
    }

    /// Whether servers may ask for the roots of the caller, by [`Host::request`]. Ignored unless the host [takes requests](Host::takes_requests).
    fn offers_roots(&self) -> bool {
        false
    }

    /// Whether the host takes all requests by [`Host::request`], in place of [`Host::elicit`] and [`Host::sample`]: a gateway passes them on to
    /// its client as they are.
    fn takes_requests(&self) -> bool {
        false
    }

    /// Answers a request of a server: `elicitation/create`, `sampling/createMessage` or `roots/list`, each only if it is offered. Returns its
    /// result, or the code and the message of an error.
    ///
    /// The request has been checked as for the other methods: secrets in it are masked, forms that ask for passwords are rejected, and the limits
    /// for sampling are applied. Tasks that a server asks for are run by Pegboard, so the request never asks for one.
    fn request<'a>(
        &'a self,
        context: HostContext<'a>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, (i64, String)>> {
        let _ = (context, method, params);
        Box::pin(std::future::ready(Err((
            code::METHOD_NOT_FOUND,
            "this client does not offer that".to_owned(),
        ))))
    }
}

/// A [`Host`] that offers no capabilities to servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// A host behind a pointer answers as the host itself.
macro_rules! delegate {
    ($($pointer:ident),*) => {$(
        impl<T: Host + ?Sized> Host for $pointer<T> {
            fn offers_elicitation(&self) -> bool {
                (**self).offers_elicitation()
            }

            fn offers_pages(&self) -> bool {
                (**self).offers_pages()
            }

            fn elicit<'a>(&'a self, context: HostContext<'a>, request: Elicitation) -> BoxFuture<'a, ElicitAnswer> {
                (**self).elicit(context, request)
            }

            fn offers_sampling(&self) -> bool {
                (**self).offers_sampling()
            }

            fn offers_sampling_tools(&self) -> bool {
                (**self).offers_sampling_tools()
            }

            fn offers_sampling_context(&self) -> bool {
                (**self).offers_sampling_context()
            }

            fn sampling_limits(&self) -> SamplingLimits {
                (**self).sampling_limits()
            }

            fn approve_sampling<'a>(&'a self, context: HostContext<'a>, params: &'a Value) -> BoxFuture<'a, bool> {
                (**self).approve_sampling(context, params)
            }

            fn sample<'a>(&'a self, context: HostContext<'a>, params: Value) -> BoxFuture<'a, Result<Value, String>> {
                (**self).sample(context, params)
            }

            fn offers_roots(&self) -> bool {
                (**self).offers_roots()
            }

            fn takes_requests(&self) -> bool {
                (**self).takes_requests()
            }

            fn request<'a>(
                &'a self,
                context: HostContext<'a>,
                method: &'a str,
                params: Value,
            ) -> BoxFuture<'a, Result<Value, (i64, String)>> {
                (**self).request(context, method, params)
            }
        }
    )*};
}

delegate!(Arc, Box);

/// Limits on the sampling of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingLimits {
    /// The most tokens of one response. A request for more gets this many.
    pub tokens: u64,
    /// The most requests in any minute. Further ones are rejected.
    pub per_minute: usize,
}

impl Default for SamplingLimits {
    fn default() -> Self {
        Self {
            tokens: 4096,
            per_minute: 10,
        }
    }
}
