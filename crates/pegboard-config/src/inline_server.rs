//! Parses a server in the syntax of the command line: `NAME=COMMAND…` or `NAME=URL`.

use super::{
    problem::{Report, join},
    tree::{KeyValue, Location, Node, Value},
};

/// Parses the text into a config tree with one server.
pub(super) fn tree(text: &str, report: &mut Report) -> Option<Node> {
    let at = Location::START;
    let Some((name, rest)) = text.split_once('=') else {
        report.error_with(
            at,
            "",
            "is not `NAME=COMMAND` or `NAME=URL`",
            "write `--server time='uvx mcp-server-time'`",
        );
        return None;
    };
    let rest = rest.trim();
    // `localhost:8080/mcp` is a URL without its scheme; validating `url` reports that.
    let settings = if is_url(rest) || is_address(rest) {
        vec![entry("url", Node::text(rest, at))]
    } else {
        let words = match words(rest) {
            Ok(words) => words,
            Err(problem) => {
                report.error(at, &join("servers", name.trim()), problem);
                return None;
            }
        };
        let mut words = words.into_iter().map(|word| Node::text(word, at));
        let program = words.next().unwrap_or(Node::text("", at));
        let args = Value::List(words.collect());
        vec![entry("command", program), entry("args", Node::new(args, at))]
    };
    let server = entry(name.trim(), Node::new(Value::Map(settings), at));
    let servers = entry("servers", Node::new(Value::Map(vec![server]), at));
    Some(Node::new(Value::Map(vec![servers]), at))
}

fn entry(key: &str, value: Node) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        at: Location::START,
        value,
    }
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https" | "ws" | "wss"))
}

/// Whether a text is a host with a port and an optional path.
fn is_address(text: &str) -> bool {
    let authority = text.split('/').next().unwrap_or_default();
    let is_host = |host: &str| {
        !host.is_empty()
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    !text.contains(char::is_whitespace)
        && authority
            .split_once(':')
            .is_some_and(|(host, port)| is_host(host) && is_port(port))
}

/// Splits a command line into words.
fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        '"' => break,
                        '\\' => word.extend(unescape_next(&mut chars, &['"', '\\'])),
                        c => word.push(c),
                    }
                }
            }
            '\\' => word
                .get_or_insert_default()
                .extend(unescape_next(&mut chars, &[' ', '"', '\'', '\\'])),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Unescapes the character after a backslash. The backslash stays unless a special character follows, so that Windows paths stay intact.
fn unescape_next(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, special: &[char]) -> Vec<char> {
    match chars.next_if(|c| special.contains(c)) {
        Some(c) => vec![c],
        None => vec!['\\'],
    }
}

#[cfg(test)]
mod tests {
    use crate::{Env, ServerConfig, Transport};

    fn argv(text: &str) -> Vec<String> {
        let env = Env::from_pairs([("DIR", "/my files/$(x)")]);
        let (_, server) = ServerConfig::parse(text, &env).unwrap();
        match server.transport {
            Transport::Stdio(command) => {
                let args = command.args.iter().map(|arg| arg.expose().to_owned());
                std::iter::once(command.program).chain(args).collect()
            }
            other @ Transport::Remote { .. } => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_split_into_words_without_a_shell() {
        for (text, want) in [
            ("t=uvx mcp-server-time", &["uvx", "mcp-server-time"][..]),
            ("t = uvx  --tz 'Europe/Old Town' ", &["uvx", "--tz", "Europe/Old Town"]),
            ("t=a \"b \\\"c\\\"\" d\\ e ''", &["a", "b \"c\"", "d e", ""]),
            (
                "t=a $(id) `id` ; rm|x > y && z",
                &["a", "$(id)", "`id`", ";", "rm|x", ">", "y", "&&", "z"],
            ),
            ("t=ls ${DIR} x${DIR}y", &["ls", "/my files/$(x)", "x/my files/$(x)y"]),
            ("t=C:\\bin\\x.exe --a=b", &["C:\\bin\\x.exe", "--a=b"]),
        ] {
            assert_eq!(argv(text), want, "{text}");
        }
    }

    #[test]
    fn a_url_is_a_remote_server() {
        let (name, server) =
            ServerConfig::parse("hub=wss://example.com/mcp?x=1", &Env::from_pairs([("", "")])).unwrap();
        assert_eq!((name.as_str(), server.transport.kind()), ("hub", "websocket"));
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        for (text, want) in [
            (
                "time",
                "--server:1: is not `NAME=COMMAND` or `NAME=URL` (write `--server time='uvx mcp-server-time'`)",
            ),
            ("t=", "--server:1: servers.t.command: is empty"),
            ("t=a 'b", "--server:1: servers.t: a quote is not closed"),
            (
                "t=localhost:8080/mcp",
                "--server:1: servers.t.url: `localhost:8080/mcp` has no scheme; write `http://localhost:8080/mcp`",
            ),
            (
                "a.b=x",
                "--server:1: servers.a.b: `a.b` cannot be a server name: only letters, digits, `_` and `-` may be used",
            ),
            (
                "t=x ${NO}",
                "--server:1: servers.t.args[0]: variable `NO` is not set (set it in the environment that Pegboard starts in)",
            ),
        ] {
            let problems = ServerConfig::parse(text, &Env::from_pairs([("A", "")])).unwrap_err();
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [want]);
        }
    }
}
