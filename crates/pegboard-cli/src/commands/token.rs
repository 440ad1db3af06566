//! `pegboard token`: makes tokens for clients of the gateway, and prints digests of tokens.

use std::io::{self, Read as _};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pegboard::{
    Config, Env, Format,
    config::{Problem, TokenDigest},
};
use serde_json::json;

use super::context::{Context, Ending, empty, interrupted, time_up};
use crate::{cli::TokenNew, exit::Exit, output::Report};

/// How tokens begin, so that people and scanners recognise them.
const PREFIX: &str = "pgb_";
/// Random bytes of a token: 256 bits.
const RANDOM: usize = 32;
/// Longer than any token.
const MAX_BYTES: u64 = 64 << 10;

/// Makes a token. It is printed once and stored nowhere.
pub(super) async fn new(mut context: Context<'_>, options: TokenNew) -> Exit {
    let nothing = json!({"name": options.name, "token": null, "sha256": null, "config": null});
    if let Some(problem) = bad_name(&options.name) {
        let report = empty(&context.output, Exit::Usage, &nothing).error(&problem, None);
        return context.print(report).await;
    }
    let token = match random() {
        Ok(token) => token,
        Err(error) => {
            let message = format!("the system has no random numbers: {error}");
            let report = empty(&context.output, Exit::Unavailable, &nothing).error(&message, None);
            return context.print(report).await;
        }
    };
    let digest = TokenDigest::of(&token).to_string();
    let lines = lines(&options, &digest);
    let report = match context.output.is_json() {
        true => {
            let document = json!({"name": options.name, "token": token, "sha256": digest, "config": lines});
            Report::json(Exit::Done, &document)
        }
        false => {
            context
                .output
                .note("Put these lines into the config. The token is shown only now and stored nowhere.\n");
            context.output.note(&lines);
            let mut report = Report::new(Exit::Done);
            report.data = format!("{token}\n");
            report
        }
    };
    context.print(report).await
}

/// Prints the digest of the token on stdin.
pub(super) async fn hash(mut context: Context<'_>) -> Exit {
    let nothing = json!({"sha256": null});
    let output = context.output.clone();
    let reading = tokio::task::spawn_blocking(read);
    let report = match context.work(reading).await {
        Ending::Done(Ok(Ok(token))) => {
            let digest = TokenDigest::of(&token).to_string();
            match output.is_json() {
                true => Report::json(Exit::Done, &json!({"sha256": digest})),
                false => {
                    let mut report = Report::new(Exit::Done);
                    report.data = format!("{digest}\n");
                    report
                }
            }
        }
        Ending::Done(Ok(Err(problem))) => empty(&output, Exit::Usage, &nothing).error(&problem, None),
        Ending::Done(Err(error)) => {
            let problem = format!("stdin cannot be read: {error}");
            empty(&output, Exit::Usage, &nothing).error(&problem, None)
        }
        Ending::TimeUp => time_up(&output, &nothing),
        Ending::Interrupted => interrupted(&output, &nothing),
    };
    context.print(report).await
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The TOML lines of the token.
fn lines(options: &TokenNew, digest: &str) -> String {
    let mut lines = format!("[serve.tokens.{}]\nsha256 = \"{digest}\"\n", options.name);
    if let Some(view) = &options.view {
        lines.push_str(&format!("view = {}\n", json!(view)));
    }
    lines
}

/// Why a token cannot have this name. The config decides.
fn bad_name(name: &str) -> Option<String> {
    let text = json!({"serve": {"tokens": {name: {"sha256": TokenDigest::of("").to_string()}}}}).to_string();
    let loaded = Config::from_text(&text, Format::Json, &Env::new(|_| None));
    if loaded.config.serve.tokens.contains_key(name) {
        return None;
    }
    let why = loaded.errors().next().map(|problem: &Problem| problem.message.clone());
    Some(format!("`{name}` is no name of a token: {}", why.unwrap_or_default()))
}

/// Reads a token from stdin, without the newline at its end.
fn read() -> Result<String, String> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("stdin has more than {MAX_BYTES} bytes, which is no token"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "stdin is not UTF-8 text, which a token is".to_owned())?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("stdin has no token".to_owned()),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_a_prefix_and_are_never_the_same() {
        let (first, second) = (random().unwrap(), random().unwrap());
        assert!(first.starts_with(PREFIX));
        assert_eq!(first.len(), PREFIX.len() + 43);
        assert_ne!(first, second);
    }

    #[test]
    fn a_name_is_one_that_the_config_accepts() {
        assert_eq!(bad_name("laptop-2"), None);
        for name in ["", "a.b", "a b", "a]\nx = 1", "-x"] {
            assert!(bad_name(name).is_some(), "{name}");
        }
    }
}
