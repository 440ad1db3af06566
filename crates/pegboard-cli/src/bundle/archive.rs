//! The zip file of a bundle. Anyone can have made it: every path, size and kind of entry is checked, and all content is in memory before anything
//! is written.

use std::{
    collections::HashSet,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use rawzip::{CompressionMethod, ZipArchive};

use super::bundle_error::{BundleError, error};

/// The most entries. Bundles for Node have their `node_modules`.
const MAX_ENTRIES: usize = 50_000;
/// The most bytes of all files together.
const MAX_BYTES: usize = 512 << 20;
/// The longest path.
const MAX_PATH: usize = 512;
/// The bits of a mode that say what kind of file it is, and their value for an ordinary one.
const KIND: u32 = 0o170_000;
const ORDINARY: u32 = 0o100_000;

/// A file of a bundle.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) is_executable: bool,
}

pub(super) fn read(zip: &[u8]) -> Result<Vec<File>, BundleError> {
    let unreadable = |why: rawzip::Error| error(format!("it is no readable zip file: {why}"));
    let archive = ZipArchive::from_slice(zip).map_err(unreadable)?;
    let mut entries = archive.entries();
    let (mut files, mut known, mut rest) = (Vec::new(), HashSet::new(), MAX_BYTES);
    while let Some(entry) = entries.next_entry().map_err(unreadable)? {
        let path = entry.file_path();
        let path = std::str::from_utf8(path.as_bytes()).map_err(|_| error("it has a file whose name is not UTF-8"))?;
        let shown = path.escape_debug();
        if !is_safe(path.strip_suffix('/').unwrap_or(path)) {
            return Err(error(format!(
                "`{shown}` would be written outside its folder, or nowhere"
            )));
        }
        if entry.is_dir() {
            continue;
        }
        let kind = entry.mode().value() & KIND;
        if entry.mode().is_symlink() || !(kind == 0 || kind == ORDINARY) {
            return Err(error(format!("`{shown}` is a link or another special file")));
        }
        // Two names that differ in case are one file on some systems.
        if !known.insert(path.to_lowercase()) {
            return Err(error(format!("`{shown}` is in it twice")));
        }
        if known.len() > MAX_ENTRIES {
            return Err(error(format!("it has more than {MAX_ENTRIES} files")));
        }
        let found = archive.get_entry(entry.wayfinder()).map_err(unreadable)?;
        let too_large = || error(format!("it unpacks to more than {} MiB", MAX_BYTES >> 20));
        let content = match entry.compression_method() {
            CompressionMethod::STORE if found.data().len() > rest => return Err(too_large()),
            CompressionMethod::STORE => found.data().to_vec(),
            CompressionMethod::DEFLATE => {
                let limit = usize::try_from(entry.uncompressed_size_hint()).unwrap_or(usize::MAX);
                if limit > rest {
                    return Err(too_large());
                }
                miniz_oxide::inflate::decompress_to_vec_with_limit(found.data(), limit)
                    .map_err(|_| error(format!("`{shown}` is damaged, or larger than it says")))?
            }
            _ => {
                return Err(error(format!(
                    "`{shown}` is encrypted, or packed in a way that bundles are not"
                )));
            }
        };
        if rawzip::crc32(&content) != entry.crc32() {
            return Err(error(format!("`{shown}` is damaged: its checksum differs")));
        }
        rest -= content.len();
        files.push(File {
            path: path.to_owned(),
            content,
            is_executable: entry.mode().permissions() & 0o111 != 0,
        });
    }
    // A path that is a file cannot be a folder too.
    let is_below = |file: &File| {
        let mut parents = file
            .path
            .match_indices('/')
            .map(|(end, _)| file.path[..end].to_lowercase());
        parents.any(|parent| known.contains(&parent))
    };
    if let Some(file) = files.iter().find(|file| is_below(file)) {
        return Err(error(format!("`{}` is below a file", file.path.escape_debug())));
    }
    Ok(files)
}

/// Whether a path stays in its folder, on every system: plain names with `/` between them.
fn is_safe(path: &str) -> bool {
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..")
            && !name.ends_with(['.', ' '])
            && !name.contains(|c: char| c.is_control() || "\\:*?\"<>|".contains(c))
    };
    path.len() <= MAX_PATH && path.split('/').all(is_name)
}

/// Writes files into a new folder that only the user can read.
pub(super) fn write(files: &[File], folder: &Path) -> io::Result<()> {
    let mut private = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    private.create(folder)?;
    let written = files.iter().try_for_each(|file| {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            private.recursive(true).create(parent)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if file.is_executable { 0o700 } else { 0o600 });
        options.open(path)?.write_all(&file.content)
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(folder);
    }
    written
}
