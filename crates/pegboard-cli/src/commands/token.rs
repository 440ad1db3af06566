//! `pegboard token`: makes tokens for clients of the gateway, and prints digests of tokens.

use clap::Args;
use pegboard::{Config, Env, Format, config::TokenDigest};
use serde_json::{Map, Value, json};

use super::{
    command::{Run, With, commands},
    context::{Context, empty},
    serving,
    stdin::{self, Input},
};
use crate::{
    daemon::random_token,
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// Longer than any token.
const MAX_BYTES: u64 = 64 << 10;

commands! {
    /// Make a token for a client of `serve`
    #[command(
        after_help = "Examples:\n  pegboard token new laptop\n  pegboard token hash < token.txt"
    )]
    pub(crate) enum TokenCommand {
        New(With<New>),
        Hash(With<Hash>),
    }
}

/// Make a token, and the lines for the config that let it in
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard token new laptop\n  pegboard token new ci --view reading --rate 60/min --expires 90d"
)]
pub(crate) struct New {
    /// Who will use it; the audit log has this name
    name: String,
    /// The only view that it may use
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// What it may do: read, call or admin, or several with commas; read and
    /// call if not given
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// How often its holder may call tools, such as 60/min
    #[arg(long)]
    rate: Option<String>,
    /// The most calls of its holder at once
    #[arg(long, value_name = "CALLS")]
    concurrent: Option<usize>,
    /// When it expires: 90d from now, or 2027-01-31T12:00Z
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
}

