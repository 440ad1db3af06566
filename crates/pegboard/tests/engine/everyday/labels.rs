//! Values that become labels of metrics, columns or log fields.

use std::{
    fmt::{Debug, Display},
    hash::Hash,
    str::FromStr,
};

use pegboard::{
    Event, Kind, NameStyle, Provider, ServerName, State,
    approval::Decision,
    catalog::{FindingSeverity, Risk, TaskSupport, ToolKind},
    config::{
        Approval, Check, EnvPolicy, EraChoice, Images, Join, OnCrossing, OutputCheck, Pins, Preset, Probe, Reading,
        SandboxLevel, Scan, Scope, Severity, Start, Structured, Taint, TooLong,
    },
    mask::MaskStyle,
    outcome::{ContentType, Role},
    pin::PinState,
    status::Era,
    task::TaskStatus,
    watch::LogLevel,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// What a label can be used for: as a key of both kinds of maps, in text, and in JSON both ways.
trait Label: Clone + Ord + Hash + Debug + Display + FromStr + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T> Label for T where
    T: Clone + Ord + Hash + Debug + Display + FromStr + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A label of a fixed set of words, which needs no allocation.
trait Word: Label + Copy + AsRef<str> {}

impl<T: Label + Copy + AsRef<str>> Word for T {}

const _: () = {
    const fn word<T: Word>() {}
    const fn label<T: Label>() {}
    word::<Approval>();
    word::<Check>();
    word::<ContentType>();
    word::<EnvPolicy>();
    word::<Era>();
    word::<FindingSeverity>();
    word::<Images>();
    word::<Join>();
    word::<Kind>();
    word::<LogLevel>();
    word::<MaskStyle>();
    word::<OnCrossing>();
    word::<OutputCheck>();
    word::<PinState>();
    word::<Pins>();
    word::<Preset>();
    word::<Probe>();
    word::<Provider>();
    word::<Reading>();
    word::<Risk>();
    word::<Role>();
    word::<SandboxLevel>();
    word::<Scan>();
    word::<Severity>();
    word::<Start>();
    word::<State>();
    word::<Structured>();
    word::<Taint>();
    word::<TaskStatus>();
    word::<TaskSupport>();
    word::<TooLong>();
    word::<ToolKind>();
    label::<EraChoice>();
    label::<Scope>();
    label::<ServerName>();
};

/// Every word is the same in text and JSON, and both are read back.
fn check<T: Word>(words: &[(T, &str)])
where
    <T as FromStr>::Err: Debug + Display,
{
    for (value, word) in words {
        assert_eq!(value.to_string(), *word);
        assert_eq!(value.as_ref(), *word);
        assert_eq!(json!(value), *word);
        assert_eq!(word.parse::<T>().unwrap(), *value);
        assert_eq!(serde_json::from_value::<T>(json!(word)).unwrap(), *value);
        assert_eq!(format!("[{value:>24}]").len(), 26, "a word can be padded");
    }
    let unknown = "no such word".parse::<T>().err().map(|error| error.to_string());
    let unknown = unknown.unwrap_or_default();
    assert!(
        unknown.contains("`no such word`") && unknown.contains(words[0].1),
        "{unknown}"
    );
    assert!(serde_json::from_value::<T>(json!("no such word")).is_err());
}

#[test]
fn the_words_of_text_and_json_are_the_same_and_are_read_back() {
    check(&[
        (Kind::Ok, "ok"),
        (Kind::ToolError, "tool_error"),
        (Kind::UnknownTool, "unknown_tool"),
        (Kind::InvalidArguments, "invalid_arguments"),
        (Kind::NotPermitted, "not_permitted"),
        (Kind::LimitExceeded, "limit_exceeded"),
        (Kind::Unavailable, "unavailable"),
        (Kind::RestartInProgress, "restart_in_progress"),
        (Kind::RestartFailed, "restart_failed"),
        (Kind::NeedsAuth, "needs_auth"),
        (Kind::Transport, "transport"),
        (Kind::Timeout, "timeout"),
        (Kind::Cancelled, "cancelled"),
        (Kind::Internal, "internal"),
    ]);
    check(&[
        (State::Disabled, "disabled"),
        (State::Idle, "idle"),
        (State::Connecting, "connecting"),
        (State::Ready, "ready"),
        (State::Down, "down"),
        (State::CrashLooping, "crash_looping"),
        (State::NeedsAuth, "needs_auth"),
        (State::Misconfigured, "misconfigured"),
        (State::PendingTrust, "pending_trust"),
        (State::Closed, "closed"),
    ]);
    check(&[(Era::Modern, "modern"), (Era::Legacy, "legacy")]);
    check(&[(Severity::Error, "error"), (Severity::Warning, "warning")]);
    check(&[(Risk::Low, "low"), (Risk::Medium, "medium"), (Risk::High, "high")]);
    check(&[
        (FindingSeverity::Low, "low"),
        (FindingSeverity::Medium, "medium"),
        (FindingSeverity::High, "high"),
    ]);
    check(&LogLevel::ALL.map(|level| (level, level.as_str())));
    check(&Provider::ALL.map(|provider| (provider, provider.as_str())));
    check(&[
        (TaskStatus::Working, "working"),
        (TaskStatus::InputRequired, "input_required"),
        (TaskStatus::Completed, "completed"),
        (TaskStatus::Failed, "failed"),
        (TaskStatus::Cancelled, "cancelled"),
    ]);
    check(&[
        (TaskSupport::Forbidden, "forbidden"),
        (TaskSupport::Optional, "optional"),
        (TaskSupport::Required, "required"),
    ]);
    check(&[
        (ToolKind::Mcp, "mcp"),
        (ToolKind::Native, "native"),
        (ToolKind::BuiltIn, "built_in"),
    ]);
    check(&[(Role::User, "user"), (Role::Assistant, "assistant")]);
    check(&[
        (ContentType::Text, "text"),
        (ContentType::Json, "json"),
        (ContentType::Binary, "binary"),
    ]);
    check(&[
        (PinState::Unchanged, "unchanged"),
        (PinState::New, "new"),
        (PinState::NewServer, "new_server"),
        (PinState::Changed, "changed"),
        (PinState::NotAccepted, "not_accepted"),
    ]);
}

#[test]
fn values_with_data_are_written_as_in_the_config() {
    assert_eq!(Scope::Pool(4).to_string(), "pool(4)");
    assert_eq!(json!(Scope::Session), "session");
    assert_eq!("2025-06-18".parse(), Ok(EraChoice::Version("2025-06-18".to_owned())));
    assert_eq!(json!(NameStyle::McpDunder), "mcp_dunder");
    assert_eq!("mcp_{tool}".parse::<NameStyle>().unwrap().to_string(), "mcp_{tool}");
}

#[test]
fn the_kind_of_an_event_is_its_name_in_json() {
    for json in [
        json!({"event": "call_created", "id": "1", "name": "fx.echo", "server": "fx", "tool": "echo", "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "call_progress", "id": "1", "progress": 0.5, "total": null, "message": "half"}),
        json!({"event": "call_completed", "id": "1", "name": "fx.echo", "server": "fx", "tool": "echo", "kind": "ok",
               "is_error": false, "latency_ms": 1.5, "original_bytes": 2, "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "server_changed", "server": "fx", "view": null, "from": "idle", "state": "ready", "reason": null,
               "ready_after_ms": 2.5, "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "catalog_changed", "server": "fx", "view": "v", "added": 1, "removed": 0, "changed": 2, "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "definitions_flagged", "server": "fx", "view": null, "changed": 1, "suspicious": 0, "held": 1,
               "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "probe_failed", "server": "fx", "view": null, "reason": "silence", "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "audit_failed", "reason": "disk full", "at": "2026-01-01T00:00:00Z"}),
        json!({"event": "missed", "events": 5}),
    ] {
        let event: Event = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(event.kind(), json["event"]);
        assert_eq!(serde_json::to_value(&event).unwrap(), json);
    }
    assert_eq!(Decision::ForView.kind(), "for_view");
}
