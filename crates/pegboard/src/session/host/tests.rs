//! What is offered, what is answered, and within which bounds.

use super::*;

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
struct Given {
    elicits: bool,
    no_pages: bool,
    samples: bool,
    tools: bool,
    context: bool,
    rejects: bool,
    panics: bool,
    sampled: Option<Value>,
    answer: Option<ElicitAnswer>,
}

impl Host for Given {
    fn offers_elicitation(&self) -> bool {
        self.elicits
    }
    fn offers_pages(&self) -> bool {
        !self.no_pages
    }
    fn elicit<'a>(&'a self, _server: &'a ServerName, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
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
    fn approve_sampling<'a>(&'a self, _server: &'a ServerName, _params: &'a Value) -> Boxed<'a, bool> {
        Box::pin(std::future::ready(!self.rejects))
    }
    fn sample<'a>(&'a self, _server: &'a ServerName, params: Value) -> Boxed<'a, Result<Value, String>> {
        assert!(!self.panics, "a host that breaks");
        let said = self.sampled.clone().unwrap_or_else(|| said(&params));
        Box::pin(std::future::ready(Ok(said)))
    }
    fn offers_sampling_tools(&self) -> bool {
        self.tools
    }
    fn offers_sampling_context(&self) -> bool {
        self.context
    }
}

