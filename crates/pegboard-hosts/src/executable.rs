//! The file that the name of a program stands for.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The file that a program's name stands for.
pub fn resolve(program: &str, path: &OsStr, cwd: Option<&Path>) -> Option<PathBuf> {
    if program.contains(['/', '\\']) {
        let file = cwd.map_or_else(|| PathBuf::from(program), |cwd| cwd.join(program));
        return file.is_file().then_some(file);
    }
    let names: &[&str] = if cfg!(windows) {
        &["", ".exe", ".cmd", ".bat"]
    } else {
        &[""]
    };
    let folders: Vec<PathBuf> = env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let files = || {
        let in_folder = |folder: &PathBuf| {
            names
                .iter()
                .map(|ending| folder.join(format!("{program}{ending}")))
                .collect::<Vec<_>>()
        };
        folders.iter().flat_map(in_folder).filter(|file| file.is_file())
    };
    // As the system does, a file that may not be executed is passed over if there is another.
    files().find(|file| is_executable(file)).or_else(|| files().next())
}

/// The name by which `PATH` finds a program that is given by its absolute path. A program that it does not find is returned as it is.
pub fn shorten(program: &str) -> &str {
    let file = Path::new(program);
    let path = env::var_os("PATH").unwrap_or_default();
    // On Windows, `npx` stands for `npx.cmd`.
    let names = [file.file_stem().filter(|_| cfg!(windows)), file.file_name()];
    let mut names = names.into_iter().flatten().filter_map(OsStr::to_str);
    let found = names.find(|name| file.is_absolute() && resolve(name, &path, None).is_some_and(|found| found == file));
    found.unwrap_or(program)
}

/// Whether the file may be executed.
#[cfg(unix)]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// Whether the file may be executed.
#[cfg(not(unix))]
pub fn is_executable(_file: &Path) -> bool {
    true
}
