//! [`HelperCredentials`]: a program that prints the headers of requests.

use std::{future::Future, pin::Pin, process::Stdio, sync::Arc, time::Duration};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value as Json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Child,
};

use super::stdio;
use crate::credential::{Credential, CredentialError, CredentialRequest, Credentials, Remedy};
use pegboard_base::name::ServerName;
use pegboard_config::{HeadersHelper, SafeUrl};
use pegboard_mask::ServerMasker;

/// How long the program may run.
const TIMEOUT: Duration = Duration::from_secs(10);
/// When a program that failed is run again: what it asks may be down.
const RETRY: Duration = Duration::from_secs(15);
/// The most output of the program.
const MAX_OUTPUT: u64 = 64 << 10;
/// How much of what the program wrote to stderr is shown.
const MAX_SHOWN: usize = 500;
/// Shorter words of what the program printed are not masked in what it wrote to stderr: most are no secrets.
const SHORTEST_SECRET: usize = 6;
/// How long headers without a lifetime are used: until they are refused.
const UNTIL_REFUSED: Duration = Duration::from_secs(365 * 24 * 3600);

/// Runs a program for the headers of a server's requests, and again when the server refuses them.
#[derive(Debug)]
pub(super) struct HelperCredentials {
    helper: Arc<HeadersHelper>,
    url: SafeUrl,
    masker: ServerMasker,
}

impl HelperCredentials {
    pub(super) fn new(helper: Arc<HeadersHelper>, url: SafeUrl, masker: ServerMasker) -> Self {
        Self { helper, url, masker }
    }

    async fn headers(&self, server: &ServerName) -> Result<Vec<(String, String)>, String> {
        let mut running = self.start(server)?;
        let ended = tokio::time::timeout(TIMEOUT, running.finish()).await;
        let Ok(ended) = ended else {
            return Err(format!("did not end within {} s and was killed", TIMEOUT.as_secs()));
        };
        let (status, stdout, stderr) = ended.map_err(|error| format!("could not be waited for: {error}"))?;
        if !status.success() {
            return Err(format!(
                "failed with {status}{}",
                self.describe_stderr(&stdout, &stderr)
            ));
        }
        if stdout.len() as u64 > MAX_OUTPUT {
            return Err("printed more than 64 KiB".to_owned());
        }
        // What a program writes to stderr when it succeeds may be a trace of the secret.
        parse(&stdout)
    }

    fn start(&self, server: &ServerName) -> Result<Running, String> {
        let command = &self.helper.command;
        let mut environment = stdio::environment(command, std::env::vars_os());
        environment.insert("PEGBOARD_SERVER_NAME".into(), server.as_str().into());
        // Without credentials in it: other programs of the user can see the environment.
        environment.insert("PEGBOARD_SERVER_URL".into(), self.url.to_string().into());
        let mut starting = tokio::process::Command::new(&command.program);
        starting
            .args(command.args.iter().map(|arg| arg.expose()))
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &command.cwd {
            starting.current_dir(folder);
        }
        #[cfg(unix)]
        starting.process_group(0);
        let child = starting
            .spawn()
            .map_err(|error| format!("cannot be started: {error}"))?;
        Ok(Running {
            child,
            is_reaped: false,
        })
    }

    /// What the program wrote to stderr, without secrets and without what it printed: that may be a part of the headers.
    fn describe_stderr(&self, stdout: &[u8], stderr: &[u8]) -> String {
        let text = String::from_utf8_lossy(stderr);
        let masked = self
            .masker
            .text(without_words_of(stdout, text.trim()).trim())
            .into_owned();
        let shown: String = masked.chars().take(MAX_SHOWN).collect();
        match shown.is_empty() {
            true => String::new(),
            false => format!("; it wrote to stderr: {}", shown.escape_debug()),
        }
    }
}

impl Credentials for HelperCredentials {
    fn credential<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async move {
            let headers = self.headers(request.server).await.map_err(|problem| {
                let program = &self.helper.command.program;
                let hint = format!("run `{program}` by hand, or correct `headers_helper` of the server");
                CredentialError::new(format!("the program `{program}` of `headers_helper` {problem}")).with_remedy(
                    Remedy::Wait {
                        after: RETRY,
                        hint: Some(hint),
                    },
                )
            })?;
            let lifetime = self.helper.ttl.unwrap_or(UNTIL_REFUSED);
            let credential = headers
                .into_iter()
                .fold(Credential::none(), |credential, (name, value)| {
                    credential.header(name, value)
                });
            Ok(credential.valid_for(lifetime))
        })
    }

    fn retries_on_forbidden(&self, _: &ServerName) -> bool {
        true
    }
}

/// Replaces the words of `stdout` in a text.
fn without_words_of(stdout: &[u8], text: &str) -> String {
    let stdout = String::from_utf8_lossy(stdout);
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ':' | '{' | '}' | '\\');
    let words: Vec<&str> = stdout
        .split(is_between)
        .filter(|word| word.len() >= SHORTEST_SECRET)
        .collect();
    let finder = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(&words);
    match finder {
        Ok(finder) => finder.replace_all(text, &vec!["[MASKED]"; words.len()]),
        Err(_) => String::new(),
    }
}

/// A program that runs. Dropping it kills the program and its children.
struct Running {
    child: Child,
    /// Whether the program was waited for, so that its process id may belong to another one.
    is_reaped: bool,
}