impl Run for New {
    /// Makes a token. It is printed once and stored nowhere.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"name": self.name, "token": null, "sha256": null, "config": null});
        let settings = Settings::load(&context.global);
        let checked = table(&self).and_then(|table| {
            check(&settings.selected_config()?, &self)?;
            Ok(table)
        });
        let mut table = match checked {
            Ok(table) => table,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let token = match random_token() {
            Ok(token) => token,
            Err(error) => {
                let message = format!("the system has no random numbers: {error}");
                let report = empty(&context.output, Exit::Unavailable, &nothing).error(&message, None);
                return context.print(report).await;
            }
        };
        let digest = TokenDigest::compute(&token).to_string();
        table.insert("sha256".to_owned(), digest.as_str().into());
        let lines = lines(&self.name, &table);
        let report = match context.output.is_json() {
            true => {
                let document = json!({"name": self.name, "token": token, "sha256": digest, "config": lines});
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
}

/// Print the digest of a token that comes in on stdin
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard token hash < token.txt")]
pub(crate) struct Hash {}

impl Run for Hash {
    /// Prints the digest of the token on stdin.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"sha256": null});
        let read = match stdin::read(&mut context, MAX_BYTES, &nothing).await {
            Input::Read(bytes) => token(bytes),
            Input::Unreadable(problem) => Err(problem),
            Input::Ended(report) => return context.print(report).await,
        };
        let digest = read.map(|token| TokenDigest::compute(&token).to_string());
        let report = match (digest, context.output.is_json()) {
            (Ok(digest), true) => Report::json(Exit::Done, &json!({"sha256": digest})),
            (Ok(digest), false) => {
                let mut report = Report::new(Exit::Done);
                report.data = format!("{digest}\n");
                report
            }
            (Err(problem), _) => empty(&context.output, Exit::Usage, &nothing).error(&problem, None),
        };
        context.print(report).await
    }
}

/// The TOML lines of the token. The values are texts, numbers and lists of texts, which JSON and TOML write alike.
fn lines(name: &str, table: &Map<String, Value>) -> String {
    let mut lines = format!("[serve.tokens.{name}]\n");
    for key in ["sha256", "view", "scopes", "rate", "concurrent", "expires"] {
        if let Some(value) = table.get(key) {
            lines.push_str(&format!("{key} = {value}\n"));
        }
    }
    lines
}

/// The settings of the token but its digest. The config decides whether they can be used.
fn table(options: &New) -> Result<Map<String, Value>, Complaint> {
    let expires = options.expires.as_deref().map(expiry).transpose()?;
    let scopes: Vec<&str> = options
        .scope
        .iter()
        .flat_map(|list| list.split(',').map(str::trim))
        .collect();
    let settings = [
        ("view", options.view.clone().map(Value::from)),
        ("scopes", (!scopes.is_empty()).then(|| json!(scopes))),
        ("rate", options.rate.clone().map(Value::from)),
        ("concurrent", options.concurrent.map(Value::from)),
        ("expires", expires.map(Value::from)),
    ];
    let settings = settings
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let table: Map<String, Value> = settings.collect();
    let mut token = table.clone();
    token.insert("sha256".to_owned(), TokenDigest::compute("").to_string().into());
    let views: Map<String, Value> = options.view.iter().map(|view| (view.clone(), json!({}))).collect();
    let text = json!({"views": views, "serve": {"tokens": {options.name.as_str(): token}}}).to_string();
    let loaded = Config::from_text(&text, Format::Json, &Env::new(|_| None));
    let Some(problem) = loaded
        .problems
        .iter()
        .find(|problem| problem.field.starts_with("serve."))
    else {
        return Ok(table);
    };
    let of_token = problem.field.strip_prefix(&format!("serve.tokens.{}.", options.name));
    let key = table
        .keys()
        .find(|key| of_token.is_some_and(|field| field.starts_with(key.as_str())));
    Err(usage_complaint(match key {
        Some(key) => {
            // An option that is repeated has a name in the singular.
            let option = if key == "scopes" { "scope" } else { key };
            let hint = if key == "scopes" {
                "; several are separated by commas"
            } else {
                ""
            };
            format!("`--{option}` cannot be used: {}{hint}", problem.message)
        }
        None => format!("`{}` is no name of a token: {}", options.name, problem.message),
    }))
}

/// The time of `--expires`, which may be given from now on.
fn expiry(text: &str) -> Result<String, Complaint> {
    let Some(from_now) = pegboard::config::parse_duration(text) else {
        return match text.parse::<jiff::Timestamp>() {
            Ok(_) => Ok(text.to_owned()),
            Err(_) => Err(usage_complaint(format!(
                "`--expires` cannot be used: `{}` must be a time such as `2027-01-31T12:00:00Z`, or a duration from now on such as `90d`, \
                 `12h` or `30m`",
                text.escape_debug()
            ))),
        };
    };
    let expires = jiff::Timestamp::now().checked_add(from_now);
    let expires = expires.and_then(|time| time.round(jiff::Unit::Second));
    expires
        .map(|time| time.to_string())
        .map_err(|error| usage_complaint(format!("`--expires` cannot be used: {error}")))
}

/// Fails if the config has a token of this name, or lacks the view.
fn check(config: &Config, options: &New) -> Result<(), Complaint> {
    let (name, serve) = (&options.name, &config.serve);
    if serve.tokens.contains_key(name) || serve.unusable_tokens.contains(name) {
        return Err(Complaint {
            hint: Some(format!("take another name, or remove `[serve.tokens.{name}]` first")),
            ..usage_complaint(format!("the config has a token `{name}` already"))
        });
    }
    options
        .view
        .iter()
        .try_for_each(|view| serving::check_view(config, view))
}

fn usage_complaint(message: String) -> Complaint {
    Complaint {
        message,
        hint: None,
        exit: Exit::Usage,
    }
}

/// The token in the bytes of stdin, without the newline at its end.
fn token(bytes: Vec<u8>) -> Result<String, String> {
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
    fn a_name_is_one_that_the_config_accepts() {
        let named = |name: &str| New {
            name: name.to_owned(),
            view: None,
            scope: Vec::new(),
            rate: None,
            concurrent: None,
            expires: None,
        };
        assert!(table(&named("laptop-2")).is_ok());
        for name in ["", "a.b", "a b", "a]\nx = 1", "-x"] {
            assert!(table(&named(name)).is_err(), "{name}");
        }
    }
}
