//! Applies faults to the acts of a healthy server.

use std::time::Duration;

use serde_json::{Value, json};

use super::{act::Act, request::Request};
use crate::fault::Fault;

/// Time for half a response to be sent, because a reset discards what is still in the buffers.
const FLUSH: Act = Act::Wait(Duration::from_millis(50));

/// The acts of a fault before anything is read. Faults of the process are applied in `process.rs`.
pub(super) fn at_start(fault: &Fault) -> Vec<Act> {
    match fault {
        Fault::SlowStart { ms } => vec![Act::Wait(Duration::from_millis(*ms))],
        Fault::ExitsAtStart { code, stderr } => vec![stderr_text(stderr), Act::Die(*code)],
        Fault::Prompts { text } => vec![Act::Bytes(text.clone().into_bytes()), Act::StopReading],
        Fault::NoiseAtStart { lines } => noise(*lines),
        Fault::FloodsStderr { bytes } => flood(*bytes),
        _ => Vec::new(),
    }
}

/// Applies one fault to the acts of a request.
pub(super) fn spoil(acts: Vec<Act>, fault: &Fault, request: &Request<'_>) -> Vec<Act> {
    match fault {
        Fault::SilentHandshake | Fault::NeverAnswers => replace_answer(acts, |_| vec![Act::Hang]),
        Fault::ExitsAtHandshake { code, stderr } => vec![stderr_text(stderr), Act::Die(*code)],
        Fault::DiesBeforeExecuting { code } => vec![Act::Die(*code)],
        Fault::DiesAfterExecuting { code } => replace_answer(acts, |_| vec![Act::Die(*code)]),
        Fault::DiesWhileAnswering { code } => {
            replace_answer(acts, |answer| vec![half_of(&answer), FLUSH, Act::Die(*code)])
        }
        Fault::DiesIdle { after_ms } => append(acts, [Act::Wait(Duration::from_millis(*after_ms)), Act::Die(0)]),
        Fault::ClosesOutput => replace_answer(acts, |_| vec![Act::Close]),
        Fault::StopsReading => vec![Act::StopReading, Act::Hang],
        Fault::LateAnswer { ms } => insert_before_answer(acts, vec![Act::Wait(Duration::from_millis(*ms))]),
        Fault::CutThenEof => replace_answer(acts, |answer| vec![half_of(&answer), Act::Close]),
        Fault::ResetInBody => replace_answer(acts, |answer| vec![half_of(&answer), FLUSH, Act::Reset]),
        Fault::ResetInStream => replace_answer(acts, |answer| {
            let head = Act::Bytes(b"event: message\ndata: ".to_vec());
            vec![head, half_of(&answer), FLUSH, Act::Reset]
        }),
        Fault::NoticeStreamEnds { after_ms, gracefully } => {
            let end = if *gracefully {
                Act::Answer(request.listening_end())
            } else {
                Act::Close
            };
            append(limit_listening(acts, Duration::from_millis(*after_ms)), [end])
        }
        Fault::AnswersError { code, message, data } => {
            let error = Act::Answer(request.error(*code, message, data.as_ref()));
            // A stream that is refused never begins.
            if acts.iter().any(|act| matches!(act, Act::Listen { .. })) {
                vec![error]
            } else {
                replace_answer(acts, |_| vec![error])
            }
        }
        _ => add_messages(acts, fault, request),
    }
}

/// The faults that send more than the response.
fn add_messages(acts: Vec<Act>, fault: &Fault, request: &Request<'_>) -> Vec<Act> {
    match fault {
        Fault::NoiseBeforeAnswer { lines } => insert_before_answer(acts, noise(*lines)),
        Fault::FloodsStderr { bytes } => insert_before_answer(acts, flood(*bytes)),
        Fault::ProgressFlood { count } => insert_before_answer(acts, progress(request, Some(*count), Duration::ZERO)),
        Fault::ProgressForEver { every_ms } => {
            replace_answer(acts, |_| progress(request, None, Duration::from_millis(*every_ms)))
        }
        Fault::ServerRequests { method, count } => {
            let requests = (0..*count).map(|number| {
                let id = format!("undeclared-{number}");
                Act::Send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }))
            });
            insert_before_answer(acts, requests.collect())
        }
        Fault::ListChanged { count, every_ms } => {
            let every = Duration::from_millis(*every_ms);
            append(acts, [Act::Announce { count: *count, every }])
        }
        Fault::Says {
            messages,
            times,
            then_answer,
        } => {
            let id = request.id().to_string();
            let said = messages
                .iter()
                .map(|text| Act::Say(text.replace("$ID", &id).into_bytes()));
            let said: Vec<_> = (0..*times).flat_map(|_| said.clone()).collect();
            if *then_answer {
                insert_before_answer(acts, said)
            } else {
                replace_answer(acts, |_| append(said, [Act::Hang]))
            }
        }
        Fault::AnswersTwice => replace_answer(acts, |answer| vec![Act::Send(answer.clone()), Act::Answer(answer)]),
        Fault::StrayAnswers { count } => {
            let strays = (0..*count).map(|number| {
                Act::Send(json!({ "jsonrpc": "2.0", "id": 9_000_000 + number, "result": { "content": [] } }))
            });
            insert_before_answer(acts, strays.collect())
        }
        Fault::Oversized {
            bytes,
            with_id,
            then_valid,
        } => replace_answer(acts, |answer| {
            let id = if *with_id {
                answer["id"].clone()
            } else {
                json!("nobody")
            };
            let content = json!([{ "type": "text", "text": "x".repeat(*bytes) }]);
            let long = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } });
            if *then_valid {
                vec![Act::Send(long), Act::Answer(answer)]
            } else {
                vec![Act::Answer(long)]
            }
        }),
        Fault::EndlessLine => replace_answer(acts, |_| {
            let bytes = vec![b'x'; 64 * 1024];
            vec![
                Act::Bytes(br#"{"jsonrpc":"2.0","result":""#.to_vec()),
                Act::Repeat { bytes, times: None },
            ]
        }),
        _ => garble(acts, fault),
    }
}

