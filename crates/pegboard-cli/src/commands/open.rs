//! `pegboard open`: the dashboard in a browser.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::{command::Run, context::Context, login::browser};
use crate::{
    daemon,
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// How long a browser may take to start. Some run as long as their window is open.
const BROWSER: Duration = Duration::from_secs(3);

/// Open the dashboard in a browser
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard open\n  pegboard open --print")]
pub(crate) struct Open {
    /// Print the address, which works once, and open no browser
    #[arg(long)]
    print: bool,
}

impl Run for Open {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"url": null, "opened": false});
        let settings = Settings::load(&context.global);
        if let Err(complaint) = settings.usable_config() {
            return context.refuse(&complaint, &nothing).await;
        }
        let (global, limit) = (context.global.clone(), context.deadline);
        let output = context.output.clone();
        // Boxed, because the start of a daemon has much to remember.
        let finding = Box::pin(daemon::find_or_start(&global, &settings, &output, limit));
        let found = match context.work_or_end(finding, &nothing).await {
            Ok(found) => found,
            Err(exit) => return exit,
        };
        let Some(daemon) = found else {
            let complaint = unavailable(
                "no daemon runs whose dashboard could be opened",
                Some("`pegboard serve` starts one"),
            );
            return context.refuse(&complaint, &nothing).await;
        };
        let link = match daemon.dashboard_link().await {
            Ok(link) => link,
            Err(why) => return context.refuse(&unavailable(&why, None), &nothing).await,
        };
        let Some(url) = link["url"].as_str() else {
            let why = link["error"]
                .as_str()
                .unwrap_or("the daemon has no dashboard; `pegboard daemon restart` starts a newer one");
            return context.refuse(&unavailable(why, None), &nothing).await;
        };
        let opened = match self.print || !browser::can_open() {
            true => Ok(false),
            // A browser that goes on is one that has opened.
            false => match tokio::time::timeout(BROWSER, browser::open(url)).await {
                Ok(Ok(())) | Err(_) => Ok(true),
                Ok(Err(why)) => Err(why),
            },
        };
        let report = report(&context, &link, url, &opened);
        context.print(report).await
    }
}

fn report(context: &Context<'_>, link: &Value, url: &str, opened: &Result<bool, String>) -> Report {
    let is_opened = matches!(opened, Ok(true));
    if context.output.is_json() {
        let document = json!({"url": url, "expires_in_s": link["expires_in_s"], "opened": is_opened});
        return Report::json(Exit::Done, &document);
    }
    let mut report = Report::new(Exit::Done);
    if let Err(why) = opened {
        report = report.warning(&format!("the browser cannot be opened ({why})"));
    }
    match is_opened {
        true => report.hint("the dashboard opens in the browser; `pegboard open --print` prints its address"),
        false => {
            report.data = format!("{url}\n");
            report
        }
    }
}

fn unavailable(why: &str, hint: Option<&str>) -> Complaint {
    Complaint {
        message: why.to_owned(),
        hint: hint.map(str::to_owned),
        exit: Exit::Unavailable,
    }
}
