//! WebSocket frames that only a handwritten server sends.

use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{
        CloseFrame,
        frame::{
            Frame,
            coding::{CloseCode, Data, OpCode},
        },
    },
};

use super::{CUT, TOO_LARGE, WELL, case, play, raw_websocket};
use crate::matrix::{case::Case, raw::part, stage::MESSAGE};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "X60",
            "2,000 pings precede the answer",
            "the answer arrives",
            play!(|stage| {
                stage.allow_long_calls();
                raw_websocket(stage, |answer| {
                    let mut said = vec![Message::Ping(b"there?".as_slice().into()); 2_000];
                    said.push(Message::text(answer));
                    said
                })
                .await
            }),
            WELL,
        )
        .on("W")
        .within(5_000),
        case(
            "X61",
            "the answer is fragmented into frames of one byte",
            "the answer arrives",
            play!(|stage| raw_websocket(stage, |answer| {
                let last = answer.len() - 1;
                let parts = (0..=last).map(|at| {
                    let code = if at == 0 { Data::Text } else { Data::Continue };
                    part(&answer[at..=at], code, at == last)
                });
                parts.collect()
            })
            .await),
            WELL,
        )
        .on("W"),
        case(
            "X62",
            "a ping arrives between the frames of the answer",
            "the answer arrives",
            play!(|stage| raw_websocket(stage, |answer| {
                let (one, two) = answer.split_at(answer.len() / 2);
                let ping = Message::Ping(Default::default());
                vec![part(one, Data::Text, false), ping, part(two, Data::Continue, true)]
            })
            .await),
            WELL,
        )
        .on("W"),
        case(
            "X63",
            "a close frame arrives within the answer",
            "the call may have run",
            play!(|stage| raw_websocket(stage, |answer| {
                let goodbye = CloseFrame {
                    code: CloseCode::Away,
                    reason: "bye".into(),
                };
                let half = &answer[..answer.len() / 2];
                vec![part(half, Data::Text, false), Message::Close(Some(goodbye))]
            })
            .await),
            CUT,
        )
        .on("W"),
        case(
            "X64",
            "a continuation frame arrives without a message to continue",
            "that violates the protocol, and the call may have run",
            play!(|stage| raw_websocket(stage, |answer| vec![part(answer, Data::Continue, true)]).await),
            CUT,
        )
        .on("W"),
        case(
            "X65",
            "a fragmented message never ends",
            "the size limit ends the connection",
            play!(|stage| raw_websocket(stage, |_| {
                let piece = "x".repeat(64 << 10);
                let parts = (0..64).map(|at| {
                    let code = if at == 0 { Data::Text } else { Data::Continue };
                    part(&piece, code, false)
                });
                parts.collect()
            })
            .await),
            CUT,
        )
        .on("W"),
        case(
            "X83",
            "the answer is larger than the limit, in frames that are each within it",
            "that call fails, the error names the limit, and the next call succeeds",
            play!(|stage| raw_websocket(stage, |answer| {
                let padding = "x".repeat(MESSAGE / 2);
                let (start, end) = answer.split_at(answer.len() - 3);
                vec![
                    part(start, Data::Text, false),
                    part(&padding, Data::Continue, false),
                    part(&padding, Data::Continue, false),
                    part(end, Data::Continue, true),
                ]
            })
            .await),
            TOO_LARGE,
        )
        .on("W"),
        case(
            "X84",
            "frames split a byte order mark",
            "it is skipped",
            play!(|stage| raw_websocket(stage, |answer| {
                let rest = [b"\xbf", answer.as_bytes()].concat();
                let frame = |bytes, code, last| Message::Frame(Frame::message(bytes, OpCode::Data(code), last));
                vec![
                    frame(b"\xef\xbb".to_vec(), Data::Binary, false),
                    frame(rest, Data::Continue, true),
                ]
            })
            .await),
            WELL,
        )
        .on("W"),
    ]
}
