//! Tasks between all eras: started, polled, answered, cancelled and listed.

use pegboard_testkit::{Question, Tool};
use serde_json::{Value, json};

use crate::era_matrix::{
    announce,
    client::{Client, Era},
    fixture::{Fixture, Link, server},
    in_all_combinations, pairs,
};

/// The `_meta` key that names the task of a message.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Starts a task as clients of this era do, and returns it.
async fn start(client: &mut Client, tool: &str) -> Value {
    let mut params = json!({"name": tool, "arguments": {}});
    if client.era == Era::Legacy {
        params["task"] = json!({"ttl": 60_000});
    }
    let mut created = client.ask("tools/call", params).await.result().clone();
    match client.era {
        Era::Legacy => created["task"].take(),
        Era::Modern => {
            assert_eq!(created["resultType"], "task", "{created}");
            created
        }
    }
}

fn id_of(task: &Value) -> Value {
    let id = &task["taskId"];
    let text = id.as_str().expect("a task");
    assert!(!text.contains("task-"), "the server's own id is not shown");
    json!({ "taskId": id })
}

#[tokio::test]
async fn a_task_is_polled_to_its_result() {
    in_all_combinations(async |_, mut client| {
        let task = start(&mut client, "task").await;
        let id = id_of(&task);
        let (ttl, interval) = match client.era {
            Era::Legacy => ("ttl", "pollInterval"),
            Era::Modern => ("ttlMs", "pollIntervalMs"),
        };
        assert!(task[ttl].is_null() && task[interval] == 50, "{task}");
        let status = client.ask("tasks/get", id.clone()).await;
        let status = status.result();
        assert_eq!(status["status"], "completed");
        assert_eq!(status["taskId"], id["taskId"]);
        let content = match client.era {
            Era::Legacy => {
                let listed = client.ask("tasks/list", json!({})).await;
                let tasks = listed.result()["tasks"].as_array().expect("a list");
                assert!(tasks.iter().any(|task| task["taskId"] == id["taskId"]), "{tasks:?}");
                client.ask("tasks/result", id).await.result()["content"].clone()
            }
            Era::Modern => status["result"]["content"].clone(),
        };
        assert!(content.is_array(), "{content}");
    })
    .await;
}

/// The TypeScript SDK 1.x repeats the params of the start in every request about the task.
#[tokio::test]
async fn requests_about_a_task_may_have_params_that_say_nothing() {
    in_all_combinations(async |_, mut client| {
        let mut params = id_of(&start(&mut client, "task").await);
        params["task"] = json!({"ttl": 60_000});
        params["unknown"] = json!([1]);
        assert_eq!(
            client.ask("tasks/get", params.clone()).await.result()["status"],
            "completed"
        );
        if client.era == Era::Legacy {
            let result = client.ask("tasks/result", params.clone()).await;
            assert!(result.result()["content"].is_array());
            client.ask("tasks/list", json!({"task": {"ttl": 1}})).await.result();
        }
        client.ask("tasks/cancel", params).await.result();
    })
    .await;
}

#[tokio::test]
async fn the_board_declares_the_tasks_that_it_serves() {
    for era in crate::era_matrix::ERAS {
        let fixture = Fixture::new(era).await;
        for of_client in crate::era_matrix::ERAS {
            let mut client = Client::connect(
                &fixture.address,
                "/mcp",
                of_client,
                crate::era_matrix::everything_of(of_client),
            )
            .await;
            let described = match of_client {
                Era::Legacy => client.declared.clone(),
                Era::Modern => client.ask("server/discover", json!({})).await.result()["capabilities"].clone(),
            };
            let declared = match of_client {
                Era::Legacy => &described["tasks"]["requests"]["tools"]["call"],
                Era::Modern => &described["extensions"]["io.modelcontextprotocol/tasks"],
            };
            assert!(declared.is_object(), "{of_client:?}: {described}");
            let id = id_of(&start(&mut client, "s__task").await);
            let status = client.ask("tasks/get", id).await;
            assert_eq!(status.result()["status"], "completed");
        }
    }
}

