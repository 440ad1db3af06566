//! An MCP bundle (`.mcpb`, before that `.dxt`): a zip file with a server and a manifest that says how to start it. Nothing of it is run here.

mod archive;
mod bundle_error;
mod manifest;
mod unpacked_folder;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use archive::File;
pub(crate) use bundle_error::BundleError;
use bundle_error::error;
pub(crate) use manifest::Given;
use manifest::Manifest;
pub(crate) use unpacked_folder::{BundlesLock, Placed};

/// A bundle that was read whole and is as it should be.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) manifest: Manifest,
    pub(crate) files: Vec<File>,
    /// The SHA-256 of the zip file.
    pub(crate) sum: String,
}

impl Bundle {
    pub(crate) fn read(zip: &[u8]) -> Result<Self, BundleError> {
        let files = archive::read(zip)?;
        let manifest = files.iter().find(|file| file.path == "manifest.json");
        let manifest = manifest.ok_or_else(|| error("it has no manifest.json"))?;
        Ok(Self {
            manifest: Manifest::read(&manifest.content)?,
            sum: Sha256::digest(zip).iter().map(|byte| format!("{byte:02x}")).collect(),
            files,
        })
    }

    /// Puts the files into a folder. If that fails, nothing of them stays. The caller holds the [`BundlesLock`].
    pub(crate) fn unpack(&self, folder: &Path) -> std::io::Result<Placed> {
        unpacked_folder::place(&self.files, folder)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

/// The folder of all bundles of the user.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = crate::settings::set;
    let folder = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else {
        set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))
    };
    Some(folder?.join("pegboard").join("bundles"))
}

#[cfg(test)]
mod tests;
