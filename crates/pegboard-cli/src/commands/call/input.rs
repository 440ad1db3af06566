//! Reads the arguments of `--json`: from the command line, a file or stdin.

use std::{
    fs::File,
    io::{self, Read},
};

use pegboard::Arguments;

/// More than any server accepts by default. Also bounds the memory for an endless device such as `/dev/zero`.
const MAX_BYTES: u64 = 16 << 20;

/// Reads and parses the object that `--json` names.
pub(super) async fn read(json: Option<&str>) -> Result<Option<Arguments>, String> {
    let (origin, text) = match json {
        None => return Ok(None),
        Some("-") => ("stdin: ".to_owned(), from("stdin", || Ok(io::stdin())).await?),
        Some(json) => match json.strip_prefix('@') {
            Some(path) => {
                let file = path.to_owned();
                (format!("{path}: "), from(path, move || File::open(file)).await?)
            }
            None => (String::new(), json.to_owned()),
        },
    };
    match Arguments::parse(&text) {
        Ok(arguments) => Ok(Some(arguments)),
        Err(error) => Err(format!("{origin}{error}")),
    }
}

/// Reads on a blocking thread, so that Ctrl-C works while a terminal is read.
pub(super) async fn from<R: Read>(
    name: &str,
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> Result<String, String> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        open()?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        Ok::<_, io::Error>(text)
    });
    match reading.await {
        Ok(Ok(text)) if text.len() as u64 > MAX_BYTES => Err(format!("{name} has more than {MAX_BYTES} bytes")),
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!("{name} cannot be read: {error}")),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}
