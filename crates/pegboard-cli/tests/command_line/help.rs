//! The help screens: each fits a screen and has an example.

use super::home::Home;

/// Commands that the first screen does not list.
const HIDDEN: [&str; 2] = ["man", "help"];

/// A command and all below it, as the help screens list them.
fn with_subcommands(command: Vec<String>, found: &mut Vec<Vec<String>>) {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let names: Vec<String> = if words.is_empty() {
        // The title of the group takes the first 15 columns.
        let screen = Home::new().run(&["help", "--all"]).out;
        let listed = screen.lines().skip(4).take_while(|line| !line.is_empty());
        listed
            .filter_map(|line| Some(line[15..].split_whitespace().next()?.to_owned()))
            .collect()
    } else {
        let screen = Home::new().run(&[&words[..], &["--help"]].concat()).out;
        let listed = screen.lines().skip_while(|line| *line != "Commands:").skip(1);
        listed
            .map_while(|line| Some(line.split_whitespace().next()?.to_owned()))
            .collect()
    };
    for name in &names {
        with_subcommands([&command[..], &[name.to_owned()]].concat(), found);
    }
    found.push(command);
}

#[test]
fn every_help_screen_fits_a_screen_and_shows_an_example() {
    let mut commands = Vec::new();
    with_subcommands(Vec::new(), &mut commands);
    commands.extend(HIDDEN.map(|name| vec![name.to_owned()]));
    assert!(
        commands.contains(&vec!["config".to_owned(), "schema".to_owned()]),
        "{commands:?}"
    );
    for command in &commands {
        let command: &[&str] = &command.iter().map(String::as_str).collect::<Vec<_>>();
        let ran = Home::new().run(&[command, &["--help"]].concat());
        ran.ends_with(0);
        ran.prints("Example").prints("\n  pegboard ");
        let rows = ran.out.lines().count();
        // The list of commands makes the first screen longer, and some commands have many options.
        let most = match command {
            [] => 40,
            ["call" | "add"] => 45,
            ["tools"] => 36,
            ["find"] => 38,
            _ => 30,
        };
        assert!(rows <= most, "{command:?} has {rows} lines");
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
        assert_eq!(ran.err, "");
    }
}

#[test]
fn help_followed_by_a_command_shows_its_help_screen() {
    for command in [&[][..], &["call"], &["config", "show"], &["help"]] {
        let ran = Home::new().run(&[&["help"], command].concat());
        let screen = Home::new().run(&[command, &["--help"]].concat());
        assert_eq!(ran.ends_with(0).out, screen.out, "{command:?}");
    }
    Home::new()
        .run(&["help", "cal"])
        .ends_with(2)
        .says("unrecognized subcommand 'cal'");
}

