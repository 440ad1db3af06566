use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// A zip file with entries that are not compressed: name, content and mode.
fn zip(entries: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, content, mode) in entries {
        let offset = u32::try_from(zip.len()).unwrap();
        let sizes = u32::try_from(content.len()).unwrap().to_le_bytes();
        let common = [
            &20_u16.to_le_bytes()[..],
            &[0; 8],
            &rawzip::crc32(content).to_le_bytes(),
            &sizes,
            &sizes,
            &u16::try_from(name.len()).unwrap().to_le_bytes(),
            &[0; 2],
        ]
        .concat();
        zip.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), content].concat());
        directory.extend(
            [
                &b"PK\x01\x02"[..],
                &[20, 3],
                &common,
                &[0; 6],
                &(mode << 16).to_le_bytes(),
                &offset.to_le_bytes(),
                name.as_bytes(),
            ]
            .concat(),
        );
    }
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    let (size, start) = (
        u32::try_from(directory.len()).unwrap().to_le_bytes(),
        u32::try_from(zip.len()).unwrap().to_le_bytes(),
    );
    zip.extend(
        [
            &directory[..],
            b"PK\x05\x06",
            &[0; 4],
            &count,
            &count,
            &size,
            &start,
            &[0; 2],
        ]
        .concat(),
    );
    zip
}

fn manifest(server: &Value, user_config: &Value) -> Vec<u8> {
    let document = json!({"manifest_version": "0.3", "name": "notes", "version": "1.2.0", "description": "Keeps notes.",
                          "author": {"name": "Ada"}, "server": server, "user_config": user_config});
    document.to_string().into_bytes()
}

fn bundle(server: &Value, user_config: &Value) -> Bundle {
    let manifest = manifest(server, user_config);
    Bundle::read(&zip(&[
        ("manifest.json", &manifest, 0o100_644),
        ("server/run", b"#!", 0o100_755),
    ]))
    .unwrap()
}

#[test]
fn huge_texts_of_a_manifest_are_cut_before_they_are_shown_or_written() {
    let huge = "é".repeat(100_000);
    let document = json!({"name": huge, "version": huge, "description": huge, "author": {"name": huge}, "server": {"type": "node"},
                          "user_config": {"key": {"type": "string", "title": huge}}});
    let bundle = Bundle::read(&zip(&[("manifest.json", document.to_string().as_bytes(), 0o100_644)])).unwrap();
    let manifest = &bundle.manifest;
    let title = &manifest.questions["key"].title;
    for text in [
        &manifest.name,
        &manifest.version,
        &manifest.description,
        &manifest.author,
        title,
    ] {
        assert!(text.chars().count() < 1000 && text.ends_with('…'), "{}", text.len());
    }
}

#[test]
fn the_manifest_says_how_the_server_is_started() {
    let config = json!({"command": "python", "args": ["${__dirname}/main.py", "${user_config.folders}", "--limit=${user_config.limit}", "--pw=${user_config.unset}", "$5"],
                        "env": {"KEY": "${user_config.key}", "UNSET": "${user_config.unset}", "LIB": "${__dirname}${/}lib"}});
    let user = json!({"folders": {"type": "directory", "multiple": true, "required": true}, "limit": {"type": "number", "default": 10},
                      "key": {"type": "string", "sensitive": true, "required": true}, "unset": {"type": "string"}});
    let bundle = bundle(
        &json!({"type": "python", "entry_point": "main.py", "mcp_config": config}),
        &user,
    );
    let given = Given::from([
        ("folders".to_owned(), vec!["/a b".to_owned(), "/c$d".to_owned()]),
        ("key".to_owned(), vec!["${NOTES_KEY}".to_owned()]),
    ]);
    let launch = bundle
        .manifest
        .launch(Path::new("/data/notes"), &given, |path| bundle.has(path))
        .unwrap();
    assert_eq!(
        launch.args,
        ["/data/notes/main.py", "/a b", "/c$$d", "--limit=10", "$$5"]
    );
    let env: Vec<(&str, &str)> = launch
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(env, [("KEY", "${NOTES_KEY}"), ("LIB", "/data/notes/lib")]);
}

