//! A program that uses rustls itself: it decides about cryptography, and the library installs nothing for it.

use std::time::Duration;

use anyhow::{Context, ensure};
use pegboard::{Config, Kind, Pegboard, Reply, ServerConfig, config::Start};
use rustls::crypto::CryptoProvider;
use tokio::{io::AsyncReadExt as _, net::TcpListener, time::timeout};

const SOON: Duration = Duration::from_secs(30);
const MISSING: &str = "this program was built without cryptography for TLS";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    #[cfg(feature = "own")]
    {
        let before = attempt().await?;
        ensure!(before.reply.text().contains(MISSING), "{}", before.reply.text());
        ensure!(
            before.reply.text().contains("rustls-ring"),
            "what to do is missing: {}",
            before.reply.text()
        );
        ensure!(
            rustls::crypto::ring::default_provider().install_default().is_ok(),
            "a provider is installed"
        );
    }
    // It would panic if the library had turned on another provider beside the program's.
    #[cfg(feature = "aws-lc")]
    let _ = rustls::ClientConfig::builder();
    let tried = attempt().await?;
    let said = tried.reply.text();
    match cfg!(any(feature = "ring", feature = "aws-lc", feature = "own")) {
        true => ensure!(tried.is_tls && !said.contains(MISSING), "TLS did not begin: {said}"),
        false => ensure!(
            !tried.is_tls && said.contains(MISSING),
            "no cryptography is expected: {said}"
        ),
    }
    ensure!(tried.reply.outcome.kind() == Kind::Unavailable, "{said}");
    // The program's own, by itself or by `builder`.
    let is_installed = CryptoProvider::get_default().is_some();
    ensure!(
        is_installed == cfg!(any(feature = "own", feature = "aws-lc")),
        "a provider is installed: {is_installed}"
    );
    Ok(())
}

struct Attempt {
    reply: Reply,
    /// Whether the peer received the first record of a handshake.
    is_tls: bool,
}

/// Calls a server over HTTPS whose peer closes each connection after the first bytes.
async fn attempt() -> anyhow::Result<Attempt> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/mcp", listener.local_addr()?);
    let peer = tokio::spawn(async move {
        let mut first = [0; 1];
        let (mut stream, _) = listener.accept().await?;
        stream.read_exact(&mut first).await?;
        std::io::Result::Ok(first[0] == 0x16)
    });
    let server = ServerConfig::http(url)?.start(Start::Lazy).connect_timeout(SOON);
    let board = Pegboard::open(Config::new().server("far", server)?);
    let reply = timeout(2 * SOON, board.toolset().call("far.anything"))
        .await
        .context("the call has a limit")?;
    board.shutdown().await;
    let is_tls = match peer.is_finished() {
        true => peer.await??,
        false => {
            peer.abort();
            false
        }
    };
    Ok(Attempt { reply, is_tls })
}
