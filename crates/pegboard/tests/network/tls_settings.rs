//! The TLS settings of a config file, from its text to the connection.

use pegboard::{Config, Env, Format, Pegboard};
use pegboard_testkit::Era;

use crate::{
    fixtures::*,
    tls::{Authority, pass_to},
};

#[tokio::test]
async fn the_tls_settings_of_a_file_reach_the_connection() {
    let authority = Authority::new();
    let (ca, ours) = (authority.file(), authority.client());
    let (ca, cert, key) = (ca.display(), ours.cert.display(), ours.key.display());
    let web = fake(Era::Legacy).serve_http().await.unwrap();
    let identity = authority.signs(|_| {});
    let open = pass_to(identity.settings(None), web.address()).await;
    let closed = pass_to(identity.settings(Some(&authority)), web.address()).await;
    for (front, settings, is_reached) in [
        (&open, String::new(), false),
        (&open, format!("tls = {{ ca = '{ca}' }}"), true),
        (&open, "tls = { insecure = true }".to_owned(), true),
        (&open, "insecure = true".to_owned(), true),
        (&closed, format!("tls = {{ ca = '{ca}' }}"), false),
        (
            &closed,
            format!("tls = {{ ca = '{ca}', cert = '{cert}', key = '{key}' }}"),
            true,
        ),
    ] {
        let url = front.url("https", "localhost", "/mcp");
        let text = format!("[servers.fx]\nurl = '{url}'\n{settings}\n");
        let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
        assert_eq!(loaded.errors().count(), 0, "{text}");
        let board = Pegboard::open(loaded.config);
        let reply = hello(&board.toolset()).await;
        assert_eq!(!reply.is_error(), is_reached, "{settings}: {}", reply.text());
        board.shutdown().await;
    }
}
