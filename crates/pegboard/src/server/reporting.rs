//! [`Reporting`]: where the changes of one server are reported.

use std::sync::Arc;

use super::{event_publisher::EventPublisher, revision::Revision};

/// Where the changes of one server are reported: as events to subscribers, and as a new revision to views that keep derived data.
#[derive(Debug, Clone)]
pub(super) struct Reporting {
    pub(super) publisher: Arc<EventPublisher>,
    /// Incremented on every change; route tables of an older revision are rebuilt.
    pub(super) revision: Arc<Revision>,
}
