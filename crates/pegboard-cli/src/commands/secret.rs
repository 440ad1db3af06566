//! `pegboard secret`: values for `${secret:NAME}` in configs, in the keyring of the system.

use std::{collections::BTreeMap, io::IsTerminal as _};

use clap::Args;
use pegboard::{Hint as _, Secret};
use pegboard_hosts::{ServersFile, secret_reference};
use pegboard_oauth::{SecretPlace, SecretStore, SecretStoreError, StoredSecret};
use serde_json::{Value, json};

use super::{
    agreement,
    command::{Run, With, commands},
    consent,
    context::{Context, Ending, interruption_report, time_up},
    secret_prompt::{self, in_words, read_hidden},
    servers::absent_server_complaint,
    stdin::{self, Input},
};
use crate::{
    cli::hide_unless_for_files,
    exit::Exit,
    output::{self, IN_SECONDS, Report, Table, moment},
    settings::{Complaint, Settings, secret_store},
};

/// Longer than any secret.
const MAX_BYTES: u64 = 64 << 10;

commands! {
    /// Keep secrets for the config in the keyring
    #[command(
        after_help = "Examples:\n  pegboard secret set GITHUB_TOKEN\n  pegboard secret list"
    )]
    pub(crate) enum SecretCommand {
        Set(With<Set>),
        List(With<List>),
        Remove(With<Remove>),
    }
}

/// Store a secret, read from a prompt or from stdin
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard secret set GITHUB_TOKEN\n  pass show github | pegboard secret set GITHUB_TOKEN\n  pegboard secret set API_KEY --for weather"
)]
pub(crate) struct Set {
    /// Its name; `${secret:NAME}` in a config refers to it
    name: String,
    /// Where there is no keyring, keep it in a file that only you can read
    #[arg(long)]
    in_file: bool,
    /// Have this server of the config take it as its variable; may be
    /// repeated
    #[arg(id = "server", long = "for", value_name = "SERVER")]
    servers: Vec<String>,
}

impl Run for Set {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Stores a secret. Its value is never an argument, because other users can see those.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let name = self.name.clone();
        let nothing = json!({"name": name, "place": null});
        for server in &self.servers {
            if let Err(complaint) = check_taker(&context, server, &name) {
                return context.refuse(&complaint, &nothing).await;
            }
        }
        // Before the person types it for nothing.
        let made = match self.in_file {
            true => secret_prompt::create_place(),
            false => Ok(()),
        };
        if !self.in_file && secret_prompt::can_ask(&context.output) {
            let output = context.output.clone();
            if let Err(exit) = context.work_or_end(secret_prompt::find_place(&output), &nothing).await {
                return exit;
            }
        }
        let about_name = |error: &SecretStoreError| {
            let mut complaint = complaint(error);
            let hint = complaint.hint.take();
            complaint.hint = hint.map(|hint| hint.replace("secret set NAME", &format!("secret set {name}")));
            complaint
        };
        let store = made.map_err(|error| about_name(&error)).and_then(|()| open());
        let checked = store.and_then(|store| match check(&store, &name) {
            Ok(()) => Ok(store),
            Err(error) => Err(about_name(&error)),
        });
        let store = match checked {
            Ok(store) => store,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let value = match read_value(&mut context, &name, &nothing).await {
            Ok(value) => value,
            Err(exit) => return exit,
        };
        let storing = tokio::task::spawn_blocking(move || {
            let place = store.set(&name, &value)?;
            Ok::<_, SecretStoreError>(place)
        });
        let stored = match context.work_or_end(storing, &nothing).await {
            Ok(stored) => stored.unwrap_or(Err(SecretStoreError::NoPlace)),
            Err(exit) => return exit,
        };
        let place = match stored {
            Ok(place) => place,
            Err(error) => return context.refuse(&complaint(&error), &nothing).await,
        };
        for server in &self.servers {
            consent::refer(&context, server, &self.name, true);
        }
        let users = users(&context, &self.name);
        let report = match context.output.is_json() {
            true => Report::json(
                Exit::Done,
                &json!({"name": self.name, "place": place.as_str(), "used_by": users}),
            ),
            false => {
                let mut report = Report::new(Exit::Done);
                report.data = format!("{} is stored in {}\n", self.name, in_words(place));
                match users.as_slice() {
                    [] => report.hint(&format!(
                        "write `{}` where a config needs it; a host's server that takes the variable `{}` gets it too",
                        secret_reference(&self.name),
                        self.name
                    )),
                    users => report.note(&format!(
                        "{} gets it at the next start; a daemon or host that runs reads it by itself",
                        users.join(", ")
                    )),
                }
            }
        };
        context.print(report).await
    }
}

