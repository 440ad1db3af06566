//! Hooks of the embedding program around every call: they observe, change or refuse it, add `_meta` and count tokens.

use pegboard_base::BoxFuture;
use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{idempotency, route::resolved::Route};
use pegboard_base::{
    caller::{Caller, CallerView},
    deadline::Deadline,
    name::ServerName,
    sync::{Panicked, catch, catch_now},
};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    catalog::Tool,
    outcome::{Failure, Kind, Reply},
};

/// The timeout of an `after` hook.
const AFTER_TIMEOUT: Duration = Duration::from_secs(10);

/// The tool that is called, and who calls it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Called<'a> {
    /// The server.
    pub server: &'a ServerName,
    /// The tool.
    pub tool: &'a Tool,
    /// The call, its view and its principal.
    pub caller: Caller<'a>,
}

impl<'a> Called<'a> {
    /// Creates the context of a call. Programs need this only to test their own hooks and budgets; [`Tool::from_definition`] makes a tool for it.
    ///
    /// ```
    /// use pegboard::{Caller, Principal, ServerName, Tool, hook::Called};
    /// use serde_json::{Map, json};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server: ServerName = "crm".parse()?;
    /// let tool = Tool::from_definition(&server, json!({"name": "delete_user", "inputSchema": {"type": "object"}}))?;
    /// let (alice, meta) = (Principal::new("alice"), Map::new());
    /// let called = Called::new(&server, &tool, Caller::new("call-1", "chat", &meta).principal(&alice));
    /// assert_eq!(called.caller.principal, Some(&alice));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(server: &'a ServerName, tool: &'a Tool, caller: Caller<'a>) -> Self {
        Self { server, tool, caller }
    }

    fn from_route(route: &'a Route, caller: Caller<'a>) -> Self {
        Self::new(route.server.name(), &route.tool, caller)
    }
}

/// Runs before and after every call of a view. The first hook of a view sees a call first and its reply last.
///
/// ```
/// use pegboard::{BoxFuture, Failure, Hook, Kind, ToolCall, hook::Called};
///
/// struct ReadOnlyOnSundays;
///
/// impl Hook for ReadOnlyOnSundays {
///     fn before<'a>(
///         &'a self,
///         called: Called<'a>,
///         _call: &'a mut ToolCall,
///     ) -> BoxFuture<'a, Result<(), Failure>> {
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
    /// Runs before the arguments are validated. May change the call, or refuse it.
    fn before<'a>(&'a self, called: Called<'a>, call: &'a mut ToolCall) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (called, call);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs on the reply, however the call ended. May change it.
    fn after<'a>(&'a self, called: Called<'a>, reply: &'a mut Reply) -> BoxFuture<'a, ()> {
        let _ = (called, reply);
        Box::pin(std::future::ready(()))
    }
}

/// A hook behind a pointer runs as the hook itself.
macro_rules! delegate {
    ($($pointer:ident),*) => {$(
        impl<T: Hook + ?Sized> Hook for $pointer<T> {
            fn before<'a>(
                &'a self,
                called: Called<'a>,
                call: &'a mut ToolCall,
            ) -> BoxFuture<'a, Result<(), Failure>> {
                (**self).before(called, call)
            }

            fn after<'a>(&'a self, called: Called<'a>, reply: &'a mut Reply) -> BoxFuture<'a, ()> {
                (**self).after(called, reply)
            }
        }
    )*};
}

delegate!(Arc, Box);

/// Limits how many tokens a view may add to a model's context. See [`View::budget`](crate::View::budget).
pub trait Budget: Send + Sync + 'static {
    /// Returns the reason if the call may not be made.
    fn allows(&self, called: Called<'_>) -> Result<(), String>;

    /// Counts a reply of about this many tokens.
    fn spend(&self, called: Called<'_>, tokens: usize) {
        let _ = (called, tokens);
    }
}

impl<T: Budget + ?Sized> Budget for Arc<T> {
    fn allows(&self, called: Called<'_>) -> Result<(), String> {
        (**self).allows(called)
    }

    fn spend(&self, called: Called<'_>, tokens: usize) {
        (**self).spend(called, tokens);
    }
}

impl Budget for Box<dyn Budget> {
    fn allows(&self, called: Called<'_>) -> Result<(), String> {
        (**self).allows(called)
    }

    fn spend(&self, called: Called<'_>, tokens: usize) {
        (**self).spend(called, tokens);
    }
}

