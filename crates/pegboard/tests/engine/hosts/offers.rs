//! What servers are offered: by the board's host on shared connections, by the view's host on its own, and per request in the newest era.

use pegboard::{View, config::Scope, host::NoHost};
use pegboard_testkit::{Era, MemoryHandle};
use serde_json::{Value, json};

use crate::{
    hosts::{
        fixtures::{Person, ask},
        wires::{asking, in_memory_of},
    },
    support::*,
};

/// The client capabilities in the messages with this method.
fn declared(handle: &MemoryHandle, method: &str) -> Vec<Value> {
    let requests = handle.requests().into_iter();
    let fitting = requests.filter(|message| message.method == method);
    fitting
        .map(|message| match message.params.get("capabilities") {
            Some(capabilities) => capabilities.clone(),
            None => message.params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone(),
        })
        .collect()
}

/// The board offers elicitation, the view does not: the server is told so, and no one is asked.
#[tokio::test(start_paused = true)]
async fn a_view_whose_host_offers_nothing_is_not_asked() {
    for era in [Era::Legacy, Era::Modern] {
        let operator = Person::new("operator");
        let (board, handle) = in_memory_of(&asking(era), in_process_settings(), &operator);
        let reply = ask(&board.toolset_with(View::new().host(NoHost)), "1").await;
        assert_contains(&reply.text(), &["this client does not offer that"]);
        assert_eq!(operator.asked(), Vec::<String>::new());
        if era == Era::Modern {
            assert_eq!(declared(&handle, "tools/call")[0].get("elicitation"), None);
            // The next caller is answered by the board's host.
            assert!(!ask(&board.toolset(), "2").await.is_error());
            assert_eq!(
                declared(&handle, "tools/call")[1]["elicitation"],
                json!({"form": {}, "url": {}})
            );
            assert_eq!(operator.asked().len(), 1);
        }
        board.shutdown().await;
    }
}

/// A board without a host can have views with one: in the newest era on every connection, before that on their own.
#[tokio::test(start_paused = true)]
async fn a_view_offers_what_its_host_offers() {
    for (era, scope) in [
        (Era::Modern, Scope::Shared),
        (Era::Modern, Scope::Session),
        (Era::Legacy, Scope::Session),
    ] {
        let (alice, settings) = (Person::new("alice"), set_to(|server| server.policy.scope = scope));
        let (board, handle) = in_memory_with(&asking(era), settings);
        let reply = ask(&board.toolset_with(alice.view()), "a1").await;
        assert!(!reply.is_error(), "{era:?} {scope:?}: {}", reply.text());
        assert_eq!(alice.asked(), ["fx: a1 alices alice a1"], "{era:?} {scope:?}");
        if era == Era::Legacy {
            let capabilities = declared(&handle, "initialize");
            let offering = capabilities
                .iter()
                .filter(|declared| declared.get("elicitation").is_some());
            assert_eq!(offering.count(), 1, "only the connection of the view offers it");
        }
        board.shutdown().await;
    }
}

/// On a shared connection of the older era, only what the board's host offers was declared. The view's host is not asked for more.
#[tokio::test(start_paused = true)]
async fn on_a_shared_connection_the_boards_host_decides_what_is_offered() {
    let alice = Person::new("alice");
    let (board, _handle) = in_memory_with(&asking(Era::Legacy), in_process_settings());
    let reply = ask(&board.toolset_with(alice.view()), "a1").await;
    assert_contains(&reply.text(), &["-32601"]);
    assert_eq!(alice.asked(), Vec::<String>::new());
}
