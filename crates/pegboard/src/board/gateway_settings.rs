//! The named views and the settings of the gateway that are in effect.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::call::View;
use pegboard_base::name::NameStyle;
use pegboard_config::{Config, ServeConfig, ViewConfig};

/// The named views and the settings of the gateway, of one config.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
#[doc(hidden)]
pub struct GatewaySettings {
    /// The named views, by name.
    pub views: BTreeMap<String, ViewConfig>,
    /// Where the gateway listens, whom it lets in, and its limits.
    pub serve: ServeConfig,
    /// How tools are named in views that set no style.
    pub naming: NameStyle,
}

impl GatewaySettings {
    /// Takes the settings out of a config.
    pub(super) fn take(config: &mut Config) -> Self {
        Self {
            views: std::mem::take(&mut config.views),
            serve: std::mem::take(&mut config.serve),
            naming: config.naming.clone(),
        }
    }
}

/// Publishes the settings of the config that was opened or applied last.
#[derive(Debug)]
pub(super) struct PublishedSettings {
    current: ArcSwap<GatewaySettings>,
    /// Notified when `current` was replaced.
    changed: watch::Sender<()>,
}

impl PublishedSettings {
    pub(super) fn new(settings: GatewaySettings) -> Self {
        Self {
            current: ArcSwap::from_pointee(settings),
            changed: watch::Sender::new(()),
        }
    }

    /// The settings now. Takes no lock.
    pub(super) fn load(&self) -> Arc<GatewaySettings> {
        self.current.load_full()
    }

    pub(super) fn publish(&self, settings: GatewaySettings) {
        self.current.store(Arc::new(settings));
        self.changed.send_replace(());
    }

    /// Waits until the settings are other ones than `known`, and returns them. Cancel-safe.
    pub(super) async fn wait_for_other(&self, known: &Arc<GatewaySettings>) -> Arc<GatewaySettings> {
        let mut changed = self.changed.subscribe();
        loop {
            let now = self.load();
            // The sender is borrowed, so this cannot fail.
            if !Arc::ptr_eq(&now, known) || changed.changed().await.is_err() {
                return now;
            }
        }
    }

    /// The view that the config has under this name.
    pub(super) fn find_view(&self, name: &str) -> Option<View> {
        self.current.load().views.get(name).map(View::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_waiter_gets_the_settings_that_were_published_before_and_after_it_began_to_wait() {
        let published = PublishedSettings::new(GatewaySettings::default());
        let first = published.load();
        published.publish(GatewaySettings::default());
        let second = published.wait_for_other(&first).await;
        assert!(!Arc::ptr_eq(&first, &second));
        let waiting = published.wait_for_other(&second);
        let publishing = async { published.publish(GatewaySettings::default()) };
        let (third, ()) = tokio::join!(waiting, publishing);
        assert!(!Arc::ptr_eq(&second, &third));
    }
}
