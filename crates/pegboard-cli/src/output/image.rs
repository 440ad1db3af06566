//! Images at terminals that can show them: the graphics protocols of kitty and of iTerm2.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The largest image that is sent to a terminal.
const MAX_BYTES: usize = 8 << 20;
/// The most base64 digits in one escape sequence of kitty's protocol.
const CHUNK: usize = 4096;

/// A protocol by which a terminal shows images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphics {
    Kitty,
    Iterm,
}

impl Graphics {
    /// The protocol of the terminal on stdout, if it is known to have one.
    pub(crate) fn detect() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        io::stdout()
            .is_terminal()
            .then(|| Self::detect_from(variable))
            .flatten()
    }

    /// Terminals announce themselves by environment variables only. Inside a multiplexer the sequences would not arrive.
    fn detect_from(variable: impl Fn(&str) -> String) -> Option<Self> {
        let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
        if !variable("TMUX").is_empty() || term.starts_with("screen") || term.starts_with("tmux") || term == "dumb" {
            return None;
        }
        let is_iterm =
            matches!(program.as_str(), "iTerm.app" | "WezTerm" | "mintty") || variable("LC_TERMINAL") == "iTerm2";
        if term.contains("kitty")
            || term.contains("ghostty")
            || program == "ghostty"
            || !variable("KITTY_WINDOW_ID").is_empty()
        {
            Some(Self::Kitty)
        } else {
            is_iterm.then_some(Self::Iterm)
        }
    }

    /// The escape sequences that show an image; `None` if the protocol does not take this format. The bytes are encoded here, so that a
    /// server cannot send escape sequences of its own.
    pub(crate) fn show(self, image: &[u8]) -> Option<String> {
        if image.len() > MAX_BYTES {
            return None;
        }
        let is_png = image.starts_with(b"\x89PNG\r\n\x1a\n");
        let is_other = image.starts_with(b"\xff\xd8\xff") || image.starts_with(b"GIF8");
        let data = BASE64_STANDARD.encode(image);
        match self {
            Self::Kitty if is_png => Some(kitty(&data)),
            Self::Iterm if is_png || is_other => {
                Some(format!("\x1b]1337;File=inline=1;size={}:{data}\x07\n", image.len()))
            }
            _ => None,
        }
    }
}

fn kitty(data: &str) -> String {
    let mut text = String::with_capacity(data.len() + data.len() / 64);
    let count = data.len().div_ceil(CHUNK);
    for (number, chunk) in data.as_bytes().chunks(CHUNK).enumerate() {
        let first = if number == 0 { "a=T,f=100," } else { "" };
        let more = u8::from(number + 1 < count);
        let _ = write!(text, "\x1b_G{first}m={more};{}\x1b\\", String::from_utf8_lossy(chunk));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(variables: &[(&str, &str)]) -> Option<Graphics> {
        Graphics::detect_from(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map_or_else(String::new, |(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_terminals_that_are_known_get_images() {
        assert_eq!(terminal(&[("TERM", "xterm-kitty")]), Some(Graphics::Kitty));
        assert_eq!(terminal(&[("TERM", "xterm-ghostty")]), Some(Graphics::Kitty));
        assert_eq!(terminal(&[("TERM_PROGRAM", "iTerm.app")]), Some(Graphics::Iterm));
        assert_eq!(terminal(&[("TERM", "xterm-256color")]), None);
        assert_eq!(terminal(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]), None);
    }

    #[test]
    fn a_large_image_is_sent_in_parts() {
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        png.resize(5000, 0);
        let shown = Graphics::Kitty.show(&png).unwrap();
        assert_eq!(shown.matches("\x1b_G").count(), 2);
        assert!(shown.starts_with("\x1b_Ga=T,f=100,m=1;iVBOR"), "{shown:?}");
        assert!(shown.contains("\x1b_Gm=0;"), "{shown:?}");
        assert!(
            Graphics::Iterm
                .show(&png)
                .unwrap()
                .starts_with("\x1b]1337;File=inline=1;size=5000:iVBOR")
        );
    }

    #[test]
    fn what_is_no_image_is_not_sent() {
        assert_eq!(Graphics::Kitty.show(b"<svg/>"), None);
        assert_eq!(Graphics::Kitty.show(b"\xff\xd8\xff"), None);
        assert_eq!(Graphics::Iterm.show(b"\x1b[2J"), None);
    }
}
