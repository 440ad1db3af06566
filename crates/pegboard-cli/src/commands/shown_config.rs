//! The config as the dashboard shows it: what `config explain` and `config show` print.

use std::sync::Arc;

use pegboard::config::{Explained, ValueOrigin};
use pegboard_dashboard::{ConfigDocument, ConfigLine, ConfigProblem, ReadConfig, ReadScore};

use super::torture::last_score;
use crate::{cli::Global, settings::Settings};

/// Reads the files of a config again each time that the page is opened.
pub(super) fn reader(global: Global) -> ReadConfig {
    Arc::new(move || read(&global))
}

/// Reads how a server stood the newest `pegboard torture`.
pub(super) fn scores(global: Global) -> ReadScore {
    Arc::new(move |server| {
        // The config is read only if there is a score.
        last_score(server, || {
            let config = Settings::load_for(&global, server.as_str()).selected_config().ok()?;
            config.servers.get(server).cloned()
        })
    })
}

fn read(global: &Global) -> ConfigDocument {
    let settings = Settings::load(global);
    let loaded = &settings.loaded;
    let is_written = |one: &Explained| one.from != ValueOrigin::Default;
    let lines = loaded.explain().into_iter().filter(is_written).map(|one| ConfigLine {
        server: one.server.map(|server| server.to_string()),
        name: one.field,
        origin: one.from.to_string(),
        value: one.value,
    });
    let problems = loaded.problems.iter().map(|problem| ConfigProblem {
        is_error: problem.is_error(),
        message: problem.to_string(),
        hint: None,
    });
    ConfigDocument {
        sources: loaded.sources.clone(),
        settings: lines.collect(),
        problems: problems.collect(),
    }
}
