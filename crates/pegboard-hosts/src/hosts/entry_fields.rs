//! Translates the keys of an entry that say how a server is used: tools, timeouts, sign-in.

use serde_json::Value;

use super::{
    host::Unit,
    reader::{EntryReader, snake_case},
};

/// Keys that mean nothing outside of their host.
const OWN: &[&str] = &[
    "bundled",
    "client_name",
    "defer_tools",
    "dev",
    "disable_tool_cache",
    "discovery_cache",
    "environment_id",
    "events",
    "favicon_url",
    "filter_mapping",
    "gallery",
    "http_fetch",
    "icon",
    "is_default_server",
    "logging",
    "metadata",
    "notifications",
    "omit_tools_from",
    "remote",
    "role",
    "server_name",
    "settings",
    "slow_connection_threshold_ms",
    "source",
    "start_on_launch",
    "startup_readiness",
    "token_cache_dir",
    "tool_input_schema_max_bytes",
    "version",
    "version_negotiation",
    "watch_paths",
];

/// Which tools are used, and whether a person is asked before.
pub(super) fn tools(reader: &mut EntryReader<'_>) {
    let allowed = reader.texts(&[
        "include_tools",
        "enabled_tools",
        "allowed_tools",
        "available_tools",
        "tools_allowed",
    ]);
    reader.add_to("allow", allowed);
    for key in ["exclude_tools", "disabled_tools", "blocked_tools", "tools_denied"] {
        let denied = reader.texts(&[key]);
        reader.add_to("deny", denied);
    }
    for key in ["auto_approve", "always_allow"] {
        match reader.take(&[key]) {
            Some(Value::Bool(true)) => reader.note(format!(
                "`{key}` for all tools is left out: set `approval_exempt = [\"*\"]` if you want it"
            )),
            Some(Value::Bool(false)) | None => {}
            Some(value) => {
                let exempt = reader.texts_in(key, &value);
                reader.add_to("approval_exempt", exempt);
            }
        }
    }
    if reader.flag("trust") == Some(true) {
        reader.note("`trust` is left out: it means \"never ask\" there, and \"believe the annotations\" here");
    }
    if let Some((key, mode)) = reader.take_named(&["default_tools_approval_mode", "approval_mode"])
        && let Some(mode) = approval(reader, key, &mode)
    {
        reader.set("approval", mode);
    }
    match reader.take(&["tools"]) {
        Some(Value::Array(list)) if list.is_empty() => {
            reader.set("enabled", false);
            reader.note("none of its tools is used there, so it is disabled");
        }
        Some(Value::Array(list)) => policies(reader, &list),
        Some(Value::Object(tools)) => {
            for (name, tool) in tools {
                let Some(mode) = tool.get("approval_mode") else {
                    if !tool.is_object() {
                        reader.note_mistyped(&format!("tools.{name}"), &tool, "a table");
                    }
                    continue;
                };
                if let Some(mode) = approval(reader, &format!("tools.{name}.approval_mode"), mode) {
                    reader.set_in("tools", &name, serde_json::json!({"approval": mode}));
                }
            }
        }
        Some(value) => reader.note_mistyped("tools", &value, "a list or a table"),
        None => {}
    }
}

/// A list of names, or of names with a policy each.
fn policies(reader: &mut EntryReader<'_>, list: &[Value]) {
    let (tables, names): (Vec<_>, Vec<_>) = list.iter().cloned().partition(Value::is_object);
    let names = reader.texts_in("tools", &Value::Array(names));
    if !names.iter().any(|name| name == "*") {
        reader.add_to("allow", names);
    }
    for tool in tables {
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            reader.note("a tool without a name in `tools` is left out");
            continue;
        };
        let policy = tool.get("permission_policy").unwrap_or(&Value::Null);
        match policy.as_str() {
            Some("always_allow") => reader.add_to("approval_exempt", vec![name.to_owned()]),
            Some("always_deny") => reader.add_to("deny", vec![name.to_owned()]),
            Some("always_ask") => reader.set_in("tools", name, serde_json::json!({"approval": "always"})),
            None if policy.is_null() => {}
            _ => reader.note_unknown(&format!("tools.{name}.permission_policy")),
        }
    }
}

