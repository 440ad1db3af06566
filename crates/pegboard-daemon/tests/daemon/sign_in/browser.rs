//! A browser: it keeps cookies, follows redirects, and sends forms.

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use url::Url;

/// The limit on every wait. Only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The address that it is of.
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The value of an attribute after `before`.
    pub(crate) fn between(&self, before: &str, after: &str) -> Option<String> {
        let rest = self.body.split_once(before)?.1;
        let value = rest.split_once(after)?.0;
        Some(value.replace("&amp;", "&"))
    }

    /// The token of the form.
    pub(crate) fn form_token(&self) -> String {
        self.between("name=\"token\" value=\"", "\"").unwrap()
    }

    /// Where the page leads to by itself.
    pub(crate) fn refresh(&self) -> String {
        self.between("content=\"0;url=", "\"").unwrap()
    }
}

/// Sends one request without cookies or redirects.
pub(crate) async fn send(method: &str, url: &Url, headers: &[(&str, &str)], body: &str) -> Page {
    let exchange = async {
        let (host, port) = (url.host_str().unwrap(), url.port_or_known_default().unwrap());
        let mut stream = TcpStream::connect((host, port)).await.unwrap();
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {host}:{port}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        request += body;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
        String::from_utf8(response).unwrap()
    };
    let response = tokio::time::timeout(PATIENCE, exchange).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    Page {
        url: url.clone(),
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// A browser of one person.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    /// Cookies by host and name.
    cookies: BTreeMap<(String, String), String>,
    /// Everything that it has received.
    pub(crate) seen: Vec<Page>,
}

impl Browser {
    /// Opens an address as a link in another page does, and follows redirects.
    pub(crate) async fn open(&mut self, url: &str) -> Page {
        let mut url = Url::parse(url).unwrap();
        for _ in 0..10 {
            let navigation = [
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ];
            let page = self.request("GET", &url, &navigation, "").await;
            match page.header("location") {
                Some(location) => url = url.join(location).unwrap(),
                None => return page,
            }
        }
        panic!("{url} redirects for ever");
    }

    /// Sends the form of a page with one of its buttons.
    pub(crate) async fn submit(&mut self, page: &Page, action: &str) -> Page {
        let to = page.between("<form method=\"post\" action=\"", "\"").unwrap();
        let to = page.url.join(&to).unwrap();
        let origin = page.url.origin().ascii_serialization();
        let form = format!("token={}&action={action}", page.form_token());
        let answer = self
            .request(
                "POST",
                &to,
                &[("origin", &origin), ("sec-fetch-site", "same-origin")],
                &form,
            )
            .await;
        match answer.header("location") {
            Some(location) => {
                let location = to.join(location).unwrap();
                self.open(location.as_str()).await
            }
            None => answer,
        }
    }

    pub(crate) async fn request(&mut self, method: &str, url: &Url, headers: &[(&str, &str)], body: &str) -> Page {
        let host = url.host_str().unwrap().to_owned();
        let own = self.cookies.iter().filter(|((of, _), _)| *of == host);
        let cookies: Vec<String> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let mut all = headers.to_vec();
        if !cookies.is_empty() {
            all.push(("cookie", &cookies));
        }
        let page = send(method, url, &all, body).await;
        for line in page.head.lines() {
            let Some(("set-cookie", value)) = line.split_once(": ") else {
                continue;
            };
            let (pair, _) = value.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert((host.clone(), name.to_owned()), value.to_owned());
        }
        self.seen.push(page.clone());
        page
    }

    /// All cookies.
    pub(crate) fn cookies(&self) -> Vec<&str> {
        self.cookies.values().map(String::as_str).collect()
    }
}
