//! Ordinary texts: files of folders that most machines have, and generated logs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::classes::{Random, generate};

/// The largest file that is read.
const MAX_FILE: u64 = 2 << 20;

/// A corpus: its name, and the texts in it.
pub struct Corpus {
    pub name: String,
    pub texts: Vec<(PathBuf, String)>,
}

impl Corpus {
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|(_, text)| text.len()).sum()
    }
}

/// The corpora of this machine, each of at most `limit` bytes. A missing folder is left out.
pub fn of_this_machine(root: &Path, limit: usize) -> Vec<Corpus> {
    let home = std::env::var("HOME").unwrap_or_default();
    let folders = [
        ("the project's source", root.join("crates")),
        ("the project's documents", root.join("docs")),
        ("crates of the registry", Path::new(&home).join(".cargo/registry/src")),
        ("node modules", root.join("target/peers/npm")),
        ("python packages", PathBuf::from("/usr/lib/python3")),
        ("python library", PathBuf::from("/usr/lib/python3.11")),
        ("/usr/share/doc", PathBuf::from("/usr/share/doc")),
        ("/etc", PathBuf::from("/etc")),
        ("/var/log and dpkg", PathBuf::from("/var/lib/dpkg/info")),
    ];
    let mut found: Vec<Corpus> = folders
        .into_iter()
        .map(|(name, folder)| folder_corpus(name, &folder, limit))
        .collect();
    found.push(logs(limit.min(4 << 20)));
    found.retain(|corpus| !corpus.texts.is_empty());
    found
}

/// The files of one folder, evenly chosen.
pub fn folder_corpus(name: &str, folder: &Path, limit: usize) -> Corpus {
    let mut files = Vec::new();
    collect(folder, &mut files, 0);
    files.sort();
    let total: u64 = files.iter().map(|(_, len)| len).sum();
    let step = (total as usize).div_ceil(limit.max(1)).max(1);
    let mut texts = Vec::new();
    for (path, _) in files.into_iter().step_by(step) {
        // Files with a NUL byte are not text.
        if let Ok(bytes) = fs::read(&path)
            && !bytes.contains(&0)
            && let Ok(text) = String::from_utf8(bytes)
        {
            texts.push((path, text));
        }
    }
    Corpus {
        name: name.to_owned(),
        texts,
    }
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, u64)>, depth: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < 24 && entry.file_name() != "target" {
            collect(&entry.path(), files, depth + 1);
        } else if kind.is_file()
            && let Ok(meta) = entry.metadata()
            && (1..=MAX_FILE).contains(&meta.len())
        {
            files.push((entry.path(), meta.len()));
        }
    }
}

/// Logs of a service and of a cluster, without secrets.
pub fn logs(limit: usize) -> Corpus {
    const LINES: &[&str] = &[
        "2026-03-01T10:{d2}:{d2}.{d3}Z INFO http: GET /api/v1/users/{h8}-{h4}-4{h3}-8{h3}-{h12} 200 {d3}ms trace_id={h32} span_id={h16}",
        "{\"level\":\"info\",\"ts\":17{d8}.{d3},\"caller\":\"server/server.go:{d3}\",\"msg\":\"request\",\"request_id\":\"{h8}-{h4}-4{h3}-9{h3}-{h12}\",\"bytes\":{d4}}",
        "I0301 10:{d2}:{d2}.{d6}       1 event.go:{d3}] Event(v1.ObjectReference{Kind:\"Pod\", Namespace:\"default\", Name:\"web-{h10}-{l5}\", UID:\"{h8}-{h4}-4{h3}-a{h3}-{h12}\"}): reason: 'Pulled' image sha256:{h64}",
        "default     web-{h10}-{l5}   1/1     Running   0          {d2}d   10.{d2}.{d2}.{d2}   node-{d1}",
        "commit {h40}\nAuthor: Ada <ada@example.org>\n\n    Rotate the signing key and refresh the token cache",
        "  \"integrity\": \"sha512-{b86}==\",\n  \"resolved\": \"https://registry.npmjs.org/a/-/a-{d1}.{d1}.{d1}.tgz\",",
        "usage: prompt_tokens={d4} completion_tokens={d3} max_tokens=4096 tokenizer=cl100k next_token: null",
        "10.0.{d2}.{d2} - - [01/Mar/2026:10:{d2}:{d2} +0000] \"POST /login HTTP/1.1\" 401 {d3} \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
        "warning: password authentication failed for user \"app\" (attempt {d1}); token endpoint https://id.example.org/oauth2/token",
        "etag: W/\"{h32}\" x-request-id: {h32} content-md5: {b22}==",
    ];
    lines("generated logs", LINES, limit)
}

/// A text with a secret in almost every line.
pub fn full_of_secrets(limit: usize) -> Corpus {
    const LINES: &[&str] = &[
        "DB_PASSWORD={h8}{d4}",
        "{\"user\":\"ada\",\"password\":\"{h22}\",\"port\":5432}",
        "    api_key: \"{h32}\"",
        "2026-03-01T10:00:00Z INFO connecting access_token={h36} to the database of the application",
        "postgres://ada:{h12}@db.example/app",
        "export AWS_SECRET_ACCESS_KEY={b40}",
        "Authorization: Bearer {h40}",
        "- name: APP_SECRET_KEY\n  value: {h20}",
        "a plain line of a log with some words in it and a number {d8}",
    ];
    lines("text full of secrets", LINES, limit)
}

fn lines(name: &str, lines: &[&str], limit: usize) -> Corpus {
    let mut random = Random::new(7);
    let mut text = String::with_capacity(limit + 512);
    while text.len() < limit {
        let line = *random.pick(lines);
        text.push_str(&generate(line, &mut random));
        text.push('\n');
    }
    Corpus {
        name: name.to_owned(),
        texts: vec![(PathBuf::from(name), text)],
    }
}
