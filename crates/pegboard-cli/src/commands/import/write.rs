//! Writes imported servers into our config file.

use std::path::Path;

use pegboard::{Config, Env, Format, config::Source};
use serde_json::Value;

use super::plan::Plan;
use crate::{
    commands::servers_file::{ServersFile, broken},
    document::{Document, DocumentError},
    exit::Exit,
    settings::Complaint,
};

/// The most servers that the config loader takes from one file.
const MAX_SERVERS: usize = 1000;

/// Writes the servers of a plan.
pub(in crate::commands) fn write(plan: &Plan) -> Result<(), Complaint> {
    if !plan.has_work() {
        return Ok(());
    }
    finish(edited(plan)?)
}

/// The config file with the servers of a plan, not saved yet.
pub(super) fn edited(plan: &Plan) -> Result<ServersFile, Complaint> {
    let mut file = plan.target.clone();
    let new = plan
        .rows
        .iter()
        .filter_map(|row| Some((row.new_name()?, &row.settings)));
    let new: Vec<(&str, Value)> = new
        .map(|(name, settings)| (name, Value::Object(settings.clone())))
        .collect();
    let new: Vec<(&str, &Value)> = new.iter().map(|(name, settings)| (*name, settings)).collect();
    file.put_all(&new).map_err(|error| refused(&error))?;
    check(&file)?;
    Ok(file)
}

/// Saves the config file with the imported servers.
pub(super) fn finish(mut file: ServersFile) -> Result<(), Complaint> {
    file.save()?;
    // It may hold the secrets that the hosts' files held.
    restrict(file.path())
}

/// Refuses a text that the config loader would not take as a whole: one that is too large, or that has too many servers.
fn check(servers: &ServersFile) -> Result<(), Complaint> {
    let document = &servers.document;
    let format = match document.format() {
        crate::document::Format::Toml => Format::Toml,
        crate::document::Format::Json => Format::Json,
        crate::document::Format::Yaml => Format::Yaml,
    };
    let file = document.path().display().to_string();
    let servers = servers.names().len();
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
    if error.cut_short.is_some() {
        return broken(error);
    }
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
