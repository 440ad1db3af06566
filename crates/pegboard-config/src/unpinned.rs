//! Finds servers whose command runs the newest version of a package or image, which may change at every start.

use serde::Serialize;

use super::{
    board::Config,
    transport::{Command, Transport},
};
use pegboard_base::{name::ServerName, secret::Secret};

/// A server whose command downloads a package or image without a fixed version. Each new version runs at the server's next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unpinned {
    /// The server.
    pub server: ServerName,
    /// The package or image as the command names it, without the credentials of a URL.
    pub package: String,
    /// How a fixed version is written.
    pub example: String,
}

impl std::fmt::Display for Unpinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "server `{}` runs the newest version of `{}` at every start; name one version, such as `{}`",
            self.server, self.package, self.example
        )
    }
}

impl Config {
    /// The servers whose commands run packages or images without a fixed version: `npx`, `uvx`, `docker run` and the like.
    pub fn unpinned(&self) -> Vec<Unpinned> {
        let found = self
            .servers
            .iter()
            .filter_map(|(server, config)| match &config.transport {
                Transport::Stdio(command) => find_unpinned(command).map(|package| Unpinned {
                    server: server.clone(),
                    package: package.redact_user(),
                    example: package.example(),
                }),
                Transport::Remote { .. } => None,
            });
        found.collect()
    }
}

/// What a command downloads, and how its version is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Package<'a> {
    spec: &'a str,
    registry: Registry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    Npm,
    Python,
    Image,
    Go,
    Cargo,
    Nix,
}

impl Package<'_> {
    fn redact_user(self) -> String {
        match self.spec.split_once("://") {
            Some((scheme, rest)) => {
                let rest = rest
                    .rsplit_once('@')
                    .filter(|(user, _)| !user.contains('/'))
                    .map_or(rest, |(_, rest)| rest);
                format!("{scheme}://{rest}")
            }
            None => self.spec.to_owned(),
        }
    }

    fn example(self) -> String {
        if self.spec.contains("://") || self.spec.starts_with("git") {
            return "…@COMMIT".to_owned();
        }
        let example = match self.registry {
            Registry::Npm | Registry::Cargo => "PACKAGE@VERSION",
            Registry::Python => "PACKAGE==VERSION",
            Registry::Image => "IMAGE@sha256:…",
            Registry::Go => "PACKAGE@VERSION",
            Registry::Nix => "FLAKE/COMMIT",
        };
        example.to_owned()
    }

    fn is_pinned(self) -> bool {
        let spec = self.spec;
        if is_local(spec) {
            return true;
        }
        match self.registry {
            Registry::Npm if spec.contains(':') => spec.rsplit_once('#').is_some_and(|(_, commit)| is_commit(commit)),
            Registry::Npm => after_name(spec, '@').is_some_and(is_exact),
            Registry::Python if spec.contains("://") => {
                spec.rsplit_once('@').is_some_and(|(_, commit)| is_commit(commit))
            }
            Registry::Python => {
                let version = spec
                    .split_once("==")
                    .map(|(_, version)| version.trim_start_matches('='));
                version.or_else(|| after_name(spec, '@')).is_some_and(is_exact)
            }
            Registry::Image => image_is_pinned(spec),
            Registry::Go => after_name(spec, '@').is_none_or(|version| is_exact(version) || is_commit(version)),
            Registry::Cargo => after_name(spec, '@').is_some_and(is_exact),
            Registry::Nix => spec.split(['/', '=', '?', '#']).any(is_commit),
        }
    }
}

/// The package that a command downloads without a fixed version, if it does.
fn find_unpinned(command: &Command) -> Option<Package<'_>> {
    let args: Vec<&str> = command.args.iter().map(Secret::expose).collect();
    let package = find_downloaded(&command.program, &args, 0)?;
    (!package.is_pinned()).then_some(package)
}

