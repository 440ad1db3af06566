//! The environment variables that a child process inherits under each [`EnvPolicy`].

use super::{code_variables::names_code, transport::EnvPolicy};
use pegboard_base::secret::mentions_secret;

/// Variables that programs need to run: paths, user, locale, and certificates.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    // Certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    // The account that a command-line tool uses, and the address of its daemon. Credentials are not included.
    "AWS_CONFIG_FILE",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CLOUDSDK_CORE_PROJECT",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "GOOGLE_CLOUD_PROJECT",
    "KUBECONFIG",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    // The caches and installations of package managers.
    "BUN_INSTALL",
    "CARGO_HOME",
    "DENO_DIR",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VOLTA_HOME",
    // Variables that Windows programs need.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Proxies, in upper or lower case.
const PROXIES: &[&str] = &["ALL_PROXY", "FTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// Prefixes of the settings of package managers and desktops, in upper or lower case. Without them `npx` and `uvx` do not find a private
/// index.
const FAMILIES: &[&str] = &["NPM_CONFIG_", "PIP_", "PIPX_", "UV_", "XDG_", "YARN_"];

/// API keys of model providers. They belong to the agent, not to its servers.
const MODEL_KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "HUGGINGFACE_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "VOYAGE_API_KEY",
    "XAI_API_KEY",
];

/// Prefixes of variables that configure this program and its telemetry.
const OWN_PREFIXES: &[&str] = &["OTEL_", "PEGBOARD_"];

impl EnvPolicy {
    /// Whether a child process inherits a variable that its config does not name.
    pub fn passes(self, name: &str) -> bool {
        match self {
            Self::Allowlist => is_allowed(name),
            Self::Inherit => !is_never_inherited(name),
            Self::Explicit => false,
        }
    }

    /// The names, and the prefixes in upper case, of what a child process inherits under the default policy, for programs that repeat it without
    /// this library. Variables of a prefix that may hold a token are not inherited.
    #[doc(hidden)]
    pub fn allowed() -> (Vec<String>, &'static [&'static str]) {
        let proxies = PROXIES
            .iter()
            .flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
        (
            ALLOWED.iter().map(|name| (*name).to_owned()).chain(proxies).collect(),
            FAMILIES,
        )
    }
}

/// Whether a child gets a variable only if its config sets it, even if it inherits all others.
fn is_never_inherited(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    names_code(name)
        || MODEL_KEYS.contains(&upper.as_str())
        || OWN_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

/// Whether a child process inherits a variable under the default policy.
///
/// Tokens and passwords among the settings of package managers are not inherited; a config can pass them on by name.
fn is_allowed(name: &str) -> bool {
    let same = |allowed: &&str| {
        if cfg!(windows) {
            allowed.eq_ignore_ascii_case(name)
        } else {
            *allowed == name
        }
    };
    ALLOWED.iter().any(same) || carries_urls(name)
}

/// Whether a variable is inherited and holds no secret: `PATH`, `HOME`.
pub(super) fn is_open(name: &str) -> bool {
    is_allowed(name) && !carries_urls(name)
}

/// The values of the variables that every server may see, such as the home directory and the user's name.
pub(super) fn open_values() -> Vec<String> {
    let ours = ALLOWED.iter().filter_map(|name| std::env::var(name).ok());
    ours.filter(|value| !value.is_empty()).collect()
}

/// Whether a variable is inherited and may contain URLs with credentials: proxies and settings of package managers.
pub(super) fn carries_urls(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if upper != name && name.to_ascii_lowercase() != name && !upper.starts_with("NPM_CONFIG_") {
        return false;
    }
    let in_family = FAMILIES.iter().find_map(|family| upper.strip_prefix(family));
    let is_harmless = |rest: &str| !mentions_secret(rest) && !rest.contains("AUTH");
    PROXIES.contains(&upper.as_str()) || (in_family.is_some_and(is_harmless) && !names_code(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_indexes_and_accounts_reach_a_child_and_keys_do_not() {
        for name in [
            "HTTP_PROXY",
            "https_proxy",
            "no_proxy",
            "ALL_PROXY",
            "npm_config_registry",
            "NPM_CONFIG_REGISTRY",
            "npm_config_@acme:registry",
            "PIP_INDEX_URL",
            "UV_INDEX_URL",
            "UV_CACHE_DIR",
            "XDG_RUNTIME_DIR",
            "SSH_AUTH_SOCK",
            "KUBECONFIG",
            "DOCKER_HOST",
            "AWS_PROFILE",
            "AWS_REGION",
            "SSL_CERT_FILE",
        ] {
            assert!(is_allowed(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "UV_PUBLISH_TOKEN",
            "UV_INDEX_ACME_PASSWORD",
            "npm_config__authToken",
            "NPM_CONFIG__AUTH",
            "npm_config_node_options",
            "npm_config_script_shell",
            "NODE_OPTIONS",
            "LD_PRELOAD",
            "Http_Proxy",
            "DATABASE_URL",
        ] {
            assert!(!is_allowed(name), "{name}");
        }
    }
}
