//! Summarises long results with a model, so that an agent need not read all of them.
//!
//! A summary is a convenience: if it fails, the agent gets the truncated result instead.

#[cfg(feature = "http")]
mod chat;
mod prompt;
pub(super) mod summariser;

#[cfg(feature = "http")]
pub use chat::ChatModel;
pub use summariser::{Summariser, Summary, SummaryError, SummaryRequest, summariser};

use std::{sync::Arc, time::Duration};

use pegboard_base::sync::{Panicked, catch};
use pegboard_config::SummaryModel;

/// Creates a client for the model that the config names.
#[cfg(feature = "http")]
pub(super) fn configured(model: SummaryModel) -> Result<Arc<dyn Summariser>, SummaryError> {
    Ok(Arc::new(ChatModel::new(model)?))
}

/// Fails: a build without HTTP has no client for models.
#[cfg(not(feature = "http"))]
pub(super) fn configured(_model: SummaryModel) -> Result<Arc<dyn Summariser>, SummaryError> {
    Err(SummaryError::new(
        "this program was built without the feature `http` of the crate `pegboard`",
    ))
}

/// Requests a summary within `limit`. An empty one is an error.
pub(super) async fn summary(
    summariser: &dyn Summariser,
    request: &SummaryRequest<'_>,
    limit: Duration,
) -> Result<String, SummaryError> {
    let writing = catch(async { summariser.summarise(request).await });
    let written = match tokio::time::timeout(limit, writing).await {
        Ok(Ok(written)) => written?,
        Ok(Err(Panicked)) => return Err(SummaryError::new("the summariser panicked")),
        Err(_) => return Err(SummaryError::new(format!("it did not come within {limit:?}"))),
    };
    let trimmed = written.trim();
    if trimmed.is_empty() {
        return Err(SummaryError::new("it is empty"));
    }
    Ok(trimmed.to_owned())
}