/// What a command line downloads. `depth` counts the shells and launchers around it.
fn find_downloaded<'a>(program: &'a str, args: &[&'a str], depth: usize) -> Option<Package<'a>> {
    let within = |line: Vec<&'a str>| {
        let (program, args) = line.split_first()?;
        (depth < 4).then(|| find_downloaded(program, args, depth + 1)).flatten()
    };
    let npm = |args: &[&'a str]| {
        find_named_package(
            args,
            &["-p", "--package"],
            &["-c", "--call", "--registry"],
            Registry::Npm,
        )
    };
    match (base_name(program), args) {
        ("npx" | "pnpx" | "bunx", args) => npm(args),
        ("npm", ["exec" | "x", args @ ..]) | ("pnpm" | "yarn", ["dlx", args @ ..]) | ("bun", ["x", args @ ..]) => {
            npm(args)
        }
        ("deno", ["run", args @ ..]) => find_deno(args),
        ("uvx", args) | ("uv", ["tool", "run", args @ ..]) => {
            find_named_package(args, &["--from"], UV_VALUES, Registry::Python)
        }
        ("pipx", ["run", args @ ..]) => find_named_package(
            args,
            &["--spec"],
            &["--python", "--pip-args", "--index-url"],
            Registry::Python,
        ),
        ("docker" | "podman" | "nerdctl", ["container", "run", args @ ..] | ["run", args @ ..]) => {
            find_named_package(args, &[], RUN_VALUES, Registry::Image)
        }
        ("go", ["run", args @ ..]) => find_named_package(args, &[], &["-C", "-tags", "-exec", "-mod"], Registry::Go),
        ("cargo", ["install" | "binstall", args @ ..]) => {
            let has_version = args
                .iter()
                .any(|arg| matches!(*arg, "--version" | "--rev" | "--path") || arg.starts_with("--version="));
            (!has_version)
                .then(|| find_named_package(args, &[], &["--git", "--root", "--features"], Registry::Cargo))
                .flatten()
        }
        ("nix", ["run", args @ ..]) => {
            find_named_package(args, &[], &["--option"], Registry::Nix).filter(|package| package.spec.contains(':'))
        }
        ("env", args) => within(
            args.iter()
                .copied()
                .skip_while(|arg| arg.contains('=') || arg.starts_with('-'))
                .collect(),
        ),
        ("cmd", ["/c" | "/C" | "/s" | "/d", args @ ..]) => match args {
            [line] => within(line.split_whitespace().collect()),
            args => within(args.to_vec()),
        },
        ("sh" | "bash" | "zsh" | "dash", ["-c" | "-lc" | "-ic", line, ..]) => {
            let line = line.trim_start_matches("exec ");
            within(
                line.split_whitespace()
                    .map(|word| word.trim_matches(['\'', '"']))
                    .collect(),
            )
        }
        _ => None,
    }
}

/// Options of `uvx` that take a value.
const UV_VALUES: &[&str] = &[
    "--with",
    "-p",
    "--python",
    "--index-url",
    "--index",
    "--default-index",
    "--extra-index-url",
    "-i",
    "--directory",
    "--cache-dir",
    "--env-file",
    "--with-editable",
    "--with-requirements",
];

/// Options of `docker run` and `podman run` that take a value.
const RUN_VALUES: &[&str] = &[
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "--name",
    "--network",
    "--net",
    "-p",
    "--publish",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--entrypoint",
    "-m",
    "--memory",
    "--cpus",
    "--platform",
    "--pull",
    "-h",
    "--hostname",
    "--label",
    "-l",
    "--add-host",
    "--cap-add",
    "--cap-drop",
    "--security-opt",
    "--tmpfs",
    "--device",
    "--dns",
    "--restart",
    "--gpus",
    "--ulimit",
    "--pids-limit",
    "--shm-size",
    "--ipc",
    "--pid",
    "--userns",
    "--log-driver",
    "--log-opt",
    "--stop-timeout",
    "--cgroup-parent",
    "--runtime",
    "-a",
    "--attach",
    "--expose",
    "--link",
    "--volumes-from",
    "--network-alias",
    "--ip",
];

/// The package that options name, or the first argument that is no option. `values` are the options that take another value.
fn find_named_package<'a>(
    args: &[&'a str],
    options: &[&str],
    values: &[&str],
    registry: Registry,
) -> Option<Package<'a>> {
    let package = |spec| Package { spec, registry };
    let mut args = args.iter().copied();
    let mut first = None;
    while let Some(arg) = args.next() {
        if let Some((option, value)) = arg.split_once('=')
            && options.contains(&option)
        {
            return Some(package(value));
        }
        if options.contains(&arg) {
            return args.next().map(package);
        }
        if arg == "--" {
            first = args.next();
            break;
        }
        if values.contains(&arg) {
            args.next();
        } else if !arg.starts_with('-') {
            first = Some(arg);
            break;
        }
    }
    first.map(package)
}

/// The first script of `deno run` that comes from a registry or a URL.
fn find_deno<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let script = args.iter().copied().find(|arg| !arg.starts_with('-'))?;
    let spec = script.strip_prefix("npm:").or_else(|| script.strip_prefix("jsr:"))?;
    Some(Package {
        spec: spec.trim_start_matches('/'),
        registry: Registry::Npm,
    })
}

fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".cmd").unwrap_or(name);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Returns whether a package is a file here.
fn is_local(spec: &str) -> bool {
    spec.starts_with(['.', '/', '~'])
        || spec.starts_with("file:")
        || [".whl", ".tgz", ".tar.gz"]
            .iter()
            .any(|end| spec.ends_with(end) && !spec.contains("://"))
}

/// The part after the last `separator` that is not the first character: `@scope/name` has no version.
fn after_name(spec: &str, separator: char) -> Option<&str> {
    let (name, version) = spec.rsplit_once(separator)?;
    (!name.is_empty() && !version.contains('/')).then_some(version)
}

