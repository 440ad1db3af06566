//! Where config files are found, and what paths in them are relative to.

use std::{fs, path::Path};

use super::*;

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

#[test]
fn the_nearest_file_of_the_repository_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let env = Env::from_pairs([("HOME", root.join("home").display().to_string())]);
    let trust = TrustStore::user(&env);
    let finds = |from: &str, file: Option<&str>| {
        let sources = Source::discover(&root.join(from), &env, &trust);
        let project = sources.iter().find_map(Source::project_path);
        assert_eq!(project, file.map(|file| root.join(file)).as_deref(), "from {from}");
    };
    fs::create_dir_all(root.join("home/repo/src/deep")).unwrap();
    fs::create_dir_all(root.join("home/repo/.git")).unwrap();
    fs::create_dir_all(root.join("home/plain/deep")).unwrap();
    fs::create_dir_all(root.join("beside")).unwrap();
    touch(&root.join("pegboard.toml"));
    finds("home/repo/src/deep", None);
    finds("home/plain/deep", None);
    touch(&root.join("home/pegboard.toml"));
    finds("home/repo/src/deep", None);
    finds("home/plain/deep", Some("home/pegboard.toml"));
    touch(&root.join("home/.config/pegboard/pegboard.toml"));
    finds("home/repo/src/deep", None);
    touch(&root.join("home/repo/.mcp.json"));
    finds("home/repo/src/deep", Some("home/repo/.mcp.json"));
    finds("home/repo", Some("home/repo/.mcp.json"));
    touch(&root.join("home/repo/src/pegboard.yaml"));
    finds("home/repo/src/deep", Some("home/repo/src/pegboard.yaml"));
    finds("beside", Some("pegboard.toml"));
}

#[cfg(unix)]
#[test]
fn no_file_is_taken_from_a_folder_above_that_everyone_may_write_to() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a");
    fs::create_dir(&inner).unwrap();
    touch(&folder.path().join("pegboard.toml"));
    let env = Env::from_pairs([("HOME", "/nowhere")]);
    let is_found = |folder: &Path| !Source::discover(folder, &env, &TrustStore::user(&env)).is_empty();
    assert!(is_found(&inner));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(!is_found(&inner));
    assert!(is_found(folder.path()), "the folder itself was chosen");
}

#[cfg(unix)]
#[test]
fn paths_mean_the_same_whatever_leads_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let project = root.join("project");
    fs::create_dir_all(project.join("sub")).unwrap();
    fs::create_dir_all(root.join("other")).unwrap();
    fs::write(project.join("x.env"), "A=1\n").unwrap();
    let text = "[servers.x]\ncommand = './bin/x'\nargs = ['${workspaceFolder}/y']\ncwd = 'sub'\nenv_file = 'x.env'\n\
                [servers.y]\ncommand = '~/bin/y'\n[servers.z]\ncommand = 'z'\n";
    fs::write(project.join("pegboard.toml"), text).unwrap();
    std::os::unix::fs::symlink(project.join("pegboard.toml"), root.join("other/link.toml")).unwrap();
    std::os::unix::fs::symlink(&project, root.join("folder-link")).unwrap();
    for path in [
        "project/pegboard.toml",
        "other/../project/pegboard.toml",
        "other/link.toml",
        "folder-link/pegboard.toml",
    ] {
        let loaded = Config::load(&[Source::file(root.join(path))], &env());
        assert_eq!(loaded.problems, [], "{path}");
        let command = |name: &str| match &loaded.config.servers[&ServerName::parse(name).unwrap()].transport {
            Transport::Stdio(command) => command.clone(),
            other @ Transport::Remote { .. } => panic!("{other:?}"),
        };
        let x = command("x");
        assert_eq!(Path::new(&x.program), project.join("bin/x"), "{path}");
        assert_eq!(x.args[0].expose(), project.join("y").to_str().unwrap(), "{path}");
        assert_eq!(x.cwd, Some(project.join("sub")), "{path}");
        assert_eq!(x.env["A"].expose(), "1", "{path}");
        assert_eq!(command("y").program, "/home/me/bin/y");
        assert_eq!(command("z").program, "z", "a name is looked up on the PATH");
    }
}
