//! A small client on the library for the official MCP conformance suite. It takes the URL of a test server and runs the scenario
//! named in `MCP_CONFORMANCE_SCENARIO`.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pegboard::{
    Arguments, BoxFuture, Config, Host, Kind, ListedTool, Outcome, Pegboard, Reply, Secret, ServerConfig, ServerName,
    SignInOptions, State, ToolCall, Toolset,
    config::{
        Auth, ClientKey, Endpoint, IdentityProvider, JwtBearer, OAuthConfig, OAuthGrant, SafeUrl, TokenInput, Transport,
    },
    host::{ElicitAnswer, Elicitation, HostContext},
};
use pegboard_testkit::oauth::follow_redirect;
use serde_json::{Map, Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// The document that the suite takes as a client id.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// How often a person would sign in before giving up.
const SIGN_INS: usize = 3;

#[tokio::main]
#[expect(clippy::print_stderr, reason = "this is a program")]
async fn main() -> anyhow::Result<()> {
    let Some(url) = std::env::args().skip(1).next_back() else {
        eprintln!("usage: MCP_CONFORMANCE_SCENARIO=NAME conformance_client URL");
        std::process::exit(2);
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").context("MCP_CONFORMANCE_SCENARIO is not set")?;
    let server = ServerName::parse("fx")?;
    let mut config = Config::default();
    let mut endpoint = Endpoint::from(SafeUrl::parse(&url)?);
    let signs_in = scenario.starts_with("auth/");
    if signs_in {
        endpoint.auth = Auth::OAuth(Arc::new(oauth_settings(&scenario)?));
    }
    let tokens = tempfile::tempdir()?;
    let mut settings = ServerConfig::new(Transport::auto(endpoint));
    settings.roots = vec!["file:///srv".to_owned()];
    config.servers.insert(server.clone(), settings);
    let board = Pegboard::builder(config)
        .host(Agreeable)
        .token_store(tokens.path())
        .open();
    let tools = board.toolset();
    let done = if signs_in {
        run_with_sign_in(&board, &tools, &server).await
    } else {
        run(&scenario, &tools, &server).await
    };
    board.shutdown().await;
    done
}

async fn run(scenario: &str, tools: &Toolset, server: &ServerName) -> anyhow::Result<()> {
    let listing = tools.list(PATIENCE).await;
    if let Some(down) = listing.unavailable.first() {
        bail!("the server cannot be reached: {}", down.error);
    }
    match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {}
        "tools_call" => {
            call(tools, "add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            call(tools, "test_client_elicitation_defaults", json!({})).await?;
        }
        "sse-retry" => {
            call(tools, "test_reconnection", json!({})).await?;
        }
        "sep-2322-client-request-state" => {
            let (state, unrelated) = tokio::join!(
                call(tools, "test_mrtr_echo_state", json!({})),
                call(tools, "test_mrtr_unrelated", json!({})),
            );
            ensure!(state?.text() == "echo-state-ok");
            ensure!(unrelated?.text() == "unrelated-ok");
            ensure!(call(tools, "test_mrtr_no_state", json!({})).await?.text() == "no-state-ok");
            call(tools, "test_mrtr_no_result_type", json!({})).await?;
        }
        "http-standard-headers" => {
            call_all(tools, &listing.tools).await?;
            for uri in ["file:///path/to/file%20name.txt", "https://example.com/resource?id=123"] {
                tools
                    .read_resource(server, uri)
                    .await
                    .map_err(|failure| anyhow::anyhow!(failure.message))?;
            }
            let prompt = tools.get_prompt(server, "test_prompt", &Map::new()).await;
            prompt.map_err(|failure| anyhow::anyhow!(failure.message))?;
        }
        "http-custom-headers" => {
            let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for wanted in context["toolCalls"].as_array().context("no toolCalls")? {
                let name = wanted["name"].as_str().context("a call without a name")?;
                call(tools, name, wanted["arguments"].clone()).await?;
            }
        }
        // Every listed tool is called: tools with invalid headers must not be listed.
        "http-invalid-tool-headers" => call_all(tools, &listing.tools).await?,
        "json-schema-2020-12-preservation" => {
            let tool = tools.tool("json_schema_2020_12_tool", PATIENCE).await;
            let schema = tool
                .map_err(|failure| anyhow::anyhow!(failure.message))?
                .input_schema
                .clone();
            call(tools, "json_schema_echo", json!({ "schema": schema })).await?;
        }
        other => bail!("the scenario `{other}` is not known"),
    }
    Ok(())
}

async fn call(tools: &Toolset, name: &str, arguments: Value) -> anyhow::Result<Reply> {
    let reply = tools
        .call(ToolCall::new(name).arguments(Arguments::try_from(arguments)?))
        .await;
    match reply.outcome {
        Outcome::Done(_) => Ok(reply),
        other => bail!("{name}: {}", other.text()),
    }
}

async fn call_all(tools: &Toolset, listed: &[ListedTool]) -> anyhow::Result<()> {
    for listed in listed {
        call(tools, &listed.name, json!({"region": "us-west1"})).await?;
    }
    Ok(())
}

/// The OAuth settings of a scenario: what a person would know about the client, which the suite names in the environment.
fn oauth_settings(scenario: &str) -> anyhow::Result<OAuthConfig> {
    let context: Value = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let needed = |key: &str| text(key).with_context(|| format!("the context has no {key}"));
    let mut settings = OAuthConfig {
        client_metadata_url: Some(SafeUrl::parse(CLIENT_DOCUMENT)?),
        client_id: text("client_id"),
        client_secret: text("client_secret").map(Secret::from),
        private_key: text("private_key_pem").map(|pem| ClientKey::new(Secret::from(pem))),
        ..OAuthConfig::default()
    };
    match scenario {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => {
            settings.grant = OAuthGrant::ClientCredentials;
        }
        "auth/wif-jwt-bearer" => {
            let assertion = needed("valid_jwt")?;
            settings.issuer = Some(audience(&assertion)?);
            let assertion = TokenInput::Value(Secret::from(assertion));
            settings.grant = OAuthGrant::JwtBearer(JwtBearer::new(assertion));
        }
        "auth/cross-app-access-complete-flow" | "auth/enterprise-managed-authorization" => {
            let mut grant = JwtBearer::new(TokenInput::Value(Secret::from(needed("idp_id_token")?)));
            let mut provider = IdentityProvider::new(SafeUrl::parse(&needed("idp_token_endpoint")?)?);
            provider.client_id = text("idp_client_id");
            grant.identity_provider = Some(provider);
            settings.grant = OAuthGrant::JwtBearer(grant);
        }
        _ => {}
    }
    Ok(settings)
}

/// The authorization server that an assertion is for. Who configures an assertion knows it; the suite tells it only here.
fn audience(assertion: &str) -> anyhow::Result<String> {
    let claims = assertion.split('.').nth(1).context("the assertion is no JWT")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    let audience = claims["aud"].as_str().context("the assertion has no audience")?;
    Ok(audience.to_owned())
}

/// Lists and calls, and signs in whenever the server asks for it.
async fn run_with_sign_in(board: &Pegboard, tools: &Toolset, server: &ServerName) -> anyhow::Result<()> {
    for _ in 0..SIGN_INS {
        match list_and_call(tools).await {
            Err(NotDone::NeedsAuth(_)) => {
                let pending = board.sign_in(server, SignInOptions::default()).await?;
                let redirected = follow_redirect(pending.url().as_str(), None).await?;
                pending.finish(&redirected).await?;
            }
            Err(NotDone::Failed(why)) => bail!(why),
            Ok(()) => return Ok(()),
        }
    }
    list_and_call(tools).await.map_err(|not_done| match not_done {
        NotDone::NeedsAuth(why) | NotDone::Failed(why) => anyhow::anyhow!(why),
    })
}

enum NotDone {
    NeedsAuth(String),
    Failed(String),
}

async fn list_and_call(tools: &Toolset) -> Result<(), NotDone> {
    let listing = tools.list(PATIENCE).await;
    if let Some(down) = listing.unavailable.first() {
        let why = down.error.clone();
        return Err(match down.state {
            State::NeedsAuth => NotDone::NeedsAuth(why),
            _ => NotDone::Failed(why),
        });
    }
    for listed in &listing.tools {
        let reply = tools.call(ToolCall::new(listed.name.as_str())).await;
        match reply.outcome {
            Outcome::Done(_) => {}
            other if other.kind() == Kind::NeedsAuth => return Err(NotDone::NeedsAuth(other.text())),
            other => return Err(NotDone::Failed(other.text())),
        }
    }
    Ok(())
}

/// A user that accepts every form and fills in only fields without a default, and a model with a fixed response.
struct Agreeable;

impl Host for Agreeable {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(&'a self, _context: HostContext<'a>, request: Elicitation) -> BoxFuture<'a, ElicitAnswer> {
        let mut content = Map::new();
        let properties = request
            .schema
            .as_ref()
            .and_then(|schema| schema["properties"].as_object());
        for (name, property) in properties.into_iter().flatten() {
            if property.get("default").is_none() && property["type"] == "boolean" {
                content.insert(name.clone(), Value::Bool(true));
            }
        }
        Box::pin(async move { ElicitAnswer::Accept(content) })
    }

    fn offers_sampling(&self) -> bool {
        true
    }

    fn sample<'a>(&'a self, _context: HostContext<'a>, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        let content = json!({"type": "text", "text": "forty-two"});
        Box::pin(async move { Ok(json!({"role": "assistant", "model": "fixed", "content": content})) })
    }
}
