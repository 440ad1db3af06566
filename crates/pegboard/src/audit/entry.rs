//! What one line of the audit log says.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Serialize, Serializer};

use super::digest::Digest;
use pegboard_base::{
    caller::Principal,
    diagnosis::{Cause, Code, Diagnosis, Edit, Place, Step},
    name::ServerName,
    telemetry::{current, current_request},
};
use pegboard_mask::Counts;
use pegboard_tools::{
    args::{Arguments, RawFields},
    catalog::{DefinitionHash, Tool},
    outcome::{Failure, Kind, Reply, millis},
};

/// The longest name or id in a line, in bytes.
const MAX_NAME: usize = 128;
/// The most argument names in a line.
const MAX_SHAPE: usize = 64;
/// The most patterns in the counts of masked secrets.
const MAX_PATTERNS: usize = 64;

/// Why a call was allowed or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditDecision {
    /// No approval was needed.
    Allowed,
    /// A person approved it, now or earlier.
    Approved,
    /// A rule refused it.
    Denied,
}

/// The rule behind a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditRule {
    /// An earlier approval covers the call.
    EarlierApproval,
    /// The approver allowed this call.
    Once,
    /// The approver allowed all calls of the tool by this view.
    ForView,
    /// The approver allowed all calls of the tool by this principal.
    Always,
    /// A check of the view refused the arguments.
    Check,
    /// `approval = "never"`.
    Never,
    /// Approval is needed and there is no approver.
    NoApprover,
    /// The approver refused the call.
    Refused,
    /// The approver did not answer in time.
    NoAnswer,
    /// The approver panicked.
    ApproverFailed,
    /// The agent has read untrusted output.
    Taint,
    /// The rate limit was reached.
    Rate,
    /// Too many calls of the agent are in flight.
    InFlight,
    /// The agent repeats itself.
    Loop,
    /// The arguments cannot be parsed or do not fit the tool's schema.
    Arguments,
    /// A hook refused the call.
    Hook,
    /// The arguments contain a secret of another server.
    Crossing,
    /// An earlier call with the same idempotency key.
    IdempotencyKey,
    /// The tool is held until a person accepts its definition.
    Held,
    /// The server's config hides the tool.
    Config,
    /// The view hides the tool.
    View,
    /// The tool is not part of the selection.
    Selection,
    /// The tool or a capability that it needs is not granted.
    Grants,
    /// The server keeps the tool from models.
    NotForModels,
    /// The project file that configures the server is not approved.
    ProjectFile,
    /// The caller's token lacks the scope.
    Scope,
    /// A policy that has no rule of its own.
    Policy,
    /// No listed tool has the name, or several have it.
    UnknownTool,
    /// The server could not be asked for its tools.
    Unavailable,
}

impl AuditRule {
    /// The rule behind a refusal that is known by its kind only.
    pub(crate) fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::UnknownTool => Self::UnknownTool,
            Kind::InvalidArguments => Self::Arguments,
            Kind::NotPermitted | Kind::LimitExceeded => Self::Policy,
            _ => Self::Unavailable,
        }
    }

    /// The refusal with the rule as its diagnosis, unless it has one of the server.
    ///
    /// A tool that is hidden from a client does not exist for it, so the kind of the refusal comes before the rule.
    pub(crate) fn explain(self, failure: Failure, server: Option<&ServerName>) -> Failure {
        if failure.diagnosis.is_some() {
            return failure;
        }
        let code = match failure.kind {
            Kind::UnknownTool => Code::UnknownTool,
            Kind::InvalidArguments => Code::ArgumentsInvalid,
            Kind::NotPermitted | Kind::LimitExceeded => self.code(),
            _ => return failure,
        };
        let diagnosis = Diagnosis::new(code, Step::Permit, Cause::Rule);
        let diagnosis = match (code, server) {
            (Code::UnknownTool, _) | (_, None) => diagnosis,
            (Code::DefinitionHeld, Some(server)) => diagnosis.at(Place::server(server.as_str())).mended_by(Edit::Run {
                command: ["pegboard", "pins", "accept", server.as_str()]
                    .map(str::to_owned)
                    .into(),
            }),
            (_, Some(server)) => diagnosis.at(Place::server(server.as_str())),
        };
        failure.diagnosed(diagnosis)
    }

    /// The stable word for a refusal by this rule.
    fn code(self) -> Code {
        match self {
            Self::Check => Code::CheckRefused,
            Self::Never => Code::CallForbidden,
            Self::NoApprover => Code::ApprovalMissing,
            Self::Refused => Code::ApprovalRefused,
            Self::NoAnswer => Code::ApprovalTimeout,
            Self::Taint => Code::UntrustedOutput,
            Self::Rate => Code::RateExceeded,
            Self::InFlight => Code::TooManyCalls,
            Self::Loop => Code::RepeatedCalls,
            Self::Arguments => Code::ArgumentsInvalid,
            Self::Hook => Code::HookRefused,
            Self::Crossing => Code::SecretCrossing,
            Self::IdempotencyKey => Code::KeyInUse,
            Self::Held => Code::DefinitionHeld,
            Self::Config => Code::HiddenByConfig,
            Self::View => Code::HiddenByView,
            Self::Selection => Code::NotSelected,
            Self::Grants => Code::NotGranted,
            Self::NotForModels => Code::NotForModels,
            Self::ProjectFile => Code::ProjectUntrusted,
            Self::Scope => Code::ScopeMissing,
            Self::UnknownTool => Code::UnknownTool,
            _ => Code::NotPermitted,
        }
    }
}