#[tokio::test]
async fn a_task_is_cancelled_on_its_server() {
    in_all_combinations(async |fixture, mut client| {
        let before = fixture.server.count("tasks/cancel");
        let id = id_of(&start(&mut client, "task").await);
        let cancelled = client.ask("tasks/cancel", id).await;
        cancelled.result();
        assert_eq!(fixture.server.count("tasks/cancel"), before + 1);
    })
    .await;
}

#[tokio::test]
async fn methods_of_the_other_era_are_unknown() {
    in_all_combinations(async |_, mut client| {
        let mut params = id_of(&start(&mut client, "task").await);
        params["inputResponses"] = json!({});
        let foreign = match client.era {
            Era::Legacy => "tasks/update",
            Era::Modern => "tasks/list",
        };
        assert_eq!(client.ask(foreign, params).await.error()["code"], -32601, "{foreign}");
    })
    .await;
}

/// A server whose task asks for a colour.
async fn curious(link: Link) -> Fixture {
    let form = json!({"type": "object", "properties": {"colour": {"type": "string"}}});
    let question = Question::form("colour", "Which colour?", form);
    let survey = Tool::new("survey").runs_as_task().asks_for([question]);
    Fixture::behind(link, server(Era::Legacy).tool(survey), |gateway| gateway).await
}

#[tokio::test]
async fn what_the_task_of_a_legacy_server_asks_reaches_the_client_that_polls_it() {
    for link in [Link::Http, Link::Stdio] {
        for (era, of_client) in pairs() {
            announce((era, of_client), (Era::Legacy, link));
            let fixture = curious(link).await;
            let mut client = fixture.client(of_client, era).await;
            let id = id_of(&start(&mut client, "survey").await);
            let related = json!({ RELATED_TASK: id });
            match era {
                Era::Legacy => {
                    let status = client.ask("tasks/get", id.clone()).await;
                    assert_eq!(status.result()["status"], "input_required");
                    let result = client.ask("tasks/result", id).await;
                    assert_eq!(result.questions, ["elicitation/create"]);
                    assert_eq!(result.question_metas, [related], "it is named as the client knows it");
                    assert!(result.text().contains("green"));
                    let told = client.wait_for("notifications/tasks/status").await;
                    assert_eq!(told["status"], "completed");
                }
                Era::Modern => {
                    let asked = client.poll(&id, |task| task["status"] == "input_required").await;
                    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
                    assert_eq!(question["method"], "elicitation/create");
                    assert_eq!(question["params"]["_meta"], related);
                    let mut answers = id.clone();
                    let answer = json!({"action": "accept", "content": {"colour": "green"}, "_meta": related});
                    answers["inputResponses"] = json!({ key: answer });
                    client.ask("tasks/update", answers).await.result();
                    let ended = client.poll(&id, |task| task["status"] == "completed").await;
                    assert!(ended["result"]["content"].is_array(), "{ended}");
                }
            }
            let answered = |message: &Value| message["result"]["content"]["colour"] == "green";
            let received = fixture.server.requests();
            let answer = received.iter().find(|received| answered(&received.params));
            let answer = &answer.unwrap_or_else(|| panic!("{received:?}")).params["result"];
            assert_eq!(
                answer["_meta"][RELATED_TASK]["taskId"], "task-survey",
                "the server's own id"
            );
            fixture.board.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_task_outlives_the_session_that_started_it() {
    for (era, behind) in pairs() {
        let fixture = Fixture::behind(behind, server(era), |gateway| gateway).await;
        let mut first = fixture.client(Link::Http, Era::Legacy).await;
        let id = id_of(&start(&mut first, "task").await);
        let session = first.session().expect("a session");
        let headers = [("mcp-session-id", session)];
        let ended = crate::era_matrix::http::send(
            &fixture.address,
            "DELETE",
            crate::era_matrix::fixture::SERVER,
            &headers,
            "",
        )
        .await;
        assert!((200..300).contains(&ended.status), "{}", ended.status);
        for client in [Era::Legacy, Era::Modern] {
            let mut second = fixture.client(Link::Http, client).await;
            let status = second.ask("tasks/get", id.clone()).await;
            assert_eq!(status.result()["status"], "completed", "{client:?}");
        }
        fixture.board.shutdown().await;
    }
}
