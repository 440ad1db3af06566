//! The folders with the libraries of a program.

use std::path::{Path, PathBuf};

/// Files that mark the folder of a package or of a virtual environment.
const MARKERS: &[&str] = &["package.json", "pyproject.toml", "pyvenv.cfg"];
/// Where Node looks for packages: in these folders next to a script and in every folder above it.
const NODE_MODULES: &str = "node_modules";

/// The folders that a program or script needs, without those that are shared with other programs.
pub(super) fn program_folders(file: &Path, is_shared: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut folders = match file.parent() {
        Some(folder) if folder.ends_with("bin") && !is_shared(folder) => installation(folder, &is_shared),
        Some(folder) if !is_shared(folder) => {
            vec![package(folder, &is_shared).unwrap_or(folder).to_owned()]
        }
        _ => vec![file.to_owned()],
    };
    let modules = file.ancestors().skip(1).map(|folder| folder.join(NODE_MODULES));
    // No links: a server that may write a folder above could point one at any other folder.
    folders.extend(modules.filter(|modules| modules.symlink_metadata().is_ok_and(|meta| meta.is_dir())));
    folders
}

/// The folder around `bin`; if that is shared, only the folders of programs and libraries in it.
fn installation(bin: &Path, is_shared: &impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    match bin.parent() {
        Some(around) if is_shared(around) => ["bin", "lib", "libexec"].map(|name| around.join(name)).to_vec(),
        Some(around) => vec![around.to_owned()],
        None => vec![bin.to_owned()],
    }
}

/// The nearest folder around a script that is a package.
fn package<'a>(folder: &'a Path, is_shared: &impl Fn(&Path) -> bool) -> Option<&'a Path> {
    let mut around = folder.ancestors().take_while(|folder| !is_shared(folder));
    around.find(|folder| MARKERS.iter().any(|marker| folder.join(marker).is_file()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_script_reads_its_package_and_the_packages_around_it() {
        let root = tempfile::tempdir().unwrap();
        let path = |inner: &str| root.path().join(inner);
        for folder in ["project/dist", "project/node_modules/a/dist", "node_modules", "plain"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        for marker in [
            "project/package.json",
            "project/node_modules/a/package.json",
            "package.json",
        ] {
            fs::write(path(marker), "{}").unwrap();
        }
        let is_shared = |folder: &Path| root.path().starts_with(folder);
        let check = |file: &str, folders: &[&str]| {
            let folders: Vec<PathBuf> = folders.iter().map(|folder| path(folder)).collect();
            assert_eq!(program_folders(&path(file), is_shared), folders, "{file}");
        };
        check(
            "project/dist/index.js",
            &["project", "project/node_modules", "node_modules"],
        );
        let dependency = "project/node_modules/a";
        check(
            "project/node_modules/a/dist/index.js",
            &[dependency, "project/node_modules", "node_modules"],
        );
        // The package around it is shared with others.
        check("plain/server.js", &["plain", "node_modules"]);
        check("server.js", &["server.js", "node_modules"]);
    }

    #[test]
    fn a_program_reads_what_it_is_installed_with() {
        let is_shared = |folder: &Path| [Path::new("/home/me"), Path::new("/")].contains(&folder);
        let of = |file: &str| program_folders(Path::new(file), is_shared);
        assert_eq!(of("/venv/bin/python"), [Path::new("/venv")]);
        assert_eq!(of("/data/server"), [Path::new("/data")]);
        let parts = ["/home/me/bin", "/home/me/lib", "/home/me/libexec"];
        assert_eq!(of("/home/me/bin/server"), parts.map(Path::new));
        assert_eq!(of("/server"), [Path::new("/server")]);
    }
}
