//! [`HostContext`]: which server asks, and for which call.

use pegboard_base::{caller::Caller, name::ServerName};

/// The server that sends a request to the program, and the call that the request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostContext<'a> {
    /// The server.
    pub server: &'a ServerName,
    /// The call that made the server ask, its view and its principal. In protocol version 2026-07-28 it is always known. Before that, a server's
    /// request does not name a call, and it is known
    ///
    /// * if the request arrives on the response stream of the call (streamable HTTP),
    /// * or if one call is in flight on the connection,
    /// * or if all calls in flight are of one principal and answered by the same host. Then [`Caller::call`] is empty, and [`Caller::view`] too
    ///   if the calls are of several views.
    ///
    /// It is `None` if no call is in flight, or several calls of different views that have neither a principal nor a host of their own.
    /// Where calls of different principals or hosts are in flight, a request that belongs to none of them for certain is rejected
    /// and reaches no host.
    pub caller: Option<Caller<'a>>,
    /// The ids of the calls that the request may belong to, if it belongs to one of several. Otherwise it is empty.
    pub candidates: &'a [String],
    /// The name that the server gave to the request: its key among the input requests of a result, or its JSON-RPC id if that is a string.
    pub request: Option<&'a str>,
}

impl<'a> HostContext<'a> {
    /// Creates a context without a call. Programs need this only to test their own hosts.
    pub fn new(server: &'a ServerName) -> Self {
        Self {
            server,
            caller: None,
            candidates: &[],
            request: None,
        }
    }

    /// Sets the call.
    #[must_use]
    pub fn caller(mut self, caller: Caller<'a>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Sets the server's name for the request.
    #[must_use]
    pub fn request(mut self, request: &'a str) -> Self {
        self.request = Some(request);
        self
    }
}