/// A change of a board that a person or a program has asked for, for the [audit log](crate::Pegboard::record_change).
#[derive(Debug, Clone)]
#[must_use = "it is recorded by `Pegboard::record_change`"]
#[doc(hidden)]
pub struct AdminChange {
    action: &'static str,
    outcome: ChangeOutcome,
    server: Option<ServerName>,
    principal: Option<Principal>,
    view: Option<Arc<str>>,
    tool: Option<String>,
    definition: Option<DefinitionHash>,
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[doc(hidden)]
pub enum ChangeOutcome {
    /// It begins. Only a log that is required says so.
    Begun,
    /// It was made.
    Done,
    /// It was not made: the caller may not ask for it, or asked for something impossible.
    Refused,
    /// It was tried, and something failed.
    Failed,
    /// The caller did not wait for the end. The change may have been made.
    Unknown,
}

impl AdminChange {
    /// A change, named by a word such as `reload`, and how it ended.
    pub fn new(action: &'static str, outcome: ChangeOutcome) -> Self {
        Self {
            action,
            outcome,
            server: None,
            principal: None,
            view: None,
            tool: None,
            definition: None,
        }
    }

    /// Sets the server that was to be changed.
    pub fn server(mut self, server: ServerName) -> Self {
        self.server = Some(server);
        self
    }

    /// Sets the definition that the change is about: that of a tool, or of the server's instructions.
    pub fn definition(mut self, tool: Option<&str>, hash: DefinitionHash) -> Self {
        self.tool = tool.map(truncate_name);
        self.definition = Some(hash);
        self
    }

    /// Sets who asked for the change.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Sets the view that the caller is limited to.
    pub fn view(mut self, view: impl Into<Arc<str>>) -> Self {
        self.view = Some(view.into());
        self
    }
}

/// One line, without its place in the chain. Fields that do not apply are left out.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct AuditEntry {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Arc<str>>,
    /// The request of a client that it belongs to, as the log and the response have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The plain hash of a name that no listed tool has, until the writer has replaced it with the keyed one. The name itself is any text
    /// that a model wrote.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub(super) name_hash: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<ArgumentsEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<AuditDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<AuditRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Box<EndEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<ChangeOutcome>,
    /// How many records could not be written before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    /// The hash of the line before, which a crash has cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<String>,
}

/// The arguments of a call without their values.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ArgumentsEntry {
    /// The plain hash until the writer has replaced it with the keyed one. Only that one is written.
    #[serde(serialize_with = "as_text")]
    pub(super) hash: Digest,
    bytes: usize,
    /// The types of the arguments that the tool's schema declares, by name.
    shape: BTreeMap<String, &'static str>,
    /// How many arguments the schema does not declare. A model chose their names.
    #[serde(skip_serializing_if = "is_zero")]
    undeclared: usize,
}

/// How a call ended.
#[derive(Debug, Clone, Serialize)]
struct EndEntry {
    status: &'static str,
    kind: Kind,
    may_have_executed: bool,
    attempts: u32,
    cached: bool,
    bytes: usize,
    masked: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    masked_by: BTreeMap<String, usize>,
    duration_ms: f64,
}

impl AuditEntry {
    /// The decision about a call.
    pub(crate) fn decision(id: &str, tool: &Tool, decision: AuditDecision, rule: Option<AuditRule>) -> Self {
        Self {
            event: "decision",
            id: Some(truncate_name(id)),
            server: Some(tool.server.clone()),
            tool: Some(truncate_name(&tool.name)),
            definition: Some(tool.definition_hash()),
            decision: Some(decision),
            rule,
            ..Self::default()
        }
    }

    /// The decision about a call that has no route to a server.
    pub(crate) fn unrouted_decision(
        reply: &Reply,
        is_listed: bool,
        decision: AuditDecision,
        rule: Option<AuditRule>,
    ) -> Self {
        Self {
            decision: Some(decision),
            rule,
            ..Self::about("decision", reply, is_listed)
        }
    }

    /// What a record says about the tool of a call. A name that no listed tool has is hashed.
    fn about(event: &'static str, reply: &Reply, is_listed: bool) -> Self {
        let tool = reply.tool.as_deref().filter(|_| is_listed);
        Self {
            event,
            id: Some(truncate_name(&reply.id)),
            server: reply.server.clone(),
            tool: tool.map(truncate_name),
            name_hash: tool.is_none().then(|| Digest::compute(reply.name.as_bytes())),
            ..Self::default()
        }
    }

