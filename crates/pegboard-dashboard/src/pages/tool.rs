//! `GET /ui/tools/{server}/{tool}`.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use pegboard::{ListedTool, Provider};

use super::{
    tool_view::{self, Filled},
    tools::PATIENCE,
};
use crate::{layout, ui::Ui, visitor::Visitor};

pub(crate) async fn get(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((server, tool)): Path<(String, String)>,
) -> Response {
    ui.note_visit();
    match find(&ui, &visitor, &server, &tool).await {
        Ok(listed) => {
            let page = tool_view::page(&ui, &visitor, &listed, &Filled::default());
            visitor.remember(layout::page(&visitor.who(), &page))
        }
        Err(response) => *response,
    }
}

/// A tool that the visitor sees. Fails with the page that says that there is none.
pub(super) async fn find(ui: &Ui, visitor: &Visitor, server: &str, tool: &str) -> Result<ListedTool, Box<Response>> {
    let not_found = |why: &str| Box::new(layout::problem(StatusCode::NOT_FOUND, "No such tool", why, None));
    let toolset = ui
        .api
        .listings(&visitor.caller, Provider::Mcp)
        .map_err(|why| not_found(&why))?;
    let listing = toolset.list(PATIENCE).await;
    let mut tools = listing.tools.into_iter();
    let found = tools.find(|listed| listed.tool.server.as_str() == server && listed.tool.name == tool);
    found.ok_or_else(|| not_found("No server that you see lists a tool of this name now."))
}
