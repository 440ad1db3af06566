//! A service whose answers are recorded in a file, masked.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{future::BoxFuture, stream::BoxStream};
use pegboard::{Timestamp, mask::Masker, telemetry::Telemetry};
use pegboard_base::sync::Mutex;
use pegboard_gateway::{
    Answer, Client, Description, Event, Exchange, Filter, Notification, Request, RpcError, Service,
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    exchange::{About, Answered, RecordedLine},
    order::Order,
};

/// Writes a recording.
pub(crate) struct Recorder {
    draft: Mutex<Draft>,
    masker: Masker,
}

/// What is to be said of a recording at its end.
#[derive(Debug)]
pub(crate) struct Finished {
    /// That lines are missing.
    pub(crate) lost: Option<String>,
    /// That it is not where it was to be.
    pub(crate) elsewhere: Option<String>,
}

/// A recording that takes the place of its file once it has an answer.
struct Draft {
    file: File,
    /// Where it is, and the file whose place it takes; `None` once it is there.
    paths: Option<(PathBuf, PathBuf)>,
    is_empty: bool,
    /// How many bytes its whole lines have.
    length: u64,
    /// How many lines are missing, and why the first one is.
    lost: u64,
    problem: Option<String>,
}

impl Draft {
    fn create(path: &Path) -> io::Result<Self> {
        // A link stays, and what it names is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut options = OpenOptions::new();
        options.write(true);
        if path.metadata().is_ok_and(|known| !known.is_file()) {
            // A pipe or a device cannot be replaced.
            return Ok(Self::new(options.open(&path)?, None));
        }
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        options.create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let draft = path.with_file_name(format!(".{}.{}.draft", name.to_string_lossy(), std::process::id()));
        Ok(Self::new(options.open(&draft)?, Some((draft, path))))
    }

    fn new(file: File, paths: Option<(PathBuf, PathBuf)>) -> Self {
        Self {
            file,
            paths,
            is_empty: true,
            length: 0,
            lost: 0,
            problem: None,
        }
    }

    /// Adds a line whole, or not at all.
    fn add(&mut self, line: &str) -> io::Result<()> {
        let written = self.file.write_all(line.as_bytes());
        match written {
            Ok(()) => {
                self.is_empty = false;
                self.length += line.len() as u64;
            }
            Err(_) => {
                // A pipe has no end that could be cut off.
                let _ = self.file.set_len(self.length);
                let _ = self.file.seek(SeekFrom::Start(self.length));
            }
        }
        written
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

    fn write(&self, line: &RecordedLine) {
        let masked = self.mask_line(line);
        let mut draft = self.draft.lock();
        // A full disk must not stop the run that is recorded.
        match masked.and_then(|masked| draft.add(&masked).map_err(|error| error.to_string())) {
            Ok(()) if matches!(line, RecordedLine::Exchange(_)) => draft.replace(),
            Ok(()) => {}
            Err(problem) => {
                draft.lost += 1;
                draft.problem.get_or_insert(problem);
            }
        }
    }

    /// The text of a line without secrets, with its keys in the order that they had.
    fn mask_line(&self, line: &RecordedLine) -> Result<String, String> {
        let failed = |error: serde_json::Error| error.to_string();
        let text = serde_json::to_string(line).map_err(failed)?;
        let order: Order = serde_json::from_str(&text).map_err(failed)?;
        let tree: Value = serde_json::from_str(&text).map_err(failed)?;
        let masked = self.masker.text(&tree.to_string()).text.into_owned();
        let masked: Value = serde_json::from_str(&masked).map_err(|_| "it could not be masked".to_owned())?;
        Ok(format!("{}\n", order.text(&masked)))
    }

    /// Ends the recording. One without any line is thrown away; says what is missing, and where it is if it could not replace the file.
    pub(crate) fn finish(&self) -> Finished {
        let mut draft = self.draft.lock();
        let lost = draft.problem.take().map(|problem| match draft.lost {
            1 => format!("the recording lacks a line, which could not be written: {problem}"),
            lost => format!("the recording lacks {lost} lines, which could not be written: {problem}"),
        });
        if draft.is_empty {
            if let Some((draft, _)) = draft.paths.take() {
                // What is left is an empty file.
                let _ = fs::remove_file(draft);
            }
            return Finished { lost, elsewhere: None };
        }
        draft.replace();
        let elsewhere = draft.paths.take().map(|(draft, path)| {
            format!(
                "{} cannot be replaced, so the recording is in {}",
                path.display(),
                draft.display()
            )
        });
        Finished { lost, elsewhere }
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
            self.recorder.write(&RecordedLine::Server(About {
                at: now(),
                server_info: description.server_info.clone(),
                capabilities: description.capabilities.clone(),
                instructions: description.instructions.clone(),
            }));
            Ok(description)
        })
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let method = request.method.to_string();
            let params = Value::Object(request.params.parse::<Map<String, Value>>().unwrap_or_default());
            let answer = self.service.clone().handle(request, exchange).await;
            let (result, error) = match &answer {
                Ok(result) => (serde_json::from_slice::<Box<RawValue>>(result.json()).ok(), None),
                Err(error) => (None, Some(json!(error))),
            };
            self.recorder.write(&RecordedLine::Exchange(Answered {
                at: now(),
                method,
                params,
                result,
                error,
            }));
            answer
        })
    }

    fn telemetry(&self) -> Option<Arc<dyn Telemetry>> {
        self.service.telemetry()
    }

    fn on_notification(&self, client: &Arc<Client>, notification: Notification) {
        self.service.on_notification(client, notification);
    }

    fn note_refusal(&self, client: &Arc<Client>, request: &Request, why: &str) {
        self.service.note_refusal(client, request, why);
    }

    fn listen(&self, client: &Arc<Client>, filter: Filter) -> BoxStream<'static, Event> {
        self.service.listen(client, filter)
    }
}

fn now() -> String {
    Timestamp::now().to_string()
}