#[test]
fn the_first_help_screen_has_the_common_commands_by_groups() {
    let ran = Home::new().run(&["--help"]);
    insta::assert_snapshot!(ran.out, @r#"
    List and call the tools of any MCP server

    Usage: pegboard [OPTIONS] [COMMAND]

    Use            tools       List tools
                   call        Call one tool
                   resources   List resources, or read one
                   prompts     List prompts, or get one
                   status      Show the state of every server
    Servers        add         Add a server to the config file
                   list        List the configured servers, without starting any
                   remove      Remove servers from the config file
                   find        Find servers in a registry
                   login       Sign in to a server
    Hosts          init        Set Pegboard up: import servers, enter it in hosts
                   import      Copy the servers of other programs into the config
                   install     Make a host such as Claude or Cursor use Pegboard
    Gateway        serve       Serve all tools at one MCP endpoint over HTTP
                   mcp         Serve all tools as one MCP server on stdio
    Write servers  generate    Write typed wrappers of a server's tools
                   record      Serve like `mcp`, and record the answers
                   torture     Try a server with faults and protocol cases
    Inspect        doctor      Find out what is wrong with servers and how to fix it
                   logs        Show what a server wrote
                   config      Show the config, or what may be in one

    Options:
      -c, --config <FILE>       Config file; may be repeated, later ones win
          --server <SERVER>     NAME=COMMAND or NAME=URL adds one, NAME picks one
      -o, --output <text|json>  Print text for people or json for programs
          --timeout <DURATION>  Limit for the whole command, such as 30s or 2m
      -v, --verbose...          Say more; repeat it for more still
      -h, --help                Print help
      -V, --version             Print version

    Examples:
      pegboard call demo.calculate expression='6 * 7'
      pegboard --server time='uvx mcp-server-time' tools

    All commands and options: pegboard help --all
    "#);
}

#[test]
fn all_commands_and_options_are_listed_on_request() {
    let ran = Home::new().run(&["help", "--all"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r#"
    List and call the tools of any MCP server

    Usage: pegboard [OPTIONS] [COMMAND]

    Use            tools       List tools
                   call        Call one tool
                   resources   List resources, or read one
                   prompts     List prompts, or get one
                   status      Show the state of every server
                   completions Print a shell's completion script
    Servers        add         Add a server to the config file
                   list        List the configured servers, without starting any
                   remove      Remove servers from the config file
                   find        Find servers in a registry
                   login       Sign in to a server
                   get         Show how one server is configured
                   enable      Use servers that were disabled
                   disable     Keep servers in the config file without using them
                   rename      Give a server of the config file another name
                   add-json    Add a server whose settings are given as JSON
                   logout      Sign out of a server
                   secret      Keep secrets for the config in the keyring
                   trust       Approve the config file of a project
    Hosts          init        Set Pegboard up: import servers, enter it in hosts
                   import      Copy the servers of other programs into the config
                   install     Make a host such as Claude or Cursor use Pegboard
                   uninstall   Take Pegboard out of a host again
    Gateway        serve       Serve all tools at one MCP endpoint over HTTP
                   mcp         Serve all tools as one MCP server on stdio
                   daemon      Show, end or restart the daemon in which the servers run
                   open        Open the dashboard in a browser
                   health      Check whether a running `serve` is alive, or ready
                   token       Make a token for a client of `serve`
    Write servers  generate    Write typed wrappers of a server's tools
                   record      Serve like `mcp`, and record the answers
                   torture     Try a server with faults and protocol cases
                   replay      Serve a recording as a fake MCP server
                   demo-server Run the built-in MCP server
                   mask        Hide secrets in what comes in on stdin
    Inspect        doctor      Find out what is wrong with servers and how to fix it
                   logs        Show what a server wrote
                   config      Show the config, or what may be in one
                   pins        Show which tool definitions changed, and accept them
                   audit       Verify the audit log, or show its records

    Options:
      -c, --config <FILE>       Config file; may be repeated, later ones win
          --server <SERVER>     NAME=COMMAND or NAME=URL adds one, NAME picks one
          --trust               Use the project file without approval, this time
          --no-daemon           Start the servers here even if a daemon has them
      -o, --output <text|json>  Print text for people or json for programs
          --timeout <DURATION>  Limit for the whole command, such as 30s or 2m
      -v, --verbose...          Say more; repeat it for more still
      -q, --quiet...            Say less
          --log <FILTER>        Log lines to show, such as debug or pegboard=trace
          --trace-wire <FILE>   Append all messages with servers to a file, masked
      -h, --help                Print help
      -V, --version             Print version

    Examples:
      pegboard call demo.calculate expression='6 * 7'
      pegboard --server time='uvx mcp-server-time' tools
    "#);
}

#[test]
fn a_group_of_commands_has_a_screen_of_its_own() {
    let ran = Home::new().run(&["help", "hosts"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r#"
    Hosts          init        Set Pegboard up: import servers, enter it in hosts
                   import      Copy the servers of other programs into the config
                   install     Make a host such as Claude or Cursor use Pegboard
                   uninstall   Take Pegboard out of a host again

    Example:
      pegboard help init
    "#);
    Home::new().run(&["help", "inspect"]).ends_with(0).prints("audit");
}

#[test]
fn the_help_of_call_says_how_arguments_are_given() {
    let ran = Home::new().run(&["call", "--help"]);
    insta::assert_snapshot!(ran.out, @r#"
    Call one tool

    Usage: pegboard call [OPTIONS] <TOOL> [ARGUMENT]...

    Arguments:
      <TOOL>         server.tool, server__tool, server tool, 'tool(a: 1)', or only
                     the tool's name
      [ARGUMENT]...  Its arguments: key=text, key=@file, key:=json, a text alone, or
                     one JSON object

    Options:
          --json <OBJECT>       All arguments as JSON; @FILE reads a file, - stdin
          --text <RAW>          All arguments as text: JSON, YAML, pairs or words
          --meta <KEY=VALUE>    Send this in the request's _meta; may be repeated
      -y, --yes                 Agree to the call where a person must
          --max-result <SIZE>   Cut a long result to this size, such as 48KiB
          --max-bytes <SIZE>    Raise the limit for results, 8MiB, to this size
          --save <DIR>          Save images, audio and binary resources here
          --out <FILE>          Write the result to this file in place of stdout
          --no-images           Do not show images at the terminal
          --time                Say how long the call took, and where the time went
          --repeat <N>          Make the call this often, and show its latencies
          --concurrent <N>      How many of the repeated calls run at once
      -c, --config <FILE>       Config file; may be repeated, later ones win
          --server <SERVER>     NAME=COMMAND or NAME=URL adds one, NAME picks one
          --header <HEADER>     Send this header to the added one; may be repeated
          --env <NAME=VALUE>    Set this variable of the added one; may be repeated
          --cwd <FOLDER>        The working folder of the added one
          --trust               Use the project file without approval, this time
          --no-daemon           Start the servers here even if a daemon has them
      -o, --output <FORMAT>     Print text, json, or raw: the result alone
          --timeout <DURATION>  Limit for the whole command, such as 30s or 2m
      -v, --verbose...          Say more; repeat it for more still
      -q, --quiet...            Say less
          --log <FILTER>        Log lines to show, such as debug or pegboard=trace
          --trace-wire <FILE>   Append all messages with servers to a file, masked
      -h, --help                Print help

    Examples:
      pegboard call demo.calculate '6 * 7' -o raw
      pegboard call demo.calculate --json '{"expression": "6 * 7"}' -o json
      pegboard call 'demo.draw(color: red)' --save pictures
    "#);
}

#[test]
fn wrong_usage_is_explained_on_stderr_with_code_2() {
    for (args, words) in [
        (&["tool"][..], "similar subcommand exists: 'tools'"),
        (&["call"], "<TOOL>"),
        (&["call", "demo.echo", "a", "b", "c", "d"], "write KEY=VALUE"),
        (&["call", "x", "a=1", "--json", "{}"], "cannot be used with"),
        (&["tools", "--timeout", "3 parsecs"], "such as 500ms, 30s or 2m"),
        (&["tools", "--provider", "acme"], "mcp"),
        (&["tools", "--log", "a=b=c"], "the log filter"),
        (&["tools", "-o", "xml"], "json"),
    ] {
        let ran = Home::new().run(args);
        ran.ends_with(2).says(words);
        assert_eq!(ran.out, "", "{args:?}");
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    for (shell, words) in [
        ("bash", "_pegboard()"),
        ("zsh", "#compdef pegboard"),
        ("fish", "complete -c pegboard"),
    ] {
        Home::new().run(&["completions", shell]).ends_with(0).prints(words);
    }
}
