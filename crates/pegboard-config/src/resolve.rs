//! Resolves the validated settings of a server to its [`ServerConfig`].

mod arguments;
pub(super) mod audit;
mod context;
mod credentials;
pub(super) mod gateway;
mod lifecycle;
pub(super) mod masking;
mod oauth;
mod remote;
mod results;
mod secrets;
pub(super) mod serve;
mod serve_oauth;
mod stdio;
mod tools;
pub(super) mod views;

pub(super) use context::Context;

use super::{
    choice::{Capability, TransportKind},
    field::Applies,
    fields::{SERVER, ServerTable, server},
    from_setting::FromSetting as _,
    lifecycle::Health,
    limits::Limits,
    policy::{Capabilities, OutputCheck, Policy},
    problem::{Report, join},
    server::ServerConfig,
    setting::{Rank, Values},
    transport::{RemoteKind, Transport},
};

/// Reports values that no server could use, of a server's own table or of the top of a file.
pub(super) fn check(values: &Values, path: &str, report: &mut Report) {
    // The top of a file has the same fields for servers.
    let values = ServerTable::new(values);
    lifecycle::check(values, path, report);
    let (idle, total) = (
        values.set(&server::call_timeout),
        values.set(&server::call_total_timeout),
    );
    if let (Some(idle), Some(total), Some(found)) = (idle, total, values.find(&server::call_total_timeout))
        && total < idle
    {
        let path = join(path, &found.key);
        report.error(found.at, &path, "must not be less than `call_timeout`");
    }
}

/// Reports errors in the views and the gateway of one source, and removes the entries that have them.
pub(super) fn check_gateway(values: &mut Values, report: &mut Report) {
    views::check(values, report);
    serve::check(values, report);
    gateway::remove_broken(values, report);
}

/// Resolves a server. Returns `None` after reporting a problem with its transport.
pub(super) fn resolve(context: &mut Context<'_>, values: &Values) -> Option<ServerConfig> {
    let hidden = secrets::collect(context, values);
    let values = ServerTable::new(values);
    let transport = transport(context, values)?;
    let transport = check_allowed(context, transport, values)?;
    warn_if_not_built(context, &transport);
    warn_if_unchecked(context, values);
    if let Some(found) = values.find(&server::masking) {
        masking::check(context.report, context.path, found);
    }
    let mut config = ServerConfig::new(transport).overlay(values);
    config.limits = limits(values);
    config.policy = policy(context, values);
    config.hidden = hidden;
    Some(config)
}

