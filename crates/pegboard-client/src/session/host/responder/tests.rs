//! Offered capabilities, responses, and their limits.

use pegboard_base::BoxFuture;
use std::time::Duration;

use super::*;
use crate::session::host::{NoHost, SamplingLimits, elicitation::Elicitation, host_context::HostContext};

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
struct FakeHost {
    elicits: bool,
    no_pages: bool,
    samples: bool,
    tools: bool,
    context: bool,
    rejects: bool,
    panics: bool,
    sampling_result: Option<Value>,
    answer: Option<ElicitAnswer>,
}

impl Host for FakeHost {
    fn offers_elicitation(&self) -> bool {
        self.elicits
    }
    fn offers_pages(&self) -> bool {
        !self.no_pages
    }
    fn elicit<'a>(&'a self, _context: HostContext<'a>, request: Elicitation) -> BoxFuture<'a, ElicitAnswer> {
        assert!(!self.panics, "a host that breaks");
        assert_eq!(request.message, "who?");
        let answer = self.answer.clone().unwrap_or(ElicitAnswer::Cancel);
        Box::pin(std::future::ready(answer))
    }
    fn offers_sampling(&self) -> bool {
        self.samples
    }
    fn sampling_limits(&self) -> SamplingLimits {
        SamplingLimits {
            tokens: 100,
            per_minute: 2,
        }
    }
    fn approve_sampling<'a>(&'a self, _context: HostContext<'a>, _params: &'a Value) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(!self.rejects))
    }
    fn sample<'a>(&'a self, _context: HostContext<'a>, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        assert!(!self.panics, "a host that breaks");
        let result = self.sampling_result.clone().unwrap_or_else(|| echo(&params));
        Box::pin(std::future::ready(Ok(result)))
    }
    fn offers_sampling_tools(&self) -> bool {
        self.tools
    }
    fn offers_sampling_context(&self) -> bool {
        self.context
    }
}

impl Responder {
    /// Responds through the host of the connection.
    async fn answer(&self, method: &str, request: RequestParams) -> Result<Value, ErrorResponse> {
        self.respond_directly(method, request, self.select_own_host()).await
    }
}

/// The result of a model that repeats its params.
fn echo(params: &Value) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": params.to_string()}})
}

fn responder(host: impl Host, roots: &[&str]) -> Responder {
    let server = ServerName::parse("fx").unwrap();
    let roots: Vec<_> = roots.iter().map(|root| (*root).to_owned()).collect();
    let desired_state = DesiredState::new(&roots);
    Responder::new(server, Arc::new(host), desired_state, ServerMasker::default())
}

fn form() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 3}, "age": {"type": "integer", "default": 30}, "x": {"type": "string"},
    }}})
}

fn url_request() -> Value {
    json!({"mode": "url", "message": "who?", "url": "https://example.org/", "elicitationId": "e1"})
}

fn accept(content: Value) -> Option<ElicitAnswer> {
    match content {
        Value::Object(content) => Some(ElicitAnswer::Accept(content)),
        other => panic!("{other}"),
    }
}

