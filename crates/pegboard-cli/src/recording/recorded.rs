//! A service whose answers are recorded in a file, masked.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    draft: Mutex<Draft>,
    masker: Masker,
}

/// A recording that takes the place of its file once it has an answer.
struct Draft {
    file: File,
    /// Where it is, and the file whose place it takes; `None` once it is there.
    paths: Option<(PathBuf, PathBuf)>,
    is_empty: bool,
}

impl Draft {
    fn create(path: &Path) -> io::Result<Self> {
        // A link stays, and what it names is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut options = OpenOptions::new();
        options.write(true);
        if path.metadata().is_ok_and(|known| !known.is_file()) {
            // A pipe or a device cannot be replaced.
            return Ok(Self {
                file: options.open(&path)?,
                paths: None,
                is_empty: true,
            });
        }
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        options.create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let draft = path.with_file_name(format!(".{}.{}.draft", name.to_string_lossy(), std::process::id()));
        Ok(Self {
            file: options.open(&draft)?,
            paths: Some((draft, path)),
            is_empty: true,
        })
    }

    fn replace(&mut self) {
        if let Some((draft, path)) = self.paths.take()
            && fs::rename(&draft, &path).is_err()
        {
            self.paths = Some((draft, path));
        }
    }
}

impl Recorder {
    /// Starts a recording, which only its user can read. What is in the file stays there until the first answer is recorded.
    pub(crate) fn create(path: &Path, masker: Masker) -> io::Result<Self> {
        let draft = Mutex::new(Draft::create(path)?);
        Ok(Self { draft, masker })
    }

    fn write(&self, line: &Line) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let masked = self.masker.text(&text);
        let mut draft = self.draft();
        // A full disk must not stop the run that is recorded.
        let is_written = draft.file.write_all(format!("{}\n", masked.text).as_bytes()).is_ok();
        draft.is_empty &= !is_written;
        if is_written && matches!(line, Line::Exchange { .. }) {
            draft.replace();
        }
    }

    /// Ends the recording. One without any line is thrown away; says where another one is if it could not replace the file.
    pub(crate) fn finish(&self) -> Result<(), String> {
        let mut draft = self.draft();
        if draft.is_empty {
            if let Some((draft, _)) = draft.paths.take() {
                // What is left is an empty file.
                let _ = fs::remove_file(draft);
            }
            return Ok(());
        }
        draft.replace();
        match draft.paths.take() {
            None => Ok(()),
            Some((draft, path)) => Err(format!(
                "{} cannot be replaced, so the recording is in {}",
                path.display(),
                draft.display()
            )),
        }
    }

    fn draft(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes requests on to a service and records the answers.
pub(crate) struct Recorded {
    service: Arc<dyn Service>,
    recorder: Arc<Recorder>,
}

impl Recorded {
    pub(crate) fn new(service: Arc<dyn Service>, recorder: Arc<Recorder>) -> Self {
        Self { service, recorder }
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
