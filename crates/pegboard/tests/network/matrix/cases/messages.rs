//! Malformed and unusual JSON-RPC messages during a call.

use pegboard_testkit::Fault;

use super::{AT_LIMIT, TIMEOUT, UNREADABLE, WELL, before, case, on_call, only, play};
use crate::matrix::case::Case;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X01",
            "the answers have a list, an object and a boolean as ids",
            "they reach no call",
            play!(|stage| {
                let ids = [
                    r#"{"jsonrpc":"2.0","id":[$ID],"result":{"content":[]}}"#,
                    r#"{"jsonrpc":"2.0","id":{"id":$ID},"result":{"content":[]}}"#,
                    r#"{"jsonrpc":"2.0","id":true,"result":{"content":[]}}"#,
                ];
                on_call(stage, only(&ids)).await
            }),
            TIMEOUT,
        )
        .within(AT_LIMIT),
        case(
            "X02",
            "two different answers arrive",
            "the first one counts, and the second reaches no call",
            play!(|stage| {
                let first = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"first"}}"#;
                on_call(stage, before(&[first], 1)).await
            }),
            "failed, may have run, ran 1; then ok, ran 1",
        ),
        case(
            "X03",
            "the answer has both a result and an error",
            "that call fails",
            play!(|stage| {
                let both = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":-1,"message":"no"}}"#;
                on_call(stage, only(&[both])).await
            }),
            UNREADABLE,
        ),
        case(
            "X04",
            "the answer has a null result",
            "that call fails",
            play!(|stage| on_call(stage, only(&[r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#])).await),
            UNREADABLE,
        ),
        case(
            "X05",
            "the answer has a string in place of the content list",
            "that call fails",
            play!(|stage| {
                let text = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":"text"}}"#;
                on_call(stage, only(&[text])).await
            }),
            UNREADABLE,
        ),
        case(
            "X06",
            "the answer is an error with a string as its code",
            "that call fails",
            play!(|stage| {
                let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"E_FAIL","message":"no"}}"#;
                on_call(stage, only(&[error])).await
            }),
            UNREADABLE,
        ),
        case(
            "X07",
            "progress arrives without a token, and with unknown tokens",
            "it is dropped",
            play!(|stage| {
                let notices = [
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"no","progress":1}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                ];
                on_call(stage, before(&notices, 20)).await
            }),
            WELL,
        ),
        case(
            "X08",
            "the server cancels the call and answers it all the same",
            "the answer counts: only the client cancels calls",
            play!(|stage| {
                let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#;
                on_call(stage, before(&[cancel], 1)).await
            }),
            WELL,
        ),
        case(
            "X09",
            "2,000 notifications of every kind precede the answer",
            "the answer arrives",
            play!(|stage| {
                stage.allow_long_calls();
                let notices = [
                    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/vendor/unheard_of","params":[]}"#,
                ];
                on_call(stage, before(&notices, 500)).await
            }),
            WELL,
        )
        .within(5_000),
        case(
            "X10",
            "the answer ends within a UTF-8 sequence",
            "that call fails",
            play!(|stage| on_call(stage, Fault::HalfUtf8).await),
            UNREADABLE,
        ),
        case(
            "X11",
            "JSON values that are no messages precede the answer",
            "they are dropped",
            play!(|stage| on_call(stage, before(&["{}", "[]", "null", "1", r#""text""#], 2)).await),
            WELL,
        ),
        case(
            "X12",
            "the answer has no `jsonrpc` member",
            "it is accepted",
            play!(|stage| {
                let answer = r#"{"id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"n1"}]}}"#;
                on_call(stage, only(&[answer])).await
            }),
            WELL,
        ),
        case(
            "X13",
            "the server stops reading",
            "the timeout ends the call, and the shutdown does not wait for the server",
            play!(|stage| {
                let fake = stage.fake().fault(Fault::StopsReading).then_after(1, stage.fake());
                stage.open_listed(&fake).await;
                stage.call().await
            }),
            "lost timeout, may have run, ran 0",
        )
        .within(AT_LIMIT),
    ]
}
