//! The environment variables that decide which code a program runs, in one table: what is inherited, what a project file may set and what
//! a review shows are all decided by it.

/// What an environment variable does to the program that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It makes any program of its kind load code: a config needs `allow_loader_env` to set it.
    Injects,
    /// It names code, or a program that is run. It is not inherited, because our values are meant for this program.
    Loads,
    /// It decides where code comes from: package indexes, folders of packages and compilers. The user's own values are inherited.
    Redirects,
    /// It has ordinary uses, and decides which program or which file of settings is found.
    Steers,
}

/// Names in upper case; a `*` at the end stands for any rest.
const TABLE: &[(Effect, &[&str])] = &[
    (
        Effect::Injects,
        &[
            "LD_*",
            "DYLD_*",
            "BASH_ENV",
            "GCONV_PATH",
            "JAVA_TOOL_OPTIONS",
            "NODE_OPTIONS",
            "PERL5OPT",
            "PYTHONSTARTUP",
            "RUBYOPT",
        ],
    ),
    (
        Effect::Loads,
        &[
            // Shells.
            "BASH_FUNC_*",
            "ENV",
            "FPATH",
            "MAKEFILES",
            "PROMPT_COMMAND",
            "PS4",
            "ZDOTDIR",
            // Python.
            "PYTHONBREAKPOINT",
            "PYTHONEXECUTABLE",
            "PYTHONHOME",
            "PYTHONINSPECT",
            "PYTHONPATH",
            "PYTHONPLATLIBDIR",
            "PYTHONPYCACHEPREFIX",
            "PYTHONUSERBASE",
            // Node and its kin.
            "BUN_INSPECT_PRELOAD",
            "BUN_OPTIONS",
            "NODE_PATH",
            "NODE_REPL_EXTERNAL_MODULE",
            "TS_NODE_*",
            // Git.
            "GIT_ALLOW_PROTOCOL",
            "GIT_ASKPASS",
            "GIT_CONFIG*",
            "GIT_EDITOR",
            "GIT_EXEC_PATH",
            "GIT_EXTERNAL_DIFF",
            "GIT_PAGER",
            "GIT_PROXY_COMMAND",
            "GIT_SEQUENCE_EDITOR",
            "GIT_SSH",
            "GIT_SSH_COMMAND",
            "GIT_TEMPLATE_DIR",
            // Backup, transfer and database clients.
            "BORG_PASSCOMMAND",
            "BORG_RSH",
            "PSQLRC",
            "RCLONE_PASSWORD_COMMAND",
            "RESTIC_PASSWORD_COMMAND",
            "RIPGREP_CONFIG_PATH",
            "RSYNC_RSH",
            "TAR_OPTIONS",
            // Java.
            "CLASSPATH",
            "GRADLE_OPTS",
            "JAVA_OPTS",
            "JDK_JAVA_OPTIONS",
            "MAVEN_OPTS",
            "SBT_OPTS",
            "_JAVA_OPTIONS",
            // .NET.
            "CORECLR_*",
            "COR_ENABLE_PROFILING",
            "COR_PROFILER*",
            "DOTNET_ADDITIONAL_DEPS",
            "DOTNET_SHARED_STORE",
            "DOTNET_STARTUP_HOOKS",
            // Perl, Ruby, PHP, Lua, R, Julia, Erlang.
            "ERL_AFLAGS",
            "ERL_FLAGS",
            "ERL_LIBS",
            "ERL_ZFLAGS",
            "JULIA_LOAD_PATH",
            "LUA_CPATH*",
            "LUA_INIT*",
            "LUA_PATH*",
            "PERL5DB",
            "PERL5LIB",
            "PERLLIB",
            "PHPRC",
            "PHP_INI_SCAN_DIR",
            "RUBYLIB",
            "R_ENVIRON*",
            "R_LIBS*",
            "R_PROFILE*",
            // Go and Rust.
            "GOAUTH",
            "GOENV",
            "GOFLAGS",
            "RUSTC",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTC_WRAPPER",
            "RUSTDOC",
            "RUSTFLAGS",
            // Libraries.
            "GIO_EXTRA_MODULES",
            "GTK_MODULES",
            "LESSCLOSE",
            "LESSOPEN",
            "OPENSSL_CONF",
            "OPENSSL_ENGINES",
            "OPENSSL_MODULES",
            "QT_PLUGIN_PATH",
        ],
    ),
    (
        Effect::Redirects,
        &[
            "BUNDLE_*",
            "BUN_CONFIG_*",
            "CARGO_*",
            "CC",
            "COMSPEC",
            "CONDA_PREFIX",
            "CONTAINER_HOST",
            "COREPACK_*",
            "CXX",
            "CLOUDSDK_PYTHON",
            "DENO_DIR",
            "DOCKER_CONFIG",
            "DOCKER_CONTEXT",
            "DOCKER_HOST",
            "DOTNET_ROOT*",
            "GEMRC",
            "GEM_HOME",
            "GEM_PATH",
            "GIT_COMMON_DIR",
            "GIT_DIR",
            "GOPROXY",
            "GOROOT",
            "GONOSUMDB",
            "GONOSUMCHECK",
            "GOSUMDB",
            "GOTOOLCHAIN",
            "JAVA_HOME",
            "JBANG_*",
            "JULIA_DEPOT_PATH",
            "MAKEFLAGS",
            "NIX_*",
            "NPM_CONFIG_*",
            "NUGET_*",
            "PIPX_*",
            "PIP_*",
            "PNPM_*",
            "POETRY_*",
            "RUBYGEMS_GEMDEPS",
            "RUSTUP_*",
            "SSH_ASKPASS",
            "SUDO_ASKPASS",
            "UV_*",
            "VIRTUAL_ENV",
            "VOLTA_*",
            "YARN_*",
        ],
    ),
    (
        Effect::Steers,
        &[
            "APPDATA",
            "AWS_CONFIG_FILE",
            "BROWSER",
            "EDITOR",
            "ELECTRON_RUN_AS_NODE",
            "HOME",
            "KUBECONFIG",
            "LOCALAPPDATA",
            "NODE_EXTRA_CA_CERTS",
            "NODE_TLS_REJECT_UNAUTHORIZED",
            "PAGER",
            "PATH",
            "PATHEXT",
            "PYTHONWARNINGS",
            "SHELL",
            "TMPDIR",
            "USERPROFILE",
            "VISUAL",
            "XDG_*",
        ],
    ),
];