impl Running {
    async fn finish(&mut self) -> std::io::Result<(std::process::ExitStatus, Vec<u8>, Vec<u8>)> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let reading = async { tokio::join!(read(stdout), read(stderr)) };
        tokio::pin!(reading);
        let exiting = self.exit();
        tokio::pin!(exiting);
        let read_first = tokio::select! {
            output = &mut reading => {
                exiting.await?;
                Some(output)
            }
            exited = &mut exiting => {
                exited?;
                None
            }
        };
        // Children that the program left behind may hold its pipes.
        self.kill_group();
        let (stdout, stderr) = match read_first {
            Some(output) => output,
            None => reading.await,
        };
        let status = self.child.wait().await?;
        self.is_reaped = true;
        Ok((status, stdout?, stderr?))
    }

    /// Waits until the program has exited. It is not reaped, so that its process id stays that of its group.
    #[cfg(unix)]
    fn exit(&self) -> impl Future<Output = std::io::Result<()>> + use<> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        let group = self.group();
        async move {
            let Some(pid) = group else { return Ok(()) };
            let (exited, on_exit) = tokio::sync::oneshot::channel();
            // A thread, because waiting for a process without reaping it blocks. It ends with the program, which is killed when this is dropped.
            std::thread::Builder::new()
                .name("headers-helper".to_owned())
                .spawn(move || {
                    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                    while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
                    let _ = exited.send(());
                })?;
            let _ = on_exit.await;
            Ok(())
        }
    }

    #[cfg(not(unix))]
    fn exit(&self) -> impl Future<Output = std::io::Result<()>> + use<> {
        std::future::ready(Ok(()))
    }

    #[cfg(unix)]
    fn group(&self) -> Option<rustix::process::Pid> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok())?;
        rustix::process::Pid::from_raw(id).filter(|_| !self.is_reaped)
    }

    /// Kills the program, if it still runs, and its children.
    fn kill_group(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group() {
            // Fails only if the group is already gone.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Reads one byte more than the limit at most. The program gets an error when it writes on.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Reads a JSON object with texts, or lines `Name: value`. The error contains nothing of the output.
fn parse(output: &[u8]) -> Result<Vec<(String, String)>, String> {
    let text = std::str::from_utf8(output)
        .map_err(|_| "printed no text".to_owned())?
        .trim();
    if text.is_empty() {
        return Err("printed nothing".to_owned());
    }
    if text.starts_with('{') {
        let object: Map<String, Json> =
            serde_json::from_str(text).map_err(|_| "printed no valid JSON object".to_owned())?;
        let texts = object.into_iter().map(|(name, value)| match value {
            Json::String(value) => Ok((name, value)),
            _ => Err(format!(
                "printed a value of `{}` that is not a text",
                name.escape_debug()
            )),
        });
        return texts.collect();
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .enumerate()
        .map(|(number, line)| match line.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(format!("printed a line {} that is not `Name: value`", number + 1)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use pegboard_config::Command;
    use pegboard_mask::{KnownSecrets, Masking};

    fn parsed(output: &str) -> Result<Vec<(String, String)>, String> {
        parse(output.as_bytes())
    }

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[cfg(unix)]
    async fn headers_of(command: Command) -> Result<Vec<(String, String)>, String> {
        let masker = ServerMasker::new(&Masking::default(), KnownSecrets::default());
        let url = SafeUrl::parse("https://h.example/").unwrap();
        let credentials = HelperCredentials::new(Arc::new(HeadersHelper::new(command)), url, masker);
        credentials.headers(&ServerName::parse("x").unwrap()).await
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_helper_that_does_not_end_is_killed() {
        let error = headers_of(Command::new("sleep").args(["1000"])).await.unwrap_err();
        assert_eq!(error, "did not end within 10 s and was killed");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_helper_printed_is_not_shown_when_it_fails() {
        let script = "echo Authorization: Bearer t0ken-canary-9; echo using t0ken-canary-9 >&2; exit 3";
        let error = headers_of(Command::new("sh").args(["-c", script])).await.unwrap_err();
        assert_eq!(error, "failed with exit status: 3; it wrote to stderr: using [MASKED]");
        let script = "echo no-header; echo the key is s3cret-canary >&2";
        let error = headers_of(Command::new("sh").args(["-c", script])).await.unwrap_err();
        assert_eq!(error, "printed a line 1 that is not `Name: value`");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn children_of_a_helper_end_with_it() {
        // The child holds both pipes, and tells its process id in a header.
        let headers = headers_of(Command::new("sh").args(["-c", "sleep 1000 & echo X-Child: $!"]))
            .await
            .unwrap();
        let child: i32 = headers[0].1.parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        let gone = async {
            // It stays a zombie until the process that adopted it reaps it.
            while rustix::process::test_kill_process(child).is_ok() && !is_zombie(child) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, gone).await.expect("the child is killed");
    }

    #[cfg(unix)]
    fn is_zombie(pid: rustix::process::Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    }

    #[test]
    fn headers_are_json_or_lines() {
        for text in ["{\"A\": \"b: c\", \"X-B\": \"d\"}\n", "A: b: c\n\nX-B:d\n"] {
            assert_eq!(
                parsed(text),
                Ok(vec![header("A", "b: c"), header("X-B", "d")]),
                "{text}"
            );
        }
    }

    #[test]
    fn an_error_contains_nothing_of_the_output() {
        for text in ["", "s3cret", "{\"A\": s3cret}", "{\"A\": [\"s3cret\"]}", "A: b\ns3cret"] {
            let error = parsed(text).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
