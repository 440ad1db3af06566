//! Results in files, pipes and terminals, and repeated calls.

use std::fs;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pegboard_testkit::{Answer, Block, FakeServer, Tool};
use serde_json::json;

#[cfg(target_os = "linux")]
use crate::pty::Terminal;
use crate::{
    gateway::Served,
    home::{Home, Ran},
};

fn fake() -> FakeServer {
    let data = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    let picture = json!({"type": "image", "mimeType": "image/png", "data": data(b"\x89PNG\r\n\x1a\nrest")});
    let sound = json!({"type": "audio", "mimeType": "audio/wav", "data": data(b"RIFF")});
    let file = json!({"type": "resource", "resource": {
        "uri": "file:///etc/../../evil.sh", "mimeType": "application/x-sh", "blob": data(b"rm")}});
    let long = json!({"type": "resource", "resource": {
        "uri": format!("file:///{}", "𝒜".repeat(80)), "blob": data(b"long")}});
    FakeServer::new("fx")
        .tool(Tool::new("picture").answers_blocks([picture.clone()]))
        .tool(Tool::new("all").answers_blocks([Block::text("seen"), picture, sound.clone(), file]))
        .tool(Tool::new("long").answers_blocks([long, sound]))
        .tool(Tool::new("plain").answers_text("just\ntext"))
        .tool(Tool::new("ordered").answers(Answer::Result(json!({
            "content": [Block::text("{\n  \"z\": \" 1 \",\n  \"a\": [2.0, 1]\n}")],
            "structuredContent": {"z": " 1 ", "a": [2.0, 1]}}))))
        .tool(Tool::new("fails").fails_with("no such pod"))
}

fn names(home: &Home, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path(folder)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn binary_parts_of_all_kinds_are_saved_and_none_is_overwritten() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", "fx.all", "--save", "out/parts", &server]);
    ran.ends_with(0)
        .prints("seen\n[image image/png, 12 bytes]")
        .says("saved out/parts/all.png\n");
    assert_eq!(names(&home, "out/parts"), ["all.png", "all.wav", "evil.sh.bin"]);
    let again = home
        .run(&["call", "fx.all", "--save", "out/parts", "-o", "json", &server])
        .ends_with(0)
        .json();
    assert_eq!(
        again["saved"],
        json!(["out/parts/all-2.png", "out/parts/all-2.wav", "out/parts/evil.sh-2.bin"])
    );
    assert_eq!(fs::read(home.path("out/parts/evil.sh.bin")).unwrap(), b"rm");
    home.write("taken", "");
    home.run(&["call", "fx.picture", "--save", "taken", &server])
        .ends_with(2)
        .says("cannot be saved in taken");
}

#[test]
fn a_part_whose_base64_is_wrong_is_named_and_the_others_are_saved() {
    let home = Home::new();
    let wrong = json!({"type": "image", "mimeType": "image/png", "data": "no base64!"});
    let right = json!({"type": "audio", "mimeType": "audio/wav", "data": BASE64_STANDARD.encode(b"RIFF")});
    let server = home.server(
        "fx",
        FakeServer::new("fx").tool(Tool::new("both").answers_blocks([wrong, right])),
    );
    for more in [&[][..], &["-o", "json"]] {
        home.run(&[&["call", "fx.both", "--save", "out", &server], more].concat())
            .ends_with(0)
            .says("a part of the result was not saved: its data is not valid base64");
    }
    assert_eq!(names(&home, "out"), ["both-2.wav", "both.wav"]);
}

#[test]
fn a_name_that_is_too_long_for_the_file_system_is_cut() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.run(&["call", "fx.long", "--save", "out", &server]).ends_with(0);
    assert_eq!(
        names(&home, "out"),
        ["long.wav".to_owned(), format!("{}.bin", "𝒜".repeat(50))]
    );
}

