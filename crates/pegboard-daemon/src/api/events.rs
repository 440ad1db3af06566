//! `GET events`: what happens on the board, as server-sent events.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::State,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event as Sent, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use http::StatusCode;
use pegboard::{Event, Events, Principal, ServerName};
use pegboard_gateway::{Caller, QuotaPermit, Scope};

use super::{
    access::StatusReader,
    calls::{HEARTBEAT, disable_buffering},
    problem::Problem,
    state::ApiState,
};

/// `GET events`. The gateway ends the stream when the token of the caller is revoked.
pub(super) async fn events(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
) -> Result<Response, Problem> {
    let place = api.streams.try_acquire(caller.principal()).ok_or_else(|| {
        let detail = "too many event streams are open; try again later";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    let stop = api.stop.clone();
    let events = Sse::new(stream_events(api, caller, place).take_until(stop.cancelled_owned()));
    let events = events.keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(disable_buffering(events.into_response()))
}

/// The events that a caller sees, until the board is gone.
fn stream_events(
    api: Arc<ApiState>,
    caller: Caller,
    place: QuotaPermit,
) -> impl Stream<Item = Result<Sent, Infallible>> {
    let events = api.board.events();
    let from = (api, caller, events, place);
    stream::unfold(from, async |(api, caller, mut events, place)| {
        let event = next(&api, &caller, &mut events).await?;
        Some((Ok(event), (api, caller, events, place)))
    })
}

async fn next(api: &ApiState, caller: &Caller, events: &mut Events) -> Option<Sent> {
    loop {
        let event = events.next().await?;
        if is_seen(api, caller, &event)
            && let Ok(sent) = Sent::default().event(event.kind()).json_data(&event)
        {
            return Some(sent);
        }
    }
}

/// Whether a caller sees an event: with the scope `admin` all of them, otherwise its own calls and the changes of servers. With a view only
/// its own calls and the changes of the view's servers.
pub(super) fn is_seen(api: &ApiState, caller: &Caller, event: &Event) -> bool {
    let is_admin = caller.scopes().contains(Scope::Admin);
    let of_principal = |principal: &Option<Principal>| is_admin || principal.as_ref() == caller.principal();
    let sees = |server: &ServerName| api.sees(caller, server.as_str());
    match event {
        Event::CallCreated { principal, .. }
        | Event::CallProgress { principal, .. }
        | Event::CallCompleted { principal, .. } => {
            // Calls of others may be of tools that the view hides.
            principal.as_ref() == caller.principal() || (is_admin && caller.view().is_none())
        }
        Event::ServerChanged {
            server,
            view,
            principal,
            ..
        }
        | Event::CatalogChanged {
            server,
            view,
            principal,
            ..
        }
        | Event::DefinitionsFlagged {
            server,
            view,
            principal,
            ..
        }
        | Event::ProbeFailed {
            server,
            view,
            principal,
            ..
        } => {
            let is_shared = principal.is_none() && view.is_none();
            sees(server) && (is_shared || of_principal(principal))
        }
        Event::AuditFailed { .. } => caller.view().is_none(),
        Event::Missed { .. } => true,
        // An event of a kind that this does not know.
        _ => is_admin && caller.view().is_none(),
    }
}
