//! [`RunningSettings`]: the settings of the whole board that a running one has, and which of a new config it cannot take over.

use super::{audit::AuditConfig, board::Config, board_limits::BoardLimits, serve::ServeConfig};

/// The settings of the whole board that were fixed when it was opened.
///
/// Every setting of [`Config`], [`BoardLimits`] and [`ServeConfig`] is named in this file, so a new one does not compile before it is decided
/// whether a reload applies it.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct RunningSettings {
    limits: BoardLimits,
    audit: Option<AuditConfig>,
    /// `None` for a board without a gateway.
    serve: Option<Box<ServeConfig>>,
}

/// What of a new config a running board does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Withheld {
    /// The settings that take effect at the next start, as they are named in a config file.
    pub settings: Vec<&'static str>,
    /// Whether the config says that no call may run without an audit log, and this board has no such log.
    pub misses_required_audit: bool,
}

impl RunningSettings {
    /// Those of a board that was opened with this config, and of its gateway if it has one.
    pub fn new(config: &Config, has_gateway: bool) -> Self {
        Self {
            limits: config.limits,
            audit: config.audit.clone(),
            serve: has_gateway.then(|| Box::new(config.serve.clone())),
        }
    }

    /// Notes that the board applies this config. Returns what of it takes effect at the next start.
    pub fn apply(&mut self, config: &Config) -> Withheld {
        // Of these a reload applies all: servers, with what they inherit from the preset and the masking of the board, are compared one by one.
        let Config {
            servers,
            misconfigured: _,
            queues: _,
            preset: _,
            limits,
            naming: _,
            audit,
            masking: _,
            views: _,
            serve,
            daemon: _,
            removed_secrets: _,
        } = config;
        let enabled = servers.values().filter(|server| server.enabled).count();
        let mut settings = Vec::new();
        if *audit != self.audit {
            settings.push("audit");
        }
        settings.extend(self.apply_limits(*limits, enabled));
        if let Some(started) = &self.serve {
            settings.extend(changed_settings(started, serve));
        }
        let is_required = |audit: &Option<AuditConfig>| audit.as_ref().is_some_and(|audit| audit.required);
        Withheld {
            settings,
            misses_required_audit: is_required(audit) && !is_required(&self.audit),
        }
    }

    /// Servers and processes that run, and bytes that are buffered, are not taken away again, so some limits can only grow.
    fn apply_limits(&mut self, wanted: BoardLimits, servers: usize) -> Vec<&'static str> {
        let BoardLimits {
            max_servers,
            max_processes,
            max_starts,
            max_buffered,
        } = wanted;
        if max_servers >= self.limits.max_servers || servers <= max_servers {
            self.limits.max_servers = max_servers;
        }
        self.limits.max_processes = self.limits.max_processes.max(max_processes);
        self.limits.max_buffered = self.limits.max_buffered.max(max_buffered);
        let withheld = [
            ("max_servers", self.limits.max_servers != max_servers),
            ("max_processes", self.limits.max_processes != max_processes),
            ("max_starts", self.limits.max_starts != max_starts),
            ("max_buffered", self.limits.max_buffered != max_buffered),
        ];
        named(&withheld)
    }
}

/// The settings of a gateway that are fixed at its start and differ.
fn changed_settings(started: &ServeConfig, wanted: &ServeConfig) -> Vec<&'static str> {
    let ServeConfig {
        listen,
        hosts: _,
        origins: _,
        public_url: _,
        max_connections,
        max_in_flight,
        max_body,
        max_sessions,
        session_idle,
        state_key,
        previous_state_key,
        store,
        replicas,
        allow_new_servers: _,
        links_in_text: _,
        tls,
        oauth: _,
        tokens: _,
        unusable_tokens: _,
        dashboard,
        dashboard_calls: _,
        telemetry,
        metrics,
        access_log,
    } = wanted;
    named(&[
        ("serve.listen", *listen != started.listen),
        ("serve.max_connections", *max_connections != started.max_connections),
        ("serve.max_in_flight", *max_in_flight != started.max_in_flight),
        ("serve.max_body", *max_body != started.max_body),
        ("serve.max_sessions", *max_sessions != started.max_sessions),
        ("serve.session_idle", *session_idle != started.session_idle),
        ("serve.state_key", *state_key != started.state_key),
        (
            "serve.previous_state_key",
            *previous_state_key != started.previous_state_key,
        ),
        ("serve.store", *store != started.store),
        ("serve.replicas", *replicas != started.replicas),
        ("serve.dashboard", *dashboard != started.dashboard),
        ("serve.access_log", *access_log != started.access_log),
        ("serve.telemetry", *telemetry != started.telemetry),
        ("serve.metrics", *metrics != started.metrics),
        // Another certificate is read. Whether the gateway speaks HTTPS, clients know already.
        ("serve.tls", tls.is_some() != started.tls.is_some()),
    ])
}

fn named(settings: &[(&'static str, bool)]) -> Vec<&'static str> {
    let those = settings.iter().filter(|(_, is_one)| *is_one);
    those.map(|(name, _)| *name).collect()
}

#[cfg(test)]
#[cfg(all(feature = "sse", feature = "websocket"))]
mod tests;