/// A function that allows calls or says why not, and counts nothing.
impl<F> Budget for F
where
    F: Fn(Called<'_>) -> Result<(), String> + Send + Sync + 'static,
{
    fn allows(&self, called: Called<'_>) -> Result<(), String> {
        self(called)
    }
}

/// Computes entries of a request's `_meta`.
pub(super) type MetaOf = Arc<dyn Fn(Called<'_>) -> Map<String, Value> + Send + Sync>;

/// The hooks of one view.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(super) around: Vec<Arc<dyn Hook>>,
    pub(super) budget: Option<Arc<dyn Budget>>,
    pub(super) meta: Option<MetaOf>,
}

impl Hooks {
    /// Runs the `before` hooks in order until one refuses the call, then checks the budget.
    pub(super) async fn before(
        &self,
        route: &Route,
        view: CallerView<'_>,
        call: &mut ToolCall,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        for hook in &self.around {
            // Copies, because a hook may change both in the call.
            let (id, meta) = (call.id.clone(), call.meta.clone());
            let called = Called::from_route(route, view.caller(&id, &meta));
            // Boxed, because hooks are rare and every call would pay for the space.
            let running = catch(async { hook.before(called, call).await });
            let result = Box::pin(deadline.run(running)).await;
            result
                .unwrap_or_else(|_| {
                    Ok(Err(Failure::new(
                        Kind::Timeout,
                        "a hook of the program took longer than the call may take",
                    )))
                })
                .unwrap_or_else(|Panicked| Err(panic_failure("a hook")))?;
        }
        let Some(budget) = &self.budget else { return Ok(()) };
        let called = Called::from_route(route, view.caller(&call.id, &call.meta));
        match catch_now(|| budget.allows(called)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(Failure::new(Kind::LimitExceeded, why)),
            Err(Panicked) => Err(panic_failure("the budget")),
        }
    }

    /// Whether anything looks at replies.
    pub(super) fn see_replies(&self) -> bool {
        !self.around.is_empty() || self.budget.is_some()
    }

    /// Runs the `after` hooks, last one first, and charges the budget.
    pub(super) async fn after(
        &self,
        route: &Route,
        view: CallerView<'_>,
        meta: &Map<String, Value>,
        reply: &mut Reply,
    ) {
        if !self.see_replies() {
            return;
        }
        // A copy, because a hook may change the id of the reply.
        let id = reply.id.clone();
        let called = Called::from_route(route, view.caller(&id, meta));
        for hook in self.around.iter().rev() {
            let running = catch(async { hook.after(called, reply).await });
            match Box::pin(tokio::time::timeout(AFTER_TIMEOUT, running)).await {
                Ok(Ok(())) => {}
                Ok(Err(Panicked)) => {
                    tracing::error!(id = %reply.id, "a hook panicked at a reply");
                    let warning = "a hook of the program panicked at this reply";
                    reply.warnings.push(warning.to_owned());
                }
                Err(_) => {
                    tracing::warn!(id = %reply.id, "a hook took too long to look at a reply and was given up");
                }
            }
        }
        if let Some(budget) = &self.budget
            && catch_now(|| budget.spend(called, reply.text().len().div_ceil(4))).is_err()
        {
            tracing::error!(id = %reply.id, "the budget panicked at a reply");
        }
    }

    /// The request's `_meta`: the program's entries, then those of the call itself and its idempotency key.
    pub(super) fn meta(
        &self,
        route: &Route,
        view: CallerView<'_>,
        call: &ToolCall,
    ) -> Result<Map<String, Value>, Failure> {
        let mut meta = match &self.meta {
            Some(meta) => {
                let called = Called::from_route(route, view.caller(&call.id, &call.meta));
                catch_now(|| meta(called)).map_err(|Panicked| panic_failure("the function that adds facts"))?
            }
            None => Map::new(),
        };
        meta.extend(call.meta.iter().map(|(key, value)| (key.clone(), value.clone())));
        if let Some(key) = &call.key {
            meta.insert(idempotency::META_KEY.to_owned(), key.as_str().into());
        }
        Ok(meta)
    }
}

/// The failure of a call for which a callback of the embedding program panicked.
pub(super) fn panic_failure(what: &str) -> Failure {
    tracing::error!("{what} of the program panicked; the call is refused");
    Failure::new(
        Kind::Internal,
        format!("{what} of the program panicked, so the call was not made"),
    )
    .hint("this is a bug in the program that embeds Pegboard: the panic is on its standard error")
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
