//! Asks the person at the terminal what a command needs before servers are started: whether those of hosts may be, and for secrets.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use pegboard::Problem;
use pegboard_base::secret::names_secret;
use pegboard_hosts::{HostError, ServersFile};
use serde_json::Value;

use super::{
    agreement,
    context::{Context, Ending, interruption_report, time_up},
    needed_variables,
    secret_prompt::{self, Need},
};
use crate::{
    exit::Exit,
    output::{self, clean, one_line, shell_word},
    settings::{HostServers, PendingServer, Settings, decline_hosts, join},
};

/// How a problem names a secret that is not stored.
const SECRET: &str = "secret:";

/// Asks the user to approve servers of hosts and to enter missing secrets, for the servers that `is_needed` selects. Without a terminal it does
/// nothing.
pub(super) async fn settle(
    context: &mut Context<'_>,
    settings: &mut Settings,
    is_needed: &dyn Fn(&str) -> bool,
) -> Result<(), Exit> {
    if context.output.is_json() || !agreement::can_ask() {
        return Ok(());
    }
    approve_hosts(context, settings, is_needed).await?;
    ask_for_secrets(context, settings, is_needed).await
}

/// Whether a command about one server, or about a tool that may be of any, needs a server. `is_of` tells whether its name says so.
pub(super) fn needed<F: Fn(&str) -> bool>(settings: &Settings, is_of: F) -> impl Fn(&str) -> bool + use<F> {
    let config = &settings.loaded.config;
    let mut names = config.servers.keys().chain(config.misconfigured.keys());
    let is_named = names.any(|name| is_of(name.as_str()));
    move |name| !is_named || is_of(name)
}

/// Asks the user to approve the servers of hosts that `is_needed` selects. Without a terminal it does nothing.
pub(super) async fn approve_hosts(
    context: &mut Context<'_>,
    settings: &mut Settings,
    is_needed: &dyn Fn(&str) -> bool,
) -> Result<(), Exit> {
    let Some(hosts) = settings
        .hosts()
        .filter(|_| !context.output.is_json() && agreement::can_ask())
    else {
        return Ok(());
    };
    let picked: Vec<&str> = settings.picked_servers().collect();
    let is_meant = |name: &str| is_needed(name) && (picked.is_empty() || picked.contains(&name));
    let pending = hosts.pending().filter(|pending| is_meant(&pending.server.name));
    let names: Vec<String> = pending.map(|pending| pending.server.name.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let output = context.output.clone();
    output.say(&plan(hosts, &names));
    let question = question(hosts, &names);
    match context.work(agreement::agrees(&output, &question)).await {
        Ending::Done(false) => {
            decline_hosts();
            // Its problems say what to do now.
            *settings = Settings::load_or_hosts(&context.global);
            return Ok(());
        }
        Ending::Done(true) => {}
        Ending::TimeUp => return Err(context.print(time_up(&output, &Value::Null)).await),
        Ending::Interrupted => return Err(context.print(interruption_report(&output, &Value::Null)).await),
    }
    match hosts.approve(&names) {
        Ok(()) => {
            output.note("this is remembered until one of them changes; `pegboard trust forget --hosts` takes it back")
        }
        Err(error) => {
            output.say(&output::warning(&format!("this is not remembered: {error}")));
            context.global.trust = true;
        }
    }
    *settings = Settings::load_or_hosts(&context.global);
    Ok(())
}

/// The servers that would be started, with everything that decides which code runs. Nothing is cut to the terminal's width, because what is approved is
/// what the user must see.
fn plan(hosts: &HostServers, names: &[String]) -> String {
    let mut text = "no config found, and hosts have servers:\n".to_owned();
    for pending in hosts.pending().filter(|pending| names.contains(&pending.server.name)) {
        let mark = if pending.has_changed { ", has changed" } else { "" };
        let (name, source) = (&pending.server.name, pending.server.source());
        let target = match command_line(pending) {
            Some(line) => format!(": {line}"),
            None => String::new(),
        };
        text.push_str(&format!(
            "  {}{target}\n",
            one_line(&format!("{name} ({source}{mark})"))
        ));
        text.push_str(&other_settings(pending));
    }
    text
}

/// What a server starts, word for word.
fn command_line(pending: PendingServer<'_>) -> Option<String> {
    let settings = pending.review?.servers().values().next()?;
    let args = settings.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = settings.get("command").into_iter().chain(args);
    let words: Vec<String> = words
        .filter_map(|word| Some(clean(&shell_word(word.as_str()?)).into_owned()))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Its other settings, one in a line, and the variables of its environment file.
fn other_settings(pending: PendingServer<'_>) -> String {
    let Some(review) = pending.review else {
        return "    its settings cannot be read, so it is not started\n".to_owned();
    };
    let own = review.servers().values().filter_map(Value::as_object).flatten();
    let own = own.filter(|(name, value)| {
        let is_home = *name == "cwd" && value.as_str().map(Path::new) == home().as_deref();
        !is_home && !["command", "args", "enabled"].contains(&name.as_str())
    });
    let lines = own.map(|(name, value)| format!("    {} = {}\n", one_line(name), clean(&value.to_string())));
    let files = review.env_files().iter();
    let files = files.map(|(path, content)| format!("    {}: {}\n", one_line(path), clean(&content.to_string())));
    lines.chain(files).collect()
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).components().collect())
}

