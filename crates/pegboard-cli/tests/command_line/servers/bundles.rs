//! MCP bundles: shown, unpacked, used and removed.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::home::{Home, Ran};

/// Makes a bundle in Python, whose server is a script of it. `more` is code that adds to the archive `z`.
fn bundle(home: &Home, more: &str) -> PathBuf {
    let server = "import json, os, sys\n\
        for line in sys.stdin:\n    m = json.loads(line)\n    if 'id' not in m: continue\n    a = {'jsonrpc': '2.0', 'id': m['id']}\n    \
        if m['method'] == 'initialize':\n        a['result'] = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'notes', 'version': '1'}}\n    \
        elif m['method'] == 'tools/list':\n        a['result'] = {'tools': [{'name': 'where', 'inputSchema': {'type': 'object'}}]}\n    \
        elif m['method'] == 'tools/call':\n        a['result'] = {'content': [{'type': 'text', 'text': ' '.join([os.getcwd(), sys.argv[1], os.environ['KEY']])}]}\n    \
        else:\n        a['error'] = {'code': -32601, 'message': 'no'}\n    print(json.dumps(a), flush=True)\n";
    let code = format!(
        "import json, os, sys, zipfile\n\
         config = {{'command': 'python3', 'args': ['${{__dirname}}/server/main.py', '${{user_config.folder}}'], 'env': {{'KEY': '${{user_config.key}}'}}}}\n\
         manifest = {{'manifest_version': '0.3', 'name': 'my notes', 'version': '1.2.0', 'description': 'Keeps notes.', 'author': {{'name': 'Ada'}},\n\
           'server': {{'type': 'python', 'entry_point': 'server/main.py', 'mcp_config': config}},\n\
           'user_config': {{'folder': {{'type': 'directory', 'title': 'Folder', 'required': True}},\n\
                            'key': {{'type': 'string', 'title': 'Key', 'sensitive': True, 'required': True}}}}}}\n\
         with zipfile.ZipFile('notes.mcpb', 'w', zipfile.ZIP_DEFLATED) as z:\n    \
             z.writestr('manifest.json', json.dumps(manifest))\n    z.writestr('server/main.py', {server:?})\n    {more}\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &code]).current_dir(home.path("."));
    Ran::of(python).ends_with(0);
    home.path("notes.mcpb")
}

/// The folders of unpacked bundles.
fn unpacked(home: &Home) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.path(".local/share/pegboard/bundles"));
    entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn a_bundle_is_shown_whole_before_it_is_added_and_its_files_leave_with_it() {
    let home = Home::new();
    bundle(&home, "pass");
    let add = ["add", "notes.mcpb", "--set", "folder=/tmp/a b"];
    // Nobody can be asked here, so it is shown and not added.
    home.run(&add)
        .ends_with(5)
        .says("my notes 1.2.0 by Ada (nobody has checked who that is)")
        .says("/server/main.py '/tmp/a b'")
        .says("KEY=${MY_NOTES_KEY}")
        .says("2 (0.0 MB): manifest.json, server/main.py")
        .says("--yes");
    home.run(&[&add[..], &["--dry-run"]].concat())
        .ends_with(0)
        .prints("would add my-notes");
    assert_eq!(unpacked(&home), Vec::<PathBuf>::new());
    home.run(&[&add[..], &["--yes"]].concat())
        .ends_with(0)
        .prints("added my-notes");
    let folders = unpacked(&home);
    assert_eq!(folders.len(), 1);
    let mut call = home.pegboard(&["call", "my-notes.where"]);
    call.env("MY_NOTES_KEY", "k3y");
    let called = Ran::of(call);
    let folder = folders[0].canonicalize().unwrap();
    called
        .ends_with(0)
        .prints(&format!("{} /tmp/a b k3y", folder.display()));
    home.run(&[&add[..], &["--yes"]].concat())
        .ends_with(2)
        .says("has a server `my-notes` already");
    assert_eq!(unpacked(&home).len(), 1);
    home.run(&["remove", "my-notes"]).ends_with(0);
    assert_eq!(unpacked(&home), Vec::<PathBuf>::new());
}