#[test]
fn a_pipe_gets_the_bytes_of_a_single_picture() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let output = home.pegboard(&["call", "fx.picture", &server]).output().unwrap();
    assert_eq!(output.stdout, b"\x89PNG\r\n\x1a\nrest");
    let logo = home
        .pegboard(&["resources", "read", "demo://logo.png"])
        .output()
        .unwrap();
    assert!(logo.stdout.starts_with(b"\x89PNG\r\n\x1a\n"), "{logo:?}");
}

#[test]
fn a_result_is_written_to_a_file_in_place_of_stdout() {
    let home = Home::new();
    let server = home.server("fx", fake());
    assert_eq!(
        home.run(&["call", "fx.picture", "--out", "a.png", &server])
            .ends_with(0)
            .out,
        ""
    );
    assert_eq!(fs::read(home.path("a.png")).unwrap(), b"\x89PNG\r\n\x1a\nrest");
    for format in ["text", "raw"] {
        home.run(&["call", "fx.all", "--out", "all.txt", "-o", format, &server])
            .ends_with(0)
            .says("the file has the text of the result; `--save DIR` saves its binary parts\n");
        assert!(fs::read_to_string(home.path("all.txt")).unwrap().starts_with("seen"));
    }
    let saved = home.run(&["call", "fx.all", "--out", "all.txt", "--save", "parts", &server]);
    assert!(!saved.ends_with(0).err.contains("--save"), "{saved:?}");
    home.run(&["call", "fx.fails", "--out", "b.txt", &server]).ends_with(1);
    assert!(!home.path("b.txt").exists());
    let calls = home.log("fx").count("tools/call");
    home.run(&["call", "fx.plain", "--out", "no/folder", &server])
        .ends_with(2)
        .says("cannot be written");
    assert_eq!(home.log("fx").count("tools/call"), calls);
    home.run(&["resources", "read", "demo://logo.png", "--out", "no/folder"])
        .ends_with(2)
        .says("cannot be written");
    #[cfg(target_os = "linux")]
    home.run(&["call", "fx.plain", "--out", "/dev/full", &server])
        .ends_with(3)
        .prints("just\ntext\n")
        .says("cannot be written, so the result is printed");
    assert_eq!(
        home.run(&["resources", "read", "demo://logo.png", "--out", "logo.png"])
            .ends_with(0)
            .out,
        ""
    );
    assert!(fs::read(home.path("logo.png")).unwrap().starts_with(b"\x89PNG"));
}

/// Runs the program where no file can be larger than some blocks of 512 bytes, which is like a disk that is full.
#[cfg(unix)]
fn cramped(home: &Home, blocks: u32, args: &[&str]) -> Ran {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_pegboard")]).args(args);
    shell.current_dir(home.path(".")).env_clear().env("CI", "1");
    shell.env("PATH", "/usr/bin:/bin").env("HOME", home.path("."));
    Ran::of(shell)
}

#[test]
#[cfg(unix)]
fn a_full_disk_takes_no_old_file_and_leaves_no_part_of_a_new_one() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let old = home.write("kept/a.txt", "old");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let long = format!("text={}", "x".repeat(3000));
    for file in ["kept/a.txt", "kept/b.txt"] {
        cramped(&home, 1, &["call", "demo.echo", &long, "--out", file])
            .ends_with(3)
            .prints("xxx")
            .says("cannot be written, so the result is printed");
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    assert_eq!(names(&home, "kept"), ["a.txt"]);
    std::os::unix::fs::symlink("a.txt", home.path("kept/link")).unwrap();
    home.run(&["call", "demo.echo", "text=new", "--out", "kept/link"])
        .ends_with(0);
    assert_eq!(fs::read_to_string(&old).unwrap(), "new\n");
    assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(&home, "kept"), ["a.txt", "link"]);
    let data = BASE64_STANDARD.encode([0; 60_000]);
    let picture = json!({"type": "image", "mimeType": "image/png", "data": data});
    let server = home.server(
        "fx",
        FakeServer::new("fx").tool(Tool::new("large").answers_blocks([picture])),
    );
    cramped(&home, 64, &["call", "fx.large", "--save", "pictures", &server])
        .ends_with(3)
        .says("cannot be saved");
    assert!(names(&home, "pictures").is_empty());
}

