//! Config files.

use pegboard::{Config, Env, Format, Loaded, config::Source};

/// The value of every environment variable. Nothing that is shown may contain it.
const VARIABLE: &str = "canary-of-the-environment-7Qx";
/// A secret that is written in the second file.
const WRITTEN: &str = "canary-in-a-file-8Zk";

/// The first byte chooses the format (`t`, `y`, otherwise JSON). Any text loads without a panic, loads the same way twice, and neither the
/// value of a variable nor a secret of another file is shown.
pub fn config(data: &[u8]) {
    let Some((format, text)) = data.split_first() else {
        return;
    };
    let format = match format {
        b't' => Format::Toml,
        b'y' => Format::Yaml,
        _ => Format::Json,
    };
    let text = String::from_utf8_lossy(text);
    let loaded = load(&text, format);
    let shown = shown(&loaded);
    for secret in [VARIABLE, WRITTEN] {
        if let Some(line) = shown.lines().find(|line| line.contains(secret)) {
            panic!("{secret} is shown: {line}");
        }
    }
    assert_eq!(shown, self::shown(&load(&text, format)), "loaded twice");
    let names = loaded.config.servers.keys();
    assert!(
        names
            .into_iter()
            .all(|name| !loaded.config.misconfigured.contains_key(name))
    );
}

fn load(text: &str, format: Format) -> Loaded {
    let planted = format!(
        "[servers.planted-local]\ncommand = \"run\"\nargs = [\"--token={WRITTEN}\", \"--api-key\", \"{WRITTEN}\"]\nenv = {{ API_TOKEN = \"{WRITTEN}\" }}\n\
         [servers.planted-remote]\nurl = \"https://me:{WRITTEN}@example.org/mcp?api_key={WRITTEN}\"\nheaders = {{ Authorization = \"Bearer {WRITTEN}\" }}\n"
    );
    let sources = [
        Source::text("fuzz", text, Some(format)),
        Source::text("planted", planted, Some(Format::Toml)),
    ];
    Config::load(&sources, &Env::new(|_| Some(VARIABLE.to_owned())))
}

/// Everything that a command prints about a config.
fn shown(loaded: &Loaded) -> String {
    let mut shown = loaded.show().to_string();
    for problem in &loaded.problems {
        shown.push_str(&format!("\n{problem}\n{problem:?}"));
    }
    for one in loaded.explain() {
        shown.push_str(&format!("\n{one:?}"));
    }
    shown
}
