//! `pegboard resources`: what can be read, and reading it.

use std::fmt::Write as _;

use pegboard::{Body, Deadline, Failure, Kind, Resource, ResourceContents, ResourceListing, ServerName, Toolset};
use serde_json::json;

use super::{
    Ending, Stage, TIMEOUT, call::ask::Terminal, cancelled, empty, interrupted, late, listing, time_up, waits::Waits,
};
use crate::{
    exit::Exit,
    output::{self, Paint, Report, Table, as_data, one_line},
    settings::{self, Settings},
};

pub(super) async fn list(mut stage: Stage<'_>) -> Exit {
    let settings = Settings::load(&stage.global);
    let nothing = json!({"resources": [], "templates": [], "unavailable": [], "warnings": settings.warnings().collect::<Vec<_>>()});
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => {
            let report = empty(&stage.output, Exit::Usage, &nothing);
            return stage.print(complaint.report(report)).await;
        }
    };
    let enabled = config.servers.values().filter(|server| server.enabled).count();
    settings.announce(&stage.output);
    let waits = Waits::new(&config);
    let board = settings::board(config).open();
    let what = "asking the servers for their resources";
    let (toolset, patience) = (board.toolset(), stage.deadline.remaining());
    let report = match stage.waiting(&waits, what, &board, toolset.resources(patience)).await {
        Ending::Interrupted => interrupted(&stage.output, &nothing),
        Ending::TimeUp => time_up(&stage.output, &nothing),
        Ending::Done(mut found) => {
            let exit = listing::exit(&found.unavailable, enabled, stage.is_late());
            if stage.output.is_json() {
                found.warnings.splice(..0, settings.warnings());
                Report::json(exit, &found)
            } else {
                let mut report = Report::new(exit);
                report.data = text(&found);
                if report.data.is_empty() && found.unavailable.is_empty() {
                    report = report.warning("no server that is switched on offers a resource");
                }
                listing::name_absent(report, &found.unavailable, stage.is_late())
            }
        }
    };
    stage.close(&board, report).await
}

pub(super) async fn read(mut stage: Stage<'_>, uri: String) -> Exit {
    let settings = Settings::load(&stage.global);
    let nothing = json!({"server": null, "uri": uri});
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => {
            let report = listing::unconfigured(&stage.output, nothing, "contents", &complaint);
            return stage.print(report).await;
        }
    };
    settings.announce(&stage.output);
    let waits = Waits::new(&config);
    let board = settings::board(config).host(Terminal::new(&stage.output, false)).open();
    let what = &format!("reading {uri}");
    let (toolset, deadline) = (board.toolset(), stage.deadline);
    let reading = async {
        let server = owner(&toolset, &uri, deadline).await?;
        let contents = toolset.read_resource(&server, &uri).await?;
        Ok((server, contents))
    };
    let report = match stage.waiting(&waits, what, &board, reading).await {
        Ending::Interrupted => listing::unread(&stage.output, nothing, "contents", cancelled()),
        Ending::TimeUp => listing::unread(&stage.output, nothing, "contents", late().hint(TIMEOUT)),
        Ending::Done(read) => {
            let (server, contents) = match read {
                Ok((server, contents)) => (Some(server), Ok(contents)),
                Err(failure) => (None, Err(failure)),
            };
            let document = json!({"server": server, "uri": uri});
            listing::read(&stage.output, document, "contents", &contents, |contents| {
                shown(contents)
            })
        }
    };
    stage.close(&board, report).await
}

/// The server that has this address: one that lists it, else one with a pattern that begins like it, else the only one there is.
async fn owner(toolset: &Toolset, uri: &str, deadline: Deadline) -> Result<ServerName, Failure> {
    let found = toolset.resources(deadline.remaining()).await;
    let listed = found.resources.iter().filter(|resource| resource.uri == uri);
    let begins = |template: &&Resource| {
        let literal = template.uri.split('{').next().unwrap_or_default();
        !literal.is_empty() && uri.starts_with(literal)
    };
    let mut owners: Vec<&ServerName> = listed.map(|resource| &resource.server).collect();
    if owners.is_empty() {
        owners = found
            .templates
            .iter()
            .filter(begins)
            .map(|template| &template.server)
            .collect();
    }
    if owners.is_empty() {
        let all = found.resources.iter().chain(&found.templates);
        owners = all.map(|resource| &resource.server).collect();
    }
    owners.sort();
    owners.dedup();
    match (owners.as_slice(), found.unavailable.first()) {
        ([owner], _) => Ok((*owner).clone()),
        ([], Some(absent)) => Err(listing::absent(absent, deadline.has_passed())),
        ([], None) => Err(Failure::new(Kind::InvalidArguments, "no server offers a resource")),
        (owners, _) => {
            let names: Vec<_> = owners.iter().map(|owner| owner.as_str()).collect();
            let message = format!("several servers may have {uri}: {}", names.join(", "));
            Err(Failure::new(Kind::InvalidArguments, message).hint("say which one with `--server NAME`"))
        }
    }
}

/// The texts as they are; what is no text is named.
fn shown(contents: &[ResourceContents]) -> String {
    let mut shown = String::new();
    for contents in contents {
        match &contents.body {
            Body::Text(text) => shown.push_str(&as_data(text)),
            _ => {
                let kind = contents.mime_type.as_deref().unwrap_or("unknown type");
                let bytes = contents.bytes().map(|bytes| bytes.len()).unwrap_or_default();
                let _ = write!(shown, "[{} {}, {bytes} bytes]", one_line(&contents.uri), one_line(kind));
            }
        }
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

/// The resources and patterns under the names of their servers, one line each.
fn text(found: &ResourceListing) -> String {
    let (paint, width) = (Paint::of(&std::io::stdout()), output::width());
    let all: Vec<&Resource> = found.resources.iter().chain(&found.templates).collect();
    let mut servers: Vec<&ServerName> = all.iter().map(|resource| &resource.server).collect();
    servers.sort();
    servers.dedup();
    let mut text = String::new();
    for server in servers {
        if !text.is_empty() {
            text.push('\n');
        }
        let own = |resource: &&&Resource| resource.server == *server;
        let many = match all.iter().filter(own).count() {
            1 => "1 resource".to_owned(),
            many => format!("{many} resources"),
        };
        let _ = writeln!(text, "{} ({many})", paint.bold(server.as_str()));
        let mut table = Table::indented(2);
        for resource in all.iter().filter(own) {
            let words = [&resource.description, &resource.title, &resource.name];
            let words = words.into_iter().flatten().next().map_or("", String::as_str);
            let first = words.trim_start().lines().next().unwrap_or_default();
            table.row([one_line(&resource.uri), one_line(first)]);
        }
        text.push_str(&table.render(width));
    }
    text
}
