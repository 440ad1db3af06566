//! A service whose answers are recorded in a file, masked.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{future::BoxFuture, stream::BoxStream};
use pegboard::{jiff::Timestamp, mask::Masker};
use pegboard_gateway::{
    Answer, Client, Description, Event, Exchange, Filter, Notification, Request, RpcError, Service,
};
use serde_json::{Map, Value, json};

use super::exchange::Line;

/// Writes a recording.
pub(crate) struct Recorder {
    file: Mutex<File>,
    masker: Masker,
}

impl Recorder {
    /// Starts a recording in a file, which only its user can read. What was in the file is replaced.
    pub(crate) fn create(path: &Path, masker: Masker) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = Mutex::new(options.open(path)?);
        Ok(Self { file, masker })
    }

    fn write(&self, line: &Line) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let masked = self.masker.text(&text);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not stop the run that is recorded.
        let _ = file.write_all(format!("{}\n", masked.text).as_bytes());
    }
}

/// Passes requests on to a service and records the answers.
pub(crate) struct Recorded {
    service: Arc<dyn Service>,
    recorder: Arc<Recorder>,
}

impl Recorded {
    pub(crate) fn new(service: Arc<dyn Service>, recorder: Recorder) -> Self {
        Self {
            service,
            recorder: Arc::new(recorder),
        }
    }
}

impl Service for Recorded {
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        Box::pin(async move {
            let description = self.service.describe(client).await?;
            self.recorder.write(&Line::Server {
                at: now(),
                server_info: description.server_info.clone(),
                capabilities: description.capabilities.clone(),
                instructions: description.instructions.clone(),
            });
            Ok(description)
        })
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let method = request.method.to_string();
            let params = Value::Object(request.params.parse::<Map<String, Value>>().unwrap_or_default());
            let answer = self.service.clone().handle(request, exchange).await;
            let (result, error) = match &answer {
                Ok(result) => (serde_json::from_slice(result.json()).ok(), None),
                Err(error) => (None, Some(json!(error))),
            };
            self.recorder.write(&Line::Exchange {
                at: now(),
                method,
                params,
                result,
                error,
            });
            answer
        })
    }

    fn notified(&self, client: &Arc<Client>, notification: Notification) {
        self.service.notified(client, notification);
    }

    fn refused(&self, client: &Arc<Client>, request: &Request, why: &str) {
        self.service.refused(client, request, why);
    }

    fn listen(&self, client: &Arc<Client>, filter: Filter) -> BoxStream<'static, Event> {
        self.service.listen(client, filter)
    }
}

fn now() -> String {
    Timestamp::now().to_string()
}