#[test]
fn secrets_are_references_and_values_must_fit() {
    let home = Home::new();
    bundle(&home, "pass");
    for (set, says) in [
        (&[][..], "the bundle needs `folder`: Folder"),
        (
            &["--set", "folder=/a", "--set", "key=hunter2"],
            "`key` is a secret, which is not written to the file",
        ),
        (
            &["--set", "folder=/a", "--set", "other=1"],
            "the bundle has no setting `other`",
        ),
        (
            &["--set", "folder=/a", "--set", "folder=/b"],
            "`folder` takes one value",
        ),
    ] {
        home.run(&[&["add", "notes.mcpb", "--yes"][..], set].concat())
            .ends_with(2)
            .says(says);
    }
    home.run(&[
        "add",
        "notes.mcpb",
        "--yes",
        "--name",
        "n",
        "--set",
        "folder=/a",
        "--set",
        "key=${OTHER}",
    ])
    .ends_with(0)
    .prints("KEY=${OTHER}");
    home.run(&["add", "x", "--yes", "--", "y"])
        .ends_with(2)
        .says("are for bundles");
}

#[test]
fn a_bundle_cannot_write_outside_its_folder() {
    for more in ["z.writestr('../evil', 'x')", "z.writestr('/tmp/pegboard-evil', 'x')"] {
        let home = Home::new();
        bundle(&home, more);
        home.run(&["add", "notes.mcpb", "--yes", "--set", "folder=/a"])
            .ends_with(2)
            .says("would be written outside its folder");
        assert_eq!(unpacked(&home), Vec::<PathBuf>::new());
        assert!(!home.path(".config").exists());
    }
}

#[test]
fn two_runs_that_add_the_same_bundle_leave_the_files_of_the_server() {
    let home = Home::new();
    bundle(&home, "z.writestr('big', os.urandom(20_000_000))");
    let add = ["add", "notes.mcpb", "--yes", "--set", "folder=/a"];
    let start = || {
        let mut command = home.pegboard(&add);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [start(), start(), start()].map(Ran::end_of);
    let mut codes = both.each_ref().map(|ran| ran.code);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2), Some(2)], "{both:?}");
    let folders = unpacked(&home);
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert_eq!(std::fs::metadata(folders[0].join("big")).unwrap().len(), 20_000_000);
}

#[test]
fn a_bundle_whose_files_were_changed_is_unpacked_anew_and_says_so() {
    let home = Home::new();
    bundle(&home, "pass");
    let add = ["add", "notes.mcpb", "--yes", "--force", "--set", "folder=/a"];
    assert!(!home.run(&add).ends_with(0).err.contains("anew"));
    assert!(!home.run(&add).ends_with(0).err.contains("anew"));
    let file = unpacked(&home)[0].join("server/main.py");
    let server = std::fs::read(&file).unwrap();
    std::fs::write(&file, "import os").unwrap();
    home.run(&add).ends_with(0).says("was unpacked anew");
    assert_eq!(std::fs::read(&file).unwrap(), server);
    assert_eq!(unpacked(&home).len(), 1);
}

#[test]
fn a_bundle_of_two_configs_stays_until_both_have_removed_it() {
    let home = Home::new();
    bundle(&home, "pass");
    let add = |config| {
        home.run(&["add", "notes.mcpb", "--yes", "--set", "folder=/a", "-c", config])
            .ends_with(0)
            .out
            .clone()
    };
    add("one.toml");
    add("two.toml");
    assert_eq!(unpacked(&home).len(), 2);
    home.run(&["remove", "my-notes", "-c", "one.toml"]).ends_with(0);
    let left = unpacked(&home);
    assert_eq!(left.len(), 1);
    let config = std::fs::read_to_string(home.path("two.toml")).unwrap();
    assert!(
        config.contains(left[0].file_name().unwrap().to_str().unwrap()),
        "{config}"
    );
    home.run(&["rename", "my-notes", "other", "-c", "two.toml"])
        .ends_with(0);
    add("two.toml");
    home.run(&["remove", "my-notes", "-c", "two.toml"]).ends_with(0);
    assert_eq!(unpacked(&home), left, "another server uses it");
}
