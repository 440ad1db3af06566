//! Changes at run time: by a new config, and by an operator.

use futures_util::future::join_all;

use super::{
    GatewaySettings, Pegboard,
    config_change::{Applied, ConfigChange},
    server_replacement::NotConnected,
};
use crate::server::{DetachedConnections, Server};
use pegboard_base::name::{BadServerName, ServerName};
use pegboard_config::{Config, ServerConfig};

impl Pegboard {
    /// Changes the board to match `config`, in every open view. Unchanged servers keep their process. Servers that are removed, replaced or
    /// disabled accept no more calls; their calls in flight complete on the old connection, within the server's own limit for a call.
    ///
    /// A replacement is started first, and the old server stays if that fails. A shared process is ended first, because two of them could fight over
    /// a lock, a port or a file: while its calls in flight complete, new calls wait for the replacement, but this does not.
    ///
    /// Changes run one after the other: a second call of this or of [`Pegboard::connect`] waits for the first.
    ///
    /// New and newly enabled servers are started, unless they start lazily and are not required. Each start is awaited within the server's
    /// own limits, and errors are in the result. [`Pegboard::enable`] and [`Pegboard::disable`] take precedence until the config changes
    /// `enabled`. Servers in this process stay, and the config's settings for their names are ignored. A closing board changes nothing.
    ///
    /// If a source of the config could not be read, its servers are missing from it: see [`Loaded::readable`](crate::Loaded::readable).
    pub async fn apply(&self, mut config: Config) -> Applied {
        let _turn = self.0.changes.acquire().await;
        if self.0.registry.is_closing() {
            return Applied::default();
        }
        let change = ConfigChange::new(&self.0.registry, &self.0.factory);
        change.prepare(&mut config).await;
        self.publish_gateway_settings(&mut config);
        change.apply(config).await
    }

    /// As [`Pegboard::apply`], without what [`Pegboard::publish_gateway_settings`] takes over.
    #[doc(hidden)]
    pub async fn apply_servers(&self, mut config: Config) -> Applied {
        let _turn = self.0.changes.acquire().await;
        if self.0.registry.is_closing() {
            return Applied::default();
        }
        let change = ConfigChange::new(&self.0.registry, &self.0.factory);
        change.prepare(&mut config).await;
        change.apply(config).await
    }

    /// Takes the views, the naming and the settings of the gateway out of a config and over. It waits for no server and for no other change, so
    /// that what a client may not use any more is out of its reach at once.
    #[doc(hidden)]
    pub fn publish_gateway_settings(&self, config: &mut Config) {
        let settings = GatewaySettings::take(config);
        self.0.views.set_naming(settings.naming.clone());
        self.0.gateway.publish(settings);
    }

    /// Adds a server, or replaces the one of its name, and connects it, regardless of its `start` setting. A working server is replaced only
    /// when the new one is ready, and completes its calls in flight; a shared process has ended before the new one is started. If the server has these settings already, its unconnected instances are
    /// connected.
    ///
    /// When this returns, the server is connected in every open view; for a session-scoped server without open views, one is connected for
    /// the next view.
    pub async fn connect<N>(&self, name: N, config: ServerConfig) -> Result<(), NotConnected>
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let name = name.try_into().map_err(BadServerName::from)?;
        let _turn = self.0.changes.acquire().await;
        self.changes_of_servers().connect(&name, config).await
    }

    /// Removes a server from the board, in every view: new calls find none of its tools, and calls in flight complete first. The server is
    /// closed when this returns, unless such a call is still in flight. Returns `false` if there is no server of that name.
    pub async fn disconnect(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let retirement = self.0.registry.remove(name);
        let exists = !retirement.is_empty();
        retirement.wait().await;
        exists
    }

    /// Restarts a server at once, in every view and in any state. Its calls in flight fail as lost. Returns `false` if there is no server of
    /// that name.
    pub async fn reconnect(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let instances = self.0.registry.instances_to_restart(name);
        join_all(instances.iter().map(Server::reconnect)).await;
        !instances.is_empty()
    }

    /// Permits the start of a server whose config says `start = "explicit"`: from now on it is started when it is needed. Returns `false` if
    /// there is no server of that name.
    pub fn request(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let instances = self.0.registry.instances(&name);
        let is_new = instances.iter().any(|server| !server.activation().is_requested());
        instances.iter().for_each(|server| server.activation().request());
        if is_new {
            self.0.registry.bump_revision();
        }
        !instances.is_empty()
    }

    /// Lists a server again in every view where it is connected. Returns `false` if it is connected in none.
    pub fn refresh(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let mut connected = self.0.registry.instances(name);
        connected.retain(Server::is_ready);
        connected.iter().for_each(|server| server.connections().refresh());
        !connected.is_empty()
    }

    /// Enables a server in every view and starts it. Returns `false` if there is no server of that name, its config is invalid, or the board
    /// has no room for it or is closing.
    pub async fn enable(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let Some(server) = self.0.registry.get(name) else {
            return false;
        };
        let changes = self.changes_of_servers();
        if !changes.has_room(name) || self.0.registry.is_closing() || server.connections().is_misconfigured() {
            return false;
        }
        if server.connections().is_refused() {
            // There is room for it now.
            changes
                .swap(name, server.spec().target.dialer(), server.config().as_ref().clone())
                .await;
        }
        let (_, _) = self.0.registry.change(name, |server| {
            server.activation().enable();
            server.activation().request();
            server.switch_on();
            DetachedConnections::default()
        });
        for server in self.0.registry.instances_in_use(name) {
            server.connections().start();
        }
        true
    }

    /// Disables a server at once, in every view: its process ends, unless another server shares it, its tools disappear, and its calls in
    /// flight fail as lost, including those of a draining server of that name. To let them complete, apply a config that disables the server.
    /// Returns `false` if there is no server of that name.
    pub async fn disable(&self, name: impl AsRef<str>) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let (exists, detached) = self.0.registry.change(name, |server| {
            server.activation().disable();
            server.connections().disable()
        });
        join_all(detached.into_iter().map(DetachedConnections::close)).await;
        self.0.registry.close_draining(name).await;
        exists
    }
}
