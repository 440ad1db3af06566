use pegboard_protocol::{code, id::MAX_LENGTH};

use super::*;

fn read(text: &str) -> Result<Incoming, Broken> {
    parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn whole_messages_are_read() {
    for (text, read_as) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request"),
        (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#, "request"),
        (
            r#" {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "notification",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
            "response",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
            "response",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "response"),
    ] {
        let kind = match read(text) {
            Ok(Incoming::One(Message::Request(_))) => "request",
            Ok(Incoming::One(Message::Notification(_))) => "notification",
            Ok(Incoming::One(Message::Response { .. })) => "response",
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(kind, read_as, "{text}");
    }
}

#[test]
fn params_are_a_slice_of_the_message() {
    let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"x"}}"#);
    let Ok(Incoming::One(Message::Request(request))) = parse(&body) else {
        panic!()
    };
    assert_eq!(request.params.json(), r#"{"name":"x"}"#);
    assert_eq!(body.slice_ref(request.params.json()), request.params.json());
}

#[test]
fn a_broken_message_is_refused_with_the_right_code() {
    const PARSE: i64 = code::PARSE_ERROR;
    const INVALID: i64 = code::INVALID_REQUEST;
    for (text, code, id) in [
        ("{", PARSE, None),
        ("", PARSE, None),
        ("nonsense", PARSE, None),
        ("[", PARSE, None),
        ("[]", INVALID, None),
        ("3", INVALID, None),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, INVALID, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7}"#, INVALID, Some("7")),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID, None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
            INVALID,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#, INVALID, None),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
            code::INVALID_PARAMS,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#,
            code::INVALID_PARAMS,
            Some("7"),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"Method":"ping"}"#, INVALID, Some("7")),
    ] {
        let broken = read(text).map(|read| panic!("{text}: {read:?}")).unwrap_err();
        assert_eq!((broken.error.code, broken.id.as_deref()), (code, id), "{text}");
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(MAX_LENGTH)
    );
    assert_eq!(read(&long).unwrap_err().error.code, INVALID);
}

#[test]
fn equal_ids_are_equal_however_they_are_written() {
    assert_eq!(
        RequestId::parse(r#""\u0061""#).unwrap(),
        RequestId::parse(r#""a""#).unwrap()
    );
    assert_ne!(RequestId::parse(r#""1""#).unwrap(), RequestId::parse("1").unwrap());
    assert_eq!(&*RequestId::parse("-5").unwrap(), "-5");
    assert_eq!(
        &*RequestId::parse("18446744073709551616").unwrap(),
        "18446744073709551616"
    );
}

#[test]
fn one_broken_message_costs_its_batch_nothing() {
    let batch = read(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]"#).unwrap();
    let Incoming::Batch(items) = batch else {
        panic!("{batch:?}")
    };
    assert!(items[0].is_ok());
    assert_eq!(items[1].as_ref().unwrap_err().id.as_deref(), Some("2"));
}

#[test]
fn the_error_of_a_response_is_kept() {
    let text = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no","data":{"a":1}}}"#;
    let Ok(Incoming::One(Message::Response { id, outcome })) = read(text) else {
        panic!()
    };
    let error = outcome.unwrap_err();
    assert_eq!((&*id, error.code, error.message.as_str()), ("\"q\"", -1, "no"));
    assert_eq!(error.data, Some(serde_json::json!({"a": 1})));
}