#[test]
fn a_program_of_the_bundle_is_started_in_its_folder() {
    for (server, expected) in [
        (
            json!({"type": "binary", "entry_point": "server/run", "mcp_config": {"command": "server/run"}}),
            "/data/x/server/run",
        ),
        (
            json!({"type": "binary", "entry_point": "server/run"}),
            "/data/x/server/run",
        ),
        (json!({"type": "uv", "entry_point": "main.py"}), "uv"),
        (json!({"type": "node", "entry_point": "index.js"}), "node"),
    ] {
        let bundle = bundle(&server, &Value::Null);
        let launch = bundle
            .manifest
            .launch(Path::new("/data/x"), &Given::new(), |path| bundle.has(path))
            .unwrap();
        assert_eq!(launch.command, expected);
    }
}

#[test]
fn a_manifest_cannot_read_the_users_environment() {
    for text in ["${AWS_SECRET_ACCESS_KEY}", "${keyring:a/b}", "${user_config.other}"] {
        let bundle = bundle(
            &json!({"type": "node", "mcp_config": {"command": "node", "args": [text]}}),
            &Value::Null,
        );
        assert!(
            bundle
                .manifest
                .launch(Path::new("/x"), &Given::new(), |_| false)
                .is_err(),
            "{text}"
        );
    }
}

#[test]
fn files_that_would_be_elsewhere_or_are_no_files_are_refused() {
    let manifest = manifest(&json!({"type": "node", "entry_point": "a.js"}), &Value::Null);
    let link = 0o120_777;
    for (name, mode, why) in [
        ("../evil", 0o100_644, "outside"),
        ("a/../../evil", 0o100_644, "outside"),
        ("/etc/evil", 0o100_644, "outside"),
        ("..\\evil", 0o100_644, "outside"),
        ("c:evil", 0o100_644, "outside"),
        ("a//b", 0o100_644, "outside"),
        ("link", link, "link"),
        ("pipe", 0o010_644, "special"),
        ("Manifest.JSON", 0o100_644, "twice"),
        ("manifest.json/x", 0o100_644, "below a file"),
    ] {
        let refused = Bundle::read(&zip(&[("manifest.json", &manifest, 0o100_644), (name, b"x", mode)])).unwrap_err();
        assert!(refused.to_string().contains(why), "{name}: {refused}");
    }
}

#[test]
fn a_damaged_zip_file_is_refused() {
    let manifest = manifest(&json!({"type": "node", "entry_point": "a.js"}), &Value::Null);
    let whole = zip(&[("manifest.json", &manifest, 0o100_644)]);
    assert!(Bundle::read(&whole).is_ok());
    for end in [0, 1, 40, whole.len() - 1] {
        assert!(Bundle::read(&whole[..end]).is_err(), "{end}");
    }
    let mut damaged = whole;
    damaged[60] ^= 1;
    assert!(Bundle::read(&damaged).unwrap_err().to_string().contains("checksum"));
}

#[test]
fn the_files_are_written_once_and_for_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("bundles/notes");
    let bundle = bundle(&json!({"type": "binary", "entry_point": "server/run"}), &Value::Null);
    assert_eq!(bundle.unpack(&target).unwrap(), Placed::Made);
    assert_eq!(std::fs::read(target.join("server/run")).unwrap(), b"#!");
    assert_eq!(bundle.unpack(&target).unwrap(), Placed::Kept);
    #[cfg(unix)]
    for (path, mode) in [
        ("", 0o700),
        ("server", 0o700),
        ("server/run", 0o700),
        ("manifest.json", 0o600),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(target.join(path)).unwrap().permissions().mode() & 0o777,
            mode,
            "{path}"
        );
    }
}
