//! Guards the board against a handler: a panic becomes an error response, and a cancelled request is dropped even if the handler ignores its
//! cancellation token.

use std::borrow::Cow;

use ::rmcp::{
    ErrorData, RoleServer, ServerHandler, Service,
    model::{ClientNotification, ClientRequest, ProtocolVersion, ServerConfig, ServerResult},
    service::{NotificationContext, RequestContext},
};

use pegboard_base::sync::{Panicked, catch};

/// A handler whose panics and cancelled requests end only the one request.
pub(super) struct Guarded<H>(pub(super) H);

impl<H: ServerHandler> Service<RoleServer> for Guarded<H> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let cancelled = context.ct.clone();
        let handling = Box::pin(catch(async {
            Service::handle_request(&self.0, request, context).await
        }));
        tokio::select! {
            biased;
            // rmcp drops the response to a cancelled request.
            () = cancelled.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
            result = handling => result.unwrap_or_else(|Panicked| {
                Err(ErrorData::internal_error("the handler panicked while it handled the request", None))
            }),
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let handling = catch(async { Service::handle_notification(&self.0, notification, context).await });
        Box::pin(handling).await.unwrap_or(Ok(()))
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.0)
    }
}