/// The ends of names of variables that hold a command, whatever program reads it: `RESTIC_PASSWORD_COMMAND`, `BORG_PASSCOMMAND`.
const COMMANDS: &[&str] = &[
    "COMMAND",
    "_ASKPASS",
    "_BROWSER",
    "_CMD",
    "_EDITOR",
    "_EXE",
    "_EXEC",
    "_EXECUTABLE_PATH",
    "_HELPER",
    "_HOOK",
    "_HOOKS",
    "_PAGER",
    "_PLUGIN",
    "_PLUGINS",
    "_PRELOAD",
    "_PROGRAM",
    "_RSH",
    "_SCRIPT",
    "_SHELL",
    "_WRAPPER",
];

/// Settings of package managers, without their prefix, that name code to run.
const RUNS_CODE: &[&str] = &[
    "EDITOR",
    "GIT",
    "GLOBALCONFIG",
    "INIT_MODULE",
    "NODE_GYP",
    "NODE_OPTIONS",
    "ONLOAD_SCRIPT",
    "PLUGINS",
    "SCRIPT_SHELL",
    "SHELL",
    "USERCONFIG",
    "VIEWER",
    "YARN_PATH",
];

/// Settings of package managers, without their prefix, that neither name code nor where it comes from.
const HARMLESS: &[&str] = &[
    "AUDIT",
    "COLOR",
    "DISABLE_PIP_VERSION_CHECK",
    "FUND",
    "IGNORE_SCRIPTS",
    "LOGLEVEL",
    "NO_CACHE",
    "NO_COLOR",
    "NO_INPUT",
    "NO_PROGRESS",
    "OFFLINE",
    "PREFER_OFFLINE",
    "PROGRESS",
    "QUIET",
    "REQUIRE_HASHES",
    "UPDATE_NOTIFIER",
    "VERBOSE",
    "YES",
];

/// Prefixes of the settings of package managers, in upper case.
const PACKAGE_MANAGERS: &[&str] = &["NPM_CONFIG_", "PIPX_", "PIP_", "PNPM_CONFIG_", "UV_", "YARN_"];

/// Whether a variable makes a program load or run code that its command line does not name, so that every config needs `allow_loader_env`
/// to set it.
pub fn is_loader(name: &str) -> bool {
    effect(name) == Some(Effect::Injects)
}

