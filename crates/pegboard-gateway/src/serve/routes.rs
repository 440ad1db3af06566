//! The paths that a gateway serves.

use crate::{door::Caller, wire::Target};

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// Streamable HTTP or WebSocket.
    Mcp(Target<'a>),
    /// The event stream of HTTP+SSE.
    Sse(Target<'a>),
    /// Where clients of HTTP+SSE send their messages.
    Messages(Target<'a>),
    /// Whether the process is alive.
    Live,
    /// Whether it is ready for clients. Probes have no token.
    Ready,
    /// A page on which people sign in to servers. Their browsers have no token.
    SignIn,
    Other,
}

impl<'a> Route<'a> {
    pub(super) fn of(path: &'a str) -> Self {
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
            ("mcp", None, None, None) => Self::Mcp(Target::Board),
            ("mcp", Some("view"), Some(name), None) if !name.is_empty() => Self::Mcp(Target::View(name)),
            ("mcp", Some(server), None, None) if !server.is_empty() => Self::Mcp(Target::Server(server)),
            ("approved", Some("mcp"), Some(server), None) if !server.is_empty() => Self::Mcp(Target::Approved(server)),
            ("sse", None, None, None) => Self::Sse(Target::Board),
            ("messages", None, None, None) => Self::Messages(Target::Board),
            ("livez", None, None, None) => Self::Live,
            ("readyz", None, None, None) => Self::Ready,
            ("signin", None | Some("callback"), None, None) => Self::SignIn,
            ("signin", Some("server"), Some(name), None) if !name.is_empty() => Self::SignIn,
            (server, Some("sse"), None, None) if !server.is_empty() => Self::Sse(Target::Server(server)),
            (server, Some("messages"), None, None) if !server.is_empty() => Self::Messages(Target::Server(server)),
            _ => Self::Other,
        }
    }
}

/// The target that a caller reaches at the path of `target`; `None` if its token forbids it. A token for a view reaches that view
/// only: a server's own endpoint would lead around the rules of the view.
pub(super) fn allowed<'a>(target: Target<'a>, caller: &'a Caller) -> Option<Target<'a>> {
    let Some(view) = caller.view.as_deref() else {
        return Some(target);
    };
    match target {
        Target::Board => Some(Target::View(view)),
        Target::View(name) if name == view => Some(target),
        Target::View(_) | Target::Server(_) | Target::Approved(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_targets() {
        for (path, route) in [
            ("/mcp", Route::Mcp(Target::Board)),
            ("/mcp/", Route::Mcp(Target::Board)),
            ("/mcp/time", Route::Mcp(Target::Server("time"))),
            ("/mcp/time/", Route::Mcp(Target::Server("time"))),
            ("/mcp/view", Route::Mcp(Target::Server("view"))),
            ("/mcp/view/coding", Route::Mcp(Target::View("coding"))),
            ("/mcp/view/coding/", Route::Mcp(Target::View("coding"))),
            ("/approved/mcp/time", Route::Mcp(Target::Approved("time"))),
            ("/approved/mcp", Route::Other),
            ("/sse/", Route::Sse(Target::Board)),
            ("/time/sse/", Route::Sse(Target::Server("time"))),
            ("/sse", Route::Sse(Target::Board)),
            ("/time/sse", Route::Sse(Target::Server("time"))),
            ("/messages", Route::Messages(Target::Board)),
            ("/time/messages", Route::Messages(Target::Server("time"))),
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
            ("/signin/sse", Route::Sse(Target::Server("signin"))),
            ("/mcp/sse", Route::Mcp(Target::Server("sse"))),
            ("/", Route::Other),
            ("", Route::Other),
            ("/mcp/view/", Route::Mcp(Target::Server("view"))),
            ("/mcp//", Route::Other),
            ("/mcp/time//", Route::Other),
            ("/mcp/view/a/b", Route::Other),
            ("/mcp/time/x", Route::Other),
            ("//mcp", Route::Other),
            ("//sse", Route::Other),
            ("/mcpx", Route::Other),
            ("/MCP", Route::Other),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }

    #[test]
    fn a_token_for_a_view_reaches_only_that_view() {
        let caller = Caller {
            view: Some("coding".into()),
            ..Caller::default()
        };
        for (target, reached) in [
            (Target::Board, Some(Target::View("coding"))),
            (Target::View("coding"), Some(Target::View("coding"))),
            (Target::View("other"), None),
            (Target::Server("coding"), None),
        ] {
            assert_eq!(allowed(target, &caller), reached, "{target}");
            assert_eq!(allowed(target, &Caller::default()), Some(target));
        }
    }
}
