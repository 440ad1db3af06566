//! [`CertificateFiles`]: the certificates and the key of one server's config, which another program may replace at any time.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use rustls::{
    RootCertStore, SignatureScheme,
    client::{ResolvesClientCert, WebPkiServerVerifier},
    crypto::CryptoProvider,
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::time::Instant;

use super::{proof::Proof, system_roots::system_roots};
use crate::transport::dial_error::DialError;
use pegboard_base::private_file;
use pegboard_base::sync::Mutex;
use pegboard_config::{ClientCert, Tls};

/// How often the files are looked at, while requests are made.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a request waits for that. On a file system that hangs, it goes on with what was read before.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest file.
const MAX_BYTES: u64 = 1 << 20;

/// The files that `tls` names. New connections use what they held when they were read last; those that are open are not affected.
pub(in crate::transport) struct CertificateFiles {
    tls: Tls,
    provider: Arc<CryptoProvider>,
    loaded: ArcSwap<Loaded>,
    /// What was read last, and the problem with it.
    seen: Mutex<Seen>,
    created: Instant,
    /// When the files are looked at next, in milliseconds since `created`.
    next_check: AtomicU64,
    is_checking: AtomicBool,
}

/// The content of the files.
#[derive(Debug, Clone)]
struct Loaded {
    client: Option<Arc<CertifiedKey>>,
    proof: Option<Proof>,
}

#[derive(Debug, Default)]
struct Seen {
    stamps: Vec<Option<Stamp>>,
    problem: Option<String>,
}

/// Differs between two versions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Inode and time of the last change of the inode: a file that was replaced by one of the same age and length.
    identity: (u64, i64, i64),
}

/// What a look at the files found.
#[derive(Debug, PartialEq, Eq)]
enum Check {
    Unchanged,
    Reloaded,
    /// The files cannot be used; what was read before still is.
    Kept(String),
}

impl CertificateFiles {
    /// Reads the files.
    pub(super) fn load(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Self, DialError> {
        let stamps = stamps(tls);
        let loaded = read_all(tls, &provider).map_err(DialError::Tls)?;
        Ok(Self {
            tls: tls.clone(),
            provider,
            loaded: ArcSwap::from_pointee(loaded),
            seen: Mutex::new(Seen { stamps, problem: None }),
            created: Instant::now(),
            next_check: AtomicU64::new(to_millis(CHECK_INTERVAL)),
            is_checking: AtomicBool::new(false),
        })
    }

    pub(super) fn proof(&self) -> Option<Proof> {
        self.loaded.load().proof.clone()
    }

    /// Reads the files again if they have changed. Call it only if `begin_check` says so.
    pub(in crate::transport) async fn refresh(self: &Arc<Self>) {
        let files = self.clone();
        let checking = tokio::task::spawn_blocking(move || {
            files.check();
            files.is_checking.store(false, Ordering::Release);
        });
        if tokio::time::timeout(CHECK_TIMEOUT, checking).await.is_err() {
            tracing::warn!(
                "the files of the server's `tls` settings could not be read in time; those read before are used"
            );
        }
    }

    /// Whether the caller has to look at the files: it is time for that, and no other caller does.
    pub(in crate::transport) fn begin_check(&self) -> bool {
        let now = to_millis(self.created.elapsed());
        let due = self.next_check.load(Ordering::Relaxed);
        let next = now + to_millis(CHECK_INTERVAL);
        now >= due
            && (self.next_check)
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            && !self.is_checking.swap(true, Ordering::Acquire)
    }

    fn check(&self) -> Check {
        let stamps = stamps(&self.tls);
        if self.seen.lock().stamps == stamps {
            return Check::Unchanged;
        }
        match read_all(&self.tls, &self.provider) {
            Ok(loaded) => {
                self.loaded.store(Arc::new(loaded));
                *self.seen.lock() = Seen { stamps, problem: None };
                tracing::info!("the files of the server's `tls` settings have changed; new connections use them");
                Check::Reloaded
            }
            Err(problem) => {
                // The stamps stay those of the good files, so that the next look reads the files again: they may have been half written.
                let mut seen = self.seen.lock();
                if seen.problem.as_deref() != Some(&problem) {
                    tracing::warn!(
                        "the new files of the server's `tls` settings are not used, the old ones still are: {problem}"
                    );
                    seen.problem = Some(problem.clone());
                }
                Check::Kept(problem)
            }
        }
    }
}

impl ResolvesClientCert for CertificateFiles {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.loaded.load().client.clone()
    }

    fn has_certs(&self) -> bool {
        self.tls.client_cert.is_some()
    }
}

impl std::fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateFiles")
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn stamps(tls: &Tls) -> Vec<Option<Stamp>> {
    let client = tls.client_cert.iter().flat_map(|ours| [&ours.cert, &ours.key]);
    let stamp = |path| std::fs::metadata(path).ok().map(|meta| stamp(&meta));
    tls.ca.iter().chain(client).map(stamp).collect()
}

fn stamp(meta: &Metadata) -> Stamp {
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt as _;
        (meta.ino(), meta.ctime(), meta.ctime_nsec())
    };
    #[cfg(not(unix))]
    let identity = (0, 0, 0);
    Stamp {
        modified: meta.modified().ok(),
        length: meta.len(),
        identity,
    }
}

fn read_all(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Loaded, String> {
    let proof = match &tls.ca {
        Some(ca) if !tls.insecure => Some(proof(tls, ca, provider)?),
        _ => None,
    };
    let client = match &tls.client_cert {
        Some(ours) => Some(Arc::new(client(ours, provider)?)),
        None => None,
    };
    Ok(Loaded { client, proof })
}

/// With an id, the authorities of the file are the only ones: a public authority says nothing about workloads.
fn proof(tls: &Tls, ca: &Path, provider: &Arc<CryptoProvider>) -> Result<Proof, String> {
    let mut roots = match tls.server_id {
        Some(_) => RootCertStore::empty(),
        None => system_roots().as_ref().clone(),
    };
    for certificate in certificates(ca)? {
        roots
            .add(certificate)
            .map_err(|error| format!("a certificate in {} cannot be used: {error}", ca.display()))?;
    }
    let roots = Arc::new(roots);
    match &tls.server_id {
        Some(id) => Ok(Proof::Id(id.clone(), roots)),
        None => WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map(Proof::HostName)
            .map_err(|error| format!("the certificates in {} cannot be used: {error}", ca.display())),
    }
}

/// Fails also if the key is not that of the certificate, as while one of the two files has been replaced.
fn client(ours: &ClientCert, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let (chain, key) = (certificates(&ours.cert)?, key(&ours.key)?);
    CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        let (cert, key) = (ours.cert.display(), ours.key.display());
        format!("the certificate {cert} cannot be used with the key {key}: {error}")
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let (pem, _) = read(path).map_err(|error| format!("certificates cannot be read from {shown}: {error}"))?;
    let read = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(format!("{shown} holds no certificate")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("certificates cannot be read from {shown}: {error}")),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let unreadable = |error: &dyn std::fmt::Display| format!("a private key cannot be read from {shown}: {error}");
    let (pem, meta) = read(path).map_err(|error| unreadable(&error))?;
    if private_file::is_readable_by_all(&meta) {
        tracing::warn!("the private key {shown} can be read by every user of this machine: `chmod o-rwx {shown}`");
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| unreadable(&error))
}

fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    private_file::do_not_wait(&mut options);
    let file: File = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok((bytes, meta)),
    }
}

#[cfg(test)]
mod tests;
