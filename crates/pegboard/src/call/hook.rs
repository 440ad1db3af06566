//! What the embedding program may do around every call: look, change, refuse, add facts, count.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{Route, ToolCall, repeat};
use crate::{
    catalog::Tool,
    deadline::Deadline,
    name::ServerName,
    outcome::{Failure, Kind, Reply},
};

/// How long a hook may look at a reply.
const AFTER: Duration = Duration::from_secs(10);

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is about to be called.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Called<'a> {
    /// The server it goes to.
    pub server: &'a ServerName,
    /// The tool.
    pub tool: &'a Tool,
}

impl<'a> Called<'a> {
    pub(super) fn of(route: &'a Route) -> Self {
        Self {
            server: route.server.name(),
            tool: &route.tool,
        }
    }
}

/// Stands around every call of a view. The first hook of a view sees a call first and its reply last.
///
/// ```
/// use pegboard::{Called, Failure, Hook, Kind, ToolCall};
///
/// struct ReadOnlyOnSundays;
///
/// impl Hook for ReadOnlyOnSundays {
///     fn before<'a>(
///         &'a self,
///         called: Called<'a>,
///         _call: &'a mut ToolCall,
///     ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
///         Box::pin(async move {
///             match called.tool.name.starts_with("get_") {
///                 true => Ok(()),
///                 false => Err(Failure::new(Kind::NotPermitted, "nothing is changed on Sundays")),
///             }
///         })
///     }
/// }
/// ```
pub trait Hook: Send + Sync + 'static {
    /// Sees a call before its arguments are checked. It may change the call, or refuse it.
    fn before<'a>(&'a self, called: Called<'a>, call: &'a mut ToolCall) -> Boxed<'a, Result<(), Failure>> {
        let _ = (called, call);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Sees the reply, however the call ended. It may change it.
    fn after<'a>(&'a self, called: Called<'a>, reply: &'a mut Reply) -> Boxed<'a, ()> {
        let _ = (called, reply);
        Box::pin(std::future::ready(()))
    }
}

/// How much more a view may bring into a model's context. See [`View::budget`](super::View::budget).
pub trait Budget: Send + Sync + 'static {
    /// Whether the call may be made, or why not.
    fn allows(&self, called: Called<'_>) -> Result<(), String>;

    /// A reply of about so many tokens was given.
    fn spend(&self, called: Called<'_>, tokens: usize) {
        let _ = (called, tokens);
    }
}

/// Facts that go with a call in its `_meta`.
pub(super) type MetaOf = Arc<dyn Fn(Called<'_>) -> Map<String, Value> + Send + Sync>;

/// The hooks of one view.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(super) around: Vec<Arc<dyn Hook>>,
    pub(super) budget: Option<Arc<dyn Budget>>,
    pub(super) meta: Option<MetaOf>,
}

impl Hooks {
    /// Lets every hook see the call, in order, until one refuses it; then asks the budget.
    pub(super) async fn before(&self, route: &Route, call: &mut ToolCall, deadline: Deadline) -> Result<(), Failure> {
        let called = Called::of(route);
        for hook in &self.around {
            // Boxed, because hooks are rare and every call would pay for the room.
            let looked = Box::pin(deadline.run(hook.before(called, call))).await;
            looked.unwrap_or_else(|_| {
                Err(Failure::new(
                    Kind::Timeout,
                    "a hook of the program took longer than the call may take",
                ))
            })?;
        }
        match self.budget.as_ref().map(|budget| budget.allows(called)) {
            Some(Err(why)) => Err(Failure::new(Kind::LimitExceeded, why)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Lets every hook see the reply, the last one first, and counts what it costs.
    pub(super) async fn after(&self, route: &Route, reply: &mut Reply) {
        let called = Called::of(route);
        for hook in self.around.iter().rev() {
            if Box::pin(tokio::time::timeout(AFTER, hook.after(called, reply)))
                .await
                .is_err()
            {
                tracing::warn!(id = %reply.id, "a hook took too long to look at a reply and was given up");
            }
        }
        if let Some(budget) = &self.budget {
            budget.spend(called, reply.text().len().div_ceil(4));
        }
    }

    /// What goes into `_meta` of the call: the program's facts, then those of the call itself, and its key.
    pub(super) fn meta(&self, route: &Route, call: &ToolCall) -> Map<String, Value> {
        let mut meta = match &self.meta {
            Some(meta) => meta(Called::of(route)),
            None => Map::new(),
        };
        meta.extend(call.meta.iter().map(|(key, value)| (key.clone(), value.clone())));
        if let Some(key) = &call.key {
            meta.insert(repeat::META.to_owned(), key.as_str().into());
        }
        meta
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("around", &self.around.len())
            .field("budget", &self.budget.is_some())
            .field("meta", &self.meta.is_some())
            .finish()
    }
}
