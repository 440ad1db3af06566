//! Binary parts of results: their bytes, and files of them with safe names.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pegboard::Content;
use serde_json::Value;

/// The longest name of a file, without what makes it unique, in characters and in bytes. File systems count bytes, and take 255 of them.
const MAX_NAME: usize = 80;
const MAX_BYTES: usize = 200;
/// How many names are tried for one file.
const MAX_TRIES: usize = 10_000;
/// Media types and the extensions of their files.
const EXTENSIONS: [(&str, &str); 26] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/avif", "avif"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/webm", "weba"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("application/json", "json"),
    ("application/x-tar", "tar"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/markdown", "md"),
];

/// A binary part of a result.
#[derive(Debug, PartialEq)]
pub(super) struct Blob {
    /// Whether it is an image.
    pub(super) is_image: bool,
    pub(super) mime_type: Option<String>,
    /// The last part of its URI.
    pub(super) name: Option<String>,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    /// The bytes of a content block; `None` if it is not binary or not valid base64.
    pub(super) fn decode(block: &Content) -> Option<Self> {
        match block {
            Content::Image { data, mime_type, .. } => Self::from_base64(data, Some(mime_type), None),
            Content::Audio { data, mime_type, .. } => Self::from_base64(data, Some(mime_type), None),
            Content::Resource { resource, .. } => {
                let field = |key: &str| resource.get(key).and_then(Value::as_str);
                Self::from_base64(field("blob")?, field("mimeType"), field("uri"))
            }
            _ => None,
        }
    }

    /// Whether a content block is binary and its base64 is wrong, so that [`Self::decode`] has no bytes.
    pub(super) fn is_damaged(block: &Content) -> bool {
        let is_binary = match block {
            Content::Image { .. } | Content::Audio { .. } => true,
            Content::Resource { resource, .. } => resource.get("blob").is_some(),
            _ => false,
        };
        is_binary && Self::decode(block).is_none()
    }

    fn from_base64(data: &str, mime_type: Option<&str>, uri: Option<&str>) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(data.trim()).ok()?;
        Some(Self::new(bytes, mime_type, uri))
    }

    pub(super) fn new(bytes: Vec<u8>, mime_type: Option<&str>, uri: Option<&str>) -> Self {
        let path = uri.map(|uri| uri.split(['?', '#']).next().unwrap_or(uri));
        Self {
            is_image: mime_type.is_some_and(|kind| kind.starts_with("image/")),
            mime_type: mime_type.map(str::to_owned),
            name: path.and_then(|path| path.rsplit('/').next()).map(str::to_owned),
            bytes,
        }
    }

    /// A file name without folders: the part's own name or `fallback`, with the extension of its media type.
    fn file_name(&self, fallback: &str) -> (String, &'static str) {
        let given = self
            .name
            .as_deref()
            .filter(|name| !to_safe_name(name).is_empty())
            .unwrap_or(fallback);
        let (stem, written) = given.rsplit_once('.').unwrap_or((given, ""));
        let known = |extension: &str| EXTENSIONS.iter().find(|(_, one)| extension.eq_ignore_ascii_case(one));
        let by_type = self.mime_type.as_deref().and_then(|kind| {
            let kind = kind.split(';').next().unwrap_or(kind).trim();
            EXTENSIONS.iter().find(|(one, _)| kind.eq_ignore_ascii_case(one))
        });
        // Only extensions of data: a server must not choose one that a double click runs.
        let (stem, extension) = match (by_type, known(written)) {
            (Some((_, extension)), Some(_)) => (stem, *extension),
            (None, Some((_, extension))) => (stem, *extension),
            (Some((_, extension)), None) => (given, *extension),
            (None, None) => (given, "bin"),
        };
        let stem = match to_safe_name(stem) {
            stem if stem.is_empty() => to_safe_name(fallback),
            stem => stem,
        };
        (stem, extension)
    }
}

/// Letters, digits, `-`, `_` and inner dots; other characters become `-`. Never a name that Windows reserves.
fn to_safe_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().take(MAX_NAME).map(plain).collect();
    let name = &name[..name.floor_char_boundary(MAX_BYTES)];
    let name = name.trim_matches(['.', '-']).to_owned();
    let base = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_reserved = matches!(base.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || ["COM", "LPT"].iter().any(|device| {
            base.strip_prefix(device)
                .is_some_and(|number| number.len() == 1 && number.chars().all(|c| c.is_ascii_digit()))
        });
    if is_reserved { format!("_{name}") } else { name }
}