/// All capabilities, for every set of callbacks.
#[test]
fn a_capability_is_offered_only_if_the_host_provides_it() {
    let check = |host: FakeHost, roots: &[&str], legacy: Value, modern: Value| {
        let responder = responder(host, roots);
        let mut shown = responder.capabilities(Era::Legacy);
        let tasks = shown.as_object_mut().unwrap().remove("tasks");
        assert_eq!(tasks.is_some(), responder.offers().are_any());
        assert_eq!(shown, legacy);
        let mut expected = modern;
        expected["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        assert_eq!(responder.capabilities(Era::Modern), expected);
    };
    let none = FakeHost::default;
    check(none(), &[], json!({}), json!({}));
    check(
        none(),
        &["file:///srv"],
        json!({"roots": {"listChanged": true}}),
        json!({"roots": {}}),
    );
    let elicits = || FakeHost {
        elicits: true,
        ..none()
    };
    let both = json!({"elicitation": {"form": {}, "url": {}}});
    check(elicits(), &[], both.clone(), both);
    let forms = json!({"elicitation": {"form": {}}});
    let no_pages = FakeHost {
        no_pages: true,
        ..elicits()
    };
    check(no_pages, &[], forms.clone(), forms);
    let samples = FakeHost {
        samples: true,
        ..none()
    };
    check(samples, &[], json!({"sampling": {}}), json!({"sampling": {}}));
    let all = json!({"sampling": {"tools": {}, "context": {}}});
    let samples_more = FakeHost {
        samples: true,
        tools: true,
        context: true,
        ..none()
    };
    check(samples_more, &[], all.clone(), all);
}

#[tokio::test]
async fn a_capability_that_is_not_offered_is_an_unknown_method() {
    let nothing = responder(NoHost, &[]);
    assert_eq!(nothing.answer("ping", Value::Null.into()).await, Ok(json!({})));
    for method in ["roots/list", "elicitation/create", "sampling/createMessage", "x"] {
        let refused = nothing.answer(method, form().into()).await.unwrap_err();
        assert_eq!(refused.0, -32601, "{method}");
    }
    let some = responder(NoHost, &["file:///srv"]);
    let roots = some.answer("roots/list", Value::Null.into()).await;
    assert_eq!(roots, Ok(json!({"roots": [{"uri": "file:///srv"}]})));
}

#[tokio::test]
async fn a_form_is_answered_with_defaults_and_never_with_invalid_values() {
    let check = async |answer: Option<ElicitAnswer>, expected: Value| {
        let host = FakeHost {
            elicits: true,
            answer,
            ..FakeHost::default()
        };
        assert_eq!(
            responder(host, &[]).answer("elicitation/create", form().into()).await,
            Ok(expected)
        );
    };
    let full = json!({"action": "accept", "content": {"name": "me", "age": 30}});
    check(accept(json!({"name": "me"})), full).await;
    for wrong in [
        json!({}),
        json!({"name": "long"}),
        json!({"name": 7}),
        json!({"name": "me", "y": 1}),
    ] {
        check(accept(wrong), json!({"action": "cancel"})).await;
    }
    check(Some(ElicitAnswer::Decline), json!({"action": "decline"})).await;
    check(Some(ElicitAnswer::Cancel), json!({"action": "cancel"})).await;
    check(Some(ElicitAnswer::Finished), json!({"action": "cancel"})).await;
}

#[tokio::test]
async fn a_page_is_visited_only_where_pages_are_offered_and_only_on_the_web() {
    let host = || FakeHost {
        elicits: true,
        answer: accept(json!({})),
        ..FakeHost::default()
    };
    let answer = responder(host(), &[])
        .answer("elicitation/create", url_request().into())
        .await;
    assert_eq!(answer, Ok(json!({"action": "accept"})));
    let no_pages = FakeHost {
        no_pages: true,
        ..host()
    };
    assert_eq!(
        responder(no_pages, &[])
            .answer("elicitation/create", url_request().into())
            .await
            .unwrap_err()
            .0,
        -32602
    );
    for url in ["javascript:alert(1)", "file:///etc/passwd", "nowhere"] {
        let mut url_request = url_request();
        url_request["url"] = url.into();
        let refused = responder(host(), &[])
            .answer("elicitation/create", url_request.into())
            .await
            .unwrap_err();
        assert_eq!(refused.0, -32602, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_within_its_limits_and_with_the_users_consent() {
    let samples = |rejects| FakeHost {
        samples: true,
        rejects,
        ..FakeHost::default()
    };
    let ask = |tokens: u64| json!({"messages": [], "maxTokens": tokens});
    let willing = responder(samples(false), &[]);
    let sample = async |tokens| willing.answer("sampling/createMessage", ask(tokens).into()).await;
    assert_eq!(sample(7).await, Ok(echo(&ask(7))));
    assert_eq!(sample(1_000_000).await, Ok(echo(&ask(100))));
    assert_eq!(
        sample(7).await.unwrap_err().1,
        "only 2 requests per minute are answered"
    );
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(sample(7).await.is_ok());
    let unwilling = responder(samples(true), &[]);
    assert_eq!(
        unwilling
            .answer("sampling/createMessage", ask(7).into())
            .await
            .unwrap_err()
            .0,
        -1
    );
    let wrong = willing.answer("sampling/createMessage", Value::Null.into()).await;
    assert_eq!(wrong.unwrap_err().0, -32602);
}

/// The server gets a handle at once, and the result on `tasks/result`.
#[tokio::test(start_paused = true)]
async fn a_request_may_be_answered_as_a_task() {
    let host = FakeHost {
        elicits: true,
        answer: accept(json!({"name": "me"})),
        ..FakeHost::default()
    };
    let responder = responder(host, &[]);
    assert_eq!(
        responder.capabilities(Era::Legacy)["tasks"]["requests"],
        json!({"elicitation": {"create": {}}})
    );
    let mut request = form();
    request["task"] = json!({"ttl": 60_000});
    let task = responder
        .respond("elicitation/create", request.clone().into(), &Attribution::Connection)
        .await
        .unwrap()["task"]
        .clone();
    let about = async |method: &str| {
        responder
            .respond(
                method,
                json!({"taskId": task["taskId"]}).into(),
                &Attribution::Connection,
            )
            .await
    };
    assert_eq!(task["status"], "working");
    let result = about("tasks/result").await.unwrap();
    assert_eq!(result["content"], json!({"name": "me", "age": 30}));
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        task["taskId"]
    );
    assert_eq!(about("tasks/get").await.unwrap()["status"], "completed");
    assert_eq!(about("tasks/cancel").await.unwrap_err().0, -32602);

    let second = responder
        .respond("elicitation/create", request.clone().into(), &Attribution::Connection)
        .await
        .unwrap()["task"]["taskId"]
        .clone();
    let cancelled = responder
        .respond(
            "tasks/cancel",
            json!({"taskId": second}).into(),
            &Attribution::Connection,
        )
        .await
        .unwrap();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        responder
            .respond(
                "tasks/result",
                json!({"taskId": second}).into(),
                &Attribution::Connection
            )
            .await
            .unwrap_err()
            .0,
        -32800
    );
    let unknown = responder
        .respond(
            "tasks/get",
            json!({"taskId": "task-99"}).into(),
            &Attribution::Connection,
        )
        .await;
    assert_eq!(unknown.unwrap_err().0, -32602);

    // Ended tasks are evicted.
    for _ in 0..100 {
        let begun = responder
            .respond("elicitation/create", request.clone().into(), &Attribution::Connection)
            .await
            .unwrap();
        let done = responder
            .respond(
                "tasks/result",
                json!({"taskId": begun["task"]["taskId"]}).into(),
                &Attribution::Connection,
            )
            .await;
        assert!(done.is_ok());
    }
    let listed = responder
        .respond("tasks/list", Value::Null.into(), &Attribution::Connection)
        .await
        .unwrap();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 32);
}

async fn sampled(host: FakeHost, params: &Value) -> Result<Value, ErrorResponse> {
    responder(host, &[])
        .answer("sampling/createMessage", params.clone().into())
        .await
}

/// By both schemas, the client must return an error for tools if it has not declared `sampling.tools`.
#[tokio::test]
async fn tools_for_a_model_are_refused_and_context_is_left_out_unless_they_are_offered() {
    let samples = |tools, context| FakeHost {
        samples: true,
        tools,
        context,
        ..FakeHost::default()
    };
    let plain = json!({"messages": [], "maxTokens": 7});
    for (field, value) in [("tools", json!([])), ("toolChoice", json!({"mode": "auto"}))] {
        let mut params = plain.clone();
        params[field] = value;
        let (code, words) = sampled(samples(false, true), &params).await.unwrap_err();
        assert_eq!(code, -32602);
        assert!(words.contains(field) && words.contains("sampling.tools"), "{words}");
        assert_eq!(sampled(samples(true, false), &params).await, Ok(echo(&params)));
    }
    let mut params = plain.clone();
    params["includeContext"] = "thisServer".into();
    assert_eq!(sampled(samples(true, false), &params).await, Ok(echo(&plain)));
    assert_eq!(sampled(samples(false, true), &params).await, Ok(echo(&params)));
}

#[tokio::test]
async fn an_invalid_sampling_result_is_not_sent() {
    for result in [json!("words"), json!({"content": "words"}), Value::Null] {
        let host = FakeHost {
            samples: true,
            sampling_result: Some(result),
            ..FakeHost::default()
        };
        let answer = sampled(host, &json!({"messages": [], "maxTokens": 7})).await;
        assert_eq!(answer.unwrap_err().0, -32603);
    }
}

/// A panic fails only its request, with or without a task.
#[tokio::test(start_paused = true)]
async fn a_host_that_panics_is_an_error_to_the_server() {
    let host = FakeHost {
        elicits: true,
        samples: true,
        panics: true,
        ..FakeHost::default()
    };
    let responder = responder(host, &[]);
    let sample = json!({"messages": [], "maxTokens": 7, "task": {}});
    for (method, mut params) in [("elicitation/create", form()), ("sampling/createMessage", sample)] {
        assert_eq!(
            responder.answer(method, params.clone().into()).await.unwrap_err().0,
            -32603
        );
        params["task"] = json!({});
        let begun = responder
            .respond(method, params.into(), &Attribution::Connection)
            .await
            .unwrap();
        let about = json!({"taskId": begun["task"]["taskId"]});
        let ended = responder
            .respond("tasks/result", about.clone().into(), &Attribution::Connection)
            .await;
        assert_eq!(ended.unwrap_err().0, -32603);
        assert_eq!(
            responder
                .respond("tasks/get", about.into(), &Attribution::Connection)
                .await
                .unwrap()["status"],
            "failed"
        );
    }
    assert_eq!(
        responder
            .elicit_url(url_request(), responder.select_own_host())
            .await
            .unwrap_err()
            .0,
        -32603
    );
    assert_eq!(responder.answer("ping", Value::Null.into()).await, Ok(json!({})));
}

#[tokio::test]
async fn the_fields_of_a_form_come_in_the_order_of_the_server() {
    struct Recording(Arc<pegboard_base::sync::Mutex<Vec<String>>>);

    impl Host for Recording {
        fn offers_elicitation(&self) -> bool {
            true
        }

        fn elicit<'a>(&'a self, _: HostContext<'a>, request: Elicitation) -> BoxFuture<'a, ElicitAnswer> {
            let form = request.form.unwrap();
            *self.0.lock() = form.fields.into_iter().map(|field| field.name).collect();
            Box::pin(std::future::ready(ElicitAnswer::Decline))
        }
    }

    let seen = Arc::default();
    let host = Recording(Arc::clone(&seen));
    let text = r#"{"message": "sign in", "requestedSchema": {"type": "object", "required": ["code"],
        "properties": {"user": {"type": "string"}, "code": {"type": "string", "writeOnly": true}, "again": {"type": "boolean"}}}}"#;
    let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let request = RequestParams::parse(Some(&raw));
    responder(host, &[])
        .answer("elicitation/create", request)
        .await
        .unwrap();
    assert_eq!(*seen.lock(), ["user", "code", "again"]);
}
