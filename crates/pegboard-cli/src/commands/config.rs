//! `pegboard config`: the config as it is meant, and what one may say.

use pegboard::Config;
use serde_json::json;

use super::Stage;
use crate::{
    exit::Exit,
    output::{self, Report},
    settings::Settings,
};

/// Shows the config, and every problem with its file and line. Errors make the command fail.
pub(super) async fn show(mut stage: Stage<'_>) -> Exit {
    let settings = Settings::load(&stage.global);
    let loaded = &settings.loaded;
    let exit = match loaded.errors().next() {
        Some(_) => Exit::Usage,
        None => Exit::Done,
    };
    let mut shown = loaded.show();
    let mut report = if stage.output.is_json() {
        shown["problems"] = json!(loaded.problems);
        Report::json(exit, &shown)
    } else {
        let mut report = Report::new(exit);
        report.data = format!("{}\n", output::clean(&format!("{shown:#}")));
        report
    };
    for problem in &loaded.problems {
        report = if problem.is_error() {
            report.error(&problem.to_string(), None)
        } else {
            report.warning(&problem.to_string())
        };
    }
    stage.print(report).await
}

/// Prints the JSON Schema of config files.
pub(super) async fn schema(mut stage: Stage<'_>) -> Exit {
    let report = Report::json(Exit::Done, &Config::schema());
    stage.print(report).await
}