/// The model repeats what it was asked.
fn said(params: &Value) -> Value {
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

fn visit() -> Value {
    json!({"mode": "url", "message": "who?", "url": "https://example.org/", "elicitationId": "e1"})
}

fn accept(content: Value) -> Option<ElicitAnswer> {
    match content {
        Value::Object(content) => Some(ElicitAnswer::Accept(content)),
        other => panic!("{other}"),
    }
}

/// SRQ-4: the whole of what is said about us, for every set of handlers.
#[test]
fn a_capability_is_offered_only_when_somebody_answers() {
    let check = |host: Given, roots: &[&str], legacy: Value, modern: Value| {
        let responder = responder(host, roots);
        let mut shown = responder.capabilities(Era::Legacy);
        let tasks = shown.as_object_mut().unwrap().remove("tasks");
        assert_eq!(tasks.is_some(), responder.runs_tasks());
        assert_eq!(shown, legacy);
        let mut expected = modern;
        expected["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        assert_eq!(responder.capabilities(Era::Modern), expected);
    };
    let none = Given::default;
    check(none(), &[], json!({}), json!({}));
    check(
        none(),
        &["file:///srv"],
        json!({"roots": {"listChanged": true}}),
        json!({"roots": {}}),
    );
    let elicits = || Given {
        elicits: true,
        ..none()
    };
    let both = json!({"elicitation": {"form": {}, "url": {}}});
    check(elicits(), &[], both.clone(), both);
    let forms = json!({"elicitation": {"form": {}}});
    let no_pages = Given {
        no_pages: true,
        ..elicits()
    };
    check(no_pages, &[], forms.clone(), forms);
    let samples = Given {
        samples: true,
        ..none()
    };
    check(samples, &[], json!({"sampling": {}}), json!({"sampling": {}}));
    let all = json!({"sampling": {"tools": {}, "context": {}}});
    let samples_more = Given {
        samples: true,
        tools: true,
        context: true,
        ..none()
    };
    check(samples_more, &[], all.clone(), all);
}

#[tokio::test]
async fn what_is_not_offered_is_no_method_of_ours() {
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
async fn a_form_is_answered_with_defaults_and_never_with_what_does_not_fit() {
    let check = async |answer: Option<ElicitAnswer>, expected: Value| {
        let host = Given {
            elicits: true,
            answer,
            ..Given::default()
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
    let host = || Given {
        elicits: true,
        answer: accept(json!({})),
        ..Given::default()
    };
    let answer = responder(host(), &[])
        .answer("elicitation/create", visit().into())
        .await;
    assert_eq!(answer, Ok(json!({"action": "accept"})));
    let no_pages = Given {
        no_pages: true,
        ..host()
    };
    assert_eq!(
        responder(no_pages, &[])
            .answer("elicitation/create", visit().into())
            .await
            .unwrap_err()
            .0,
        -32602
    );
    for url in ["javascript:alert(1)", "file:///etc/passwd", "nowhere"] {
        let mut visit = visit();
        visit["url"] = url.into();
        let refused = responder(host(), &[])
            .answer("elicitation/create", visit.into())
            .await
            .unwrap_err();
        assert_eq!(refused.0, -32602, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_within_its_limits_and_with_the_users_consent() {
    let samples = |rejects| Given {
        samples: true,
        rejects,
        ..Given::default()
    };
    let ask = |tokens: u64| json!({"messages": [], "maxTokens": tokens});
    let willing = responder(samples(false), &[]);
    let sample = async |tokens| willing.answer("sampling/createMessage", ask(tokens).into()).await;
    assert_eq!(sample(7).await, Ok(said(&ask(7))));
    assert_eq!(sample(1_000_000).await, Ok(said(&ask(100))));
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

/// The server gets a handle at once and the answer when it asks for it.
#[tokio::test(start_paused = true)]
async fn a_question_may_be_asked_as_a_task() {
    let host = Given {
        elicits: true,
        answer: accept(json!({"name": "me"})),
        ..Given::default()
    };
    let responder = responder(host, &[]);
    assert_eq!(
        responder.capabilities(Era::Legacy)["tasks"]["requests"],
        json!({"elicitation": {"create": {}}})
    );
    let mut question = form();
    question["task"] = json!({"ttl": 60_000});
    let task = responder
        .answer_or_begin("elicitation/create", question.clone().into())
        .await
        .unwrap()["task"]
        .clone();
    let about = async |method: &str| {
        responder
            .answer_or_begin(method, json!({"taskId": task["taskId"]}).into())
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
        .answer_or_begin("elicitation/create", question.clone().into())
        .await
        .unwrap()["task"]["taskId"]
        .clone();
    let cancelled = responder
        .answer_or_begin("tasks/cancel", json!({"taskId": second}).into())
        .await
        .unwrap();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        responder
            .answer_or_begin("tasks/result", json!({"taskId": second}).into())
            .await
            .unwrap_err()
            .0,
        -32800
    );
    let unknown = responder
        .answer_or_begin("tasks/get", json!({"taskId": "task-99"}).into())
        .await;
    assert_eq!(unknown.unwrap_err().0, -32602);

    // However many are begun, few are kept.
    for _ in 0..100 {
        let begun = responder
            .answer_or_begin("elicitation/create", question.clone().into())
            .await
            .unwrap();
        let done = responder
            .answer_or_begin("tasks/result", json!({"taskId": begun["task"]["taskId"]}).into())
            .await;
        assert!(done.is_ok());
    }
    let listed = responder
        .answer_or_begin("tasks/list", Value::Null.into())
        .await
        .unwrap();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 32);
}

async fn sampled(host: Given, params: &Value) -> Result<Value, Refusal> {
    responder(host, &[])
        .answer("sampling/createMessage", params.clone().into())
        .await
}

/// Both schemas: the client must return an error when tools are given that it has not declared.
#[tokio::test]
async fn tools_for_a_model_are_refused_and_context_is_left_out_unless_they_are_offered() {
    let samples = |tools, context| Given {
        samples: true,
        tools,
        context,
        ..Given::default()
    };
    let plain = json!({"messages": [], "maxTokens": 7});
    for (field, value) in [("tools", json!([])), ("toolChoice", json!({"mode": "auto"}))] {
        let mut asked = plain.clone();
        asked[field] = value;
        let (code, words) = sampled(samples(false, true), &asked).await.unwrap_err();
        assert_eq!(code, -32602);
        assert!(words.contains(field) && words.contains("sampling.tools"), "{words}");
        assert_eq!(sampled(samples(true, false), &asked).await, Ok(said(&asked)));
    }
    let mut asked = plain.clone();
    asked["includeContext"] = "thisServer".into();
    assert_eq!(sampled(samples(true, false), &asked).await, Ok(said(&plain)));
    assert_eq!(sampled(samples(false, true), &asked).await, Ok(said(&asked)));
}

#[tokio::test]
async fn a_models_answer_that_the_protocol_does_not_know_is_not_sent() {
    for said in [json!("words"), json!({"content": "words"}), Value::Null] {
        let host = Given {
            samples: true,
            sampled: Some(said),
            ..Given::default()
        };
        let answer = sampled(host, &json!({"messages": [], "maxTokens": 7})).await;
        assert_eq!(answer.unwrap_err().0, -32603);
    }
}

/// A host that panics costs the question, whichever way it was asked.
#[tokio::test(start_paused = true)]
async fn a_host_that_panics_is_an_error_to_the_server() {
    let host = Given {
        elicits: true,
        samples: true,
        panics: true,
        ..Given::default()
    };
    let responder = responder(host, &[]);
    let sample = json!({"messages": [], "maxTokens": 7, "task": {}});
    for (method, mut params) in [("elicitation/create", form()), ("sampling/createMessage", sample)] {
        assert_eq!(
            responder.answer(method, params.clone().into()).await.unwrap_err().0,
            -32603
        );
        params["task"] = json!({});
        let begun = responder.answer_or_begin(method, params.into()).await.unwrap();
        let about = json!({"taskId": begun["task"]["taskId"]});
        let ended = responder.answer_or_begin("tasks/result", about.clone().into()).await;
        assert_eq!(ended.unwrap_err().0, -32603);
        assert_eq!(
            responder.answer_or_begin("tasks/get", about.into()).await.unwrap()["status"],
            "failed"
        );
    }
    assert_eq!(responder.visit(visit()).await.unwrap_err().0, -32603);
    assert_eq!(responder.answer("ping", Value::Null.into()).await, Ok(json!({})));
}

#[tokio::test]
async fn the_fields_of_a_form_come_in_the_order_of_the_server() {
    struct Looks(Arc<std::sync::Mutex<Vec<String>>>);

    impl Host for Looks {
        fn offers_elicitation(&self) -> bool {
            true
        }

        fn elicit<'a>(&'a self, _: &'a ServerName, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
            let form = request.form.unwrap();
            *self.0.lock().unwrap() = form.fields.into_iter().map(|field| field.name).collect();
            Box::pin(std::future::ready(ElicitAnswer::Decline))
        }
    }

    let seen = Arc::default();
    let host = Looks(Arc::clone(&seen));
    let text = r#"{"message": "sign in", "requestedSchema": {"type": "object", "required": ["password"],
        "properties": {"user": {"type": "string"}, "password": {"type": "string", "format": "password"}, "again": {"type": "boolean"}}}}"#;
    let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let question = RequestParams::read(Some(&raw));
    responder(host, &[])
        .answer("elicitation/create", question)
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), ["user", "password", "again"]);
}
