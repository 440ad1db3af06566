//! Headers that repeat arguments of a tool.

use pegboard_testkit::Tool;
use serde_json::json;

use crate::era_matrix::{
    client::{Client, Era},
    fixture::{Fixture, Link, SERVER, server},
};

#[tokio::test]
async fn a_header_that_is_not_its_argument_is_refused_with_400() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "size": {"type": "integer", "x-mcp-header": "Size"},
    }});
    for (era, link) in [(Era::Modern, Link::Http), (Era::Legacy, Link::Stdio)] {
        let fake = server(era).tool(Tool::new("deploy").schema(schema.clone()).echoes());
        let fixture = Fixture::behind(link, fake, |gateway| gateway).await;
        let mut client = Client::connect(&fixture.address, SERVER, Era::Modern, json!({})).await;
        client.ask("tools/list", json!({})).await.result();
        let eu = json!({"region": "eu", "size": 3});
        for (headers, arguments, is_accepted) in [
            (&[("mcp-param-region", "eu"), ("mcp-param-size", "3")][..], &eu, true),
            (
                &[("mcp-param-region", "=?base64?ZXU=?="), ("mcp-param-size", "3.0")],
                &eu,
                true,
            ),
            (&[("mcp-param-other", "x")], &json!({}), true),
            (&[("mcp-param-region", "us"), ("mcp-param-size", "3")], &eu, false),
            (&[("mcp-param-region", "eu"), ("mcp-param-size", "4")], &eu, false),
            (&[("mcp-param-size", "3")], &eu, false),
            (&[("mcp-param-region", "eu")], &json!({}), false),
        ] {
            client.more_headers = headers
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            let before = fixture.server.count("tools/call");
            let (head, response) = client
                .response("tools/call", json!({"name": "deploy", "arguments": arguments}))
                .await;
            if is_accepted {
                assert_eq!(
                    (head.status, &response["error"]),
                    (200, &json!(null)),
                    "{headers:?} {response}"
                );
            } else {
                assert_eq!(
                    (head.status, &response["error"]["code"]),
                    (400, &json!(-32020)),
                    "{headers:?} {response}"
                );
                assert_eq!(fixture.server.count("tools/call"), before, "it reaches no server");
            }
        }
        fixture.board.shutdown().await;
    }
}
