//! [`Sender`]: posts requests to the collector, and says what became of them.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use pegboard_http::{Client, Response, Settings};
use prost::Message as _;
use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::{sync::OnceCell, time::timeout};

use crate::{gzip, proto::ExportResponse, settings::SignalSettings};

/// The longest answer that is read. It says how much was rejected, and why.
const MAX_ANSWER: usize = 64 << 10;

/// The longest time to wait that a collector may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// How long an idle connection is kept: through the pauses between two batches.
const IDLE_TIME: Duration = Duration::from_secs(90);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Posts requests of one signal to its collector.
#[derive(Debug)]
pub(crate) struct Sender {
    settings: SignalSettings,
    client: OnceCell<Client>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The collector has it, without this many of its items.
    Taken {
        /// How many items it has rejected.
        rejected: u64,
    },
    /// It would not take it a second time either.
    Refused(String),
    /// It may take it later.
    Later {
        why: String,
        /// After this time, if the collector has said so.
        after: Option<Duration>,
    },
}

impl Sender {
    pub(crate) fn new(settings: SignalSettings) -> Self {
        Self {
            settings,
            client: OnceCell::new(),
        }
    }

    /// The body of a request as it is posted.
    pub(crate) fn pack(&self, body: Vec<u8>) -> Bytes {
        match self.settings.gzip {
            true => gzip::compress(&body).into(),
            false => body.into(),
        }
    }

    /// Posts a request, once.
    pub(crate) async fn send(&self, body: Bytes) -> Sent {
        match timeout(self.settings.timeout, self.post(body)).await {
            Ok(Ok(response)) => read(response, self.settings.timeout).await,
            Ok(Err(why)) => Sent::Later { why, after: None },
            Err(_) => Sent::Later {
                why: format!("it does not answer within {} s", self.settings.timeout.as_secs_f32()),
                after: None,
            },
        }
    }

    /// Posts a request, and waits for the head of the response.
    async fn post(&self, body: Bytes) -> Result<Response, String> {
        let client = self.client.get_or_try_init(|| self.connect()).await?;
        let mut headers = self.settings.headers.clone();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        headers.insert(ACCEPT, PROTOBUF);
        if self.settings.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let sending = client.send(Method::POST, &self.settings.target, headers, body);
        sending.await.map_err(|error| causes(&error))
    }

    async fn connect(&self) -> Result<Client, String> {
        let is_encrypted = self.settings.target.url().scheme() == "https";
        let certificate = self.settings.certificate.clone();
        let tls = match is_encrypted {
            true => {
                let loading = tokio::task::spawn_blocking(move || tls(certificate.as_deref()));
                Some(loading.await.map_err(|error| error.to_string())??)
            }
            false => None,
        };
        let settings = Settings {
            idle_time: IDLE_TIME,
            ..Settings::new(tls)
        };
        Ok(Client::new(&self.settings.target, settings))
    }
}

/// Reads what the collector says about a request, for a limited time.
async fn read(mut response: Response, time: Duration) -> Sent {
    let status = response.status();
    if status.is_success() {
        let mut answer = BytesMut::new();
        let reading = async {
            while let Ok(Some(chunk)) = response.chunk().await
                && answer.len() + chunk.len() <= MAX_ANSWER
            {
                answer.extend_from_slice(&chunk);
            }
        };
        // An answer that cannot be read, or is slow, says nothing: the request was taken.
        let _ = timeout(time, reading).await;
        let answer = ExportResponse::decode(&answer[..]).unwrap_or_default();
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected);
        return Sent::Taken {
            rejected: u64::try_from(rejected).unwrap_or(0),
        };
    }
    let why = format!("it answers with status {}", status.as_u16());
    let after = retry_after(response.headers());
    response.finish();
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Sent::Later { why, after },
        _ => Sent::Refused(why),
    }
}

/// The time to wait that the collector asks for, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(std::time::SystemTime::now())
            .unwrap_or(Duration::ZERO),
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

/// Trusts the certificate authorities of the system, or those of a file instead.
fn tls(certificate: Option<&Path>) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match certificate {
        Some(path) => {
            let unusable = |error: &dyn std::fmt::Display| format!("{} cannot be used: {error}", path.display());
            let found = CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unusable(&error))?;
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            if roots.is_empty() {
                return Err(unusable(&"it has no certificate"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let installed = CryptoProvider::get_default().cloned();
    let provider = installed.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
