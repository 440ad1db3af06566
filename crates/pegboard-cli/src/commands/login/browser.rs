//! Opens a URL in the person's browser.

use std::process::Stdio;

use tokio::process::Command;
use url::Url;

use crate::{exit::Exit, output::one_line, settings::Complaint};

/// The longest URL that is opened or printed.
const MAX_URL: usize = 8 << 10;

/// The text of a URL that an authorization server named, if a browser may open it and a terminal may show it.
pub(super) fn check_browser_url(url: &Url) -> Result<&str, Complaint> {
    let text = url.as_str();
    let is_web = matches!(url.scheme(), "https" | "http") && url.host_str().is_some_and(|host| !host.is_empty());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.starts_with('-');
    if is_web && is_plain && text.len() <= MAX_URL {
        return Ok(text);
    }
    Err(Complaint {
        message: "the authorization server names an address that is not opened: it must be http or https, without control characters, \
                  and at most 8 KiB"
            .to_owned(),
        hint: None,
        exit: Exit::Unavailable,
    })
}

/// Whether a browser of this machine would be one that the person sees: over SSH only with a forwarded display.
pub(in crate::commands) fn can_open() -> bool {
    is_visible(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn is_visible(is_set: impl Fn(&str) -> bool) -> bool {
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    let has_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    let has_desktop = cfg!(any(windows, target_os = "macos")) && !is_remote;
    is_set("BROWSER") || has_display || has_desktop
}

/// Opens a URL, which is one argument of a program and never part of a shell's line. Returns when a browser has opened it and ended, or with the
/// reasons why none could. Many browsers run as long as their window is open, and go on when this is dropped.
pub(in crate::commands) async fn open(url: &str) -> Result<(), String> {
    let mut failures = Vec::new();
    for words in commands(&std::env::var("BROWSER").unwrap_or_default(), url) {
        match run(&words).await {
            Ok(()) => return Ok(()),
            Err(failure) => failures.push(failure),
        }
    }
    Err(failures.join("; "))
}

/// The commands to try. `BROWSER` names programs, with a colon between them; a word `%s` stands for the URL.
fn commands(named: &str, url: &str) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    for named in named.split(':') {
        let mut words: Vec<String> = named.split_ascii_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            continue;
        }
        match words.iter_mut().skip(1).find(|word| *word == "%s") {
            Some(place) => url.clone_into(place),
            None => words.push(url.to_owned()),
        }
        commands.push(words);
    }
    let system: &[&str] = if cfg!(windows) {
        &["rundll32.exe", "url.dll,FileProtocolHandler"]
    } else if cfg!(target_os = "macos") {
        &["open"]
    } else {
        &["xdg-open"]
    };
    if commands.is_empty() {
        commands.push(system.iter().copied().chain([url]).map(str::to_owned).collect());
    }
    commands
}

async fn run(words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no browser is named".to_owned());
    };
    let shown = one_line(program);
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.map_err(|error| format!("`{shown}` cannot be started: {error}"))?;
    match child.wait().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed with {status}")),
        Err(error) => Err(format!("`{shown}` cannot be waited for: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_opened() {
        for good in ["https://as.example/authorize?state=x%0a", "http://127.0.0.1:9/"] {
            assert_eq!(check_browser_url(&Url::parse(good).unwrap()).unwrap(), good);
        }
        let long = format!("https://as.example/{}", "x".repeat(MAX_URL));
        for bad in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-settings:x",
            "data:text/html,x",
            &long,
        ] {
            assert!(check_browser_url(&Url::parse(bad).unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_browser_opens_where_the_person_sees_it() {
        for (variables, is_seen) in [
            (&["BROWSER"][..], true),
            (&["DISPLAY"], true),
            (&["WAYLAND_DISPLAY"], true),
            (&["SSH_CONNECTION"], false),
            (&["SSH_TTY"], false),
            (&["SSH_CONNECTION", "DISPLAY"], true),
            (&["SSH_CONNECTION", "BROWSER"], true),
        ] {
            assert_eq!(is_visible(|name| variables.contains(&name)), is_seen, "{variables:?}");
        }
    }

    #[test]
    fn the_variable_names_programs_and_the_place_of_the_address() {
        let words = |named: &str| {
            commands(named, "http://x/")
                .iter()
                .map(|words| words.join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(words("firefox"), ["firefox http://x/"]);
        assert_eq!(words("a --url %s --new:b"), ["a --url http://x/ --new", "b http://x/"]);
        assert_eq!(words(" : "), words(""));
        assert_eq!(words("").len(), 1);
    }
}
