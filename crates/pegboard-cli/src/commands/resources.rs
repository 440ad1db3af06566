//! `pegboard resources`: lists resources and resource templates, or reads a resource.

use std::{collections::BTreeMap, fmt::Write as _, io::IsTerminal as _, path::PathBuf, time::Duration};

use clap::Args;
use pegboard::{
    Failure, Kind, ServerName, Toolset,
    catalog::Resource,
    deadline::Deadline,
    outcome::{Body, ResourceContents},
    toolset::{ResourceListing, Unavailable},
};
use serde_json::{Value, json};

use super::{
    command::{Run, With, commands},
    context::Context,
    fetch::{self, Item},
    listing::{self, Listed},
};
use crate::{
    cli::or_raw,
    exit::Exit,
    output::{self, Report, Table, as_data, one_line},
};

commands! {
    /// List resources, or read one
    #[command(
        after_help = "Examples:\n  pegboard resources\n  pegboard resources read demo://about"
    )]
    pub(crate) enum ResourcesCommand {
        List(With<List>),
        Read(With<Read>),
    }
}

impl Default for ResourcesCommand {
    fn default() -> Self {
        Self::List(With::default())
    }
}

/// List resources
#[derive(Debug, Default, Args)]
#[command(after_help = "Example:\n  pegboard resources list -o json")]
pub(crate) struct List {}

impl Run for List {
    async fn run(self, context: Context<'_>) -> Exit {
        listing::run::<ResourceListing>(context).await
    }
}

impl Listed for ResourceListing {
    const NOUN: &'static str = "resource";

    async fn request(toolset: &Toolset, patience: Duration) -> Self {
        toolset.resources(patience).await
    }

    fn empty(warnings: Vec<String>) -> Value {
        json!({"resources": [], "templates": [], "unavailable": [], "warnings": warnings})
    }

    fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }

    fn text(&self, name: &dyn Fn(&ServerName) -> String) -> String {
        let mut all: Vec<&Resource> = self.resources.iter().chain(&self.templates).collect();
        all.sort_by(|a, b| a.server.cmp(&b.server));
        listing::sections(
            &all,
            Self::NOUN,
            &BTreeMap::new(),
            |resource| &resource.server,
            name,
            |resources| {
                let mut table = Table::with_indent(2);
                for resource in resources {
                    let descriptions = [&resource.description, &resource.title, &resource.name];
                    let description = descriptions.into_iter().flatten().next().map_or("", String::as_str);
                    table.row([one_line(&resource.uri), listing::first_line(description)]);
                }
                table.render(output::width())
            },
        )
    }
}

/// Read one resource
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard resources read demo://about")]
pub(crate) struct Read {
    /// Its address; `--server NAME` says whose when several have it
    uri: String,
    /// Write the contents to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Run for Read {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        match arg.get_id().as_str() {
            "output" => or_raw(arg),
            _ => arg,
        }
    }

    async fn run(self, context: Context<'_>) -> Exit {
        let Self { uri, out } = self;
        let is_shown = out.is_none() && std::io::stdout().is_terminal();
        let item = Item {
            what: format!("reading {uri}"),
            name: uri.clone(),
            key: "contents",
            document: json!({"server": null, "uri": uri}),
            out,
        };
        let request = async |toolset: Toolset, deadline: Deadline| {
            let server = owner(&toolset, &uri, deadline).await?;
            let contents = toolset.read_resource(&server, &uri).await?;
            Ok((json!({"server": server, "uri": uri}), contents))
        };
        // Boxed, because the future of a request is large.
        Box::pin(fetch::run(context, item, request, |contents, report| {
            show(contents, is_shown, report)
        }))
        .await
    }
}

/// Finds the server of a URI: one that lists it, else one with a URI template that has its literal prefix, else the only server with
/// resources.
async fn owner(toolset: &Toolset, uri: &str, deadline: Deadline) -> Result<ServerName, Failure> {
    let found = toolset.resources(deadline.remaining()).await;
    let listed = found.resources.iter().filter(|resource| resource.uri == uri);
    let has_prefix = |template: &&Resource| {
        let literal = template.uri.split('{').next().unwrap_or_default();
        !literal.is_empty() && uri.starts_with(literal)
    };
    let mut owners: Vec<&ServerName> = listed.map(|resource| &resource.server).collect();
    if owners.is_empty() {
        owners = found
            .templates
            .iter()
            .filter(has_prefix)
            .map(|template| &template.server)
            .collect();
    }
    if owners.is_empty() {
        let all = found.resources.iter().chain(&found.templates);
        owners = all.map(|resource| &resource.server).collect();
    }
    owners.sort();
    owners.dedup();
    let mut absent = found
        .unavailable
        .iter()
        .filter(|server| !listing::is_misconfigured(server));
    match (owners.as_slice(), absent.next()) {
        ([owner], _) => Ok((*owner).clone()),
        ([], Some(absent)) => Err(listing::unavailable_failure(absent, deadline.has_passed())),
        ([], None) => Err(Failure::new(Kind::InvalidArguments, "no server offers a resource")),
        (owners, _) => {
            let names: Vec<_> = owners.iter().map(|owner| owner.as_str()).collect();
            let message = format!("several servers may have {uri}: {}", names.join(", "));
            Err(Failure::new(Kind::InvalidArguments, message).hint("say which one with `--server NAME`"))
        }
    }
}

/// Shows contents. A pipe or a file gets the bytes of a single binary one.
fn show(contents: &[ResourceContents], is_shown: bool, report: &mut Report) {
    match contents {
        [one] if !is_shown && matches!(one.body, Body::Blob(_)) => match one.bytes() {
            Ok(bytes) => report.binary = Some(bytes),
            Err(_) => report.data = render_contents(contents),
        },
        contents => report.data = render_contents(contents),
    }
}

/// Text contents unchanged; for binary contents the URI, type and size.
fn render_contents(contents: &[ResourceContents]) -> String {
    let mut shown = String::new();
    for contents in contents {
        match &contents.body {
            Body::Text(text) => shown.push_str(&as_data(text)),
            Body::Blob(_) => {
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