/// Whether a variable names code that a program loads or runs. Such a variable is never inherited.
pub(super) fn names_code(name: &str) -> bool {
    matches!(effect(name), Some(Effect::Injects | Effect::Loads))
}

/// Whether a variable names code that a program runs, or where that code comes from: `NODE_OPTIONS`, `PYTHONPATH`, `npm_config_registry`.
///
/// A project file cannot set it, and what sets it for a person shows it in full.
pub fn decides_code(name: &str) -> bool {
    matches!(effect(name), Some(Effect::Injects | Effect::Loads | Effect::Redirects))
}

/// Whether a variable has a part in which code runs, so that its value is never hidden from a person who approves it.
pub(super) fn is_always_shown(name: &str) -> bool {
    effect(name).is_some()
}

fn effect(name: &str) -> Option<Effect> {
    // npm takes its settings in any case, and with either dash. Windows ignores the case of all names.
    let name = name.to_ascii_uppercase().replace('-', "_");
    if let Some(setting) = PACKAGE_MANAGERS.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        return match setting {
            _ if RUNS_CODE.contains(&setting) => Some(Effect::Loads),
            _ if HARMLESS.contains(&setting) || is_credential(setting) => None,
            _ => Some(Effect::Redirects),
        };
    }
    let is_named = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *pattern == name,
    };
    let row = TABLE.iter().find(|(_, names)| names.iter().any(&is_named));
    let is_command = || COMMANDS.iter().any(|end| name.ends_with(end));
    row.map(|(effect, _)| *effect)
        .or_else(|| is_command().then_some(Effect::Steers))
}

/// Whether a setting of a package manager is a token or a password, as in `npm_config_//host/:_authToken` and `UV_INDEX_ACME_PASSWORD`.
fn is_credential(setting: &str) -> bool {
    ["_AUTH", "_AUTHTOKEN", "_PASSWORD", "_TOKEN", "_USERNAME"]
        .iter()
        .any(|end| setting.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_decide_which_code_runs_are_known_in_every_spelling() {
        for name in [
            "npm_config_node_options",
            "NPM_CONFIG_NODE_OPTIONS",
            "npm_config_node-options",
            "npm_config_script_shell",
            "npm_config_registry",
            "npm_config_@token:registry",
            "npm_config_userconfig",
            "NODE_OPTIONS",
            "NODE_PATH",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "DOTNET_STARTUP_HOOKS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "PERL5OPT",
            "PERL5LIB",
            "RUBYOPT",
            "RUBYLIB",
            "JAVA_TOOL_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "_JAVA_OPTIONS",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "PIP_INDEX_URL",
            "PIP_CONFIG_FILE",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_CONFIG_FILE",
            "YARN_YARN_PATH",
            "DOCKER_HOST",
            "RESTIC_PASSWORD_COMMAND",
            "GOENV",
            "MAKEFILES",
        ] {
            assert!(decides_code(name) && is_always_shown(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "XDG_CONFIG_HOME",
            "BROWSER",
            "PASSWORD_CMD",
            "ACME_TOKEN_COMMAND",
            "acme-credential-helper",
            "PUPPETEER_EXECUTABLE_PATH",
        ] {
            assert!(!decides_code(name) && is_always_shown(name), "{name}");
        }
        for name in [
            "GITHUB_TOKEN",
            "LOG_LEVEL",
            "NODE_ENV",
            "ENVIRONMENT",
            "GIT_AUTHOR_NAME",
            "PYTHONUNBUFFERED",
            "npm_config_yes",
            "npm_config_//registry.example/:_authToken",
            "UV_INDEX_ACME_PASSWORD",
        ] {
            assert!(!decides_code(name) && !is_always_shown(name), "{name}");
        }
    }

    #[test]
    fn the_users_own_indexes_are_inherited_and_code_is_not() {
        for name in [
            "npm_config_registry",
            "PIP_INDEX_URL",
            "GEM_HOME",
            "CARGO_HOME",
            "DOCKER_HOST",
        ] {
            assert!(!names_code(name), "{name}");
        }
        for name in [
            "npm_config_node_options",
            "PYTHONPATH",
            "DOTNET_STARTUP_HOOKS",
            "LD_PRELOAD",
        ] {
            assert!(names_code(name), "{name}");
        }
    }
}