#[test]
fn a_folder_that_cannot_get_files_is_known_before_the_call() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.write("file", "");
    for folder in ["file", "file/below", "file/far/below"] {
        home.run(&["call", "fx.picture", "--save", folder, &server])
            .ends_with(2)
            .says("files cannot be saved in");
    }
    assert!(!home.path("fx.log").exists() || home.log("fx").count("tools/call") == 0);
    home.run(&["call", "fx.plain", "--save", "new", &server]).ends_with(0);
    assert!(!home.path("new").exists());
}

#[test]
fn what_is_left_out_of_a_listing_is_a_warning() {
    let home = Home::new();
    let nameless = FakeServer::new("fx")
        .resources([json!({"uri": "a:1"}), json!({"name": "no address"})])
        .prompts([json!({"name": "p"}), json!({"title": "no name"})]);
    let server = home.server("fx", nameless);
    home.run(&["resources", &server])
        .ends_with(0)
        .prints("a:1")
        .says("a resource without `uri` was left out");
    home.run(&["prompts", &server])
        .ends_with(0)
        .prints("p")
        .says("a prompt without `name` was left out");
}

#[test]
fn raw_prints_the_result_and_nothing_else() {
    let home = Home::new();
    let server = home.server("fx", fake());
    assert_eq!(
        home.run(&["call", "fx.plain", "-o", "raw", &server]).ends_with(0).out,
        "just\ntext"
    );
    assert_eq!(
        home.run(&["call", "fx.all", "-o", "raw", &server]).ends_with(0).out,
        "seen"
    );
    // The order of the server is in the text that repeats the result.
    assert_eq!(
        home.run(&["call", "fx.ordered", "-o", "raw", &server]).ends_with(0).out,
        "{\"z\":\" 1 \",\"a\":[2.0,1]}\n"
    );
    let ran = home.run(&["call", "demo.calculate", "6*7", "-o", "raw"]);
    assert_eq!(
        (ran.ends_with(0).out.as_str(), ran.err.as_str()),
        ("{\"value\":42}\n", "")
    );
    home.run(&["call", "fx.fails", "-o", "raw", &server])
        .ends_with(1)
        .says("no such pod");
}

#[test]
fn a_call_tells_how_long_it_took() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.run(&["call", "fx.plain", "--time", &server])
        .ends_with(0)
        .says(" ms: start ")
        .says(", queue 0.")
        .says(", server ")
        .says(", pegboard ");
    let shown = home.run(&["call", "fx.plain", "--time", "-o", "json", &server]);
    let times = &shown.ends_with(0).json()["times"];
    let part = |key: &str| times[key].as_f64().unwrap_or(-1.0);
    let parts = ["start_ms", "queued_ms", "server_ms", "own_ms"].map(part);
    assert!(parts.iter().all(|part| *part >= 0.0), "{times}");
    assert!((parts.iter().sum::<f64>() - part("total_ms")).abs() < 0.01, "{times}");
    assert!(part("start_ms") > 0.0 && part("server_ms") > 0.0, "{times}");
}

#[test]
fn a_result_over_the_limit_is_had_with_an_option() {
    const SIZE: usize = 9 << 20;
    let home = Home::new();
    let big = FakeServer::new("fx").tool(Tool::new("big").answers_text("x".repeat(SIZE)));
    let server = home.server("fx", big);
    home.run(&["call", "fx.big", &server])
        .ends_with(3)
        .says("the result of fx.big is larger than 8MiB")
        .says("`--max-bytes 64MiB`");
    let file = home.path("big.txt");
    let args = [
        "call",
        "fx.big",
        "--max-bytes",
        "16MiB",
        "--out",
        file.to_str().unwrap(),
        &server,
    ];
    let ran = home.run(&args);
    assert_eq!((ran.ends_with(0).out.as_str(), ran.err.as_str()), ("", ""));
    assert_eq!(fs::metadata(&file).unwrap().len(), SIZE as u64 + 1);
    home.run(&["call", "fx.big", "--max-bytes", "9MB", &server])
        .ends_with(3)
        .says("larger than 9");
    home.run(&["call", "fx.big", "--max-bytes", "2GiB", &server])
        .ends_with(2)
        .says("write a size from 1KiB to 1GiB");
}

