//! What the log says about each call.

use pegboard::{
    ToolCall, View,
    approval::{Decision, Question},
    config::Approval,
};
use pegboard_testkit::{Answer, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::{audit::stage::Stage, support::*};

const CANARY: &str = "sk-canary-7f3a9c";

fn server() -> FakeServer {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}});
    FakeServer::new("fx")
        .tool(Tool::new("write").schema(schema).echoes())
        .tool(Tool::new("fail").answers(Answer::Failure("no".into())))
}

/// The records about calls of a tool, without what differs from run to run.
fn of<'a>(records: &'a [Value], tool: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["tool"] == tool).collect()
}

#[tokio::test]
async fn a_call_has_a_record_of_its_decision_and_one_of_its_end() {
    let stage = Stage::new(&server(), |_| {});
    let tools = stage.board.toolset_with(View::new().name("alice"));
    let call = ToolCall::new("fx.write").id("id-1");
    tools
        .call(call.arguments(json!({"text": "hello", "n": 5, "other": null})))
        .await;
    let listed = tools.list(PATIENCE).await;
    let definition = listed.tools.iter().find(|listed| listed.tool.name == "write").unwrap();
    let definition = definition.tool.definition_hash();
    let records = stage.records().await;
    let [decision, end] = of(&records, "write")[..] else {
        panic!("{records:#?}");
    };
    for record in [decision, end] {
        assert_eq!(
            (&record["view"], &record["id"], &record["server"]),
            (&json!("alice"), &json!("id-1"), &json!("fx"))
        );
    }
    assert_eq!(
        (&decision["event"], &decision["decision"]),
        (&json!("decision"), &json!("allowed"))
    );
    assert_eq!(decision["definition"], json!(definition));
    assert_eq!(decision["arguments"]["shape"], json!({"text": "string", "n": "number"}));
    assert_eq!(decision["arguments"]["undeclared"], 1);
    assert_eq!((&end["event"], &end["end"]["status"]), (&json!("call"), &json!("done")));
    assert_eq!(
        (&end["end"]["kind"], &end["end"]["attempts"]),
        (&json!("ok"), &json!(1))
    );
    assert!(end["end"]["bytes"].as_u64().unwrap() > 0 && end["end"]["duration_ms"].is_number());
}

