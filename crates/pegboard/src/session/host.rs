//! What a server may ask of us, and who answers: the program's [`Host`] if it offers such answers, otherwise "no such method".

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

use super::{desk::ServerRequest, frame};
use crate::{
    mask::Veil,
    name::ServerName,
    status::Era,
    transport::{Delivery, Envelope, Outgoing, Wire},
};

/// How many requests of one server are answered at once.
const AT_ONCE: usize = 16;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers what servers ask of the program that embeds the board. A capability is offered to servers only when it is switched on here.
pub trait Host: Send + Sync + 'static {
    /// Whether [`Host::elicit`] is there for the servers.
    fn offers_elicitation(&self) -> bool {
        false
    }

    /// A server wants something from the user.
    fn elicit<'a>(&'a self, server: &'a ServerName, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
        let _ = (server, request);
        Box::pin(std::future::ready(ElicitAnswer::Decline))
    }

    /// Whether [`Host::sample`] is there for the servers.
    fn offers_sampling(&self) -> bool {
        false
    }

    /// A server wants a model's answer: `params` and the result are those of `sampling/createMessage`.
    fn sample<'a>(&'a self, server: &'a ServerName, params: Value) -> Boxed<'a, Result<Value, String>> {
        let _ = (server, params);
        Box::pin(std::future::ready(Err("no model is offered to servers".to_owned())))
    }
}

/// Offers nothing to servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// What a server wants from the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server's words.
    pub message: String,
    /// The form to fill in, as a JSON Schema of a flat object.
    pub schema: Option<Value>,
    /// Or a page to visit.
    pub url: Option<String>,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitAnswer {
    /// Here it is. Fields that are left out get the form's defaults.
    Accept(Map<String, Value>),
    /// The user says no.
    Decline,
    /// The user did not say anything.
    Cancel,
}

/// The one who answers a server, with all that is needed for it.
pub(super) struct Desk {
    pub(super) server: ServerName,
    pub(super) host: Arc<dyn Host>,
    pub(super) roots: Vec<String>,
    pub(super) veil: Veil,
}

impl Desk {
    /// What we tell servers that we can do. Only what has somebody to answer is among it.
    pub(super) fn capabilities(&self, era: Era) -> Value {
        let mut capabilities = Map::new();
        if !self.roots.is_empty() {
            // Our roots never change while a session lives.
            let roots = match era {
                Era::Legacy => json!({ "listChanged": false }),
                Era::Modern => json!({}),
            };
            capabilities.insert("roots".to_owned(), roots);
        }
        if self.host.offers_elicitation() {
            capabilities.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        if self.host.offers_sampling() {
            capabilities.insert("sampling".to_owned(), json!({}));
        }
        Value::Object(capabilities)
    }

    /// The result of one request of the server, or the error it gets.
    pub(super) async fn answer(&self, method: &str, mut params: Value) -> Result<Value, (i64, String)> {
        // A person or a model is about to see it.
        self.veil.masker().value(&mut params);
        match method {
            "ping" => Ok(json!({})),
            "roots/list" if !self.roots.is_empty() => {
                let roots: Vec<Value> = self.roots.iter().map(|uri| json!({ "uri": uri })).collect();
                Ok(json!({ "roots": roots }))
            }
            "elicitation/create" if self.host.offers_elicitation() => self.elicit(params).await,
            "sampling/createMessage" if self.host.offers_sampling() => self
                .host
                .sample(&self.server, params)
                .await
                .map_err(|problem| (-32603, problem)),
            _ => Err((-32601, "this client does not offer that".to_owned())),
        }
    }

    async fn elicit(&self, mut params: Value) -> Result<Value, (i64, String)> {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let Some(message) = text("message") else {
            return Err((-32602, "`message` is missing".to_owned()));
        };
        let url = text("url");
        let schema = params.get_mut("requestedSchema").map(Value::take);
        let request = Elicitation {
            message,
            schema: schema.clone(),
            url,
        };
        Ok(match self.host.elicit(&self.server, request).await {
            ElicitAnswer::Accept(mut content) => match &schema {
                Some(schema) => {
                    fill_defaults(&mut content, schema);
                    json!({ "action": "accept", "content": content })
                }
                None => json!({ "action": "accept" }),
            },
            ElicitAnswer::Decline => json!({ "action": "decline" }),
            ElicitAnswer::Cancel => json!({ "action": "cancel" }),
        })
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("server", &self.server)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// Puts the form's defaults where the user left a field out.
fn fill_defaults(content: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        if let Some(default) = property.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
}

/// The task that answers a server's requests for as long as its session lives.
pub(super) struct Answering {
    pub(super) requests: mpsc::Receiver<ServerRequest>,
    pub(super) desk: Arc<Desk>,
}

impl Answering {
    pub(super) async fn run(mut self, wire: Arc<dyn Wire>) {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let tasks = TaskTracker::new();
        while let Some(request) = self.requests.recv().await {
            let Ok(turn) = turns.clone().acquire_owned().await else {
                return;
            };
            let (desk, wire) = (self.desk.clone(), wire.clone());
            tracing::debug!(method = %desk.veil.text(&request.method).escape_debug(), "the server asks");
            tasks.spawn(async move {
                let params = request
                    .params
                    .and_then(|params| serde_json::from_str(params.get()).ok());
                let result = desk.answer(&request.method, params.unwrap_or_default()).await;
                let answer = result.as_ref().map_err(|(code, message)| (*code, message.as_str()));
                wire.send(Outgoing {
                    body: frame::answer(&request.id, answer),
                    id: None,
                    delivery: Arc::new(Delivery::default()),
                    envelope: Envelope::default(),
                    taken: None,
                });
                drop(turn);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Yes;

    impl Host for Yes {
        fn offers_elicitation(&self) -> bool {
            true
        }
        fn elicit<'a>(&'a self, _server: &'a ServerName, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
            assert_eq!(request.message, "who?");
            let content = json!({"name": "me"});
            Box::pin(async move { ElicitAnswer::Accept(content.as_object().cloned().unwrap_or_default()) })
        }
    }

    fn desk(host: impl Host, roots: &[&str]) -> Desk {
        Desk {
            server: ServerName::parse("fx").unwrap(),
            host: Arc::new(host),
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            veil: Veil::default(),
        }
    }

    #[tokio::test]
    async fn only_what_has_an_answer_is_offered_and_the_rest_is_no_method() {
        let nothing = desk(NoHost, &[]);
        assert_eq!(nothing.capabilities(Era::Legacy), json!({}));
        assert_eq!(nothing.answer("ping", Value::Null).await, Ok(json!({})));
        for method in ["roots/list", "elicitation/create", "sampling/createMessage", "x"] {
            assert_eq!(
                nothing.answer(method, json!({"message": "who?"})).await.unwrap_err().0,
                -32601,
                "{method}"
            );
        }
        let some = desk(Yes, &["file:///srv"]);
        assert_eq!(
            some.capabilities(Era::Legacy),
            json!({"roots": {"listChanged": false}, "elicitation": {"form": {}, "url": {}}})
        );
        assert_eq!(
            some.answer("roots/list", Value::Null).await,
            Ok(json!({"roots": [{"uri": "file:///srv"}]}))
        );
    }

    #[tokio::test]
    async fn fields_that_the_user_leaves_out_get_the_forms_defaults() {
        let params = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {
            "name": {"type": "string", "default": "nobody"}, "age": {"type": "integer", "default": 30}, "x": {"type": "string"},
        }}});
        let answer = desk(Yes, &[]).answer("elicitation/create", params).await.unwrap();
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "me", "age": 30}})
        );
    }
}
