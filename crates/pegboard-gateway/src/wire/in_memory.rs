//! [`InMemory`]: a client of a service in the same process, for tests.

use std::{io, sync::Arc};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    door::Caller,
    protocol::{Connection, Endpoint, Limits, Outgoing, Sealer, Service, Wire},
};

/// A bidirectional connection to a service, without a wire. Tests of a service send it the messages of a client.
#[derive(Debug)]
pub struct InMemory {
    connection: Connection,
    outbox: mpsc::Receiver<Outgoing>,
}

impl InMemory {
    /// Connects to a service.
    pub fn connect(service: Arc<dyn Service>) -> io::Result<Self> {
        let sealer = Arc::new(Sealer::random()?);
        let endpoint = Endpoint::new("memory", service, sealer, Limits::default());
        let (connection, outbox) = Connection::open(&endpoint, &Caller::default(), Wire::Pipe);
        Ok(Self { connection, outbox })
    }

    /// Sends a message of the client. Waits while 64 messages for the client are not received.
    pub async fn send(&self, message: &Value) {
        self.connection.receive(&message.to_string().into()).await;
    }

    /// Receives the next message for the client.
    pub async fn receive(&mut self) -> Option<Value> {
        let message = self.outbox.recv().await?;
        serde_json::from_slice(&message.into_bytes()).ok()
    }
}
