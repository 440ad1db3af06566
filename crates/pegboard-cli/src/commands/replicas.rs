//! The other replicas of a gateway: opens the store that they share, and the listener at which they reach this one.

use std::sync::Arc;

use pegboard::config::ServeConfig;
use pegboard_gateway::{Replicas, Sealer};
use pegboard_store::{KeyRing, StoreAddress, StoreError};
use tokio::net::TcpListener;

use crate::{exit::Exit, settings::Complaint};

/// This gateway among its replicas.
pub(super) struct Joined {
    pub(super) replicas: Replicas,
    pub(super) listener: TcpListener,
}

/// Opens what the config says of replicas; `None` if it says nothing.
pub(super) async fn join(serve: &ServeConfig, sealer: &Arc<Sealer>) -> Result<Option<Joined>, Complaint> {
    let Some(store) = &serve.store else {
        return match serve.replicas.listen {
            Some(_) => Err(refuse(
                "`serve.replicas` needs a store in which replicas find each other",
                "set `serve.store`, such as `redis://store.example:6379` or `file:/srv/pegboard`",
            )),
            None => Ok(None),
        };
    };
    let Some(key) = &serve.state_key else {
        return Err(refuse(
            "`serve.store` needs `serve.state_key`, with which all replicas seal what they keep there",
            "`openssl rand -base64 32` prints one; keep it in a variable, `state_key = \"${PEGBOARD_STATE_KEY}\"`",
        ));
    };
    let Some((listener, reached_at)) = listen(serve).await? else {
        return Err(refuse(
            "`serve.store` needs `serve.replicas`: without a listener for other replicas, their requests for what this one has would not reach it",
            "set `serve.replicas = { listen = \"127.0.0.1:7338\" }`, or another address that only replicas reach",
        ));
    };
    let ring = KeyRing::new(key.expose(), serve.previous_state_key.as_ref().map(|key| key.expose()));
    let address = StoreAddress::parse(store.expose()).map_err(|error| not_opened(&error))?;
    let store = pegboard_store::open(&address, ring)
        .await
        .map_err(|error| not_opened(&error))?;
    tracing::info!(%address, %reached_at, "this replica shares its state with others");
    let replicas = Replicas::new(store, sealer.clone(), Some(&reached_at));
    let replicas = replicas.map_err(|error| refuse(&error.to_string(), "set `serve.replicas.address`"))?;
    Ok(Some(Joined { replicas, listener }))
}

/// Listens for other replicas. Returns also where they reach this one.
async fn listen(serve: &ServeConfig) -> Result<Option<(TcpListener, String)>, Complaint> {
    let Some(listen) = serve.replicas.listen else {
        return Ok(None);
    };
    if listen.ip().is_unspecified() && serve.replicas.address.is_none() {
        return Err(refuse(
            &format!("other replicas cannot connect to {listen}: it stands for all addresses of this machine"),
            "set `serve.replicas.address` to the host and port of this replica, such as `${POD_IP}:7338`",
        ));
    }
    if !serve.requires_token() {
        return Err(refuse(
            "replicas need tokens: a request that another replica sends on is admitted by its token",
            "`pegboard token new NAME` makes a token and prints the lines for the config",
        ));
    }
    let bound = match TcpListener::bind(listen).await {
        Ok(listener) => listener.local_addr().map(|address| (listener, address)),
        Err(error) => Err(error),
    };
    let (listener, address) = bound.map_err(|error| Complaint {
        message: format!("cannot listen for other replicas on {listen}: {error}"),
        hint: Some("`serve.replicas.listen` names another address or port".to_owned()),
        exit: Exit::Usage,
    })?;
    let reached_at = serve.replicas.address.clone().unwrap_or_else(|| address.to_string());
    Ok(Some((listener, reached_at)))
}

fn refuse(message: &str, hint: &str) -> Complaint {
    Complaint {
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        exit: Exit::Usage,
    }
}

fn not_opened(error: &StoreError) -> Complaint {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        message.push_str(": ");
        message.push_str(&source.to_string());
        cause = source.source();
    }
    Complaint {
        message,
        hint: Some("`serve.store` of the config says where it is".to_owned()),
        exit: match error {
            StoreError::Unreachable { .. } | StoreError::TimedOut { .. } => Exit::Unavailable,
            _ => Exit::Usage,
        },
    }
}