/// Checks that the process of a server can take a secret as its variable by a change of our config.
fn check_taker(context: &Context<'_>, server: &str, name: &str) -> Result<(), Complaint> {
    let usage = |message: String, hint: String| Complaint {
        message,
        hint: Some(hint),
        exit: Exit::Usage,
    };
    let files = ServersFile::with(&context.global.configs, server)?;
    let Some(file) = files.first() else {
        let settings = Settings::load_or_hosts(&context.global);
        return Err(match settings.hosts() {
            Some(_) if settings.has(server) => usage(
                format!("`{server}` is a server of a host, and has no entry in a config of Pegboard"),
                "`pegboard import` writes one; then give this command again".to_owned(),
            ),
            _ => absent_server_complaint(context, server),
        });
    };
    if file.is_shared() {
        return Err(usage(
            format!(
                "`{server}` is in {}, which other programs read too: a reference to your secret means nothing to them",
                file.shown_path()
            ),
            format!("have it take a variable there: `env = {{ {name} = \"${{{name}}}\" }}`"),
        ));
    }
    match file.entry(server) {
        Some(entry) if entry.get("command").is_none() => Err(usage(
            format!("`{server}` is no process that Pegboard starts, so it takes no variables"),
            format!(
                "write `{}` in its settings, as in `headers` or `auth`",
                secret_reference(name)
            ),
        )),
        _ => Ok(()),
    }
}

/// The value: from a prompt without echo, or all of stdin where it is no terminal.
async fn read_value(context: &mut Context<'_>, name: &str, nothing: &Value) -> Result<Secret, Exit> {
    let output = context.output.clone();
    let usage = |message: String, hint: Option<String>| Complaint {
        message,
        hint,
        exit: Exit::Usage,
    };
    if !std::io::stdin().is_terminal() {
        return match stdin::read(context, MAX_BYTES, nothing).await {
            Input::Read(bytes) => match String::from_utf8(bytes) {
                Ok(text) => {
                    let text = text.strip_suffix('\n').unwrap_or(&text);
                    Ok(Secret::new(text.strip_suffix('\r').unwrap_or(text)))
                }
                Err(_) => Err(context
                    .refuse(&usage("stdin is not UTF-8".to_owned(), None), nothing)
                    .await),
            },
            Input::Unreadable(problem) => Err(context.refuse(&usage(problem, None), nothing).await),
            Input::Ended(report) => Err(context.print(report).await),
        };
    }
    if output.is_json() || !agreement::can_ask() {
        let hint = format!("pipe the value in, as in `pass show x | pegboard secret set {name}`");
        let complaint = Complaint {
            exit: Exit::Refused,
            ..usage("there is no terminal to ask at".to_owned(), Some(hint))
        };
        return Err(context.refuse(&complaint, nothing).await);
    }
    match context.work(read_hidden(&output, &format!("{name} (not shown)"))).await {
        Ending::Done(Some(value)) => Ok(value),
        Ending::Done(None) => Err(context
            .refuse(
                &usage("the value is empty, so nothing is stored".to_owned(), None),
                nothing,
            )
            .await),
        Ending::TimeUp => Err(context.print(time_up(&output, nothing)).await),
        Ending::Interrupted => Err(context.print(interruption_report(&output, nothing)).await),
    }
}

/// List the names of secrets, and the servers that use each
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard secret list -o json")]
pub(crate) struct List {}

