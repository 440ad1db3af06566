//! `pegboard health`, as a health check of a container runs it.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
};

use crate::{gateway::Served, home::Home};

/// A server that answers one request with this text.
fn answering(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(text.as_bytes());
    });
    url
}

#[test]
fn a_running_gateway_is_alive() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let url = format!("http://{}", served.address);
    home.run(&["health", "--url", &url]).ends_with(0).prints("alive");
    let document = home.run(&["health", "--url", &url, "-o", "json"]).json();
    assert_eq!(document["ok"], true, "{document}");
    assert_eq!(
        (&document["status"], &document["error"]),
        (&200.into(), &serde_json::Value::Null)
    );
}

#[test]
fn the_address_of_the_config_is_asked() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.config(&format!("[serve]\nlisten = ['{free}']\n"));
    home.run(&["health"]).ends_with(1).says("cannot be reached");
    let _served = Served::start(&home, &["--no-listen"]);
    home.run(&["health"]).ends_with(0);
}

/// Adds a certificate of its own to the config of a home.
fn certify(home: &Home, listen: SocketAddr) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["gateway.example.com".to_owned()]).unwrap();
    let cert = home.write("cert.pem", &params.self_signed(&key).unwrap().pem());
    let key = home.write("key.pem", &key.serialize_pem());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    home.config(&format!(
        "[serve]\nlisten = ['{listen}']\n[serve.tls]\ncert = '{}'\nkey = '{}'\n",
        cert.display(),
        key.display()
    ));
}

#[test]
fn a_gateway_with_a_certificate_is_asked_over_tls_and_must_have_that_certificate() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    certify(&home, free);
    let _served = Served::start(&home, &["--no-listen"]);
    let document = home.run(&["health", "-o", "json"]).json();
    assert_eq!(document["ok"], true, "{document}");
    assert_eq!(document["url"], format!("https://{free}/livez"));
    let other = Home::new();
    certify(&other, free);
    other.run(&["health"]).ends_with(1).says("cannot be reached");
    // No authority vouches for the certificate.
    let url = format!("https://{free}");
    home.run(&["health", "--url", &url])
        .ends_with(1)
        .says("cannot be reached");
}

#[test]
fn what_is_not_healthy_ends_with_code_1() {
    let home = Home::new();
    let busy = answering("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\nserver `db` is down");
    let ran = home.run(&["health", "--ready", "--url", &busy]);
    ran.ends_with(1).says("not ready: HTTP 503").says("server `db` is down");
    let other = answering("SSH-2.0-OpenSSH\r\n");
    home.run(&["health", "--url", &other]).ends_with(1).says("not HTTP");
    home.run(&["health", "--url", "ftp://x"]).ends_with(2).says("--url");
}

#[test]
fn a_service_that_does_not_answer_is_given_up_in_time() {
    let home = Home::new();
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let ran = home.run(&["health", "--url", &url, "--timeout", "300ms"]);
    ran.ends_with(1).says("has not answered within 300ms");
}
