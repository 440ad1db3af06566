//! The operations of the API itself.

use pegboard::Provider;
use serde_json::{Value, json};

use super::parts::{Object, json_content, reference};

/// The paths of the API, without those of tools.
pub(super) fn paths() -> Object {
    let mut paths = Object::new();
    let mut add = |path: &str, methods: Value| paths.insert(path.to_owned(), methods);
    let status = || answer(200, "The state of the servers.", &json_content(&reference("Status")));
    let name = json!({"name": "name", "in": "path", "required": true, "description": "The server.", "schema": {"type": "string"}});
    add(
        "/api/v1/mcp/servers",
        json!({"get": operation("listServers", "The state of all servers.", "servers", status())}),
    );
    let mut put = operation("putServer", "Connects or replaces a server.", "servers", status());
    put["responses"]["201"] = put["responses"]["200"].clone();
    put["description"] = "The body has the settings of a server as in the config. Without a body the server is connected as the config has it. \
                          Other settings need `serve.allow_new_servers`. The server stays until the next restart.".into();
    put["requestBody"] = json!({"required": false, "content": json_content(&json!({"type": "object"}))});
    let mut delete = operation(
        "deleteServer",
        "Disconnects a server.",
        "servers",
        json!({"204": {"description": "It is gone."}}),
    );
    delete["description"] = "A server of the config comes back with the next reload.".into();
    add(
        "/api/v1/mcp/servers/{name}",
        json!({
            "parameters": [name],
            "get": operation("getServer", "The state of one server.", "servers", status()),
            "put": put,
            "delete": delete,
        }),
    );
    for (verb, summary) in [
        ("reconnect", "Restarts a server at once."),
        ("enable", "Enables a server and starts it."),
        ("disable", "Disables a server at once."),
        ("refresh", "Lists the tools of a server again."),
    ] {
        let id = format!("{verb}Server");
        add(
            &format!("/api/v1/mcp/servers/{{name}}/{verb}"),
            json!({"parameters": [name], "post": operation(&id, summary, "servers", status())}),
        );
    }
    let link = || answer(200, "The link.", &json_content(&reference("SignInLink")));
    let mut sign_in = operation(
        "signInToServer",
        "A link on which a person signs in to a server.",
        "servers",
        link(),
    );
    sign_in["description"] = "The link is for the principal of the token, works in one browser, and expires after ten minutes. 409 if nobody can sign in \
                              to the server, or no browser can reach the gateway.".into();
    add(
        "/api/v1/mcp/servers/{name}/signin",
        json!({"parameters": [name], "post": sign_in}),
    );
    add(
        "/api/v1/mcp/signin",
        json!({"post": operation("signIn", "A link to the sign-ins of all servers that the token sees.", "servers", link())}),
    );
    let sign_ins = answer(200, "The sign-ins.", &json_content(&reference("SignIns")));
    let mut sign_ins = operation("listSignIns", "Who has signed in to which server.", "servers", sign_ins);
    sign_ins["description"] = "The sign-ins that are stored, of all principals and without their tokens. A token with a view sees those of its servers \
                               that are its own or without a principal.".into();
    add("/api/v1/mcp/sign-ins", json!({"get": sign_ins}));
    add("/api/v1/mcp/tools", json!({"get": list_tools()}));
    for (what, id) in [("resources", "listResources"), ("prompts", "listPrompts")] {
        let summary = format!("The {what} that the token sees.");
        let listing = answer(200, &summary, &json_content(&listing(what)));
        add(
            &format!("/api/v1/mcp/{what}"),
            json!({"get": operation(id, &summary, "tools", listing)}),
        );
    }
    add("/api/v1/mcp/call", json!({"post": call()}));
    let warnings = answer(
        200,
        "Conditions that an operator should know about.",
        &json_content(&reference("Warnings")),
    );
    add(
        "/api/v1/mcp/warnings",
        json!({"get": operation("listWarnings", "Conditions that an operator should know about.", "board", warnings)}),
    );
    let events = json!({"text/event-stream": {"schema": {"type": "string"}}});
    let mut events = operation(
        "listenToEvents",
        "What happens on the board.",
        "board",
        answer(200, "Server-sent events.", &events),
    );
    events["description"] = "Each event has its kind as `event` and an `Event` as `data`. Without the scope `admin` a client sees its own calls only.".into();
    add("/api/v1/mcp/events", json!({"get": events}));
    let reloaded = answer(200, "The config was applied.", &json_content(&reference("Reloaded")));
    let mut reload = operation("reload", "Applies the config files as they are now.", "board", reloaded);
    reload["description"] = "A config with errors changes nothing and is answered with 409.".into();
    add("/api/v1/mcp/reload", json!({"post": reload}));
    let document = answer(200, "This document.", &json_content(&json!({"type": "object"})));
    add(
        "/openapi.json",
        json!({"get": operation("describe", "This document.", "board", document)}),
    );
    for (path, operation) in probes() {
        add(path, json!({"get": operation}));
    }
    paths
}

