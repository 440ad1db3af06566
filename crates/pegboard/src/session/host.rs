//! Responds to the server's own requests (elicitation, sampling, roots) through the embedding program's [`Host`].

mod callback;
mod elicitation;
mod form;
mod host_trait;
mod page;
mod password_field;
mod request_params;
mod responder;
mod responder_task;
mod sampling;
mod tasks;

pub use elicitation::{ElicitAnswer, Elicitation};
pub use form::{Choice, Field, FieldKind, Form, TextFormat};
pub use host_trait::{Host, NoHost, SamplingLimits};

pub(super) use request_params::RequestParams;
pub(super) use responder::Responder;
pub(super) use responder_task::ResponderTask;
