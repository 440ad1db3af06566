//! Asks a person whether a call may be made, and remembers the approvals.

use pegboard_base::BoxFuture;
use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use pegboard_base::sync::Mutex;
use pegboard_base::{
    caller::{Caller, Principal},
    name::ServerName,
};
use pegboard_tools::{
    args::Arguments,
    catalog::{DefinitionHash, Risk, Tool},
};

/// The most approvals that are remembered.
const MAX_APPROVALS: usize = 10_000;
/// How many tools may have a semaphore before those without a pending question are dropped.
const MAX_SEMAPHORES: usize = 64;

/// Asks a person, or a program that decides for one, whether a call may be made.
pub trait Approver: Send + Sync + 'static {
    /// Decides whether the call may be made. Dropping the future withdraws the question.
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Decision>;

    /// Whether calls of a tool wait while a question about that tool is pending, because the answer may cover them. `true` by default.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }
}

/// A function that decides immediately.
impl<F> Approver for F
where
    F: Fn(&Question<'_>) -> Decision + Send + Sync + 'static,
{
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(self(&question)))
    }
}

impl<T: Approver + ?Sized> Approver for Arc<T> {
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Decision> {
        (**self).decide(question)
    }

    fn asks_one_at_a_time(&self) -> bool {
        (**self).asks_one_at_a_time()
    }
}

impl Approver for Box<dyn Approver> {
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Decision> {
        (**self).decide(question)
    }

    fn asks_one_at_a_time(&self) -> bool {
        (**self).asks_one_at_a_time()
    }
}

/// Makes an [`Approver`] of an async function, for example one that asks a person.
///
/// ```
/// use pegboard::{Config, Pegboard, approval::{Decision, approver}};
///
/// let builder = Pegboard::builder(Config::default()).approver(approver(|question| {
///     Box::pin(async move {
///         println!("may `{}` be called with {}?", question.name, question.arguments.as_str());
///         Decision::Once
///     })
/// }));
/// ```
pub fn approver<F>(decide: F) -> impl Approver
where
    F: for<'a> Fn(Question<'a>) -> BoxFuture<'a, Decision> + Send + Sync + 'static,
{
    AsyncApprover(decide)
}

struct AsyncApprover<F>(F);

impl<F> Approver for AsyncApprover<F>
where
    F: for<'a> Fn(Question<'a>) -> BoxFuture<'a, Decision> + Send + Sync + 'static,
{
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Decision> {
        (self.0)(question)
    }
}

/// A request for approval of one call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The call, its view and its principal.
    pub caller: Caller<'a>,
    /// The server that would be called.
    pub server: &'a ServerName,
    /// The tool that would be called, as its server defines it.
    pub tool: &'a Tool,
    /// The tool's name for people: as it is listed in a view [for a client](crate::View::for_client), else `server.tool`.
    pub name: &'a str,
    /// The arguments as they would be sent.
    pub arguments: &'a Arguments,
    /// The arguments as text for people: secrets are masked, and only the first 2,000 characters are there.
    pub shown: &'a str,
    /// How much harm the tool may do, by its annotations.
    pub risk: Risk,
    /// Whether the tool was approved before with another definition.
    pub has_changed: bool,
    /// Whether the agent has read output of an untrusted server, which may have led to the call.
    pub is_tainted: bool,
}

impl<'a> Question<'a> {
    /// Creates a question about a tool of an untrusted server that was never approved before, for a test of an approver. The other fields can be
    /// set.
    ///
    /// ```
    /// use pegboard::{Arguments, Caller, ServerName, Tool, approval::Question, catalog::Risk};
    /// use serde_json::{Map, json};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server: ServerName = "crm".parse()?;
    /// let tool = Tool::from_definition(&server, json!({"name": "delete_user", "inputSchema": {"type": "object"}}))?;
    /// let (arguments, meta) = (Arguments::default(), Map::new());
    /// let mut question = Question::new(&server, &tool, &arguments, Caller::new("call-1", "chat", &meta));
    /// question.is_tainted = true;
    /// assert_eq!(question.risk, Risk::High);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(server: &'a ServerName, tool: &'a Tool, arguments: &'a Arguments, caller: Caller<'a>) -> Self {
        Self {
            caller,
            server,
            tool,
            name: &tool.name,
            arguments,
            shown: arguments.as_str(),
            risk: tool.risk(false),
            has_changed: false,
            is_tainted: false,
        }
    }
}

