//! A project file cannot weaken for its own servers what the user's file sets for all.

use super::*;

/// The server of an approved project file beside a user's file, and the problems.
fn loaded(user: &str, project: &str) -> (ServerConfig, String) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [user, project] = [("user.toml", user), ("project.toml", project)].map(|(name, text)| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut store = TrustStore::at(folder.join("state/trust.json"));
    store.accept(&ProjectFile::read(&project, &env()).unwrap()).unwrap();
    let loaded = Config::load(&[Source::file(user), Source::project(project, &store)], &env());
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let server = loaded.config.servers[&ServerName::parse("x").unwrap()].clone();
    (server, problems.join("\n"))
}

#[test]
fn a_project_server_cannot_weaken_a_protection_of_the_user() {
    for (user, weaker, stricter) in [
        ("approval = 'always'", "approval = 'auto'", "approval = 'never'"),
        ("pins = 'block'", "pins = 'off'", "pins = 'approve'"),
        ("scan = 'block'", "scan = 'warn'", "scan = 'block'"),
        ("taint = 'ask'", "taint = 'off'", "taint = 'block'"),
        ("rate = '10/min'", "rate = '20/min'", "rate = '5/min'"),
        ("rate = '10/min'", "rate = '10/s'", "rate = '10/h'"),
        ("loop_limit = 5", "loop_limit = 0", "loop_limit = 2"),
        ("crossing = 'warn'", "crossing = 'allow'", "crossing = 'mask'"),
        // Without a setting of the user, the default is the floor.
        ("", "crossing = 'allow'", "crossing = 'block'"),
        ("", "pins = 'off'", "pins = 'warn'"),
        ("", "scan = 'off'", "scan = 'warn'"),
        ("", "env_policy = 'inherit'", "env_policy = 'allowlist'"),
        (
            "env_policy = 'explicit'",
            "env_policy = 'inherit'",
            "env_policy = 'explicit'",
        ),
    ] {
        let with = |own: &str| loaded(user, &format!("[servers.x]\ncommand = 'p'\n{own}\n"));
        let at_top = |own: &str| loaded(user, &format!("{own}\n[servers.x]\ncommand = 'p'\n"));
        let (alone, _) = with("");
        for (own, is_weaker) in [(weaker, true), (stricter, false)] {
            for (server, problems) in [with(own), at_top(own)] {
                assert_eq!(problems.contains("is left out"), is_weaker, "{user} {own}: {problems}");
                assert_eq!(
                    format!("{server:?}") == format!("{alone:?}"),
                    is_weaker || own == user || user.is_empty(),
                    "{user} {own}"
                );
            }
        }
    }
}

#[test]
fn what_the_user_sets_about_results_and_arguments_stays() {
    let (server, problems) = loaded(
        "result = { fence = true }\noutput_check = 'error'\n",
        "[servers.x]\ncommand = 'p'\noutput_check = 'off'\nresult = { fence = false, max_lines = 9 }\n",
    );
    assert!(server.policy.result.fence);
    assert_eq!(server.policy.result.max_lines, Some(9));
    assert!(problems.contains("servers.x.result.fence: is left out"), "{problems}");
    assert!(problems.contains("servers.x.output_check: is left out"), "{problems}");
}

#[test]
fn an_unapproved_file_chooses_no_file_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let project = folder.path().join("project.toml");
    let text = "[servers.x]\ncommand = 'p'\nenv_file = 'pipe'\n";
    std::fs::write(&project, text).unwrap();
    let mut store = TrustStore::at(folder.path().join("state/trust.json"));
    // A pipe without a writer would block.
    let loaded = Config::load(&[Source::project(&project, &store)], &env());
    assert_eq!(loaded.pending_trust.len(), 1);
    store.accept(&ProjectFile::read(&project, &env()).unwrap()).unwrap();
    let loaded = Config::load(&[Source::project(&project, &store)], &env());
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert!(problems.concat().contains("is not a regular file"), "{problems:?}");
}

#[test]
fn a_project_server_cannot_vouch_for_its_own_annotations() {
    let (server, problems) = loaded("", "[servers.x]\ncommand = 'p'\ntrust = true\n");
    assert!(!server.policy.trust);
    assert!(problems.contains("servers.x.trust: is left out"), "{problems}");
}

#[test]
fn a_project_server_cannot_exempt_tools_from_the_users_approval() {
    let own = "[servers.x]\ncommand = 'p'\napproval_exempt = ['*']\n[servers.x.tools.push]\napproval = 'auto'\n";
    let (server, problems) = loaded("approval = 'always'", own);
    assert_eq!(server.policy.approval_exempt, Vec::<String>::new());
    let push = server.policy.tools.get("push");
    assert_eq!(push.and_then(|tool| tool.approval), None);
    assert!(
        problems.contains("servers.x.approval_exempt: is left out"),
        "{problems}"
    );
    assert!(
        problems.contains("servers.x.tools.push.approval: is left out"),
        "{problems}"
    );
    let (server, problems) = loaded("", own);
    assert_eq!(server.policy.approval_exempt, ["*"]);
    assert_eq!(server.policy.tools["push"].approval, Some(Approval::Auto));
    assert!(!problems.contains("is left out"), "{problems}");
}
