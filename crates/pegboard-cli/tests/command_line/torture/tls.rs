//! The `tls` settings of a server hold for `torture`, too.

use crate::{gateway::Served, home::Home};

#[test]
fn the_certificates_of_the_config_are_used() {
    let home = Home::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let files = [
        home.write("cert.pem", &params.self_signed(&key).unwrap().pem()),
        home.write("key.pem", &key.serialize_pem()),
    ];
    let [cert, key] = files.map(|file| file.display().to_string());
    home.config(&format!("[serve.tls]\ncert = '{cert}'\nkey = '{key}'\n"));
    let served = Served::start(&home, &["--no-socket"]);
    let port = served.address.rsplit(':').next().unwrap();
    let client = Home::new();
    let torture = |tls: &str| {
        client.config(&format!("[servers.fx]\nurl = 'https://localhost:{port}/mcp'\n{tls}\n"));
        client.run(&["torture", "fx", "--era", "legacy", "--only", "ping"])
    };
    torture("").ends_with(3).says("no session with fx can be opened");
    torture(&format!("tls = {{ ca = '{cert}' }}"))
        .ends_with(0)
        .prints("grade A");
    torture("tls = { insecure = true }").ends_with(0).prints("grade A");
    torture(&format!("tls = {{ ca = '{cert}', cert = '{cert}', key = '{key}' }}"))
        .ends_with(0)
        .prints("grade A");
    torture("tls = { ca = '/no/such/file.pem' }")
        .ends_with(2)
        .says("/no/such/file.pem");
    torture(&format!("tls = {{ ca = '{cert}', server_id = 'spiffe://x/y' }}"))
        .ends_with(2)
        .says("tls.server_id");
}
