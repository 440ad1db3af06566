//! Writes imported servers into our config file.

use std::path::{Path, PathBuf};

use pegboard::{Config, Env, Format, config::Source};
use serde_json::{Map, Value};

use super::plan::Plan;
use crate::{
    cli::Global,
    document::{Document, DocumentError},
    exit::Exit,
    settings::{self, Complaint},
};

/// The names of our config files, the preferred one first.
const NAMES: [&str; 4] = ["pegboard.toml", "pegboard.yaml", "pegboard.yml", "pegboard.json"];

/// The most servers that the config loader takes from one file.
const MAX_SERVERS: usize = 1000;

/// The config file to write to: the one that `-c` names, the project's, or the user's.
pub(in crate::commands) fn target(global: &Global, is_project: bool) -> Result<PathBuf, Complaint> {
    match global.configs.as_slice() {
        [] => {}
        [one] => return Ok(std::path::absolute(one).unwrap_or_else(|_| one.clone())),
        _ => {
            return Err(Complaint {
                message: "servers can be written to one config file only".to_owned(),
                hint: Some("name it with a single `-c FILE`".to_owned()),
                exit: Exit::Usage,
            });
        }
    }
    let folder = match is_project {
        true => settings::here(),
        false => user_folder().ok_or_else(|| Complaint {
            message: "there is no folder for the user's config".to_owned(),
            hint: Some("set HOME, or name a file with `-c FILE`".to_owned()),
            exit: Exit::Usage,
        })?,
    };
    let existing = NAMES
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file());
    Ok(existing.unwrap_or_else(|| folder.join("pegboard.toml")))
}

/// The folder of the user's config file.
pub(in crate::commands) fn user_folder() -> Option<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = match cfg!(windows) {
        true => folder("APPDATA"),
        false => folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config"))),
    };
    folder.map(|folder| folder.join("pegboard"))
}

/// The servers that a config file has.
pub(in crate::commands) fn servers_of(file: &Path) -> Result<Map<String, Value>, Complaint> {
    let document = open(file)?;
    let servers = document.get(&["servers"]);
    Ok(servers
        .and_then(|servers| servers.as_object().cloned())
        .unwrap_or_default())
}

/// Writes the servers of a plan.
pub(in crate::commands) fn write(plan: &Plan) -> Result<(), Complaint> {
    if !plan.has_work() {
        return Ok(());
    }
    finish(edited(plan)?, &plan.file)
}

/// The config file with the servers of a plan, not saved yet.
pub(super) fn edited(plan: &Plan) -> Result<Document, Complaint> {
    let mut document = open(&plan.file)?;
    let new = plan
        .rows
        .iter()
        .filter_map(|row| Some((row.new_name()?, &row.settings)));
    let new: Vec<(&str, Value)> = new
        .map(|(name, settings)| (name, Value::Object(settings.clone())))
        .collect();
    let new: Vec<(&str, &Value)> = new.iter().map(|(name, settings)| (*name, settings)).collect();
    document.set_all(&["servers"], &new).map_err(|error| refused(&error))?;
    check(&document)?;
    Ok(document)
}

/// Saves the config file with the imported servers.
pub(super) fn finish(mut document: Document, file: &Path) -> Result<(), Complaint> {
    save(&mut document, file)?;
    // It may hold the secrets that the hosts' files held.
    restrict(file)
}

/// Refuses a text that the config loader would not take as a whole: one that is too large, or that has too many servers.
fn check(document: &Document) -> Result<(), Complaint> {
    let format = match document.format() {
        crate::document::Format::Toml => Format::Toml,
        crate::document::Format::Json => Format::Json,
        crate::document::Format::Yaml => Format::Yaml,
    };
    let file = document.path().display().to_string();
    let servers = document.keys(&["servers"]).len();
    let problem = match servers > MAX_SERVERS {
        true => Some(format!(
            "a file has at most {MAX_SERVERS} servers, and it would have {servers}"
        )),
        false => {
            // Whether variables are set does not matter here.
            let source = Source::text(&file, document.text(), Some(format));
            let loaded = Config::load(&[source], &Env::new(|_| None));
            loaded.readable().err().map(|error| error.to_string())
        }
    };
    match problem {
        None => Ok(()),
        Some(problem) => Err(Complaint {
            message: format!("{file} would not be usable, so nothing is written: {problem}"),
            hint: Some("import fewer servers, or into another file with `-c FILE`".to_owned()),
            exit: Exit::Usage,
        }),
    }
}

pub(in crate::commands) fn open(file: &Path) -> Result<Document, Complaint> {
    Document::open(file).map_err(|error| Complaint {
        message: format!("the file cannot be read: {error}"),
        hint: None,
        exit: Exit::Usage,
    })
}

pub(in crate::commands) fn save(document: &mut Document, file: &Path) -> Result<(), Complaint> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed(file, &error.to_string()))?;
    }
    document.save().map_err(|error| refused(&error))
}

/// The complaint about an edit that was not made. The error names the file.
pub(in crate::commands) fn refused(error: &DocumentError) -> Complaint {
    Complaint {
        message: format!("the file cannot be changed: {error}"),
        hint: None,
        exit: Exit::Unavailable,
    }
}

pub(in crate::commands) fn failed(file: &Path, reason: &str) -> Complaint {
    Complaint {
        message: format!("{} cannot be written: {reason}", file.display()),
        hint: None,
        exit: Exit::Unavailable,
    }
}

/// Lets only the user read a file.
pub(in crate::commands) fn restrict(file: &Path) -> Result<(), Complaint> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(file, mode).map_err(|error| failed(file, &error.to_string()))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
