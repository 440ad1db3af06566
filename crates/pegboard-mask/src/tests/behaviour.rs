//! Order, style, exceptions, failures, counts, and running time.

use super::*;

fn with(change: impl FnOnce(&mut Masking)) -> Masker {
    let mut policy = Masking::default();
    change(&mut policy);
    Masker::new(&policy, [Secret::new("kn0wn-s3cret")]).unwrap()
}

#[test]
fn nothing_to_hide_costs_no_copy() {
    let masked = with(|_| {});
    for text in [
        "",
        "a",
        "plain words and 4ca3503e26c4f28e684263671734836370e46f78",
        "max_tokens: 4096, tokenizer=bpe, next_token: null",
    ] {
        let masked = masked.text(text);
        assert!(matches!(masked.text, Cow::Borrowed(_)), "{}", masked.text);
        assert!(masked.counts.is_empty());
    }
}

#[test]
fn only_the_value_is_replaced_unless_the_name_should_go_too() {
    let text = r#"{"password": "hunter2!", "x": 1}"#;
    let value = with(|policy| policy.groups.push("basic".into()));
    assert_eq!(value.text(text).text, r#"{"password": "[MASKED_PASSWORD]", "x": 1}"#);
    let whole = with(|policy| {
        policy.groups.push("basic".into());
        policy.style = MaskStyle::Whole;
    });
    assert_eq!(whole.text("the password: hunter2! is").text, "the [MASKED_PASSWORD] is");
}

#[test]
fn known_secrets_are_hidden_even_when_masking_is_off_or_they_are_excepted() {
    let off = with(|policy| policy.enabled = false);
    assert_eq!(off.text("a kn0wn-s3cret").text, "a [MASKED_SECRET]");
    let token = CORPUS
        .iter()
        .find(|(name, ..)| *name == "npm_token")
        .unwrap()
        .1
        .concat();
    assert_eq!(off.text(&token).text, token);
    let excepted = with(|policy| policy.except = vec!["npm_.*".into(), "kn0wn.*".into()]);
    assert_eq!(excepted.text(&token).text, token);
    assert_eq!(excepted.text("a kn0wn-s3cret").text, "a [MASKED_SECRET]");
    let mut number = serde_json::json!({"pin": 12_345_678, "n": 1});
    let masker = Masker::new(&Masking::default(), [Secret::new("12345678")]).unwrap();
    masker.value(&mut number);
    assert_eq!(number, serde_json::json!({"pin": "[MASKED_SECRET]", "n": 1}));
}

#[test]
fn custom_patterns_replace_what_they_say() {
    let masker = with(|policy| {
        let mut ticket = CustomPattern::new(r"TICKET-(\d)\d+");
        ticket.replacement = "TICKET-${1}xx".to_owned();
        ticket.description = Some("ticket".to_owned());
        policy.custom = vec![ticket, CustomPattern::new(r"badge (?<secret>\w+)")];
    });
    let masked = masker.text("TICKET-1234 and badge b7");
    assert_eq!(masked.text, "TICKET-1xx and badge [MASKED]");
    assert_eq!(
        masked.counts.iter().collect::<Vec<_>>(),
        [("custom:1", 1), ("custom:ticket", 1)]
    );
}

#[test]
fn counts_are_of_what_was_hidden() {
    let token = CORPUS
        .iter()
        .find(|(name, ..)| *name == "github_token")
        .unwrap()
        .1
        .concat();
    let text = format!("{token} {token} kn0wn-s3cret");
    let masked = with(|_| {}).text(&text).counts;
    assert_eq!(masked.iter().collect::<Vec<_>>(), [("github_token", 2), ("secret", 1)]);
    assert_eq!(masked.total(), 3);
}

#[test]
fn a_failure_withholds_the_text() {
    let masker = Masker {
        patterns: Arc::new(PatternSet::with_broken_pattern()),
        values: Arc::default(),
    };
    let masked = masker.text("anything at all");
    assert_eq!(masked.text, WITHHELD);
    assert_eq!(masked.counts.total(), 1);
    let mut value = serde_json::json!({"a": ["some text"]});
    masker.value(&mut value);
    assert_eq!(value["a"][0], WITHHELD);
}

#[test]
fn names_that_nobody_has_are_refused() {
    let mut policy = Masking {
        groups: vec!["kubernets".into()],
        ..Masking::default()
    };
    assert!(matches!(Masker::new(&policy, []), Err(BadMasking::Group(name)) if name == "kubernets"));
    policy.groups = vec!["Security".into()];
    policy.patterns = vec!["github-token".into()];
    assert!(Masker::new(&policy, []).is_ok());
    policy.patterns = vec!["nothing".into()];
    assert!(matches!(Masker::new(&policy, []), Err(BadMasking::Pattern(_))));
    policy.patterns.clear();
    policy.custom = vec![CustomPattern::new("a|")];
    assert!(matches!(Masker::new(&policy, []), Err(BadMasking::Regex { .. })));
}

#[test]
fn escapes_hide_nothing_from_the_masker() {
    let token = CORPUS
        .iter()
        .find(|(name, ..)| *name == "github_token")
        .unwrap()
        .1
        .concat();
    let escaped = format!("{{\"a\": \"\\u0067{}\"}}", &token[1..]);
    let masked = with(|_| {}).text(&escaped).text.into_owned();
    assert_eq!(masked, r#"{"a": "[MASKED_GITHUB_TOKEN]"}"#);
    for before in ["\\n", "%20", "\x1b[32m", "(", "'"] {
        let text = format!("x{before}{token}");
        assert!(!with(|_| {}).text(&text).text.contains(&token), "{text}");
    }
}

#[test]
fn names_decide_in_structured_values_too() {
    let masker = with(|policy| policy.groups.push("basic".into()));
    let mut value = serde_json::json!({
        "password": "two words", "user": "me", "env": [{"name": "DB_PASSWORD", "value": "abc def ghi"}], "kn0wn-s3cret": 1,
        "Authorization": "Basic dXNlcjpwYXNzMTIz",
    });
    masker.value(&mut value);
    assert_eq!(
        value,
        serde_json::json!({
            "password": "[MASKED_PASSWORD]", "user": "me", "env": [{"name": "DB_PASSWORD", "value": "[MASKED_PASSWORD]"}], "[MASKED_SECRET]": 1,
            "Authorization": "[MASKED_AUTHORIZATION_HEADER]",
        })
    );
}

#[test]
fn what_agents_need_stays_readable() {
    let masker = with(|_| {});
    for text in [
        "commit 4ca3503e26c4f28e684263671734836370e46f78",
        "image: registry.example.org/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "max_tokens: 4096\ntokenizer=bpe\nnext_token: null\n",
        "let n = resp.total_tokens; PrivateKeyDer::Sec1(key); apikey::Auth",
        "token_endpoint: https://id.example.org/oauth2/token1",
        "secretName: db-credentials-v2\nsecretKeyRef:\n  name: db\n  key: password\n",
        "password: <your password>, token: xxxxxxxxxxxx, secret: ${SECRET_1}",
        "trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
        "nextPageToken: CAUQAA1234567890abcDEF",
        "\"integrity\": \"sha512-Z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "Authorization: required\nUse a bearer token to authenticate.",
        "git@github.com:owner/repo.git and http://localhost:8080/@scope/x",
    ] {
        assert_eq!(masker.text(text).text, text);
    }
}

#[test]
fn long_and_hostile_texts_take_a_moment() {
    let masker = with(|policy| policy.groups.push("all".into()));
    let words: Vec<&str> = patterns::all().flat_map(|pattern| pattern.keywords).copied().collect();
    for text in [
        "a".repeat(1 << 18),
        "eyJ".repeat(1 << 16),
        words.join(" ").repeat(60),
        "password=".repeat(1 << 14),
        "\"\\".repeat(1 << 17),
        "{\"a\":".repeat(1 << 14),
        "://a:".repeat(1 << 15),
        "kn0wn-s3cret \"a\\n\" ".repeat(1 << 16),
        "{\"a\":\"x\\n kn0wn-s3cret\"},".repeat(1 << 15),
        format!("kind: Secret\n{}\"", "{}".repeat(1 << 20)),
        format!(
            "kind: Secret\n{}{}",
            "data: [MASKED_SECRET_DATA] ".repeat(1 << 15),
            " ".repeat(1 << 20)
        ),
        format!("kind: Secret\n{}{}", " data:\n".repeat(256), " a\n".repeat(1 << 16)),
        format!(
            "{{\"kind\": \"Secret\", \"a\": {}{}",
            "[".repeat(250),
            "{},".repeat(1 << 16)
        ),
    ] {
        let started = std::time::SystemTime::now();
        masker.text(&text);
        let took = started.elapsed().unwrap();
        assert!(took.as_secs() < 20, "{took:?} for {}", &text[..20]);
    }
}

#[test]
fn the_beginning_of_a_block_inside_another_one_is_no_reason_to_withhold_a_text() {
    let policy = Masking {
        groups: vec!["all".to_owned()],
        ..Masking::default()
    };
    let masker = Masker::new(&policy, []).unwrap();
    for text in [
        "-----BEGIN -----BEGIN X-----\nQUJD\n",
        "-----BEGIN A-----BEGIN -----BEGIN",
    ] {
        let masked = masker.text(text);
        assert!(masked.counts.iter().all(|(name, _)| name != WITHHELD_NAME), "{text}");
    }
}

#[test]
fn a_name_at_the_end_of_a_string_takes_no_value_from_the_next() {
    let long = "x".repeat(300);
    for text in [
        r#"{"a":"the token=","b":"other9"}"#.to_owned(),
        format!(r#"{{"a":"{long} password: ","b":"Other9"}}"#),
        r#"{"a":"passwords: [","b":"Other9","c":"]"}"#.to_owned(),
        r#"{"a":"<password>","b":"Other9</x"}"#.to_owned(),
        r#"{"a":"{\"b\":\"password=\",\"c\":\"Other9\"}"}"#.to_owned(),
    ] {
        let masker = Masker::new(&Masking::default(), []).unwrap();
        assert_eq!(masker.text(&text).text, text);
    }
}

#[test]
fn values_with_symbols_and_words_are_masked_in_what_commands_print() {
    for (text, secret) in [
        (r#"[{"value": "a}b{c9!", "name": "DB_PASSWORD"}]"#, "a}b{c9!"),
        ("passphrase: correct horse battery staple\n", "horse"),
        ("<property name=\"db.password\">hib3rn8</property>", "hib3rn8"),
        ("<password><![CDATA[cd4ta&x]]></password>", "cd4ta"),
        (
            "docker run -e POSTGRES_PASSWORD=mysecretpassword postgres",
            "mysecretpassword",
        ),
        ("Your new password is: Tmp-48213", "Tmp-48213"),
        ("psk=\"MyHomeNet99\"", "MyHomeNet99"),
        ("password: é(k9!x\n", "k9!x"),
    ] {
        let masker = Masker::new(&Masking::default(), []).unwrap();
        let masked = masker.text(text);
        assert!(!masked.text.contains(secret), "{}", masked.text);
        assert!(masked.counts.iter().all(|(name, _)| name != WITHHELD_NAME));
    }
}

#[test]
fn a_known_secret_is_found_in_base64_of_any_other_form() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let value = "hT7-Zq9_wX2.kLm4vB8n";
    let masker = Masker::new(&Masking::default(), [Secret::new(value)]).unwrap();
    let each = |write: fn(u8) -> String| value.bytes().map(write).collect::<String>();
    for form in [
        STANDARD.encode(STANDARD.encode(value)),
        each(|b| format!("%{b:02X}")),
        each(|b| format!("\\x{b:02x}")),
        each(|b| format!("&#{b};")),
        each(|b| format!("{b:02x} ")),
    ] {
        let encoded = STANDARD.encode(format!("the value: {form}"));
        let shown = masker.text(&encoded).text.into_owned();
        assert!(!shown.contains(&encoded[20..]), "{form}: {shown}");
    }
}

#[test]
fn a_known_secret_in_a_list_of_bytes_is_hidden_in_text_and_in_structured_content() {
    let secret = "Zk7hqP2xaLw9vT4mRb8cQ3nD";
    let masker = Masker::new(&Masking::default(), [Secret::new(secret)]).unwrap();
    let list = format!("{:?}", secret.as_bytes());
    for text in [list.clone(), list.replace(' ', ""), format!("{{\"key\":{list}}}")] {
        let masked = masker.text(&text);
        assert!(!masked.text.contains("107"), "{}", masked.text);
        assert_eq!(masked.counts.total(), 1);
    }
    let mut value = serde_json::json!({"key": secret.as_bytes(), "other": [1, 2, 3, 4, 5, 6, 7, 8]});
    masker.value(&mut value);
    assert_eq!(
        value,
        serde_json::json!({"key": ["[MASKED_SECRET]"], "other": [1, 2, 3, 4, 5, 6, 7, 8]})
    );
}

#[test]
fn a_known_secret_in_two_strings_of_a_json_document_is_hidden() {
    let secret = "Zk7hqP2xaLw9vT4mRb8cQ3nD";
    let masker = Masker::new(&Masking::default(), [Secret::new(secret)]).unwrap();
    let (first, second) = secret.split_at(12);
    for text in [
        format!("[\"{first}\", \"{second}\"]"),
        format!("{{\"text\": \"\\\"{first}\\\" + \\\"{second}\\\"\"}}"),
    ] {
        let masked = masker.text(&text);
        assert!(!masked.text.contains(second), "{}", masked.text);
    }
}
