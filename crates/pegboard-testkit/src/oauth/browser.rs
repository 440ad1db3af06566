//! The user's browser in a sign-in: one request, whose redirect is the result.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The limit on a response.
const LIMIT: u64 = 1 << 20;

/// Opens an authorization URL (`http` only), as this user if one is named, and returns where the server redirects to.
///
/// # Errors
/// When the URL cannot be opened, or the response is not a redirect. The error then has the response.
pub async fn follow_redirect(url: &str, user: Option<&str>) -> io::Result<String> {
    let mut url = url::Url::parse(url).map_err(io::Error::other)?;
    if let Some(user) = user {
        url.query_pairs_mut().append_pair("login_hint", user);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = format!("GET {target} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.take(LIMIT).read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response).into_owned();
    let location = response.lines().take_while(|line| !line.is_empty()).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let location = location.ok_or_else(|| io::Error::other(response))?;
    // A Location may be relative.
    url.join(&location).map(Into::into).map_err(io::Error::other)
}
