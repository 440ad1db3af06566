//! A board whose servers are those of the daemon.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use pegboard::{
    Builder, Config, Pegboard, ServerName,
    config::{EraChoice, IdleStop, Pins, Scan, Scope, Start},
    in_process::Dialer,
};

use super::{dialer::daemon_dialer, start::Starter};

/// How long the daemon may take to report a server that has not started in time.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How long a call waits for a daemon that is restarted.
const DAEMON_WAIT: Duration = Duration::from_secs(10);

/// The waits before a connection to the daemon is opened again. The daemon has its own for the server.
const RECONNECT: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// A board with the config's servers, each connected to the one of its name in the daemon. A daemon that has ended is started again if there
/// is a starter. While the daemon `is_reloading`, a server is connected when the reload has changed it.
pub(super) fn board(mut config: Config, socket: PathBuf, starter: Option<Starter>, is_reloading: bool) -> Builder {
    adapt(&mut config);
    let dialer: Arc<dyn Dialer> = Arc::new(daemon_dialer(socket, starter, is_reloading));
    Pegboard::builder(config).stand_ins(move |_, _| dialer.clone())
}

/// The rules under which the daemon passes on the definitions of each server: it withholds some of them.
pub(super) fn passing_rules(config: &Config) -> BTreeMap<ServerName, String> {
    let servers = config.servers.iter();
    let rules = servers.map(|(name, server)| {
        let policy = &server.policy;
        (name.clone(), format!("{:?} {:?}", policy.pins, policy.scan))
    });
    rules.collect()
}

/// Leaves to the daemon what must happen once: it writes the audit log, pins and scans definitions, starts servers and decides who shares
/// them. Filters, approval, masking and limits hold in both, and a server that waits to be connected is not dialed.
pub(crate) fn adapt(config: &mut Config) {
    config.audit = None;
    for server in config.servers.values_mut() {
        server.required = false;
        if server.start != Start::Explicit {
            server.start = Start::Lazy;
        }
        // The era with a handshake has a session, to which the requests of servers and the servers of one session belong.
        server.era = EraChoice::Legacy;
        server.policy.pins = Pins::Off;
        server.policy.scan = Scan::Off;
        server.policy.scope = Scope::Shared;
        server.policy.idle_stop = IdleStop::Never;
        server.policy.health.interval = None;
        // The daemon's own limit passes first, so that it can say what the server did meanwhile.
        server.limits.connect_timeout += ANSWER_TIME;
        // The restarts of the server are those of the daemon; these are of the connection to it.
        let restart = &mut server.policy.restart;
        (restart.enabled, restart.max_attempts) = (true, None);
        (restart.wait, restart.start_wait) = (DAEMON_WAIT, Duration::ZERO);
        restart.backoff = RECONNECT.to_vec();
    }
}
