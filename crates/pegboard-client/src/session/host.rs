//! Responds to the server's own requests (elicitation, sampling, roots) through the embedding program's [`Host`].

mod call_owner;
mod callback;
mod elicitation;
mod form;
mod host_context;
mod host_trait;
mod lanes;
mod offers;
mod page;
mod password_field;
mod request_params;
mod responder;
mod responder_task;
mod sampling;
mod tasks;

pub use elicitation::{ElicitAnswer, Elicitation};
pub use form::{Choice, Field, FieldKind, Form, TextFormat};
pub use host_context::HostContext;
pub use host_trait::{Host, NoHost, SamplingLimits};

pub use call_owner::OnBehalf;
pub use offers::HostHandle;

pub(super) use call_owner::CallOwner;
pub(super) use offers::Offers;
pub(super) use request_params::RequestParams;
pub(super) use responder::Responder;
pub(super) use responder_task::ResponderTask;