fn question(hosts: &HostServers, names: &[String]) -> String {
    let mut sources: Vec<&str> = Vec::new();
    for pending in hosts.pending().filter(|pending| names.contains(&pending.server.name)) {
        for host in &pending.server.hosts {
            if !sources.contains(&host.title) {
                sources.push(host.title);
            }
        }
    }
    let count = match names.len() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    format!("Start {count} of {}?", join(&sources))
}

/// Asks for the secrets that are missing, and has our config refer to them.
pub(super) async fn ask_for_secrets(
    context: &mut Context<'_>,
    settings: &mut Settings,
    is_needed: &dyn Fn(&str) -> bool,
) -> Result<(), Exit> {
    let missing = missing_secrets(settings, context, is_needed);
    if missing.is_empty() || !secret_prompt::can_ask(&context.output) {
        return Ok(());
    }
    let output = context.output.clone();
    let mut is_changed = false;
    for (name, servers) in &missing {
        let shown: Vec<String> = servers.iter().map(|server| settings.marked_name(server)).collect();
        let need = Need {
            name,
            servers: &shown,
            note: None,
        };
        match context.work(secret_prompt::ask_and_store(&output, &need)).await {
            Ending::Done(false) => {}
            Ending::Done(true) => {
                is_changed = true;
                for server in servers {
                    refer(context, server, name, false);
                }
            }
            Ending::TimeUp => return Err(context.print(time_up(&output, &Value::Null)).await),
            Ending::Interrupted => return Err(context.print(interruption_report(&output, &Value::Null)).await),
        }
    }
    if is_changed {
        *settings = match settings.hosts() {
            Some(_) => Settings::load_or_hosts(&context.global),
            None => Settings::load(&context.global),
        };
    }
    Ok(())
}

/// Asks for the secrets that servers of our config asked for before they ended, and gives them to the servers. The next command starts them with
/// these.
pub(super) async fn ask_after_failure(context: &mut Context<'_>, missing: &[(String, Vec<String>)]) {
    if give_missing_secrets(context, missing).await {
        context
            .output
            .note("give the command again: the server is started with it then");
    }
}

