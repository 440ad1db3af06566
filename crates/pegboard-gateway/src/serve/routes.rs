//! The paths that a gateway serves.

use crate::{door::Caller, wire::PathTarget};

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// Streamable HTTP or WebSocket.
    Mcp(PathTarget<'a>),
    /// The event stream of HTTP+SSE.
    Sse(PathTarget<'a>),
    /// Where clients of HTTP+SSE send their messages.
    Messages(PathTarget<'a>),
    /// Whether the process is alive.
    Live,
    /// Whether it is ready for clients. Probes have no token.
    Ready,
    /// A page on which people sign in to servers. Their browsers have no token.
    SignIn,
    Other,
}

impl<'a> Route<'a> {
    pub(super) fn parse(path: &'a str) -> Self {
        // People write addresses with a slash at their end.
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
        let parts = (
            parts.next().unwrap_or_default(),
            parts.next(),
            parts.next(),
            parts.next(),
        );
        match parts {
            ("mcp", None, None, None) => Self::Mcp(PathTarget::Board),
            ("mcp", Some("view"), Some(name), None) if !name.is_empty() => Self::Mcp(PathTarget::View(name)),
            ("mcp", Some(server), None, None) if !server.is_empty() => Self::Mcp(PathTarget::Server(server)),
            ("approved", Some("mcp"), Some(server), None) if !server.is_empty() => {
                Self::Mcp(PathTarget::Approved(server))
            }
            ("sse", None, None, None) => Self::Sse(PathTarget::Board),
            ("messages", None, None, None) => Self::Messages(PathTarget::Board),
            ("livez", None, None, None) => Self::Live,
            ("readyz", None, None, None) => Self::Ready,
            ("signin", None | Some("callback"), None, None) => Self::SignIn,
            ("signin", Some("server"), Some(name), None) if !name.is_empty() => Self::SignIn,
            (server, Some("sse"), None, None) if !server.is_empty() => Self::Sse(PathTarget::Server(server)),
            (server, Some("messages"), None, None) if !server.is_empty() => Self::Messages(PathTarget::Server(server)),
            _ => Self::Other,
        }
    }
}

/// The target that a caller reaches at the path of `target`; `None` if its token forbids it. A token for a view reaches that view
/// only: a server's own endpoint would lead around the rules of the view.
pub(super) fn authorize<'a>(target: PathTarget<'a>, caller: &'a Caller) -> Option<PathTarget<'a>> {
    let Some(view) = caller.view.as_deref() else {
        return Some(target);
    };
    match target {
        PathTarget::Board => Some(PathTarget::View(view)),
        PathTarget::View(name) if name == view => Some(target),
        PathTarget::View(_) | PathTarget::Server(_) | PathTarget::Approved(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_targets() {
        for (path, route) in [
            ("/mcp", Route::Mcp(PathTarget::Board)),
            ("/mcp/", Route::Mcp(PathTarget::Board)),
            ("/mcp/time", Route::Mcp(PathTarget::Server("time"))),
            ("/mcp/time/", Route::Mcp(PathTarget::Server("time"))),
            ("/mcp/view", Route::Mcp(PathTarget::Server("view"))),
            ("/mcp/view/coding", Route::Mcp(PathTarget::View("coding"))),
            ("/mcp/view/coding/", Route::Mcp(PathTarget::View("coding"))),
            ("/approved/mcp/time", Route::Mcp(PathTarget::Approved("time"))),
            ("/approved/mcp", Route::Other),
            ("/sse/", Route::Sse(PathTarget::Board)),
            ("/time/sse/", Route::Sse(PathTarget::Server("time"))),
            ("/sse", Route::Sse(PathTarget::Board)),
            ("/time/sse", Route::Sse(PathTarget::Server("time"))),
            ("/messages", Route::Messages(PathTarget::Board)),
            ("/time/messages", Route::Messages(PathTarget::Server("time"))),
            ("/livez", Route::Live),
            ("/readyz", Route::Ready),
            ("/readyz/x", Route::Other),
            ("/signin", Route::SignIn),
            ("/signin/", Route::SignIn),
            ("/signin/callback", Route::SignIn),
            ("/signin/server/sse", Route::SignIn),
            ("/signin/server", Route::Other),
            ("/signin/server//", Route::Other),
            ("/signin/server/a/b", Route::Other),
            ("/signin/sse", Route::Sse(PathTarget::Server("signin"))),
            ("/mcp/sse", Route::Mcp(PathTarget::Server("sse"))),
            ("/", Route::Other),
            ("", Route::Other),
            ("/mcp/view/", Route::Mcp(PathTarget::Server("view"))),
            ("/mcp//", Route::Other),
            ("/mcp/time//", Route::Other),
            ("/mcp/view/a/b", Route::Other),
            ("/mcp/time/x", Route::Other),
            ("//mcp", Route::Other),
            ("//sse", Route::Other),
            ("/mcpx", Route::Other),
            ("/MCP", Route::Other),
        ] {
            assert_eq!(Route::parse(path), route, "{path}");
        }
    }

    #[test]
    fn a_token_for_a_view_reaches_only_that_view() {
        let caller = Caller {
            view: Some("coding".into()),
            ..Caller::default()
        };
        for (target, reached) in [
            (PathTarget::Board, Some(PathTarget::View("coding"))),
            (PathTarget::View("coding"), Some(PathTarget::View("coding"))),
            (PathTarget::View("other"), None),
            (PathTarget::Server("coding"), None),
        ] {
            assert_eq!(authorize(target, &caller), reached, "{target}");
            assert_eq!(authorize(target, &Caller::default()), Some(target));
        }
    }
}