fn transport(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Transport> {
    use TransportKind::{Http, Remote, Sse, Stdio, WebSocket};

    let kind = values.get(&server::kind);
    let command = values.at(&server::command);
    let url = values.at(&server::url);
    match (command, url, kind) {
        (Some(_), Some(at), _) => context.refuse(at, "url", "a server has either `command` or `url`, not both"),
        (None, None, Some(Stdio)) => context.refuse(context.at, "command", "a stdio server needs `command`"),
        (None, None, Some(_)) => context.refuse(context.at, "url", "a server of this type needs `url`"),
        (None, None, None) => context.refuse(context.at, "url", "a server needs either `command` or `url`"),
        (None, Some(at), Some(Stdio)) => context.refuse(at, "url", "a stdio server has `command`, not `url`"),
        (Some(at), None, Some(Http | Sse | WebSocket | Remote)) => {
            context.refuse(at, "command", "a server of this type has `url`, not `command`")
        }
        (Some(_), None, _) => {
            warn_of_ineffective(context, values, "stdio", Applies::Remote);
            stdio::command(context, values).map(Transport::Stdio)
        }
        (None, Some(at), kind) => {
            warn_of_ineffective(context, values, "remote", Applies::Stdio);
            remote::transport(context, values, kind, at)
        }
    }
}

/// Warns about settings that apply to the other kind of server.
fn warn_of_ineffective(context: &mut Context<'_>, values: ServerTable<'_>, kind: &str, other: Applies) {
    // The environment of a program that prints headers is that of a stdio server.
    let of_helper: &[&str] = match values.find(&server::headers_helper) {
        Some(_) => &["env", "env_file", "env_pass", "env_policy", "allow_loader_env", "cwd"],
        None => &[],
    };
    let fields = SERVER.fields().filter(|field| field.applies == other);
    let fields = fields.filter(|field| !of_helper.contains(&field.name));
    for found in fields.filter_map(|field| values.find_field(field)) {
        let path = join(context.path, &found.key);
        let message = format!("has no effect on a {kind} server");
        context.report.warn(found.at, &path, message);
    }
}

/// Warns about a transport that this build lacks. It is no error: another program may use the same file.
fn warn_if_not_built(context: &mut Context<'_>, transport: &Transport) {
    let kind = transport.kind();
    if !transport.is_built() {
        let message = format!("this program was built without servers over `{kind}`");
        let hint = format!("build it with the feature `{kind}` of the crate `pegboard`");
        context.report.warn_with(context.at, context.path, message, hint);
    }
}

/// Warns about checks of arguments and results that the config asks for and this build lacks.
fn warn_if_unchecked(context: &mut Context<'_>, values: ServerTable<'_>) {
    if cfg!(feature = "validation") {
        return;
    }
    let outputs = values
        .find(&server::output_check)
        .filter(|_| values.get(&server::output_check) != OutputCheck::Off);
    for found in arguments::find_schema_check(values).into_iter().chain(outputs) {
        let path = join(context.path, &found.key);
        let message = "this program was built without validation against schemas";
        let hint = "build it with the feature `validation` of the crate `pegboard`";
        context.report.warn_with(found.at, &path, message, hint);
    }
}

/// Refuses a transport that is not in `transports`.
fn check_allowed(context: &mut Context<'_>, transport: Transport, values: ServerTable<'_>) -> Option<Transport> {
    let Some(found) = values.find(&server::transports) else {
        return Some(transport);
    };
    let allowed = Vec::<TransportKind>::from_setting(&found.setting).unwrap_or_default();
    let fits = |kind: &TransportKind| match &transport {
        Transport::Remote {
            kind: RemoteKind::Auto, ..
        } => matches!(kind, TransportKind::Http | TransportKind::Sse | TransportKind::Remote),
        other => kind.as_str() == other.kind(),
    };
    if allowed.iter().any(fits) {
        return Some(transport);
    }
    let (key, at) = match transport {
        Transport::Stdio(_) => (server::command.name, values.at(&server::command)),
        Transport::Remote { .. } => (server::url.name, values.at(&server::url)),
    };
    let kind = transport.kind();
    let (of, hint) = match found.rank {
        Rank::Preset => (
            format!(" of preset `{}`", found.file),
            format!("write `transports = [\"{kind}\"]` in the server's table if it is meant"),
        ),
        Rank::Top | Rank::Server => (String::new(), format!("add `{kind}` to `{}`", found.key)),
    };
    let words: Vec<&str> = allowed.iter().map(|kind| kind.as_str()).collect();
    let list = if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(" and ")
    };
    let message = format!("the server is reached over {kind}, and `transports`{of} allows {list}");
    let at = at.unwrap_or(context.at);
    context.report.error_with(at, &join(context.path, key), message, hint);
    None
}

fn limits(values: ServerTable<'_>) -> Limits {
    let mut limits = Limits::default().overlay(values);
    if limits.call_total_timeout < limits.call_timeout {
        // The weaker setting is adjusted: a default or a preset's value to a written one.
        if values.rank(&server::call_total_timeout) > values.rank(&server::call_timeout) {
            limits.call_timeout = limits.call_total_timeout;
        } else {
            limits.call_total_timeout = limits.call_timeout;
        }
    }
    limits
}

fn policy(context: &Context<'_>, values: ServerTable<'_>) -> Policy {
    let result = results::resolve_server(values);
    let policy = Policy {
        capabilities: capabilities(values),
        tool_queues: tools::queues(values),
        tools: tools::policies(values),
        tool_retry: tools::retries(values),
        retry: lifecycle::retries(values),
        restart: lifecycle::restart(values),
        health: Health::default().overlay(values),
        breaker: lifecycle::breaker(values),
        call_arguments: arguments::rules(values),
        masking: masking::extend(context.masking, values.find(&server::masking)),
        result,
        tool_results: results::resolve_tools(values, result),
        summarise: results::summarise(values),
        ..Policy::default()
    };
    policy.overlay(values)
}

fn capabilities(values: ServerTable<'_>) -> Capabilities {
    let Some(wanted) = values.set(&server::capabilities) else {
        return Capabilities::default();
    };
    Capabilities {
        resources: wanted.contains(&Capability::Resources),
        prompts: wanted.contains(&Capability::Prompts),
    }
}