/// Gives servers of our config the secrets that they asked for before they ended: those that are stored after a question, the others when the user
/// has typed them. Returns whether any server has got one. Without a terminal it does nothing.
pub(super) async fn give_missing_secrets(context: &mut Context<'_>, missing: &[(String, Vec<String>)]) -> bool {
    let output = context.output.clone();
    if !secret_prompt::can_ask(&output) {
        return false;
    }
    let mut is_any = false;
    for (server, names) in missing {
        let Some(file) = own_file(context, server).filter(|_| !names.is_empty()) else {
            continue;
        };
        for name in names {
            let is_stored = needed_variables::is_stored(name);
            let servers = [server.clone()];
            let asking = async {
                if is_stored {
                    let question = format!("{server} asks for `{name}`, which is stored. Pass it on to {server}?");
                    return agreement::agrees(&output, &one_line(&question)).await;
                }
                let note = format!("It is stored as your secret, and `env` of `{server}` in {file} refers to it.");
                let need = Need {
                    name,
                    servers: &servers,
                    note: Some(note),
                };
                secret_prompt::ask_and_store(&output, &need).await
            };
            match context.work(asking).await {
                Ending::Done(true) => {
                    is_any = true;
                    refer(context, server, name, true);
                }
                Ending::Done(false) => {}
                Ending::TimeUp | Ending::Interrupted => return is_any,
            }
        }
    }
    is_any
}

/// The secrets that servers lack, each with the names of the servers. Those of files that other programs read too are left out: a reference to our
/// secrets would mean nothing there.
fn missing_secrets(
    settings: &Settings,
    context: &Context<'_>,
    is_needed: &dyn Fn(&str) -> bool,
) -> BTreeMap<String, Vec<String>> {
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for problem in settings.loaded.errors() {
        let Some((name, server)) = missing_secret(problem).filter(|(_, server)| is_needed(server)) else {
            continue;
        };
        let is_stored_reference = problem.variable.as_deref().is_some_and(|name| name.starts_with(SECRET));
        if is_stored_reference || settings.hosts().is_some() || is_ours(context, server) {
            let servers = missing.entry(name.to_owned()).or_default();
            if !servers.iter().any(|known| known == server) {
                servers.push(server.to_owned());
            }
        }
    }
    missing
}

/// The name of the secret that a problem is about, with the server.
fn missing_secret(problem: &Problem) -> Option<(&str, &str)> {
    let variable = problem.variable.as_deref()?;
    let name = match variable.strip_prefix(SECRET) {
        Some(name) => name,
        None => Some(variable).filter(|name| names_secret(name))?,
    };
    Some((name, problem.server()?))
}

/// Whether a server is in a config file that no other program reads.
fn is_ours(context: &Context<'_>, server: &str) -> bool {
    own_file(context, server).is_some()
}

/// The config file of a server as it is shown, if no other program reads it.
pub(super) fn own_file(context: &Context<'_>, server: &str) -> Option<String> {
    let files = ServersFile::with(&context.global.configs, server).unwrap_or_default();
    let file = files.first().filter(|file| !file.is_shared())?;
    Some(file.shown_path())
}

/// Has the config entry of a server take a value from the secret in place of the variable; with `gives` its process gets it in any case.
pub(super) fn refer(context: &Context<'_>, server: &str, name: &str, gives: bool) {
    let edit = || -> Result<Option<String>, HostError> {
        let _locks = ServersFile::lock_all(&context.global.configs)?;
        let mut files = ServersFile::with(&context.global.configs, server)?;
        let Some(file) = files.first_mut().filter(|file| !file.is_shared()) else {
            return Ok(None);
        };
        match file.take_from_secret(server, name, gives)? {
            true => file.save().map(|()| Some(file.shown_path())),
            false => Ok(None),
        }
    };
    match edit() {
        Ok(Some(file)) => context
            .output
            .note(&format!("{file} has `${{secret:{name}}}` for `{server}` now")),
        Ok(None) => {}
        Err(error) => {
            let message = format!("`{server}` still reads the variable `{name}`: {}", error.message);
            context.output.say(&output::warning(&message));
        }
    }
}
