//! `pegboard add FILE.mcpb`: unpacks an MCP bundle into the user's folder of bundles, after everything that will run was shown.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard_hosts::{ServersFile, check_server_name, shorten_path};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{entry::usage, options::Add, screen};
use crate::{
    bundle::{self, Bundle, BundleError, BundlesLock, Given, Placed},
    commands::{
        agreement::{agrees, can_ask},
        context::{Context, Ending, empty, interruption_report, time_up, with_complaint},
        stdin,
    },
    exit::Exit,
    output::{Output, Report, clean, one_line},
    settings::Complaint,
    terminal::{Keyboard, Lines as _},
};

/// The most bytes of a bundle.
const MOST: u64 = 256 << 20;
/// How long to wait for another process that adds a bundle. It writes half a gigabyte at most.
const LOCK_TIME: Duration = Duration::from_secs(30);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// How many of its files are named.
const SHOWN: usize = 8;

/// A bundle that was unpacked, and the settings of its server.
pub(super) struct Unpacked {
    pub(super) name: String,
    pub(super) entry: Value,
    /// The folder, if it was made now.
    made: Option<PathBuf>,
    /// Held until the server is added or the folder is removed, so that no other process relies on it or removes it meanwhile.
    lock: Option<BundlesLock>,
    /// The settings that the server had before.
    replaced: Option<Value>,
}

/// The bundle that `add` is about, if it is about one.
pub(super) fn path(add: &Add) -> Option<&Path> {
    let is_alone = add.target.is_none() && add.command.is_empty();
    let is_bundle = |path: &&Path| path.extension().is_some_and(|end| end == "mcpb" || end == "dxt");
    Some(Path::new(&add.name)).filter(|path| is_alone && is_bundle(path))
}

/// Options that only a bundle has.
pub(super) fn refuse_options(add: &Add) -> Result<(), Complaint> {
    match add.set.is_empty() && add.as_name.is_none() && !add.yes {
        true => Ok(()),
        false => Err(usage(
            "`--set`, `--name` and `--yes` are for bundles",
            "write `pegboard add FILE.mcpb`",
        )),
    }
}

/// Why nothing was added.
enum Stopped {
    Complaint(Complaint),
    /// The command's time was up, or it was interrupted.
    Ended(Ending<()>),
    /// The person at the terminal said no.
    Declined,
}

impl From<Complaint> for Stopped {
    fn from(complaint: Complaint) -> Self {
        Self::Complaint(complaint)
    }
}

/// Reads, shows and unpacks a bundle. Nothing of it is run.
pub(super) async fn unpack(context: &mut Context<'_>, add: &Add, path: &Path) -> Result<Unpacked, Report> {
    let output = context.output.clone();
    let nothing = json!({"name": add.name});
    try_unpack(context, add, path).await.map_err(|stopped| match stopped {
        Stopped::Complaint(complaint) => {
            let document = super::refusal_document(&add.name, &complaint);
            with_complaint(empty(&output, complaint.exit, &document), &complaint)
        }
        Stopped::Ended(Ending::TimeUp) => time_up(&output, &nothing),
        Stopped::Ended(_) => interruption_report(&output, &nothing),
        Stopped::Declined => Report::new(Exit::Refused),
    })
}

async fn try_unpack(context: &mut Context<'_>, add: &Add, path: &Path) -> Result<Unpacked, Stopped> {
    let shown = path.display().to_string();
    let bad = |why: String| usage(&format!("{shown} is not added: {why}"), "");
    let bytes = done(stdin::read_file(context, path, MOST).await)?.map_err(bad)?;
    // On a blocking thread, so that Ctrl-C works meanwhile.
    let reading = tokio::task::spawn_blocking(move || Bundle::read(&bytes));
    let read = done(context.work(reading).await)?.map_err(|_| bad("it cannot be read".to_owned()))?;
    let bundle = read.map_err(|why| bad(why.to_string()))?;
    let name = name(add, &bundle)?;
    taken(context, add, &name)?;
    let mut given = given(&add.set, &bundle)?;
    ask(context, &name, &bundle, &mut given).await?;
    let bundles = bundle::folder().ok_or_else(|| bad("there is no home folder to unpack it into".to_owned()))?;
    let folder = bundles.join(format!("{name}-{}", folder_mark(context, add, &bundle)?));
    let entry = entry(&bundle, &folder, &given).map_err(|why| bad(why.to_string()))?;
    context.output.say(&describe(&shown, &bundle, &entry));
    if !add.writing.dry_run && !add.yes {
        agree(context).await?;
    }
    if add.writing.dry_run {
        return Ok(Unpacked {
            name,
            entry,
            made: None,
            lock: None,
            replaced: None,
        });
    }
    let cannot = |why: io::Error| bad(format!("{} cannot be written: {why}", folder.display()));
    let lock = done(context.work(lock(&bundles)).await)?.map_err(cannot)?;
    // Another process may have added it while this one waited.
    let replaced = taken(context, add, &name)?;
    let place = folder.clone();
    let unpacking = tokio::task::spawn_blocking(move || bundle.unpack(&place));
    let unpacked = done(context.work(unpacking).await)?.map_err(|_| bad("it cannot be unpacked".to_owned()))?;
    let placed = unpacked.map_err(cannot)?;
    if placed == Placed::Replaced {
        context.output.note(&format!(
            "{} was there with other content than the bundle has, and was unpacked anew",
            shorten_path(&folder)
        ));
    }
    Ok(Unpacked {
        name,
        entry,
        made: Some(folder).filter(|_| placed == Placed::Made),
        lock: Some(lock),
        replaced,
    })
}