/// The same arguments have the same hash in one log and another one in the next, so that a list of hashes is of no use.
#[tokio::test]
async fn equal_arguments_have_equal_hashes_within_one_log_only() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let stage = Stage::new(&server(), |_| {});
        let tools = stage.board.toolset();
        for text in ["yes", "yes", "no"] {
            call(&tools, "fx.write", json!({"text": text})).await;
        }
        let records = stage.records().await;
        let decisions = records.iter().filter(|record| record["event"] == "decision");
        let hashes: Vec<_> = decisions.map(|record| record["arguments"]["hash"].clone()).collect();
        assert_eq!(hashes[0], hashes[1]);
        assert_ne!(hashes[0], hashes[2]);
        seen.push(hashes[0].clone());
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_refusal_names_the_rule_behind_it() {
    let stage = Stage::new(&server(), |config| config.policy.approval = Approval::Always);
    let refusing = |_: &Question<'_>| Decision::Refused(format!("because of {CANARY}"));
    let views = [
        ("once", View::new().approver(|_: &Question<'_>| Decision::Once)),
        ("refused", View::new().approver(refusing)),
        ("no_approver", View::new()),
        ("check", View::new().check(|_| Err("never".to_owned()))),
        ("for_view", View::new().approver(|_: &Question<'_>| Decision::ForView)),
    ];
    for (rule, view) in views {
        let tools = stage.board.toolset_with(view.name(rule));
        call(&tools, "fx.write", json!({})).await;
    }
    let records = stage.records().await;
    let decisions: Vec<_> = records.iter().filter(|record| record["event"] == "decision").collect();
    assert_eq!(decisions.len(), 5, "{records:#?}");
    for decision in decisions {
        assert_eq!(decision["view"], decision["rule"]);
        let is_approved = ["once", "for_view"].contains(&decision["rule"].as_str().unwrap());
        assert_eq!(decision["decision"], if is_approved { "approved" } else { "denied" });
    }
    let ends: Vec<_> = records.iter().filter(|record| record["event"] == "call").collect();
    assert_eq!(
        ends.iter().filter(|end| end["end"]["kind"] == "not_permitted").count(),
        3
    );
}

#[tokio::test]
async fn calls_that_fail_get_lost_or_have_no_tool_are_recorded_too() {
    let fake = server()
        .tool(Tool::new("hang"))
        .fault_on(When::tool("hang"), Fault::NeverAnswers);
    let stage = Stage::new(&fake, |_| {});
    let tools = stage.board.toolset();
    call(&tools, "fx.fail", json!({})).await;
    call(&tools, "fx.nothing_like_it", json!({})).await;
    tools
        .call(ToolCall::new("fx.hang").timeout(std::time::Duration::from_millis(100)))
        .await;
    let dropped = tools.call(ToolCall::new("fx.hang"));
    tokio::time::timeout(std::time::Duration::from_millis(100), dropped)
        .await
        .unwrap_err();
    let records = stage.records().await;
    let ends = records.iter().filter(|record| record["event"] == "call");
    let kinds: Vec<_> = ends.map(|end| end["end"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_error", "unknown_tool", "timeout", "cancelled"]);
}

/// Wherever a caller or a server puts a value: in arguments, their names, answers, errors, reasons.
#[tokio::test]
async fn no_value_of_a_call_is_in_the_log() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("echo").echoes())
        .tool(Tool::new("tell").answers_text(CANARY))
        .tool(Tool::new("fail").answers(Answer::Failure(CANARY.into())));
    let stage = Stage::new(&fake, |_| {});
    let tools = stage.board.toolset_with(View::new().check(
        |proposed| match proposed.arguments.contains_key("forbidden") {
            true => Err(format!("not with {CANARY}")),
            false => Ok(()),
        },
    ));
    call(&tools, "fx.echo", json!({"a": CANARY, CANARY: {"deep": [CANARY]}})).await;
    call(&tools, "fx.echo", json!({"forbidden": CANARY})).await;
    call(&tools, "fx.tell", json!({})).await;
    call(&tools, "fx.fail", json!({})).await;
    assert_eq!(stage.records().await.len(), 8);
    for file in std::fs::read_dir(stage.log.parent().unwrap()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(CANARY), "{text}");
    }
}

/// Calls that no server sees: of hidden and unknown tools, with arguments that do not fit, refused by a hook, and of built-in tools.
#[tokio::test]
async fn a_call_that_is_refused_before_it_is_routed_has_a_decision_and_an_end() {
    let stage = Stage::new(&server(), |config| config.deny = vec!["fail".to_owned()]);
    let tools = stage.board.toolset_with(View::new().deny(["fx.write"]));
    tools.list(PATIENCE).await;
    call(&tools, "fx.fail", json!({})).await;
    call(&tools, "fx.write", json!({"text": CANARY})).await;
    call(&tools, &format!("fx.{CANARY}"), json!({})).await;
    call(&tools, CANARY, json!({})).await;
    call(&stage.board.toolset(), "fx.write", json!({"text": 5, "n": "x"})).await;
    let records = stage.records().await;
    let decisions: Vec<_> = records.iter().filter(|record| record["event"] == "decision").collect();
    let ends: Vec<_> = records.iter().filter(|record| record["event"] == "call").collect();
    let rules: Vec<_> = decisions
        .iter()
        .map(|record| record["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["config", "view", "unknown_tool", "unknown_tool", "arguments"]);
    for (decision, end) in decisions.iter().zip(&ends) {
        assert_eq!(decision["decision"], "denied");
        assert_eq!(
            (&decision["id"], &end["end"]["status"]),
            (&end["id"], &json!("refused"))
        );
        let named = |record: &Value| {
            [
                record["server"].clone(),
                record["tool"].clone(),
                record["name_hash"].clone(),
            ]
        };
        assert_eq!(named(decision), named(end));
    }
    assert_eq!(
        (&decisions[0]["tool"], &decisions[1]["tool"]),
        (&json!("fail"), &json!("write"))
    );
    for unknown in [2, 3] {
        assert!(decisions[unknown]["name_hash"].is_string() && decisions[unknown]["tool"].is_null());
    }
    assert!(!std::fs::read_to_string(&stage.log).unwrap().contains(CANARY));
}

#[tokio::test]
async fn a_repeated_idempotency_key_has_a_decision_of_its_own() {
    let stage = Stage::new(&server(), |_| {});
    let tools = stage.board.toolset();
    for text in ["a", "a", "b"] {
        let call = ToolCall::new("fx.write").key("k").arguments(json!({"text": text}));
        tools.call(call).await;
    }
    let records = stage.records().await;
    let decisions = records.iter().filter(|record| record["event"] == "decision");
    let decisions: Vec<_> = decisions
        .map(|record| (record["decision"].clone(), record["rule"].clone()))
        .collect();
    assert_eq!(
        decisions,
        [
            (json!("allowed"), Value::Null),
            (json!("allowed"), json!("idempotency_key")),
            (json!("denied"), json!("idempotency_key")),
        ]
    );
}
