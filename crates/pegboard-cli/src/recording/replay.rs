//! A fake server that answers as it was recorded.

use std::{borrow::Cow, sync::Arc};

use futures_util::future::BoxFuture;
use pegboard::mask::Masker;
use pegboard_base::sync::Mutex;
use pegboard_gateway::{Answer, Client, Description, Exchange, RawResult, Request, RpcError, Service};
use pegboard_protocol::code;
use serde_json::{Map, Value};

use super::exchange::{About, Answered, RecordedLine, to_comparable};

/// Which recorded answer a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Matching {
    /// Requests must come in the recorded order
    Strict,
    /// In any order, with the same params
    Exact,
    /// Also with other arguments, if the tool is the same
    Lenient,
}

/// A recorded request with its answer.
#[derive(Debug)]
struct Recorded {
    method: String,
    params: Value,
    /// The text of the result.
    answer: Result<String, RpcError>,
}

/// A recording as a service.
pub(crate) struct Replay {
    description: Description,
    exchanges: Vec<Recorded>,
    matching: Matching,
    /// Which exchanges were replayed.
    replayed: Mutex<Vec<bool>>,
    /// The recording has no secrets, so requests are compared without theirs.
    masker: Masker,
    /// The number of the last line if it was cut off.
    cut: Option<usize>,
}

impl Replay {
    /// Reads a recording. Fails with the line that is not one of a recording, unless it is a last line that was cut off.
    pub(crate) fn read(text: &str, matching: Matching, masker: Masker) -> Result<Self, String> {
        let mut description = None;
        let mut exchanges = Vec::new();
        let mut cut = None;
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let is_last = index + 1 == lines.len() && index > 0 && !text.ends_with('\n');
            let line = match RecordedLine::read(line) {
                Err(error) if error.is_eof() && is_last => {
                    cut = Some(index + 1);
                    break;
                }
                Err(error) => return Err(format!("line {} is not one of a recording: {error}", index + 1)),
                Ok(line) => line,
            };
            match line {
                RecordedLine::Server(About {
                    server_info,
                    capabilities,
                    instructions,
                    ..
                }) => {
                    description = Some(Description {
                        server_info,
                        capabilities,
                        instructions,
                        ..Description::default()
                    });
                }
                RecordedLine::Exchange(Answered {
                    method,
                    params,
                    result,
                    error,
                    ..
                }) => exchanges.push(Recorded {
                    method,
                    params: mask_params(&masker, to_comparable(&params)),
                    answer: match (result, error) {
                        (Some(result), _) => Ok(result.get().to_owned()),
                        (None, error) => Err(error_of(&error.unwrap_or_default())),
                    },
                }),
            }
        }
        let mut description: Description = description.ok_or("it has no line of the kind `server`")?;
        description
            .capabilities
            .retain(|capability, _| can_answer(capability, &exchanges));
        Ok(Self {
            description,
            replayed: Mutex::new(vec![false; exchanges.len()]),
            exchanges,
            matching,
            masker,
            cut,
        })
    }

    /// That the last line is left out, because it was cut off.
    pub(crate) fn warning(&self) -> Option<String> {
        let cut = self.cut?;
        Some(format!("line {cut}, the last one, is cut off and left out"))
    }

    /// The recorded answer to a request.
    fn answer(&self, method: &str, params: &Value) -> Result<String, RpcError> {
        let params = mask_params(&self.masker, to_comparable(params));
        let is_same = |known: &Recorded| known.method == method && known.params == params;
        let mut replayed = self.replayed.lock();
        let found = match self.matching {
            Matching::Strict => {
                let next = replayed.iter().position(|is_replayed| !is_replayed);
                next.filter(|next| is_same(&self.exchanges[*next]))
            }
            Matching::Exact => self.find_best(&replayed, is_same),
            Matching::Lenient => self.find_best(&replayed, is_same).or_else(|| {
                let target = |params: &Value| params.get("name").or_else(|| params.get("uri")).cloned();
                self.find_best(&replayed, |known| {
                    known.method == method && target(&known.params) == target(&params)
                })
            }),
        };
        match found {
            Some(index) => {
                replayed[index] = true;
                self.exchanges[index].answer.clone()
            }
            None => Err(self.mismatch(method, &params, &replayed)),
        }
    }

    /// The first exchange that fits and was not replayed yet, or the last one that was.
    fn find_best(&self, replayed: &[bool], fits: impl Fn(&Recorded) -> bool) -> Option<usize> {
        let fitting = || (0..self.exchanges.len()).filter(|index| fits(&self.exchanges[*index]));
        fitting().find(|index| !replayed[*index]).or_else(|| fitting().last())
    }

    fn mismatch(&self, method: &str, params: &Value, replayed: &[bool]) -> RpcError {
        let next = replayed.iter().position(|is_replayed| !is_replayed);
        let expected = match (self.matching, next) {
            (Matching::Strict, Some(next)) => {
                let next = &self.exchanges[next];
                format!("; the next one is `{}` with {}", next.method, next.params)
            }
            (Matching::Strict, None) => "; the recording is at its end".to_owned(),
            _ => String::new(),
        };
        let message = format!("the recording has no answer to `{method}` with {params}{expected}");
        RpcError::new(code::INVALID_PARAMS, message)
    }
}

