//! Values, and the secrets in them.

use super::*;

#[track_caller]
fn check(name: &str, value: &str, want: &[&str]) {
    let found = secrets_in(name, value);
    let found: Vec<&str> = found.iter().map(Secret::expose).collect();
    assert_eq!(found, want, "{name}={value}");
}

#[test]
fn credentials_count_without_their_scheme() {
    check("Authorization", "Bearer abc", &["abc"]);
    check("authorization", "bearer  abc123xyz", &["abc123xyz"]);
    check(
        "Authorization",
        "Basic bWU6aHVudGVyMg==",
        &["bWU6aHVudGVyMg==", "hunter2", "me:hunter2"],
    );
    check("X-Thing", "token bucket", &[]);
    check("Cookie", "theme=dark; sid=s3cr3t-sid; lang=en", &["s3cr3t-sid"]);
}

#[test]
fn the_parts_of_a_credential_that_prove_it_are_secrets_by_themselves() {
    for (value, want) in [
        (r#"Token token="y_NbAkKc66ryYTWUXYEu""#, &["y_NbAkKc66ryYTWUXYEu"][..]),
        ("Token token=tomato", &["tomato"]),
        ("sig=q7Rt2mXz9w", &["q7Rt2mXz9w"]),
        (
            r#"Signature keyId="k1",algorithm="hmac-sha256",signature="potato==""#,
            &["potato=="],
        ),
        (
            r#"Digest username="me", realm="r", nonce="0a1b2c3d4e5f6a7b", uri="/", response="5b1f0c7d9e3a4826""#,
            &["5b1f0c7d9e3a4826"],
        ),
        (
            "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=9f86d081884c7d65",
            &["9f86d081884c7d65"],
        ),
        (
            "SharedAccessSignature sr=h&sig=a%2Fb%3D&se=1760000000&skn=root",
            &["a%2Fb%3D", "a/b="],
        ),
        (
            r#"Hawk id="dh37", ts="1353832234", nonce="j4h3g2", mac="6R4rV5iE+NPoym==""#,
            &["6R4rV5iE+NPoym=="],
        ),
        (
            r#"OAuth oauth_consumer_key="xvz1", oauth_token="370773112", oauth_signature="tnnArxj06c""#,
            &["370773112", "tnnArxj06c"],
        ),
        ("GoogleLogin auth=DQAAAGgA7ZpQ", &["DQAAAGgA7ZpQ"]),
    ] {
        let found = secrets_in("Authorization", value);
        for part in want {
            assert!(
                found.iter().any(|secret| secret.expose() == *part),
                "{part} of {value}: {want:?}"
            );
        }
        for public in [
            "me",
            "r",
            "k1",
            "hmac-sha256",
            "host",
            "0a1b2c3d4e5f6a7b",
            "AKIA/20260101/eu/s3/aws4_request",
        ] {
            assert!(
                !found.iter().any(|secret| secret.expose() == public),
                "{public} of {value}"
            );
        }
    }
    check(
        "Authorization",
        "Basic bWU6aHVudGVyMg==",
        &["bWU6aHVudGVyMg==", "hunter2", "me:hunter2"],
    );
    check("X-Thing", "a=b, c=d", &[]);
}

#[test]
fn parts_of_a_value_count_too() {
    check("DATABASE", "postgres://me:p%40ss@db:5432/app", &["p%40ss", "p@ss"]);
    check("X", "mongodb://u:pw12@h1:27017,h2:27017/db?replicaSet=rs0", &["pw12"]);
    check("X", "redis://:pa/ss@cache", &["pa/ss"]);
    check(
        "X",
        "https://0a1b2c3d4e5f6a7b@o1.ingest.example.com/12",
        &["0a1b2c3d4e5f6a7b"],
    );
    check("X", "Server=db;User Id=sa;Password=tomato", &["tomato"]);
    check(
        "X",
        "host=db user=me password='s3cret'",
        &["host=db user=me password='s3cret'", "password='s3cret", "s3cret"],
    );
    check("MYSQL", "me:tomato@tcp(db:3306)/app", &["tomato"]);
    check("JDBC", "jdbc:postgresql://db/app?user=me&password=tomato", &["tomato"]);
    check(
        "CONFIG",
        r#"{"level": "debug", "api_key": "tomato", "more": {"url": "http://u:pw@h"}, "env": [{"name": "DB_PASSWORD", "value": "potato"}]}"#,
        &["tomato", "potato", "pw"],
    );
}

#[test]
fn every_line_of_a_private_key_counts_and_no_line_of_a_certificate() {
    let kind = "PRIVATE KEY";
    let body = "QUJDREVGR0hJSktMTU5PUA\nUVJTVFVWV1hZWg==";
    let key = format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
    let lines = ["QUJDREVGR0hJSktMTU5PUA", "UVJTVFVWV1hZWg=="];
    check("X", &key, &lines);
    check("X", &key.replace('\n', "\\n"), &lines);
    check("X", &serde_json::json!({"a": key}).to_string(), &lines);
    check("X", &key.replace(kind, "CERTIFICATE"), &[]);
}

#[test]
fn urls_without_credentials_hold_none() {
    for value in [
        "https://api.example.com/v1/things?version=2&lang=en",
        "https://me@example.com/x",
        "git+https://github.com/acme/server@0a1b2c3d4e5f6a7b8c9d",
        "http://localhost:8080",
    ] {
        check("TOKEN_URL", value, &[]);
    }
}

#[test]
fn a_large_value_has_a_bounded_number_of_parts() {
    let lines: Vec<String> = (0..5000).map(|n| format!("t0k3n-{n}-x9y8z7")).collect();
    assert_eq!(secrets_in("X", &lines.join("\n")).len(), MAX_PARTS);
}