/// Waits for other processes that add or remove bundles.
async fn lock(bundles: &Path) -> io::Result<BundlesLock> {
    let begun = Instant::now();
    loop {
        if let Some(lock) = BundlesLock::try_take(bundles)? {
            return Ok(lock);
        }
        if begun.elapsed() >= LOCK_TIME {
            return Err(io::Error::other(
                "another process is adding or removing a bundle; try again",
            ));
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}

/// What tells the folder of a bundle from those of other bundles, and from that of the same bundle in another config: each can be removed alone.
fn folder_mark(context: &Context<'_>, add: &Add, bundle: &Bundle) -> Result<String, Complaint> {
    let file = ServersFile::to_add(&context.global.configs, add.writing.project)?;
    let file = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
    let mut digest = Sha256::new_with_prefix(&bundle.sum);
    digest.update(file.as_os_str().as_encoded_bytes());
    Ok(digest
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn done<T>(ending: Ending<T>) -> Result<T, Stopped> {
    match ending {
        Ending::Done(value) => Ok(value),
        Ending::TimeUp => Err(Stopped::Ended(Ending::TimeUp)),
        Ending::Interrupted => Err(Stopped::Ended(Ending::Interrupted)),
    }
}

/// The settings of the bundle's server.
fn entry(bundle: &Bundle, folder: &Path, given: &Given) -> Result<Value, BundleError> {
    let launch = bundle.manifest.launch(folder, given, |path| bundle.has(path))?;
    let mut entry = json!({"command": launch.command, "cwd": folder.display().to_string().replace('$', "$$")});
    if !launch.args.is_empty() {
        entry["args"] = json!(launch.args);
    }
    if !launch.env.is_empty() {
        entry["env"] = json!(launch.env);
    }
    if !bundle.manifest.description.is_empty() {
        entry["description"] = json!(one_line(&bundle.manifest.description).replace('$', "$$"));
    }
    Ok(entry)
}

/// Asks the person at the terminal.
async fn agree(context: &mut Context<'_>) -> Result<(), Stopped> {
    if !can_ask() || context.output.is_json() {
        return Err(Stopped::Complaint(Complaint {
            message: "nothing was added, because there is nobody to ask".to_owned(),
            hint: Some("`--yes` adds it without a question, `--dry-run` shows what would be added".to_owned()),
            exit: Exit::Refused,
        }));
    }
    let output = context.output.clone();
    match done(context.work(agrees(&output, "Add it?")).await)? {
        true => Ok(()),
        false => Err(Stopped::Declined),
    }
}

impl Unpacked {
    /// Removes what is not used: the new files if the server was not added, and those of the server that was replaced.
    pub(super) fn clean_up(&self, is_added: bool, configs: &[PathBuf]) {
        let Some(_lock) = &self.lock else { return };
        if !is_added {
            if let Some(folder) = &self.made {
                let _ = fs::remove_dir_all(folder);
            }
        } else if let Some(old) = &self.replaced {
            remove_unused(old, configs);
        }
    }
}

/// Removes the unpacked files of a server that was removed, if it was one of a bundle. They stay if another process adds a bundle just then.
pub(super) fn forget(entry: &Value, configs: &[PathBuf]) {
    let lock = bundle::folder().filter(|bundles| bundles.is_dir());
    if let Some(Ok(Some(_lock))) = lock.map(|bundles| BundlesLock::try_take(&bundles)) {
        remove_unused(entry, configs);
    }
}

/// Removes the unpacked files of a server, unless a server of these files still uses them. The caller holds the lock.
fn remove_unused(entry: &Value, configs: &[PathBuf]) {
    let (Some(bundles), Some(cwd)) = (bundle::folder(), entry["cwd"].as_str()) else {
        return;
    };
    let folder = PathBuf::from(cwd.replace("$$", "$"));
    let is_used = |file: &ServersFile| file.entries().values().any(|other| other["cwd"] == entry["cwd"]);
    let is_unused = ServersFile::all(configs).is_ok_and(|files| !files.iter().any(is_used));
    if is_unused && folder.parent() == Some(&bundles) && folder.join("manifest.json").is_file() {
        let _ = fs::remove_dir_all(&folder);
    }
}

/// The name of the server: the wish, or what the manifest says with the characters of server names.
fn name(add: &Add, bundle: &Bundle) -> Result<String, Complaint> {
    let name = add.as_name.clone().unwrap_or_else(|| {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = bundle.manifest.name.chars().map(allowed).collect();
        name.trim_matches(['-', '_']).chars().take(60).collect()
    });
    check_server_name(&name).map_err(|_| {
        usage(
            &format!("`{}` is no name of a server", one_line(&name)),
            "choose one with `--name`",
        )
    })?;
    Ok(name)
}

/// Fails if there is a server of that name that is not to be replaced. Returns its settings.
fn taken(context: &Context<'_>, add: &Add, name: &str) -> Result<Option<Value>, Complaint> {
    let files = ServersFile::with(&context.global.configs, name)?;
    match files.first() {
        Some(file) if !add.writing.force => Err(usage(
            &format!("{} has a server `{name}` already", file.shown_path()),
            "choose another name with `--name`, or replace it with `--force`",
        )),
        file => Ok(file.and_then(|file| file.entry(name))),
    }
}

/// The values of `--set`.
fn given(set: &[String], bundle: &Bundle) -> Result<Given, Complaint> {
    let mut given: Given = BTreeMap::new();
    for pair in set {
        let known = || bundle.manifest.questions.keys().cloned().collect::<Vec<_>>().join(", ");
        let Some((key, value)) = pair.split_once('=') else {
            return Err(usage(
                &format!("`--set {pair}` has no value"),
                "write `--set NAME=VALUE`",
            ));
        };
        if !bundle.manifest.questions.contains_key(key) {
            return Err(usage(
                &format!("the bundle has no setting `{key}`"),
                &format!("it has: {}", known()),
            ));
        }
        given.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    for (key, values) in &given {
        let question = &bundle.manifest.questions[key];
        question.check(key, values).map_err(|why| {
            let hint = format!("write `--set {key}='${{NAME}}'` to take it from a variable when the server is started");
            usage(&why, if question.is_secret { &hint } else { "" })
        })?;
    }
    Ok(given)
}

/// Asks for what is required and not given. Secrets become references to variables.
async fn ask(context: &mut Context<'_>, server: &str, bundle: &Bundle, given: &mut Given) -> Result<(), Stopped> {
    for (key, question) in &bundle.manifest.questions {
        let has_default = !question.default.is_empty() && !question.is_secret;
        if given.contains_key(key) || !question.is_required || has_default {
            continue;
        }
        if question.is_secret {
            let in_name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let variable: String = format!("{server}_{key}").to_uppercase().chars().map(in_name).collect();
            given.insert(key.clone(), vec![format!("${{{variable}}}")]);
            continue;
        }
        let title = one_line(&question.title);
        if !can_ask() || context.output.is_json() {
            let hint = format!("give it with `--set {key}=VALUE`");
            return Err(usage(&format!("the bundle needs `{key}`: {title}"), &hint).into());
        }
        let output = context.output.clone();
        let values = vec![done(context.work(read_line(&output, &title)).await)?];
        question.check(key, &values).map_err(|why| usage(&why, ""))?;
        given.insert(key.clone(), values);
    }
    Ok(())
}

/// A line that the person at the terminal writes.
async fn read_line(output: &Output, question: &str) -> String {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    output.say(&format!("{question}: "));
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next();
        drop(aside);
        line
    });
    reading.await.ok().and_then(Result::ok).flatten().unwrap_or_default()
}

/// The bundle and everything that will run, for people.
fn describe(path: &str, bundle: &Bundle, entry: &Value) -> String {
    let manifest = &bundle.manifest;
    let bytes: usize = bundle.files.iter().map(|file| file.content.len()).sum();
    let names: Vec<String> = bundle
        .files
        .iter()
        .take(SHOWN)
        .map(|file| one_line(&file.path))
        .collect();
    let more = bundle.files.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let facts = [
        (
            "files",
            format!(
                "{} ({:.1} MB): {}{more}",
                bundle.files.len(),
                bytes as f64 / 1e6,
                names.join(", ")
            ),
        ),
        ("sha256", bundle.sum.clone()),
    ];
    let text = format!(
        "{} {} by {} (nobody has checked who that is), from {}\n{}",
        one_line(&manifest.name),
        one_line(&manifest.version),
        one_line(&manifest.author),
        shorten_path(Path::new(path)),
        screen::lines(entry, &facts)
    );
    clean(&text).into_owned()
}
