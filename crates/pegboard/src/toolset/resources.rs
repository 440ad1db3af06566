//! [`Resources`]: lists and reads the resources of all servers, and expands their URI templates.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pegboard_protocol::method;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    lister::Lister,
    listing::Unavailable,
    open_view::OpenView,
    server_requests::{ServerRequests, ViewRequest},
};
use crate::call::check_text;
use pegboard_tools::{
    catalog::{Resource, UriTemplate},
    outcome::{Failure, Kind, ResourceContents},
};

/// The default limit of one read, in bytes.
pub(super) const MAX_READ: usize = 4 << 20;

/// The available resources, and why others are unavailable.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ResourceListing {
    /// The resources by server, then by URI.
    pub resources: Vec<Resource>,
    /// URI templates of further resources, by server.
    pub templates: Vec<Resource>,
    /// The servers whose resources are missing.
    pub unavailable: Vec<Unavailable>,
    /// Problems of the listings.
    pub warnings: Vec<String>,
}

/// The resources of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resources<'a> {
    open: &'a OpenView,
}

impl<'a> Resources<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Lists the resources of all servers, after those that are not ready were started.
    pub(super) fn list(self, patience: Duration) -> BoxFuture<'a, ResourceListing> {
        Box::pin(async move {
            let (catalogs, unavailable, warnings) = Lister::new(self.open).list_catalogs(patience).await;
            ResourceListing {
                resources: catalogs.iter().flat_map(|catalog| catalog.resources.clone()).collect(),
                templates: catalogs.iter().flat_map(|catalog| catalog.templates.clone()).collect(),
                unavailable,
                warnings,
            }
        })
    }

    /// Reads a resource of a server. Fails if it has more than `limit` bytes, because a truncated resource would look complete.
    pub(super) fn read(
        self,
        server: &'a str,
        uri: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ResourceContents>, Failure>> {
        Box::pin(async move {
            let request = ServerRequests::new(self.open).begin().await?;
            self.read_within(&request, server, uri, limit).await
        })
    }

    /// Reads a resource as part of a request or call.
    pub(super) async fn read_within(
        self,
        request: &ViewRequest,
        server: &str,
        uri: &str,
        limit: usize,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let requests = ServerRequests::new(self.open);
        let server = &requests.parse_name(server)?;
        let what = format!("reading {uri}");
        if let Ok(target) = requests.find_server(server) {
            check_text(&target, method::RESOURCES_READ, uri)?;
        }
        let on_behalf = request.on_behalf(self.open);
        let reading = requests.read(server, "resources", &what, |live| async move {
            let uri = live.catalog().original_uri(uri);
            live.session.read_resource(uri, on_behalf).await
        });
        let contents = reading.await?;
        let bytes: usize = contents.iter().map(ResourceContents::size).sum();
        if bytes > limit {
            let message = format!("{what} failed: it has {bytes} bytes, and {limit} are allowed");
            return Err(Failure::new(Kind::LimitExceeded, message).hint("raise the limit, or read a part of it"));
        }
        Ok(contents)
    }

    /// Expands a URI template of a server. If the server lists templates, this must be one of them.
    pub(super) fn expand_template(
        self,
        server: &'a str,
        template: &'a str,
        values: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let requests = ServerRequests::new(self.open);
            let server = &requests.parse_name(server)?;
            let (_, live) = requests.connect(server).await?;
            let known = &live.catalog().templates;
            if !known.is_empty() && !known.iter().any(|known| known.uri == template) {
                let names: Vec<_> = known.iter().map(|known| format!("`{}`", known.uri)).collect();
                let message = format!("server `{server}` has no template `{}`", template.escape_debug());
                return Err(Failure::new(Kind::InvalidArguments, message).hint(format!("it has {}", names.join(", "))));
            }
            let wrong =
                |error: pegboard_tools::catalog::TemplateError| Failure::new(Kind::InvalidArguments, error.to_string());
            let template = UriTemplate::parse(template).map_err(wrong)?;
            template.expand(values).map_err(|error| {
                let names = template.variables().join(", ");
                wrong(error).hint(format!("its variables are {names}"))
            })
        })
    }
}