/// The faults that change only the bytes of the response.
fn garble(acts: Vec<Act>, fault: &Fault) -> Vec<Act> {
    let with_id = |acts, id: Option<Value>| {
        replace_answer(acts, |mut answer| {
            match (id, answer.as_object_mut()) {
                (Some(id), Some(answer)) => drop(answer.insert("id".into(), id)),
                (None, Some(answer)) => drop(answer.remove("id")),
                (_, None) => {}
            }
            vec![Act::Answer(answer)]
        })
    };
    let in_text = |acts, mark: &[u8]| {
        replace_answer(acts, |answer| {
            let text = answer.to_string().into_bytes();
            // Before the last quote, which is inside the last string.
            let at = text.iter().rposition(|byte| *byte == b'"').unwrap_or(text.len());
            vec![Act::Line([&text[..at], mark, &text[at..]].concat())]
        })
    };
    let line = |acts, change: fn(String) -> String| {
        replace_answer(acts, |answer| vec![Act::Line(change(answer.to_string()).into_bytes())])
    };
    match fault {
        Fault::WrongId => with_id(acts, Some(json!(777_777))),
        Fault::NullId => with_id(acts, Some(Value::Null)),
        Fault::MissingId => with_id(acts, None),
        Fault::StringId => replace_answer(acts, |mut answer| {
            answer["id"] = answer["id"].to_string().into();
            vec![Act::Answer(answer)]
        }),
        Fault::FloatId => replace_answer(acts, |mut answer| {
            answer["id"] = answer["id"].as_f64().map_or_else(|| json!(1.5), |id| json!(id));
            vec![Act::Answer(answer)]
        }),
        Fault::InvalidUtf8 => in_text(acts, &[0xff, 0xfe]),
        Fault::HalfUtf8 => in_text(acts, &[0xe2, 0x82]),
        Fault::LineSeparator => in_text(acts, "\u{2028}".as_bytes()),
        Fault::NulByte => line(acts, |text| format!("\0{text}")),
        Fault::Bom => line(acts, |text| format!("\u{feff}{text}")),
        Fault::Crlf => line(acts, |text| format!("{text}\r")),
        Fault::CaseVariantKeys => line(acts, |text| text.replacen("\"result\"", "\"Result\"", 1)),
        Fault::DuplicateKeys => line(acts, |text| {
            text.replacen('{', r#"{"result":{"content":[{"type":"text","text":"the other"}]},"#, 1)
        }),
        Fault::Nested { depth } => replace_answer(acts, |answer| {
            let id = &answer["id"];
            let (opened, closed) = ("[".repeat(*depth), "]".repeat(*depth));
            vec![Act::Line(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{opened}{closed}}}"#).into_bytes(),
            )]
        }),
        Fault::UnknownResultType => replace_answer(acts, |mut answer| {
            answer["result"]["resultType"] = "sideways".into();
            vec![Act::Answer(answer)]
        }),
        _ => acts,
    }
}

fn half_of(answer: &Value) -> Act {
    let text = answer.to_string().into_bytes();
    Act::Bytes(text[..text.len() / 2].to_vec())
}

/// Lines that are not JSON, many per write, so that gigabytes of them are possible.
fn noise(lines: u64) -> Vec<Act> {
    let line = b"INFO: 32 bytes that are no JSON\n";
    let block = Act::Repeat {
        bytes: line.repeat(1024),
        times: Some(lines / 1024),
    };
    let rest = Act::Repeat {
        bytes: line.to_vec(),
        times: Some(lines % 1024),
    };
    vec![block, rest]
}

fn flood(bytes: u64) -> Vec<Act> {
    let text = "a line of 32 bytes on stderr...\n".repeat(1024);
    let times = bytes.div_ceil(text.len() as u64);
    vec![Act::Stderr { text, times }]
}

fn stderr_text(text: &str) -> Act {
    Act::Stderr {
        text: text.into(),
        times: 1,
    }
}

fn progress(request: &Request<'_>, count: Option<u64>, every: Duration) -> Vec<Act> {
    let token = request.progress_token().cloned().unwrap_or_else(|| request.id());
    vec![Act::Progress { token, count, every }]
}

/// Replaces the response.
fn replace_answer(acts: Vec<Act>, change: impl FnOnce(Value) -> Vec<Act>) -> Vec<Act> {
    let mut change = Some(change);
    let mut changed = Vec::new();
    for act in acts {
        match (act, change.take()) {
            (Act::Answer(answer), Some(change)) => changed.extend(change(answer)),
            (act, unused) => {
                change = unused;
                changed.push(act);
            }
        }
    }
    changed
}

/// Inserts acts before the response, or at the end if there is none.
fn insert_before_answer(mut acts: Vec<Act>, more: Vec<Act>) -> Vec<Act> {
    let at = acts
        .iter()
        .position(|act| matches!(act, Act::Answer(_) | Act::Line(_)))
        .unwrap_or(acts.len());
    acts.splice(at..at, more);
    acts
}

fn append(mut acts: Vec<Act>, more: impl IntoIterator<Item = Act>) -> Vec<Act> {
    acts.extend(more);
    acts
}

fn limit_listening(mut acts: Vec<Act>, limit: Duration) -> Vec<Act> {
    for act in &mut acts {
        if let Act::Listen { limit: known, .. } = act {
            *known = Some(limit);
        }
    }
    acts
}