#[test]
fn a_result_over_the_limit_of_a_daemon_is_had_with_a_setting_and_not_with_a_second_server() {
    const SIZE: usize = 9 << 20;
    let home = Home::new();
    let big = FakeServer::new("fx").tool(Tool::new("big").answers_text("x".repeat(SIZE)));
    let entry = home.entry("fx", big, "stop_timeout = '200ms'");
    home.config(&entry);
    let served = Served::start(&home, &[]);
    let refused = home.run(&["call", "fx.big"]);
    refused
        .ends_with(3)
        .says("`max_message = \"64MiB\"` of `fx` in the config");
    assert!(!refused.err.contains("--max-bytes"), "{refused:?}");
    assert_eq!(home.log("fx").spawned.len(), 1);
    let ran = home.run(&["call", "fx.big", "--max-bytes", "16MiB", "--out", "big.txt"]);
    ran.ends_with(0)
        .says(&format!("the daemon (process {})", served.pid()))
        .says("`max_message` in the config");
    assert_eq!(home.log("fx").spawned.len(), 2);
    home.config(&entry.replace("stop_timeout", "max_message = '64MiB'\nstop_timeout"));
    home.run(&["call", "fx.big", "--out", "big.txt"]).ends_with(0);
    assert_eq!(fs::metadata(home.path("big.txt")).unwrap().len(), SIZE as u64 + 1);
}

#[test]
fn a_repeated_call_shows_its_latencies() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let args = ["call", "fx.plain", "--repeat", "20", "--concurrent", "4", &server];
    home.run(&args).ends_with(0).prints("20, 4 at once").prints("p99");
    assert_eq!(home.log("fx").count("tools/call"), 20);
    let shown = home.run(&[&args[..], &["-o", "json"]].concat()).ends_with(0).json();
    assert_eq!(
        (&shown["requests"], &shown["ok"], &shown["failed"]),
        (&json!(20), &json!(20), &json!(0))
    );
    let latency = &shown["latency_ms"];
    assert!(latency["min"].as_f64() <= latency["p50"].as_f64() && latency["p99"].as_f64() <= latency["max"].as_f64());
    let failed = home.run(&["call", "fx.fails", "--repeat", "3", &server]);
    failed.ends_with(1).says("3 times: no such pod");
    home.run(&["call", "fx.nothing", "--repeat", "3", &server])
        .ends_with(2)
        .says("no tool `fx.nothing`");
    home.run(&["call", "fx.plain", "--concurrent", "3", &server])
        .ends_with(2);
}

/// The graphics protocol of kitty and a pager, both at a terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_images_and_a_pager() {
    let home = Home::new();
    let kitty = [("TERM", "xterm-kitty")];
    let (code, shown) = Terminal::start_with(&home, &["call", "demo.draw", "width=8", "height=8"], &kitty).ends();
    assert_eq!(code, Some(0));
    assert!(shown.contains("\u{1b}_Ga=T,f=100,m=0;iVBOR"), "{shown:?}");
    let (_, shown) = Terminal::start_with(&home, &["call", "demo.draw", "--no-images"], &kitty).ends();
    assert!(
        shown.contains("[image image/png, ") && !shown.contains("\u{1b}_G"),
        "{shown:?}"
    );
    let pager = [("PEGBOARD_PAGER", "sed s/^/paged:/")];
    let (code, shown) = Terminal::start_with(&home, &["tools", "--schema"], &pager).ends();
    assert_eq!(code, Some(0));
    assert!(shown.contains("paged:demo ("), "{shown}");
    for args in [&["tools", "--schema", "--no-pager"][..], &["tools"]] {
        let (_, shown) = Terminal::start_with(&home, args, &pager).ends();
        assert!(shown.contains("demo") && !shown.contains("paged:"), "{shown}");
    }
}
