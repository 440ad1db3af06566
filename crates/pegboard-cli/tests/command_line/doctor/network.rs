//! Findings about remote servers.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Stdio,
    thread,
    time::Duration,
};

use pegboard_testkit::{
    Tool,
    oauth::{AuthorizationServer, follow_redirect},
};
use serde_json::{Value, json};

use super::diagnosis::{Diagnosis, QUICK, fake, mended_by, mends_itself, well};
use crate::{
    gateway::Served,
    home::{Home, Ran},
};

fn entry(url: &str, more: &str) -> String {
    format!("[servers.fx]\nurl = '{url}'\n{more}\n{QUICK}\n")
}

/// A listener that gives each request the same response, and its address. It ends with the test program.
fn answering(response: impl AsRef<[u8]> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(response.as_ref());
        }
    });
    format!("http://{address}/mcp")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_address_answers() {
    let home = Home::new();
    let served = fake().serve_http().await.unwrap();
    let mended = entry(&served.url(), "");
    for (id, response) in [
        (
            "redirected",
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            "not-mcp",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>",
        ),
        (
            "server-error",
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            "rate-limited",
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            "forbidden",
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            // The description has the word of another error.
            "forbidden",
            "HTTP/1.1 403 Forbidden\r\nWWW-Authenticate: Bearer error=\"access_denied\", error_description=\"no insufficient_scope\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        ("tls-failed", ""),
        // The connection is closed without a response.
        ("connection-failed", ""),
    ] {
        let url = answering(response);
        let url = if id == "tls-failed" {
            url.replace("http:", "https:")
        } else {
            url
        };
        mended_by(&home, id, &entry(&url, ""), &mended);
    }
}

/// `http://` is advised only where the server does not speak TLS.
#[test]
fn advice_on_tls_is_about_its_cause() {
    let home = Home::new();
    let fix = |answer: &'static [u8]| {
        let url = answering(answer).replace("http:", "https:");
        home.config(&entry(&url, ""));
        let found = Diagnosis::of(&home, &[]);
        found.finding("tls-failed").unwrap()["fix"].as_str().unwrap().to_owned()
    };
    let plain = fix(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(plain.contains("`http://`"), "{plain}");
    // The alert `certificate_required` of TLS 1.2.
    let refused = fix(&[21, 3, 3, 0, 2, 2, 116]);
    assert!(
        refused.contains("`tls.cert`") && !refused.contains("http://"),
        "{refused}"
    );
    // The alert `unknown_ca`: the server does not know who signed our certificate.
    let unknown = fix(&[21, 3, 3, 0, 2, 2, 48]);
    assert!(unknown.contains("`tls.cert`"), "{unknown}");
    // The alert `protocol_version`.
    let old = fix(&[21, 3, 3, 0, 2, 2, 70]);
    assert!(!old.contains("http://") && !old.contains("tls.cert"), "{old}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large() {
    let home = Home::new();
    let large = fake().tool(Tool::new("large").description(&"x".repeat(100_000)));
    let served = large.serve_http().await.unwrap();
    let broken = entry(&served.url(), "max_message = '64KiB'");
    mended_by(&home, "answer-too-large", &broken, &entry(&served.url(), ""));
    home.config(&broken);
    let found = Diagnosis::of(&home, &[]);
    let fix = found.finding("answer-too-large").unwrap()["fix"].clone();
    assert!(fix.as_str().unwrap().contains("max_message"), "{fix}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_be_reached() {
    let home = Home::new();
    let served = fake().serve_http().await.unwrap();
    let mended = entry(&served.url(), "");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    mended_by(
        &home,
        "connection-refused",
        &entry(&format!("http://{free}/mcp"), ""),
        &mended,
    );
    mended_by(
        &home,
        "host-unknown",
        &entry("http://no-such-host.invalid/mcp", ""),
        &mended,
    );
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let quick = entry(&url, "connect_timeout = '500ms'");
    mended_by(&home, "connect-timeout", &quick, &mended);
    home.config(&quick);
    let found = Diagnosis::of(&home, &[]);
    let found = found.finding("connect-timeout").unwrap();
    // The probe for the newest era has used up the time.
    let waited = found["diagnosis"]["cause"]["waited_ms"].as_u64().unwrap();
    assert!(waited >= 500, "{found}");
    assert!(!found["fix"].as_str().unwrap().contains("by hand"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_path_and_the_one_that_works() {
    let home = Home::new();
    let served = fake().serve_http().await.unwrap();
    home.config(&entry(&served.url().replace("/mcp", "/wrong"), ""));
    let found = Diagnosis::of(&home, &[]);
    found.shows("path-not-found");
    let fix = found.finding("path-not-found").unwrap()["fix"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(fix, format!("url = {:?}", served.url()));
    let mended = mends_itself(
        &home,
        "path-not-found",
        &entry(&served.url().replace("/mcp", "/wrong"), ""),
        &[],
    );
    assert!(mended.contains(&served.url()), "{mended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_corrected_in_the_text_and_variables_stay_secret() {
    let home = Home::new();
    let served = fake().serve_http().await.unwrap();
    let base = served
        .url()
        .replace("http://", "http://admin:hunter2secret@")
        .replace("/mcp", "");
    let doctor = |args: &[&str]| {
        let mut command = home.pegboard(&[&["doctor"], args].concat());
        command
            .env("BASE", &base)
            .env("TENANT", "tenant-4711")
            .env("WRONG", "wrong");
        let ran = Ran::of(command);
        let said = format!("{ran:?}");
        assert!(
            !said.contains("hunter2secret") && !said.contains("tenant-4711"),
            "{said}"
        );
        ran
    };
    let config = |path: &str| format!("[servers.fx]\nurl = \"${{BASE}}{path}?tenant=${{TENANT}}\" # mine\n");
    let file = home.config(&config("/wrong"));
    doctor(&["--fix", "--dry-run"]).prints("url = \"${BASE}/mcp?tenant=${TENANT}\"");
    doctor(&["--fix", "--yes"]).ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), config("/mcp"));
    // The path comes from a variable.
    let config = config("/${WRONG}");
    home.config(&config);
    let found = Diagnosis::from(&doctor(&["-o", "json"]));
    let finding = found.finding("path-not-found").unwrap();
    assert_eq!(finding["fixable"], false, "{finding}");
    assert!(finding["fix"].as_str().unwrap().contains("`/mcp`"), "{finding}");
    doctor(&["--fix", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), config);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_missing_or_wrong() {
    let home = Home::new();
    let served = fake().bearer("right-token-0123").serve_http().await.unwrap();
    let mended = entry(&served.url(), "auth = { bearer = '${T:-right-token-0123}' }");
    mended_by(&home, "sign-in-needed", &entry(&served.url(), ""), &mended);
    let wrong = entry(&served.url(), "auth = { bearer = '${T:-wrong-token-0123}' }");
    mended_by(&home, "credentials-refused", &wrong, &mended);
    let found = home.run(&["doctor"]);
    assert!(!found.out.contains("token-0123"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_is_over_is_not_one_that_never_was() {
    let issuer = AuthorizationServer::new().without_refresh().start().await.unwrap();
    let server = issuer.protect(&fake()).await.unwrap();
    let home = Home::new();
    home.config(&entry(&server.url(), ""));
    Diagnosis::of(&home, &[]).shows("sign-in-needed");
    let sign_in = async || {
        let mut login = home.pegboard(&["login", "fx", "--no-browser", "--timeout", "60"]);
        login
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = login.spawn().unwrap();
        let messages = BufReader::new(child.stderr.as_mut().unwrap()).lines();
        let mut lines = messages.map(|line| line.unwrap().trim().to_owned());
        let url = lines.find(|line| line.starts_with("http")).unwrap();
        let redirected = follow_redirect(&url, Some("alice")).await.unwrap();
        // The page is no redirect.
        let _ = follow_redirect(&redirected, None).await;
        Ran::end_of(child).ends_with(0);
    };
    sign_in().await;
    Diagnosis::of(&home, &[]).is_well_without("sign-in-needed");
    issuer.expire_access_tokens();
    let found = Diagnosis::of(&home, &[]);
    assert_eq!(
        found.shows("sign-in-expired").finding("sign-in-expired").unwrap()["fix"],
        "pegboard login fx"
    );
    sign_in().await;
    Diagnosis::of(&home, &[]).is_well_without("sign-in-expired");
}

/// An MCP server over HTTP with a tool, whose responses have this date. It ends with the test program.
fn dated(date: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let body = answer(&mut stream).unwrap_or_default();
            let _ = write!(
                stream,
                "HTTP/1.1 {}\r\n{date}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                if body.is_empty() { "202 Accepted" } else { "200 OK" },
                body.len()
            );
        }
    });
    format!("http://{address}/mcp")
}

/// Reads a request, and returns the body of its response.
fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).ok()? > 2 {
        let header = line.to_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).ok()?;
    let id = request.get("id")?;
    let result = match request["method"].as_str()? {
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "d", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "server/discover" => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
        }
        _ => json!({}),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_far_off() {
    let home = Home::new();
    let served = fake().serve_http().await.unwrap();
    let far = dated("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    mended_by(&home, "clock-wrong", &entry(&far, ""), &entry(&served.url(), ""));
    home.config(&entry(&dated(""), ""));
    Diagnosis::of(&home, &[]).is_well_without("clock-wrong");
}

/// Writes a certificate for a host name, valid in these years.
fn certificate(home: &Home, host: &str, years: (i32, i32)) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    home.write("key.pem", &key.serialize_pem());
    home.write("cert.pem", &params.self_signed(&key).unwrap().pem());
}

/// Serves over TLS with the certificate of the home folder.
fn serve_tls(home: &Home) -> Served {
    let tls = format!(
        "[serve.tls]\ncert = '{}'\nkey = '{}'\n",
        home.path("cert.pem").display(),
        home.path("key.pem").display()
    );
    home.config(&format!("{tls}{}", well(home)));
    Served::start(home, &["--no-socket"])
}

#[test]
fn certificates_that_cannot_be_trusted() {
    for (id, host, years, trusts) in [
        ("certificate-unknown", "localhost", (2020, 2100), false),
        ("certificate-wrong-host", "elsewhere.example", (2020, 2100), true),
        ("certificate-expired", "localhost", (2000, 2001), true),
        ("certificate-not-yet-valid", "localhost", (2090, 2100), true),
    ] {
        let (home, client) = (Home::new(), Home::new());
        certificate(&home, host, years);
        let served = serve_tls(&home);
        let port = served.address.rsplit(':').next().unwrap();
        let entry = |home: &Home, trusts: bool| {
            let ca = if trusts {
                format!("tls = {{ ca = '{}' }}", home.path("cert.pem").display())
            } else {
                String::new()
            };
            entry(&format!("https://localhost:{port}/mcp"), &ca)
        };
        client.config(&entry(&home, trusts));
        Diagnosis::of(&client, &[]).shows(id);
        drop(served);
    }
    let (home, client) = (Home::new(), Home::new());
    certificate(&home, "localhost", (2020, 2100));
    let served = serve_tls(&home);
    let port = served.address.rsplit(':').next().unwrap();
    let ca = format!("tls = {{ ca = '{}' }}", home.path("cert.pem").display());
    client.config(&entry(&format!("https://localhost:{port}/mcp"), &ca));
    Diagnosis::of(&client, &[]).is_well_without("certificate-unknown");
}

#[test]
fn proxies() {
    let home = Home::new();
    home.config(&entry("http://127.0.0.1:9/mcp", ""));
    let doctor = |variables: &[(&str, &str)]| {
        let mut command = home.pegboard(&["doctor", "--offline", "-o", "json"]);
        command.envs(variables.iter().copied());
        Diagnosis::from(&Ran::of(command))
    };
    doctor(&[("HTTP_PROXY", "http://proxy.example:3128")]).shows("proxy-and-local");
    let exempt = [
        ("HTTP_PROXY", "http://proxy.example:3128"),
        ("NO_PROXY", "localhost,127.0.0.1"),
    ];
    doctor(&exempt).is_well_without("proxy-and-local");
    doctor(&[("HTTPS_PROXY", "http://")]).shows("proxy-invalid");
    doctor(&[]).is_well_without("proxy-invalid");
}
