//! An event of the log as a sentence for a person at a terminal.

use std::fmt::Write as _;

use tracing::Event;

use super::{event_fields::EventFields, of_request, plain_fields};

/// Fields that say why something happened. They follow the message after a colon.
const REASONS: [&str; 7] = ["error", "reason", "why", "problem", "problems", "fault", "line"];

/// The server that a span is about, as `key=value` says it.
pub(super) fn server_of_span(fields: &str) -> Option<String> {
    let server = fields.strip_prefix("server=")?;
    server.split(' ').next().map(str::to_owned)
}

/// The event as a sentence about its server, or else the server of its span.
pub(super) fn of(event: &Event<'_>, server: Option<&str>) -> String {
    say(&EventFields::read(event), server, of_request::ids())
}

fn say(fields: &EventFields, server: Option<&str>, ids: impl Iterator<Item = (&'static str, String)>) -> String {
    let mut text = String::new();
    if let Some(server) = fields.get("server").or(server) {
        let _ = write!(text, "server `{server}`: ");
    }
    text.push_str(fields.get("message").unwrap_or_default());
    let is_shown = |name: &str| !["message", "server", "hint"].contains(&name) && plain_fields::is_shown(name);
    let mut others = Vec::new();
    for (name, value) in fields.iter().filter(|(name, _)| is_shown(name)) {
        // Some events count what others name.
        let is_count = value.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(name) = name.strip_suffix("_ms") {
            others.push(format!("{} {value} ms", in_words(name)));
            continue;
        }
        match REASONS.contains(&name) && !is_count {
            true => {
                let _ = write!(text, ": {value}");
            }
            false if is_count => others.push(format!("{value} {}", in_words(name))),
            false => others.push(format!("{} {value}", in_words(name))),
        }
    }
    // That of the span is for programs.
    let ids = ids.filter(|(name, _)| *name != "span_id");
    others.extend(ids.map(|(name, id)| format!("{} {id}", in_words(name.trim_end_matches("_id")))));
    if !others.is_empty() {
        let _ = write!(text, " ({})", others.join(", "));
    }
    if let Some(hint) = fields.get("hint") {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

fn in_words(name: &str) -> String {
    name.replace(['_', '.'], " ")
}

#[cfg(test)]
mod tests {
    use pegboard_base::sync::Mutex;
    use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _};

    use super::*;

    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

    struct Collect;

    impl<S: tracing::Subscriber> Layer<S> for Collect {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            SAID.lock().push(of(event, Some("github")));
        }
    }

    #[test]
    fn an_event_reads_like_a_sentence() {
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Collect), || {
            tracing::warn!(error = "no connection", "the start failed");
            tracing::warn!(server = %"time", problems = 2, "an answer is not as promised");
            tracing::warn!(next_try_in = ?std::time::Duration::from_secs(3), "it ends again and again");
            tracing::warn!(error.r#type = "x", "plain");
            tracing::info!(ready_after_ms = 12, hint = "do this", "ready");
        });
        assert_eq!(
            *SAID.lock(),
            [
                "server `github`: the start failed: no connection",
                "server `time`: an answer is not as promised (2 problems)",
                "server `github`: it ends again and again (next try in 3s)",
                "server `github`: plain",
                "server `github`: ready (ready after 12 ms)\nhint: do this",
            ]
        );
        assert_eq!(server_of_span("server=x y=z").as_deref(), Some("x"));
        assert_eq!(server_of_span("id=1"), None);
    }
}