/// The approver's answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// Allows this call.
    Once,
    /// Allows all calls of this tool from this view, until its definition changes.
    ForView,
    /// Allows all calls of this tool from every view of the same principal, until its definition changes. Given to a view without a principal, it
    /// holds for all views without one.
    Always,
    /// Refuses the call, for this reason.
    Refused(String),
}

impl Decision {
    /// The name of the decision, for labels: `once`, `for_view`, `always` or `refused`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::ForView => "for_view",
            Self::Always => "always",
            Self::Refused(_) => "refused",
        }
    }
}

/// The approvals: for whom, a server, a tool, and the tool's definition at that time. Clones share the same state.
#[derive(Clone, Default)]
pub struct Approvals(Arc<Mutex<Entries>>);

/// The approved definitions by server, tool and principal.
type Entries = BTreeMap<(String, String, Option<Principal>), DefinitionHash>;

/// One approval, as it can be stored in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approved {
    /// The server.
    pub server: String,
    /// The tool, by its server's name for it.
    pub tool: String,
    /// The approved definition.
    pub definition: DefinitionHash,
    /// The principal whose views may call the tool; `None` for views without a principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// What is known about earlier approvals of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PastApproval {
    Approved,
    /// Another definition of the tool was approved.
    Changed,
    Nothing,
}

impl Approvals {
    /// Creates an empty set of approvals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores stored approvals, such as those that [`Approvals::entries`] returned earlier.
    pub fn from_entries(entries: impl IntoIterator<Item = Approved>) -> Self {
        let entries = entries.into_iter().take(MAX_APPROVALS);
        let entries = entries.map(|entry| ((entry.server, entry.tool, entry.principal), entry.definition));
        Self(Arc::new(Mutex::new(entries.collect())))
    }

    /// All approvals, sorted.
    pub fn entries(&self) -> Vec<Approved> {
        let entries = self.0.lock();
        let approved = entries.iter().map(|((server, tool, principal), definition)| Approved {
            server: server.clone(),
            tool: tool.clone(),
            definition: *definition,
            principal: principal.clone(),
        });
        approved.collect()
    }

    /// Revokes the approvals of a tool, of all principals. Returns whether there was one.
    pub fn forget(&self, server: impl AsRef<str>, tool: &str) -> bool {
        let mut entries = self.0.lock();
        let before = entries.len();
        entries.retain(|(of, name, _), _| (of.as_str(), name.as_str()) != (server.as_ref(), tool));
        entries.len() < before
    }

    pub(super) fn past(&self, tool: &Tool, principal: Option<&Principal>) -> PastApproval {
        match self.0.lock().get(&key(tool, principal)) {
            Some(approved) if *approved == tool.definition_hash() => PastApproval::Approved,
            Some(_) => PastApproval::Changed,
            None => PastApproval::Nothing,
        }
    }

    pub(super) fn remember(&self, tool: &Tool, principal: Option<&Principal>) {
        let (key, mut entries) = (key(tool, principal), self.0.lock());
        if entries.len() < MAX_APPROVALS || entries.contains_key(&key) {
            entries.insert(key, tool.definition_hash());
        }
    }
}

/// The pending questions: at most one per tool, so that waiting calls can use the answer to an earlier one.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Mutex<BTreeMap<(String, String), Arc<Semaphore>>>);

impl OpenQuestions {
    /// Waits for the permit to ask about a tool.
    pub(super) async fn permit(&self, tool: &Tool) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut semaphores = self.0.lock();
            if semaphores.len() >= MAX_SEMAPHORES {
                semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            }
            let semaphore = semaphores
                .entry((tool.server.to_string(), tool.name.clone()))
                .or_insert_with(|| Arc::new(Semaphore::new(1)));
            semaphore.clone()
        };
        semaphore.acquire_owned().await.ok()
    }
}

fn key(tool: &Tool, principal: Option<&Principal>) -> (String, String, Option<Principal>) {
    (tool.server.to_string(), tool.name.clone(), principal.cloned())
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}
