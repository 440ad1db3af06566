use pegboard_protocol::{code, id::MAX_LENGTH};
use proptest::prelude::*;
use serde_json::json;

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

/// Params that a client may send, with fields that are noted and others.
fn params() -> impl Strategy<Value = serde_json::Value> {
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!({"a": [1, {"b": "}"}], "c\n": "\"é"})),
        any::<i32>().prop_map(serde_json::Value::from),
        ".*".prop_map(serde_json::Value::from),
    ];
    let meta = prop::collection::btree_map(
        "(progressToken|io.modelcontextprotocol/protocolVersion|x|é\n)",
        value.clone(),
        0..4,
    );
    let keys = "(_meta|name|arguments|uri|requestState|inputResponses|task|\")";
    let fields = prop::collection::btree_map(keys, value, 0..5);
    (fields, meta, any::<bool>()).prop_map(|(fields, meta, has_meta)| {
        let mut params: serde_json::Map<_, _> = fields.into_iter().collect();
        if has_meta {
            params.insert("_meta".into(), json!(meta));
        }
        params.into()
    })
}

proptest! {
    #[test]
    fn a_request_that_is_read_in_one_pass_is_what_a_parser_reads(params in params(), id in "(1|-7|\"a\"|\"\\\\u0061é\"|1.5|null)", pretty: bool) {
        let params = if pretty { serde_json::to_string_pretty(&params) } else { serde_json::to_string(&params) }.unwrap();
        let text = Bytes::from(format!(r#" {{"params": {params}, "jsonrpc":"2.0","id": {id} ,"method":"tools/call"}}"#));
        let parsed = parse_one(&text, &text);
        match (read_request(&text), parsed) {
            (Some(read), Ok(Message::Request(parsed))) => {
                prop_assert_eq!((read.id, read.method, read.params), (parsed.id, parsed.method, parsed.params));
            }
            (None, Err(_)) => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn text_that_is_no_request_is_not_read_as_one(text in "[{}\\[\\]\",:a-z0-9\\\\ ]{0,60}") {
        let text = Bytes::from(text);
        prop_assert!(read_request(&text).is_none());
    }
}

#[test]
fn what_has_to_be_explained_is_not_read_in_one_pass() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","id":2}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a"}x"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"a"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
    ] {
        assert!(read_request(&Bytes::from(text)).is_none(), "{text}");
    }
}
