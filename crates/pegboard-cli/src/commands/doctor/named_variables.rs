//! Tells arguments that only name a variable or a user from secrets.
//!
//! The library warns of each argument after a flag such as `--token-env`, because it cannot know the flags of all programs. `GH_TOKEN` there is the
//! name of a variable, though, and no secret.

use pegboard::{Config, Env, Format};
use serde_json::json;

/// The start of the library's warning.
const WARNING: &str = "an argument looks like a secret";

/// Whether a problem is the library's warning about an argument.
pub(super) fn is_about_argument(message: &str) -> bool {
    message.starts_with(WARNING)
}

/// How many warnings of the library about these arguments, as they are written, are about real values.
pub(super) fn secrets_among(args: &[String]) -> usize {
    let mut kept: Vec<&str> = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| args.get(at)).map_or("", String::as_str);
        // What takes its place must not be taken for a secret, and must keep the argument after it from being one.
        kept.push(match arg {
            arg if is_variable_name(arg) || is_user_and_group(before, arg) => "x",
            // docker's `-e NAME`, in one word.
            arg if arg.strip_prefix("-e").is_some_and(is_variable_name) => "x",
            arg => arg,
        });
    }
    let text = json!({"servers": {"x": {"command": "x", "args": kept}}}).to_string();
    let loaded = Config::from_text(&text, Format::Json, &Env::new(|_| Some(String::new())));
    let warnings = loaded
        .problems
        .iter()
        .filter(|problem| is_about_argument(&problem.message));
    warnings.count()
}

/// Whether a text has the form of a variable's name, such as `GH_TOKEN`. Random text has more digits and no words.
fn is_variable_name(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.contains('_') && text.bytes().all(is_name) && digits <= 2
}

/// Whether an argument is docker's `--user 1000:1000`.
fn is_user_and_group(flag: &str, arg: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    ["-u", "--user"].contains(&flag)
        && arg
            .split_once(':')
            .is_some_and(|(user, group)| is_number(user) && is_number(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_no_secrets_and_values_are() {
        for (args, expected) in [
            (&["run", "-e", "GITHUB_TOKEN", "image:1.0"][..], 0),
            (&["--token-env", "GH_TOKEN"], 0),
            (&["--api-key-env", "MY_API_KEY", "--token=abcdefgh"], 1),
            (&["-eGITHUB_TOKEN", "image:1.0"], 0),
            (&["--user", "1000:1000000"], 0),
            (&["--user", "ada:1000000x"], 1),
            (&["--token", "ghp_0123456789abcdef0123"], 1),
            (&["--token", "A1B2C3_D4E5F6"], 1),
            (&["-e", "GITHUB_TOKEN=abcdefgh"], 1),
        ] {
            let written: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(secrets_among(&written), expected, "{args:?}");
        }
    }
}