/// Returns whether a version is a single one: `1.2.3`, not `^1.2`, `1.x` or `latest`.
fn is_exact(version: &str) -> bool {
    let version = version.trim_start_matches(['v', '=']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '!');
    let numbers = version.split(['-', '+']).next().unwrap_or(version);
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    version.chars().all(is_plain) && numbers.split('.').count() >= 2 && numbers.split('.').all(is_number)
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An image has a digest, or a tag other than `latest`.
fn image_is_pinned(image: &str) -> bool {
    if let Some((_, digest)) = image.split_once("@sha256:") {
        return digest.len() == 64 && is_hex(digest);
    }
    // A colon before the last slash belongs to the registry's port.
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':')
        .is_some_and(|(_, tag)| !matches!(tag, "" | "latest" | "main" | "master" | "edge" | "nightly" | "stable"))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &[&str]) -> Option<String> {
        let (program, args) = line.split_first().unwrap();
        find_unpinned(&Command::new(*program).args(args.iter().copied())).map(Package::redact_user)
    }

    #[test]
    fn commands_that_run_the_newest_version_are_found() {
        let digest = format!("x/y@sha256:{}", "a".repeat(64));
        for (line, package) in [
            (&["npx", "-y", "@scope/server"][..], "@scope/server"),
            (&["npx", "server@latest"], "server@latest"),
            (&["npx.cmd", "--yes", "server@^1.2.3"], "server@^1.2.3"),
            (&["/usr/bin/npx", "-p", "server", "run-it"], "server"),
            (&["npx", "--package=server@1", "run-it"], "server@1"),
            (&["npx", "github:user/repo"], "github:user/repo"),
            (&["npm", "exec", "--", "server"], "server"),
            (&["pnpm", "dlx", "server@next"], "server@next"),
            (&["yarn", "dlx", "server"], "server"),
            (&["bunx", "server"], "server"),
            (&["bun", "x", "server@1.x"], "server@1.x"),
            (&["deno", "run", "-A", "npm:@scope/server"], "@scope/server"),
            (&["uvx", "mcp-server-time"], "mcp-server-time"),
            (
                &["uvx", "--from", "git+https://tok3n@host.example/r", "cmd"],
                "git+https://host.example/r",
            ),
            (&["uvx", "--python", "3.12", "server>=1.0"], "server>=1.0"),
            (&["uvx", "server@latest"], "server@latest"),
            (&["uv", "tool", "run", "server"], "server"),
            (&["pipx", "run", "server"], "server"),
            (&["pipx", "run", "--spec", "server~=1.0", "cmd"], "server~=1.0"),
            (
                &["docker", "run", "-i", "--rm", "-e", "TOKEN", "mcp/github"],
                "mcp/github",
            ),
            (&["docker", "run", "mcp/github:latest", "arg:1"], "mcp/github:latest"),
            (
                &["docker", "container", "run", "localhost:5000/server"],
                "localhost:5000/server",
            ),
            (&["podman", "run", "--env=A=1", "-v", "/a:/b", "server"], "server"),
            (&["go", "run", "example.com/server@latest"], "example.com/server@latest"),
            (&["cargo", "install", "server"], "server"),
            (&["nix", "run", "github:owner/repo"], "github:owner/repo"),
            (&["cmd", "/c", "npx", "-y", "server"], "server"),
            (&["sh", "-c", "exec npx -y 'server'"], "server"),
            (&["env", "A=1", "npx", "server"], "server"),
        ] {
            assert_eq!(found(line).as_deref(), Some(package), "{line:?}");
        }
        for line in [
            &["npx", "-y", "@scope/server@1.2.3"][..],
            &["npx", "server@2.0.0-beta.1"],
            &["npx", "./local"],
            &["npx", "github:user/repo#0123456789abcdef0123456789abcdef01234567"],
            &["uvx", "server==1.2.3"],
            &["uvx", "server@1.2.3"],
            &["uvx", "--from", "server[cli]==1.2", "cmd"],
            &["uvx", "--from", "git+https://host.example/r@0123456789abcdef", "cmd"],
            &["uvx", "--from", "./folder", "cmd"],
            &["pipx", "run", "--spec", "server==1.0", "cmd"],
            &["deno", "run", "npm:server@1.2.3"],
            &["deno", "run", "main.ts"],
            &["docker", "run", "-i", "mcp/github:1.4"],
            &["docker", "run", "--rm", &digest],
            &["docker", "exec", "-i", "running", "server"],
            &["go", "run", "./cmd"],
            &["go", "run", "example.com/server@v1.2.3"],
            &["cargo", "install", "server", "--version", "1.0.0"],
            &["cargo", "install", "server@1.0.0"],
            &["python", "server.py"],
            &["npx"],
            &["uvx", "--from"],
            &["sh", "-c", "sh -c 'sh -c sh'"],
        ] {
            assert_eq!(found(line), None, "{line:?}");
        }
    }
}
