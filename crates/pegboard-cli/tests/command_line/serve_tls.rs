//! `pegboard serve` with a certificate: HTTPS for its clients, and a new certificate without a restart.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::Command,
    sync::Arc,
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};

use super::{
    gateway::Served,
    home::{Home, until},
};

/// Writes a certificate that ends in this year. Returns its PEM text.
fn write_pair(home: &Home, year: i32) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let cert = params.self_signed(&key).unwrap().pem();
    fs::write(home.path("key.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(home.path("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(home.path("cert.pem"), &cert).unwrap();
    cert
}

/// A home with a server and a certificate.
fn home() -> (Home, String) {
    home_with(|cert, key| format!("cert = '{cert}'\nkey = '{key}'"))
}

/// The same, with the lines of `[serve.tls]` for these files.
fn home_with(tls: impl Fn(&str, &str) -> String) -> (Home, String) {
    let home = Home::new();
    let cert = write_pair(&home, 2100);
    let fake = FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    let file = |name: &str| home.path(name).display().to_string();
    let tls = tls(&file("cert.pem"), &file("key.pem"));
    home.config(&format!("[serve.tls]\n{tls}\n{entry}"));
    (home, cert)
}

/// Asks for `/livez` as a client that trusts only this certificate.
fn alive(served: &Served, cert: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(cert.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let port = served.address.rsplit(':').next().unwrap();
    let stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

#[test]
fn clients_reach_the_gateway_over_tls() {
    let (home, cert) = home_with(|cert, key| format!("cert = '{cert}'\nkey = '{key}'"));
    let served = Served::start(&home, &[]);
    let endpoint = served.document["endpoints"][0].as_str().unwrap();
    assert!(endpoint.starts_with("https://127.0.0.1:"), "{endpoint}");
    assert!(alive(&served, &cert).unwrap().starts_with("HTTP/1.1 200"));
    // Another program's idea of TLS, where it is installed.
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    let url = format!("https://localhost:{port}/livez");
    let cert_file = home.path("cert.pem");
    let curl = Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert"])
        .arg(&cert_file)
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1"), &url])
        .output();
    match curl {
        Ok(ran) => assert_eq!(
            String::from_utf8_lossy(&ran.stdout),
            "200",
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        ),
        Err(error) => println!("skipped: curl cannot be run: {error}"),
    }
}

#[test]
fn an_encrypted_gateway_beyond_loopback_has_no_warning() {
    let (home, _) = home();
    let digest = pegboard::config::TokenDigest::compute("pgb_alice");
    let config = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    home.config(&format!("[serve.tokens.alice]\nsha256 = '{digest}'\n{config}"));
    let served = Served::start(&home, &["--listen", "0.0.0.0:0"]);
    assert_eq!(served.document["warnings"], serde_json::json!([]));
    assert!(!served.err().contains("is not encrypted"), "{}", served.err());
}

#[test]
fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let (home, first) = home();
    let served = Served::start(&home, &[]);
    alive(&served, &first).unwrap();
    fs::write(home.path("cert.pem"), "no certificate").unwrap();
    served.says("the config is not reloaded, nothing has changed");
    served.says("there is no certificate in it");
    alive(&served, &first).unwrap();
    // The key of another certificate: what a half-done renewal looks like.
    fs::write(home.path("cert.pem"), &first).unwrap();
    let other = rcgen::KeyPair::generate().unwrap();
    fs::write(home.path("key.pem"), other.serialize_pem()).unwrap();
    served.signal("HUP");
    served.says("cannot be used");
    alive(&served, &first).unwrap();
    let second = write_pair(&home, 2101);
    until("the new certificate is used", || alive(&served, &second).is_ok());
    assert!(alive(&served, &first).is_err());
}

#[test]
fn what_is_unsafe_or_will_not_work_is_told() {
    let (home, _) = home();
    fs::set_permissions(home.path("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    let served = Served::start(&home, &[]);
    served.says("can be read by other users");
    assert_eq!(served.document["warnings"].as_array().unwrap().len(), 1);
    drop(served);
    write_pair(&home, 2020);
    let served = Served::start(&home, &[]);
    served.says("has expired at 2020-01-01");
    drop(served);
    fs::remove_file(home.path("key.pem")).unwrap();
    home.run(&["serve", "--listen", "0"])
        .ends_with(2)
        .says("cannot read")
        .says("key.pem");
}
