//! Servers in this process that are added, replaced and removed at run time.

use std::sync::Arc;

use super::{Pegboard, in_process_settings::default_settings, server_replacement::NotConnected};
use pegboard_base::name::{BadServerName, ServerName};
use pegboard_client::transport::Dialer;
use pegboard_config::ServerConfig;

impl Pegboard {
    /// Adds a server that runs in this process, such as a set of native tools, and connects it in every open view. Fails with
    /// [`NotConnected::NameTaken`] if the board has a server of that name.
    ///
    /// [`Pegboard::apply`] does not remove it and ignores the config's settings for its name; [`Pegboard::disconnect`] removes it.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pegboard::{Config, NativeTool, NativeTools, Pegboard};
    /// use serde_json::json;
    ///
    /// let board = Pegboard::open(Config::default());
    /// let tools = board.toolset();
    ///
    /// let now = NativeTool::new("now", "Tells the time.", json!({"type": "object"}), |_| async { Ok("noon") });
    /// board.add_in_process("time", NativeTools::new([now])).await?;
    /// assert_eq!(tools.call("time.now").await.text(), "noon");
    ///
    /// board.disconnect("time").await;
    /// assert!(tools.call("time.now").await.is_error());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_in_process<N>(&self, name: N, dialer: impl Dialer) -> Result<(), NotConnected>
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let settings = default_settings(&dialer);
        self.add_in_process_with(name, dialer, settings).await
    }

    /// Like [`Pegboard::add_in_process`] with custom settings, such as a changed [`ServerConfig::in_process`]. Their transport is ignored.
    pub async fn add_in_process_with<N>(
        &self,
        name: N,
        dialer: impl Dialer,
        settings: ServerConfig,
    ) -> Result<(), NotConnected>
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let name = name.try_into().map_err(BadServerName::from)?;
        let _turn = self.0.changes.acquire().await;
        if self.0.registry.get(&name).is_some() {
            return Err(NotConnected::NameTaken(name));
        }
        self.changes_of_servers()
            .put_in_process(&name, Arc::new(dialer), settings)
            .await
    }

    /// Adds a server that runs in this process, or replaces the server of its name, of any kind. A working server is replaced only when the
    /// new one is ready, and completes its calls in flight.
    pub async fn replace_in_process<N>(
        &self,
        name: N,
        dialer: impl Dialer,
        settings: ServerConfig,
    ) -> Result<(), NotConnected>
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let name = name.try_into().map_err(BadServerName::from)?;
        let _turn = self.0.changes.acquire().await;
        self.changes_of_servers()
            .put_in_process(&name, Arc::new(dialer), settings)
            .await
    }
}
