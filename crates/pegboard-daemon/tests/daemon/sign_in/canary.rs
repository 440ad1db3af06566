//! Nothing secret is in a page, a log or an event.

use std::{io::Write, sync::Arc};

use futures_util::FutureExt as _;
use pegboard_base::sync::Mutex;
use pegboard_testkit::oauth::{AuthFault, TokenKind};
use tracing_subscriber::fmt::MakeWriter;

use crate::sign_in::{browser::Browser, fixture::Site};

/// All text that was logged, at every level.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_code_token_or_cookie_is_in_pages_logs_or_events() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(logged.clone())
        .finish();
    let guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    let site = Site::new().await;
    let mut events = site.board.events();
    let mut browser = Browser::default();
    site.hello("ada").await;
    let link = site.link("ada").await;
    site.issuer.add_fault_times(1, AuthFault::TokenError("invalid_grant"));
    site.sign_in(&mut browser, &link, "ada").await;
    let page = browser.open(site.at("/signin/server/fx").as_str()).await;
    let leaving = browser.submit(&page, "sign-in").await;
    let page = browser.open(&leaving.refresh()).await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    browser.open(&link).await;
    assert_eq!(site.hello("ada").await, "hi");
    let mut said = format!("{:?} {:?}", site.gateway, site.board);
    while let Some(Some(event)) = events.next().now_or_never() {
        said += &format!("{event:?}");
    }
    drop(guard);
    let logged = String::from_utf8_lossy(&logged.0.lock().clone()).into_owned();
    assert!(!logged.is_empty());

    let code = link.split_once("link=").unwrap().1;
    let mut secrets: Vec<(String, String)> = vec![("the code of the link".into(), code.into())];
    secrets.extend(
        browser
            .cookies()
            .into_iter()
            .map(|cookie| ("a cookie".into(), cookie.into())),
    );
    let issued = site.issuer.issued();
    assert!(
        issued.iter().any(|token| token.kind == TokenKind::Refresh)
            && issued.iter().any(|token| token.kind == TokenKind::Code)
    );
    secrets.extend(
        issued
            .into_iter()
            .map(|token| (format!("a {:?}", token.kind), token.value)),
    );
    let own = browser.seen.iter().filter(|page| page.url.port() == site.url.port());
    let own: Vec<_> = own.collect();
    assert!(own.len() > 6);
    for (what, secret) in &secrets {
        assert!(!logged.contains(secret.as_str()), "{what} is in the log");
        assert!(!said.contains(secret.as_str()), "{what} is in an event");
        for page in &own {
            assert!(
                !page.body.contains(secret.as_str()),
                "{what} is in the page {}",
                page.url.path()
            );
            assert!(
                !page.header("location").is_some_and(|to| to.contains(secret.as_str())),
                "{what} is in a redirect"
            );
        }
    }
    for page in own {
        let (path, header) = (page.url.path(), |name| page.header(name).unwrap_or_default());
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert!(
            header("content-security-policy").starts_with("default-src 'none'; style-src 'sha256-"),
            "{path}"
        );
        // A page whose address is secret tells it nobody. One with a form has a plain address, and must name its origin.
        let has_form = page.body.contains("<form");
        assert_eq!(
            header("referrer-policy"),
            if has_form { "same-origin" } else { "no-referrer" },
            "{path}"
        );
        assert!(!has_form || page.url.query().is_none(), "{}", page.url.path());
        assert!(
            !page.body.contains("<script") && !page.body.contains("javascript:"),
            "{path}"
        );
    }
    site.close().await;
}