impl Run for List {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Lists the stored secrets, and those that a config refers to but that are not stored. Reads no value.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"secrets": []});
        let listed = open().and_then(|store| store.list().map_err(|error| complaint(&error)));
        let listed = match listed {
            Ok(listed) => listed,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let report = match context.output.is_json() {
            true => {
                let document = |secret: &StoredSecret| json!({"name": secret.name, "place": secret.place.as_str(), "set_at": secret.set_at, "used_by": users(&context, &secret.name)});
                let secrets: Vec<Value> = listed.iter().map(document).collect();
                Report::json(Exit::Done, &json!({"secrets": secrets}))
            }
            false if listed.is_empty() => {
                Report::new(Exit::Done).hint("no secret is stored; `pegboard secret set NAME` stores one")
            }
            false => {
                let mut table = Table::with_indent(0);
                table.row(["NAME", "IN", "SET", "USED BY"].map(str::to_owned));
                for secret in &listed {
                    let users = users(&context, &secret.name).join(", ");
                    let users = if users.is_empty() { "-".to_owned() } else { users };
                    let place = match secret.place {
                        SecretPlace::Keyring => "keyring",
                        SecretPlace::File => "encrypted file",
                    };
                    let set_at = moment(secret.set_at, IN_SECONDS);
                    table.row([secret.name.clone(), place.to_owned(), set_at, users]);
                }
                let mut report = Report::new(Exit::Done);
                report.data = table.render(output::width());
                report
            }
        };
        context.print(report).await
    }
}

/// Remove a secret, and say what uses it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard secret remove GITHUB_TOKEN")]
pub(crate) struct Remove {
    /// Its name
    name: String,
}

impl Run for Remove {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Removes a secret from wherever it is.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"name": self.name, "removed": false, "used_by": []});
        // Servers of hosts take it in place of a variable only while it is there.
        let users = users(&context, &self.name);
        let name = self.name.clone();
        let removing = tokio::task::spawn_blocking(move || open()?.remove(&name).map_err(|error| complaint(&error)));
        let removed = match context.work_or_end(removing, &nothing).await {
            Ok(removed) => removed.unwrap_or_else(|_| Err(complaint(&SecretStoreError::NoPlace))),
            Err(exit) => return exit,
        };
        match removed {
            Ok(true) => {}
            Ok(false) => {
                let complaint = Complaint {
                    message: format!("there is no secret `{}`", self.name),
                    hint: Some("`pegboard secret list` lists them".to_owned()),
                    exit: Exit::Usage,
                };
                return context.refuse(&complaint, &nothing).await;
            }
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        }
        let report = match context.output.is_json() {
            true => Report::json(
                Exit::Done,
                &json!({"name": self.name, "removed": true, "used_by": users}),
            ),
            false => {
                let mut report = Report::new(Exit::Done);
                report.data = format!("{} is removed\n", self.name);
                match users.is_empty() {
                    true => report,
                    false => report.warning(&format!(
                        "{} cannot be started without it; `pegboard secret set {}` stores another one",
                        users.join(", "),
                        self.name
                    )),
                }
            }
        };
        context.print(report).await
    }
}

fn open() -> Result<SecretStore, Complaint> {
    secret_store().ok_or_else(|| Complaint {
        message: "there is no home folder to keep the names of secrets in".to_owned(),
        hint: Some("set HOME".to_owned()),
        exit: Exit::Unavailable,
    })
}

/// Fails where a secret of this name could not be stored.
fn check(store: &SecretStore, name: &str) -> Result<(), SecretStoreError> {
    SecretStore::check_name(name).and_then(|()| store.place().map(drop))
}

fn complaint(error: &SecretStoreError) -> Complaint {
    Complaint {
        message: error.to_string(),
        hint: error.hint(),
        exit: match error {
            SecretStoreError::Name(_) | SecretStoreError::Value(_) => Exit::Usage,
            _ => Exit::Unavailable,
        },
    }
}

/// The servers that refer to a secret, or the config files that do elsewhere.
fn users(context: &Context<'_>, name: &str) -> Vec<String> {
    let reference = secret_reference(name);
    let mut users: BTreeMap<String, ()> = BTreeMap::new();
    for file in ServersFile::all(&context.global.configs).unwrap_or_default() {
        let entries = file.entries();
        let servers = entries
            .iter()
            .filter(|(_, entry)| entry.to_string().contains(&reference));
        let before = users.len();
        users.extend(servers.map(|(server, _)| (server.clone(), ())));
        if users.len() == before && file.document.text().contains(&reference) {
            users.insert(file.shown_path(), ());
        }
    }
    // Without a config, the servers of hosts take it in place of a variable of the same name.
    let settings = Settings::load_or_hosts(&context.global);
    users.extend(
        settings
            .hosts()
            .into_iter()
            .flat_map(|hosts| hosts.users_of(&reference))
            .map(|server| (server, ())),
    );
    users.into_keys().collect()
}