/// When a person is asked, in our words.
fn approval(reader: &mut EntryReader<'_>, key: &str, mode: &Value) -> Option<&'static str> {
    match reader.text_in(key, mode)?.as_str() {
        "prompt" => Some("always"),
        "writes" => Some("writes"),
        "auto" | "approve" => Some("auto"),
        _ => {
            reader.note_unknown(key);
            None
        }
    }
}

/// Timeouts, each with the unit that the host means.
pub(super) fn timeouts(reader: &mut EntryReader<'_>) {
    let own = reader.dialect.timeout;
    match reader.take(&["timeout"]) {
        Some(Value::Object(table)) => {
            for (theirs, value) in table.iter().filter(|(_, value)| !value.is_null()) {
                let key = format!("timeout.{theirs}");
                match theirs.as_str() {
                    "startup" => duration(reader, &key, value, own, "connect_timeout"),
                    "request" => duration(reader, &key, value, own, "call_timeout"),
                    _ => reader.note_unknown(&key),
                }
            }
        }
        Some(value) => duration(reader, "timeout", &value, own, "call_timeout"),
        None => {}
    }
    let named = [
        ("startup_timeout_sec", Unit::Seconds, "connect_timeout"),
        ("startup_timeout_ms", Unit::Millis, "connect_timeout"),
        ("init_timeout_ms", Unit::Millis, "connect_timeout"),
        ("connection_timeout", Unit::Millis, "connect_timeout"),
        ("discovery_timeout_ms", Unit::Millis, "list_timeout"),
        ("tool_timeout_sec", Unit::Seconds, "call_timeout"),
        ("request_timeout_ms", Unit::Millis, "call_timeout"),
    ];
    for (theirs, unit, ours) in named {
        if let Some(value) = reader.take(&[theirs]) {
            duration(reader, theirs, &value, unit, ours);
        }
    }
    match reader.take(&["lifecycle"]) {
        Some(Value::String(mode)) if mode == "keep-alive" => reader.set("idle_stop", "off"),
        Some(Value::Object(table)) => {
            if let Some(idle) = table.get("idleTimeoutMs").filter(|idle| !idle.is_null()) {
                duration(reader, "lifecycle.idleTimeoutMs", idle, Unit::Millis, "idle_stop");
            }
        }
        Some(Value::String(_)) | None => {}
        Some(value) => reader.note_mistyped("lifecycle", &value, "a text or a table"),
    }
}

/// Sets one of our durations.
fn duration(reader: &mut EntryReader<'_>, key: &str, value: &Value, unit: Unit, ours: &str) {
    if let Some(text) = reader.duration_in(key, value, unit) {
        reader.set(ours, text);
    }
}

/// Credentials and OAuth. The state of a sign-in is never copied.
pub(super) fn sign_in(reader: &mut EntryReader<'_>) {
    if let Some(name) = reader.text(&["bearer_token_env_var"]) {
        reader.set("bearer_token_env_var", name);
    }
    if let Some(name) = reader.text(&["bearer_token_env"]) {
        // mcporter sends the variable as it is, without a scheme.
        reader.set_in("env_headers", "Authorization", name);
    }
    if let Some(token) = reader.text(&["bearer_token", "api_key"]) {
        let token = reader.translate_text(&token, "token");
        reader.set("bearer_token", token);
    }
    if let Some(helper) = reader.take(&["headers_helper", "http_headers_helper"]) {
        reader.set("headers_helper", helper);
    }
    let oauth = reader.take(&["oauth"]);
    match oauth {
        Some(_) if reader.dialect.keeps_tokens => {
            reader.note("its sign-in is not copied: `pegboard login` signs in again");
        }
        Some(Value::Bool(false)) => reader.set("oauth", false),
        Some(Value::Object(table)) => oauth_table(reader, table),
        Some(Value::Bool(true)) | None => {}
        Some(value) => reader.note_mistyped("oauth", &value, "a table"),
    }
    for key in ["oauth_client", "auth"] {
        match reader.take(&[key]) {
            Some(Value::Object(table)) => oauth_table(reader, table),
            Some(Value::String(word)) if word != "oauth" => {
                reader.note(format!("`{key} = \"{word}\"` is left out: only the host can do that"));
            }
            Some(Value::String(_)) | None => {}
            Some(value) => reader.note_mistyped(key, &value, "a text or a table"),
        }
    }
    let flat = [
        ("oauth_client_id", "client_id"),
        ("client_id", "client_id"),
        ("oauth_client_secret", "client_secret"),
        ("oauth_redirect_url", "redirect_uri"),
        ("oauth_resource", "resource"),
        ("oauth_grant_type", "grant"),
    ];
    for (theirs, ours) in flat {
        if let Some(value) = reader.text(&[theirs]) {
            let value = reader.translate_text(&value, ours);
            reader.set_in("oauth", ours, value);
        }
    }
    if let Some(variable) = reader.text(&["oauth_client_secret_env", "client_secret_key"]) {
        reader.set_in("oauth", "client_secret", format!("${{{variable}}}"));
    }
    let scopes = reader.texts(&["oauth_scopes", "oauth_scope", "scopes"]);
    if !scopes.is_empty() {
        reader.set_in("oauth", "scopes", scopes);
    }
    for key in [
        "oauth_public_client",
        "oidc",
        "auth_provider_type",
        "target_audience",
        "target_service_account",
        "refresh",
    ] {
        if reader.take(&[key]).is_some_and(|value| value != Value::Bool(false)) {
            reader.note(format!("`{key}` is left out: sign in with `pegboard login` instead"));
        }
    }
    let _ = reader.take(&["oauth_command", "oauth_token_endpoint_auth_method"]);
}

fn oauth_table(reader: &mut EntryReader<'_>, table: serde_json::Map<String, Value>) {
    let mut has_redirect = false;
    let mut port = None;
    for (key, value) in table.into_iter().filter(|(_, value)| !value.is_null()) {
        let ours = match snake_case(&key).as_str() {
            "client_id" => "client_id",
            "client_secret" => "client_secret",
            "redirect_uri" | "callback_url" | "redirect_url" => "redirect_uri",
            "auth_server_metadata_url" | "issuer" | "authorization_server_issuer" => "issuer",
            "authorization_url" => "authorization_url",
            "token_url" => "token_url",
            "audiences" => "audience",
            "callback_port" | "redirect_port" => {
                port = value.as_u64();
                if port.is_none() {
                    reader.note_mistyped(&format!("oauth.{key}"), &value, "a whole number");
                }
                continue;
            }
            "scopes" | "scope" | "oauth_scopes" => {
                let scopes = reader.texts_in(&format!("oauth.{key}"), &value);
                if !scopes.is_empty() {
                    reader.set_in("oauth", "scopes", scopes);
                }
                continue;
            }
            "enabled" => continue,
            other => {
                reader.note(format!("`oauth.{other}` is left out: not known to Pegboard"));
                continue;
            }
        };
        has_redirect |= ours == "redirect_uri";
        match value {
            Value::String(text) => {
                let text = reader.translate_text(&text, ours);
                reader.set_in("oauth", ours, text);
            }
            value => reader.set_in("oauth", ours, value),
        }
    }
    // With a whole redirect URI, hosts ignore the port.
    if let Some(port) = port.filter(|_| !has_redirect) {
        reader.set_in("oauth", "callback_port", port);
    }
}

/// What is left: switches, texts for people, and keys that mean nothing here.
pub(super) fn others(reader: &mut EntryReader<'_>) {
    if reader.flag("disabled") == Some(true) {
        reader.set("enabled", false);
    }
    if reader.flag("enabled") == Some(false) {
        reader.set("enabled", false);
    }
    if reader.flag("required") == Some(true) {
        reader.set("required", true);
    }
    if reader.flag("always_load") == Some(true) {
        reader.set("always_load", true);
    }
    if reader.flag("supports_parallel_tool_calls") == Some(false) {
        reader.set("serial", true);
    }
    for key in ["display_name", "name", "description"] {
        let text = reader.text(&[key]);
        if let Some(text) = text.filter(|text| !text.is_empty() && text != reader.name()) {
            reader.set("description", text);
        }
    }
    match reader.take(&["custom_instructions"]) {
        Some(Value::Object(instructions)) => {
            let is_off = instructions.get("disabled") == Some(&Value::Bool(true));
            if let Some(text) = instructions.get("text").filter(|text| !is_off && !text.is_null())
                && let Some(text) = reader.text_in("custom_instructions.text", text)
            {
                reader.set("instructions", text);
            }
        }
        Some(value) => reader.note_mistyped("custom_instructions", &value, "a table"),
        None => {}
    }
    let sandbox = reader.take(&["sandbox"]);
    if reader.flag("sandbox_enabled") == Some(true) || sandbox.is_some() {
        reader.note("its sandbox is left out: see `sandbox` of the config");
    }
    for key in OWN {
        let _ = reader.take(&[key]);
    }
    // Variables of a server that is reached by a URL mean nothing.
    if !reader.is_process() {
        let _ = reader.take(&["args", "cwd"]);
    }
}
