//! Translates the keys of an entry that say how a server is used: tools, timeouts, sign-in.

use serde_json::Value;

use super::{
    entry::{Reader, snake_case, texts},
    host::Unit,
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
pub(super) fn tools(reader: &mut Reader<'_>) {
    let allowed = reader.take(&[
        "include_tools",
        "enabled_tools",
        "allowed_tools",
        "available_tools",
        "tools_allowed",
    ]);
    reader.add_to("allow", texts(allowed.as_ref()));
    for key in ["exclude_tools", "disabled_tools", "blocked_tools", "tools_denied"] {
        let denied = reader.take(&[key]);
        reader.add_to("deny", texts(denied.as_ref()));
    }
    for key in ["auto_approve", "always_allow"] {
        match reader.take(&[key]) {
            Some(Value::Bool(true)) => reader.note(format!(
                "`{key}` for all tools is left out: set `approval_exempt = [\"*\"]` if you want it"
            )),
            Some(value) => reader.add_to("approval_exempt", texts(Some(&value))),
            None => {}
        }
    }
    if reader.take(&["trust"]) == Some(Value::Bool(true)) {
        reader.note("`trust` is left out: it means \"never ask\" there, and \"believe the annotations\" here");
    }
    let mode = reader.take(&["default_tools_approval_mode", "approval_mode"]);
    if let Some(mode) = mode.as_ref().and_then(approval) {
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
                if let Some(mode) = tool.get("approval_mode").and_then(approval) {
                    reader.set_in("tools", &name, serde_json::json!({"approval": mode}));
                }
            }
        }
        _ => {}
    }
}

/// A list of names, or of names with a policy each.
fn policies(reader: &mut Reader<'_>, list: &[Value]) {
    let names = texts(Some(&Value::Array(list.to_vec())));
    if !names.iter().any(|name| name == "*") {
        reader.add_to("allow", names);
    }
    for tool in list {
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            continue;
        };
        match tool.get("permission_policy").and_then(Value::as_str) {
            Some("always_allow") => reader.add_to("approval_exempt", vec![name.to_owned()]),
            Some("always_deny") => reader.add_to("deny", vec![name.to_owned()]),
            Some("always_ask") => reader.set_in("tools", name, serde_json::json!({"approval": "always"})),
            _ => {}
        }
    }
}

fn approval(mode: &Value) -> Option<&'static str> {
    match mode.as_str()? {
        "prompt" => Some("always"),
        "writes" => Some("writes"),
        "auto" | "approve" => Some("auto"),
        _ => None,
    }
}

/// Timeouts, each with the unit that the host means.
pub(super) fn timeouts(reader: &mut Reader<'_>) {
    let own = reader.dialect.timeout;
    match reader.take(&["timeout"]) {
        Some(Value::Object(table)) => {
            for (theirs, ours) in [("startup", "connect_timeout"), ("request", "call_timeout")] {
                let text = table.get(theirs).and_then(|value| reader.duration(value, own));
                if let Some(text) = text {
                    reader.set(ours, text);
                }
            }
        }
        Some(value) => {
            if let Some(text) = reader.duration(&value, own) {
                reader.set("call_timeout", text);
            }
        }
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
        let text = reader.take(&[theirs]).and_then(|value| reader.duration(&value, unit));
        if let Some(text) = text {
            reader.set(ours, text);
        }
    }
    match reader.take(&["lifecycle"]) {
        Some(Value::String(mode)) if mode == "keep-alive" => reader.set("idle_stop", "off"),
        Some(Value::Object(table)) => {
            let idle = table
                .get("idleTimeoutMs")
                .and_then(|value| reader.duration(value, Unit::Millis));
            if let Some(idle) = idle {
                reader.set("idle_stop", idle);
            }
        }
        _ => {}
    }
}

/// Credentials and OAuth. The state of a sign-in is never copied.
pub(super) fn sign_in(reader: &mut Reader<'_>) {
    if let Some(name) = text(reader, &["bearer_token_env_var"]) {
        reader.set("bearer_token_env_var", name);
    }
    if let Some(name) = text(reader, &["bearer_token_env"]) {
        // mcporter sends the variable as it is, without a scheme.
        reader.set_in("env_headers", "Authorization", name);
    }
    if let Some(token) = text(reader, &["bearer_token", "api_key"]) {
        let token = reader.translated(&token, "token");
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
        _ => {}
    }
    for key in ["oauth_client", "auth"] {
        match reader.take(&[key]) {
            Some(Value::Object(table)) => oauth_table(reader, table),
            Some(Value::String(word)) if word != "oauth" => {
                reader.note(format!("`{key} = \"{word}\"` is left out: only the host can do that"));
            }
            _ => {}
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
        if let Some(value) = text(reader, &[theirs]) {
            let value = reader.translated(&value, ours);
            reader.set_in("oauth", ours, value);
        }
    }
    if let Some(variable) = text(reader, &["oauth_client_secret_env", "client_secret_key"]) {
        reader.set_in("oauth", "client_secret", format!("${{{variable}}}"));
    }
    let scopes = texts(reader.take(&["oauth_scopes", "oauth_scope", "scopes"]).as_ref());
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

fn oauth_table(reader: &mut Reader<'_>, table: serde_json::Map<String, Value>) {
    let mut has_redirect = false;
    let mut port = None;
    for (key, value) in table {
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
                continue;
            }
            "scopes" | "scope" | "oauth_scopes" => {
                let scopes = texts(Some(&value));
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
                let text = reader.translated(&text, ours);
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
pub(super) fn others(reader: &mut Reader<'_>) {
    if reader.take(&["disabled"]) == Some(Value::Bool(true)) {
        reader.set("enabled", false);
    }
    if reader.take(&["enabled"]) == Some(Value::Bool(false)) {
        reader.set("enabled", false);
    }
    if reader.take(&["required"]) == Some(Value::Bool(true)) {
        reader.set("required", true);
    }
    if reader.take(&["always_load"]) == Some(Value::Bool(true)) {
        reader.set("always_load", true);
    }
    if reader.take(&["supports_parallel_tool_calls"]) == Some(Value::Bool(false)) {
        reader.set("serial", true);
    }
    for key in ["display_name", "name", "description"] {
        let text = text(reader, &[key]);
        if let Some(text) = text.filter(|text| !text.is_empty() && text != reader.name()) {
            reader.set("description", text);
        }
    }
    if let Some(instructions) = reader.take(&["custom_instructions"]) {
        let is_off = instructions.get("disabled").and_then(Value::as_bool) == Some(true);
        if let Some(text) = instructions.get("text").and_then(Value::as_str).filter(|_| !is_off) {
            reader.set("instructions", text);
        }
    }
    let sandbox = reader.take(&["sandbox"]);
    if reader.take(&["sandbox_enabled"]) == Some(Value::Bool(true)) || sandbox.is_some() {
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

fn text(reader: &mut Reader<'_>, names: &[&str]) -> Option<String> {
    let value = reader.take(names)?;
    value.as_str().map(str::to_owned)
}
