//! Opens a URL in the person's browser.

use std::process::{Command, Stdio};

use crate::{exit::Exit, settings::Complaint};
use url::Url;

/// The longest URL that is opened or printed.
const MAX_URL: usize = 8 << 10;

/// The text of a URL that an authorization server named, if a browser may open it and a terminal may show it.
pub(super) fn checked(url: &Url) -> Result<&str, Complaint> {
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

/// Whether a browser of this machine would be one that the person sees.
pub(super) fn can_open() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("BROWSER") {
        return true;
    }
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    let has_screen = cfg!(any(windows, target_os = "macos")) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    has_screen && !is_remote
}

/// Starts the browser. The URL is one argument of a program, never part of a shell's line. Returns whether a program was started.
pub(super) fn open(url: &str) -> bool {
    let mut commands: Vec<Vec<String>> = Vec::new();
    // `BROWSER` names programs, with a colon between them; a word `%s` stands for the URL.
    for named in std::env::var("BROWSER").unwrap_or_default().split(':') {
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
    commands.push(system.iter().copied().chain([url]).map(str::to_owned).collect());
    commands.iter().any(|words| start(words))
}

fn start(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(mut child) => {
            // Some browsers run as long as their window is open.
            std::thread::spawn(move || {
                let _ = child.wait();
            });
            true
        }
        Err(error) => {
            tracing::debug!(%program, %error, "the browser cannot be started");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_opened() {
        for good in ["https://as.example/authorize?state=x%0a", "http://127.0.0.1:9/"] {
            assert_eq!(checked(&Url::parse(good).unwrap()).unwrap(), good);
        }
        let long = format!("https://as.example/{}", "x".repeat(MAX_URL));
        for bad in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-settings:x",
            "data:text/html,x",
            &long,
        ] {
            assert!(checked(&Url::parse(bad).unwrap()).is_err(), "{bad}");
        }
    }
}