    /// The end of a call with a reply.
    pub(crate) fn from_reply(reply: &Reply, is_listed: bool) -> Self {
        let outcome = &reply.outcome;
        Self {
            end: Some(Box::new(EndEntry {
                status: outcome.status(),
                kind: outcome.kind(),
                may_have_executed: outcome.may_have_executed(),
                attempts: reply.attempts,
                cached: reply.cached,
                bytes: reply.original_bytes,
                masked: reply.masked,
                masked_by: patterns(&reply.masked_by),
                duration_ms: millis(reply.latency),
            })),
            ..Self::about("call", reply, is_listed)
        }
    }

    /// The end of a call whose future was dropped.
    pub(crate) fn cancelled(
        id: &str,
        name: &str,
        server: Option<&ServerName>,
        tool: Option<&str>,
        took: Duration,
    ) -> Self {
        Self {
            event: "call",
            id: Some(truncate_name(id)),
            server: server.cloned(),
            tool: tool.map(truncate_name),
            name_hash: tool.is_none().then(|| Digest::compute(name.as_bytes())),
            end: Some(Box::new(EndEntry {
                status: "cancelled",
                kind: Kind::Cancelled,
                may_have_executed: tool.is_some(),
                attempts: 0,
                cached: false,
                bytes: 0,
                masked: 0,
                masked_by: BTreeMap::new(),
                duration_ms: millis(took),
            })),
            ..Self::default()
        }
    }

    /// A change of the board.
    pub(crate) fn change(change: AdminChange) -> Self {
        let entry = Self {
            event: "change",
            server: change.server,
            tool: change.tool,
            definition: change.definition,
            action: Some(change.action),
            outcome: Some(change.outcome),
            ..Self::default()
        };
        entry.with_view(change.view.as_ref(), change.principal.as_ref())
    }

    /// A gap: so many records could not be written.
    pub(super) fn lost(records: u64) -> Self {
        Self {
            event: "lost",
            records: Some(records),
            ..Self::default()
        }
    }

    /// A line that a crash has cut, and that the next one follows.
    pub(super) fn recovered(torn: Digest) -> Self {
        Self {
            event: "recovered",
            torn: Some(torn.to_string()),
            ..Self::default()
        }
    }

    /// Sets the view that the call was made through, whom it was made for, and the request that this thread works for.
    pub(crate) fn with_view(mut self, view: Option<&Arc<str>>, principal: Option<&Principal>) -> Self {
        self.view = view.map(|view| match view.len() {
            0..=MAX_NAME => view.clone(),
            _ => truncate_name(view).into(),
        });
        self.principal = principal.map(|principal| truncate_name(principal.as_str()).into());
        let request = current_request();
        let span = current().or_else(|| request.as_ref()?.span());
        self.request_id = request.map(|request| request.to_string());
        self.trace_id = span.map(|(trace, _)| trace.to_string());
        self
    }

    /// Replaces the plain hashes by those under a key. Only these are written.
    pub(super) fn sign(&mut self, key: &[u8; 32]) {
        let arguments = self.arguments.as_mut().map(|arguments| &mut arguments.hash);
        for hash in arguments.into_iter().chain(&mut self.name_hash) {
            *hash = hash.to_hmac(key);
        }
    }

    pub(crate) fn arguments(mut self, arguments: ArgumentsEntry) -> Self {
        self.arguments = Some(arguments);
        self
    }
}

impl ArgumentsEntry {
    /// Hashes arguments as they are sent, and reduces them to names and types.
    pub(crate) fn new(arguments: &Arguments, tool: &Tool) -> Self {
        let text = arguments.as_str();
        let mut entry = Self {
            hash: Digest::compute(text.as_bytes()),
            bytes: text.len(),
            shape: BTreeMap::new(),
            undeclared: 0,
        };
        let Ok(RawFields(fields)) = serde_json::from_str(text) else {
            return entry;
        };
        let properties = tool.input_schema.tree().get("properties");
        for (name, value) in fields {
            let is_declared = properties.is_some_and(|properties| properties.get(&name).is_some());
            if is_declared && name.len() <= MAX_NAME && entry.shape.len() < MAX_SHAPE {
                entry.shape.insert(name, type_of(value.get()));
            } else {
                entry.undeclared += 1;
            }
        }
        entry
    }
}

/// The type of a JSON value, by its first character.
fn type_of(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

fn patterns(counts: &Counts) -> BTreeMap<String, usize> {
    let counts = counts.iter().take(MAX_PATTERNS);
    counts.map(|(name, count)| (truncate_name(name), count)).collect()
}

fn truncate_name(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_NAME)].to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn as_text<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
}

#[expect(clippy::ref_option, reason = "serde passes references")]
fn as_optional_text<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => as_text(digest, serializer),
        None => serializer.serialize_none(),
    }
}