/// The paths of probes and of monitoring.
fn probes() -> [(&'static str, Value); 4] {
    let object = json_content(&json!({"type": "object"}));
    let alive = json!({"200": {"description": "It is alive."}});
    let mut live = operation("isAlive", "Whether the process is alive.", "monitoring", alive);
    let mut readiness = answer(200, "Every required server is ready.", &object);
    readiness["503"] = json!({"description": "Which required servers are not ready.", "content": object});
    let mut ready = operation(
        "isReady",
        "Whether clients should be sent here.",
        "monitoring",
        readiness,
    );
    for probe in [&mut live, &mut ready] {
        // Probes need no token.
        probe["security"] = json!([{}]);
    }
    let summary = answer(200, "The state of the daemon and its servers.", &object);
    let text = json!({"schema": {"type": "string"}});
    let formats = json!({"text/plain": text, "application/openmetrics-text": text});
    let counters = answer(
        200,
        "Counters and histograms in the text format of Prometheus, or in OpenMetrics for a client that prefers it.",
        &formats,
    );
    [
        ("/livez", live),
        ("/readyz", ready),
        (
            "/health",
            operation(
                "getHealth",
                "A summary for people and dashboards.",
                "monitoring",
                summary,
            ),
        ),
        (
            "/metrics",
            operation("getMetrics", "Metrics for Prometheus.", "monitoring", counters),
        ),
    ]
}

fn list_tools() -> Value {
    let providers = Provider::ALL.map(Provider::as_str);
    let schema = json!({"oneOf": [reference("Tools"), {"type": "array", "items": {"type": "object"}}]});
    let tools = answer(
        200,
        "The tools; with `provider` exactly the array that its API takes.",
        &json_content(&schema),
    );
    let mut list = operation("listTools", "The tools that the token sees.", "tools", tools);
    list["parameters"] = json!([
        {"name": "server", "in": "query", "description": "Only the tools of this server.", "schema": {"type": "string"}},
        {"name": "provider", "in": "query", "description": "The API that the tools are defined for.",
         "schema": {"type": "string", "enum": providers}},
        {"name": "search", "in": "query", "description": "Only the ten tools that fit these words best.", "schema": {"type": "string"}},
    ]);
    list
}

/// The schema of a listing of resources or prompts.
fn listing(what: &str) -> Value {
    let objects = json!({"type": "array", "items": {"type": "object"}});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {what: objects, "unavailable": objects, "warnings": texts},
        "required": [what, "unavailable", "warnings"],
    })
}

fn call() -> Value {
    let mut reply = answer(
        200,
        "The tool has answered, perhaps with an error of its own.",
        &json!({
            "application/json": {"schema": reference("Reply")},
            "text/event-stream": {"schema": {"type": "string"}},
        }),
    );
    reply["default"] = failed_call();
    let mut call = operation("call", "Calls a tool by its name.", "tools", reply);
    call["description"] = "With `Accept: text/event-stream` the events `created`, `progress` and `completed`. A client that goes away cancels the call. If the \
                           server waits for a sign-in (`needs_auth`), `hint` names the operation that returns the link for it.".into();
    call["requestBody"] = json!({"required": true, "content": json_content(&reference("CallRequest"))});
    call
}

/// The response of a call that was refused or lost, or of a request that is wrong.
pub(super) fn failed_call() -> Value {
    json!({
        "description": "The call was refused or lost, or the request is wrong.",
        "content": {
            "application/json": {"schema": reference("Reply")},
            "application/problem+json": {"schema": reference("Problem")},
        },
    })
}

fn operation(id: &str, summary: &str, tag: &str, mut responses: Value) -> Value {
    if responses.get("default").is_none() {
        responses["default"] = json!({
            "description": "What is wrong.",
            "content": {"application/problem+json": {"schema": reference("Problem")}},
        });
    }
    json!({"operationId": id, "summary": summary, "tags": [tag], "responses": responses})
}

fn answer(status: u16, description: &str, content: &Value) -> Value {
    let mut responses = Object::new();
    responses.insert(
        status.to_string(),
        json!({"description": description, "content": content}),
    );
    responses.into()
}
