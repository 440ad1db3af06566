//! [`Sources`]: the files that a config was read from, and whether they look as if they were being written.

use crate::{exit::Exit, settings::Complaint, settings::Settings};

/// The sources of a config that was loaded.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    names: Vec<String>,
    blank: Vec<String>,
    is_demo: bool,
}

impl Sources {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            names: settings.loaded.sources.clone(),
            blank: settings.loaded.blank.clone(),
            is_demo: settings.demo_note().is_some(),
        }
    }

    /// Whether `now` may show files that are being written: one is blank that was not, one is gone, or one cannot be read. An editor that
    /// truncates a file or replaces it needs a moment.
    pub(super) fn look_unfinished(&self, now: &Settings) -> bool {
        let loaded = &now.loaded;
        let is_gone = |name: &String| !loaded.sources.contains(name);
        self.find_emptied(now).next().is_some() || !loaded.unreadable.is_empty() || self.names.iter().any(is_gone)
    }

    /// Refuses settings that would remove servers only because a file is blank or gone.
    pub(super) fn check(&self, now: &Settings) -> Result<(), Complaint> {
        let emptied: Vec<&str> = self.find_emptied(now).collect();
        let (message, hint) = if !emptied.is_empty() {
            let verb = if emptied.len() == 1 { "is" } else { "are" };
            (
                format!(
                    "{} {verb} empty now, which would remove the servers of it",
                    emptied.join(" and ")
                ),
                "write the file again; if it is meant to have no servers, write `[servers]` into it".to_owned(),
            )
        } else if now.demo_note().is_some() && !self.is_demo {
            (
                "there is no config file any more, which would replace all servers by the demo server".to_owned(),
                format!("write {} again, or stop the program", self.names.join(" or ")),
            )
        } else {
            return Ok(());
        };
        Err(Complaint {
            message,
            hint: Some(hint),
            exit: Exit::Usage,
        })
    }

    /// The files that are blank and were not before.
    fn find_emptied<'a>(&'a self, now: &'a Settings) -> impl Iterator<Item = &'a str> {
        let is_new = |name: &&String| self.names.contains(name) && !self.blank.contains(name);
        now.loaded.blank.iter().filter(is_new).map(String::as_str)
    }
}
