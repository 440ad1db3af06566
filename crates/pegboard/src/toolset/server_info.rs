//! What a server of the view declares about itself.

use super::{open_view::OpenView, server_requests::ServerRequests};
use crate::status::ServerDeclaration;
use futures_util::future::BoxFuture;
use pegboard_mask::Counts;
use pegboard_tools::outcome::{Failure, sanitize_map};

/// Reads what a server declared about itself when its session began. Secrets are masked, and invisible characters removed.
pub(super) fn read_declaration<'a>(
    open: &'a OpenView,
    server: &'a str,
) -> BoxFuture<'a, Result<ServerDeclaration, Failure>> {
    Box::pin(async move {
        let requests = ServerRequests::new(open);
        let name = requests.parse_name(server)?;
        let (server, live) = requests.connect(&name).await?;
        let peer = &live.session.peer;
        let mut declaration = ServerDeclaration {
            era: peer.era,
            protocol_version: peer.version.to_string(),
            server_info: peer.info_fields.clone(),
            capabilities: peer.capabilities.clone(),
            // Not those that are held until a person accepts them.
            instructions: server.listing().instructions(),
        };
        let masker = server.masker().current();
        let mut counts = Counts::default();
        for fields in [&mut declaration.server_info, &mut declaration.capabilities] {
            sanitize_map(fields);
            masker.mask_map(fields, &mut counts);
        }
        if let Some(instructions) = &mut declaration.instructions {
            pegboard_tools::catalog::sanitize::remove_invisible(instructions);
            masker.mask(instructions, &mut counts);
        }
        Ok(declaration)
    })
}