/// Whether a recording has answers to the requests of a capability. Others than lists of offers need none.
fn can_answer(capability: &str, exchanges: &[Recorded]) -> bool {
    let methods = match capability {
        "tools" => "tools/",
        "resources" => "resources/",
        "prompts" => "prompts/",
        "completions" => "completion/",
        _ => return true,
    };
    exchanges.iter().any(|known| known.method.starts_with(methods))
}

/// The params as a recording has them. What is masked already stays as it is.
fn mask_params(masker: &Masker, params: Value) -> Value {
    let text = params.to_string();
    match masker.text(&text).text {
        Cow::Borrowed(_) => params,
        Cow::Owned(text) => serde_json::from_str(&text).unwrap_or(params),
    }
}

fn error_of(error: &Value) -> RpcError {
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .unwrap_or(code::INTERNAL_ERROR);
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("the recording has no answer");
    let made = RpcError::new(code, message);
    match error.get("data") {
        Some(data) => made.data(data.clone()),
        None => made,
    }
}

impl Service for Replay {
    fn describe<'a>(&'a self, _: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        Box::pin(async { Ok(self.description.clone()) })
    }

    fn handle(self: Arc<Self>, request: Request, _: Exchange) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let params: Map<String, Value> = request.params.parse()?;
            let result = self.answer(&request.method, &Value::Object(params))?;
            let has_type = result.contains("\"resultType\"")
                && serde_json::from_str(&result).is_ok_and(|result: Value| result.get("resultType").is_some());
            Ok(RawResult::from_text(result.into(), has_type))
        })
    }
}

#[cfg(test)]
mod tests {
    use pegboard::mask::Masking;
    use serde_json::json;

    use super::*;

    fn replay(matching: Matching) -> Replay {
        let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}});
        let server =
            json!({"kind": "server", "at": "", "server_info": {}, "capabilities": capabilities, "instructions": null});
        let call = |a: u32, result: u32| {
            json!({"kind": "exchange", "at": "", "method": "tools/call", "result": {"n": result}, "error": null,
                   "params": {"name": "t", "arguments": {"a": a}, "_meta": {"progressToken": result}}})
        };
        let failed = json!({"kind": "exchange", "at": "", "method": "tools/call", "params": {"name": "f"}, "result": null,
                            "error": {"code": -5, "message": "no"}});
        let lines = [server, call(1, 10), call(1, 11), call(2, 20), failed];
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        read(&text.join("\n"), matching).ok().unwrap()
    }

    fn read(text: &str, matching: Matching) -> Result<Replay, String> {
        Replay::read(text, matching, Masker::new(&Masking::default(), []).unwrap())
    }

    fn ask(replay: &Replay, a: u32) -> Result<Value, String> {
        let params = json!({"name": "t", "arguments": {"a": a}, "_meta": {"other": 1}});
        let answer = replay.answer("tools/call", &params);
        let answer = answer.map(|result| serde_json::from_str::<Value>(&result).unwrap()["n"].clone());
        answer.map_err(|error| error.message)
    }

    #[test]
    fn only_what_can_be_answered_is_declared() {
        let capabilities = replay(Matching::Exact).description.capabilities;
        let declared: Vec<&str> = capabilities.keys().map(String::as_str).collect();
        assert_eq!(declared, ["logging", "tools"]);
    }

    #[test]
    fn equal_requests_get_their_answers_in_turn_and_then_the_last_one() {
        let replay = replay(Matching::Exact);
        let answers: Vec<_> = [2, 1, 1, 1].iter().map(|a| ask(&replay, *a).unwrap()).collect();
        assert_eq!(answers, [20, 10, 11, 11]);
        assert!(ask(&replay, 3).unwrap_err().contains("has no answer to `tools/call`"));
        assert_eq!(replay.answer("tools/call", &json!({"name": "f"})).unwrap_err().code, -5);
    }

    #[test]
    fn a_strict_replay_keeps_the_order_and_a_lenient_one_takes_other_arguments() {
        let strict = replay(Matching::Strict);
        assert!(
            ask(&strict, 2)
                .unwrap_err()
                .contains("the next one is `tools/call` with")
        );
        assert_eq!(
            [
                ask(&strict, 1).unwrap(),
                ask(&strict, 1).unwrap(),
                ask(&strict, 2).unwrap()
            ],
            [10, 11, 20]
        );
        let lenient = replay(Matching::Lenient);
        assert_eq!(ask(&lenient, 7).unwrap(), 10);
        assert!(lenient.answer("tools/call", &json!({"name": "x"})).is_err());
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused_with_its_line() {
        let why = |text| read(text, Matching::Exact).err().unwrap();
        assert!(why("{}").contains("line 1"));
        assert!(why("{\"kind\": \"ser").contains("line 1"));
        assert!(why("").contains("`server`"));
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_left_out() {
        let server = json!({"kind": "server", "at": "", "server_info": {}, "capabilities": {}, "instructions": null});
        let cut = format!("{server}\n{{\"kind\": \"exchange\", \"par");
        let replay = read(&cut, Matching::Exact).ok().unwrap();
        assert!(replay.warning().unwrap().contains("line 2"));
        assert!(
            read(&format!("{cut}\n"), Matching::Exact)
                .err()
                .unwrap()
                .contains("line 2")
        );
        assert!(read(&format!("{cut}\n{server}"), Matching::Exact).is_err());
    }
}
