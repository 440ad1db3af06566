//! Writes imported servers into our config file.

use pegboard_config::{Config, Env, Format, Source};
use serde_json::Value;

use super::plan::Plan;
use crate::{document, host_error::HostError, servers_file::ServersFile, user_file};

/// The most servers that the config loader takes from one file.
const MAX_SERVERS: usize = 1000;

impl Plan {
    /// Writes its servers into the config file.
    pub fn write(&self) -> Result<(), HostError> {
        if !self.has_work() {
            return Ok(());
        }
        save(self.edit()?)
    }

    /// The config file with its servers, not saved yet.
    pub fn edit(&self) -> Result<ServersFile, HostError> {
        let mut file = self.target.clone();
        let new = self
            .rows
            .iter()
            .filter_map(|row| Some((row.new_name()?, &row.settings)));
        let new: Vec<(&str, Value)> = new
            .map(|(name, settings)| (name, Value::Object(settings.clone())))
            .collect();
        let new: Vec<(&str, &Value)> = new.iter().map(|(name, settings)| (*name, settings)).collect();
        file.put_all(&new).map_err(|error| HostError::refused_edit(&error))?;
        check(&file)?;
        Ok(file)
    }
}

/// Saves the config file that [`Plan::edit`] returned.
pub fn save(mut file: ServersFile) -> Result<(), HostError> {
    file.save()?;
    // It may hold the secrets that the hosts' files held.
    user_file::restrict(file.path())
}

/// Refuses a text that the config loader would not take as a whole: one that is too large, or that has too many servers.
fn check(servers: &ServersFile) -> Result<(), HostError> {
    let document = &servers.document;
    let format = match document.format() {
        document::Format::Toml => Format::Toml,
        document::Format::Json => Format::Json,
        document::Format::Yaml => Format::Yaml,
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
        Some(problem) => Err(HostError::usage(
            format!("{file} would not be usable, so nothing is written: {problem}"),
            Some("import fewer servers, or into another file with `-c FILE`".to_owned()),
        )),
    }
}
