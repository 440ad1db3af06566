//! The programs and config snippets of `docs/guides/hosts.md` and `docs/guides/agents.md`, as a reader would use them.

use std::{fs, os::unix::fs::symlink, process::Command};

use pegboard::{
    Config,
    config::{Env, Format},
};

use crate::{
    deployment::packaging::{peer, root},
    gateway::Served,
    home::{Home, Ran},
};

/// The address that the guides use.
const ADDRESS: &str = "127.0.0.1:7337";

/// A block of code.
#[derive(Debug)]
struct Block {
    /// The word in `<!-- run: WORD -->` before it.
    run: Option<String>,
    language: String,
    text: String,
}

/// The blocks of a guide.
fn blocks(guide: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join("docs/guides").join(guide)).unwrap();
    let (mut blocks, mut run, mut open): (Vec<Block>, Option<String>, Option<Block>) = (Vec::new(), None, None);
    for line in text.lines() {
        if let Some(block) = &mut open {
            if line == "```" {
                blocks.extend(open.take());
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
        } else if let Some(language) = line.strip_prefix("```") {
            let language = language.to_owned();
            open = Some(Block {
                run: run.take(),
                language,
                text: String::new(),
            });
        } else if let Some(word) = line.strip_prefix("<!-- run: ") {
            run = Some(word.trim_end_matches(" -->").to_owned());
        }
    }
    assert!(open.is_none(), "{guide} has an open block");
    blocks
}

/// The program that runs a block, with what it needs in the folder of the file.
fn program(home: &Home, block: &Block, index: usize) -> Command {
    let run = block.run.as_deref().unwrap();
    let (program, name) = match run {
        "node" => (peer("npm/node_modules/.bin/node"), format!("snippet{index}.mjs")),
        environment => (peer(&format!("{environment}/bin/python")), format!("snippet{index}.py")),
    };
    let file = home.write(&name, &block.text);
    let mut command = Command::new(program);
    command
        .arg(file)
        .env_clear()
        .env("CI", "1")
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(home.path(""));
    command
}

#[test]
fn the_programs_of_the_guide_for_agents_call_a_tool() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    served.has_tool("demo__calculate");
    symlink(peer("npm/node_modules"), home.path("node_modules")).unwrap();
    let mut runs = 0;
    for (index, mut block) in blocks("agents.md").into_iter().enumerate() {
        if block.run.is_none() {
            continue;
        }
        assert!(block.text.contains(ADDRESS), "{block:?}");
        block.text = block.text.replace(ADDRESS, &served.address);
        let ran = Ran::of(program(&home, &block, index));
        assert_eq!(ran.code, Some(0), "{block:?}: {ran:?}");
        assert!(ran.out.contains("42"), "{block:?}: {ran:?}");
        runs += 1;
    }
    assert!(runs >= 6, "only {runs} programs were run");
}

/// Pegboard reads the config formats of other programs, so that it can tell whether a snippet is one.
#[test]
fn the_snippets_for_hosts_name_one_server_each() {
    let mut count = 0;
    for block in blocks("hosts.md") {
        let format = match block.language.as_str() {
            "json" => Format::Json,
            "toml" => Format::Toml,
            _ => continue,
        };
        let env = Env::from_pairs([("PEGBOARD_TOKEN", "pgb_x")]);
        let loaded = Config::from_text(&block.text, format, &env);
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{errors:?}: {}", block.text);
        let names: Vec<&str> = loaded.config.servers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["pegboard"], "{}", block.text);
        count += 1;
    }
    assert!(count >= 8, "only {count} snippets");
}