/// The files that were written, and why others were not.
#[derive(Debug, Default)]
pub(super) struct Saved {
    pub(super) files: Vec<PathBuf>,
    pub(super) problem: Option<io::Error>,
}

/// Finds out whether files can be made in a folder, or in the nearest one that is there if it is to be made. Nothing is left behind.
pub(super) fn check(folder: Option<&Path>) -> Result<(), String> {
    let Some(folder) = folder else { return Ok(()) };
    can_be_filled(folder).map_err(|error| format!("files cannot be saved in {}: {error}", folder.display()))
}

fn can_be_filled(folder: &Path) -> io::Result<()> {
    let whole = std::path::absolute(folder)?;
    // A link to nowhere is there too, and no folder can be made in its place.
    let mut nearest = whole.ancestors();
    let Some(nearest) = nearest.find(|path| path.symlink_metadata().is_ok()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    if !fs::metadata(nearest)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let probe = nearest.join(format!(".pegboard-{}.draft", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&probe)?;
    fs::remove_file(probe)
}

/// Writes each part to a file of its own. The folder is created; no file is ever overwritten.
pub(super) fn save(folder: &Path, fallback: &str, blobs: &[Blob]) -> Saved {
    let mut saved = Saved::default();
    if blobs.is_empty() {
        return saved;
    }
    // A folder that cannot be made is reported with the files.
    let _ = fs::create_dir_all(folder);
    for blob in blobs {
        match save_one(folder, fallback, blob) {
            Ok(file) => saved.files.push(file),
            Err(error) => saved.problem = saved.problem.or(Some(error)),
        }
    }
    saved
}

fn save_one(folder: &Path, fallback: &str, blob: &Blob) -> io::Result<PathBuf> {
    let (stem, extension) = blob.file_name(fallback);
    for number in 1..MAX_TRIES {
        let name = match number {
            1 => format!("{stem}.{extension}"),
            number => format!("{stem}-{number}.{extension}"),
        };
        let path = folder.join(name);
        // Fails on anything that exists, also on a link to nowhere.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                if let Err(error) = file.write_all(&blob.bytes) {
                    // A part of the bytes is no file that anyone wants.
                    let _ = fs::remove_file(&path);
                    return Err(error);
                }
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many files have this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: Option<&str>, mime_type: Option<&str>) -> String {
        let blob = Blob {
            name: name.map(str::to_owned),
            ..Blob::new(Vec::new(), mime_type, None)
        };
        let (stem, extension) = blob.file_name("fx.draw");
        format!("{stem}.{extension}")
    }

    #[test]
    fn a_server_cannot_choose_a_folder_or_a_program() {
        for (name, kind, expected) in [
            (None, Some("image/png"), "fx.draw.png"),
            (Some("logo.png"), Some("image/png"), "logo.png"),
            (Some("logo.jpeg"), Some("image/jpeg"), "logo.jpeg.jpg"),
            (Some("report.pdf"), None, "report.pdf"),
            (Some("run.sh"), None, "run.sh.bin"),
            (Some("x.desktop"), Some("image/png"), "x.desktop.png"),
            (Some(".bashrc"), None, "bashrc.bin"),
            (Some(".."), None, "fx.draw.bin"),
            (Some("-rf"), None, "rf.bin"),
            (Some("..\\..\\a:b"), None, "a-b.bin"),
            (Some("NUL.txt"), None, "_NUL.txt"),
            (Some("a\u{202e}\x1b[2J"), Some("weird/type; x"), "a---2J.bin"),
        ] {
            assert_eq!(named(name, kind), expected, "{name:?} {kind:?}");
        }
        assert!(named(Some(&"é".repeat(500)), None).chars().count() < 100);
        assert!(named(Some(&"𝒜".repeat(500)), None).len() < 210);
        assert_eq!(
            Blob::new(Vec::new(), None, Some("file:///a/../b.png?x=/c#/d"))
                .name
                .as_deref(),
            Some("b.png")
        );
    }

    #[test]
    fn files_that_exist_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("new/pictures");
        let blob = || Blob::new(b"1".to_vec(), Some("image/png"), None);
        let first = save(&to, "draw", &[blob(), blob()]).files;
        let second = save(&to, "draw", &[blob()]).files;
        let names: Vec<_> = first
            .iter()
            .chain(&second)
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["draw.png", "draw-2.png", "draw-3.png"]);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("nowhere"), to.join("linked.png")).unwrap();
            assert!(save(&to, "linked", &[blob()]).files[0].ends_with("linked-2.png"));
            assert!(!folder.path().join("nowhere").exists());
        }
    }
}
