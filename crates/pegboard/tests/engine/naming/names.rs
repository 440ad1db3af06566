//! Names that models see, names that are accepted, and names that are not.

use pegboard::{Config, Env, Format, Kind, NameStyle, Provider, View, name::NameRules};
use serde_json::json;

use crate::{naming::fixtures::*, support::*};

/// Servers and tools whose exposed names would collide are all callable.
#[tokio::test]
async fn two_tools_that_would_share_a_name_are_both_callable() {
    let board = board_of(vec![(server("a", &["b__c"]), ""), (server("a__b", &["c"]), "")]);
    let tools = board.toolset();
    let names = listed(&tools).await;
    assert_ne!(names[0], names[1]);
    for (name, answer) in [
        (names[0].as_str(), "a: b__c"),
        (&names[1], "a__b: c"),
        ("a.b__c", "a: b__c"),
        ("a__b.c", "a__b: c"),
    ] {
        assert_eq!(call(&tools, name, json!({})).await.text(), answer, "{name}");
    }
    let reply = call(&tools, "a__b__c", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::UnknownTool);
    assert_eq!(
        reply.text(),
        "`a__b__c` could mean a.b__c or a__b.c. Call the one that is meant by that name."
    );
}

/// Whatever a server calls its tools, a model can call them by names that its provider accepts.
#[tokio::test]
async fn odd_names_are_callable_under_every_provider() {
    let odd = ["admin.tools.list", "a/b", "é", "a b", "a-b", "a_b", "A_B"];
    let board = board_of(vec![(server("fx", &odd), "")]);
    for provider in Provider::ALL {
        let tools = board.toolset_with(View::new().provider(provider));
        let names = listed(&tools).await;
        assert_eq!(names.len(), odd.len());
        for name in &names {
            assert!(provider.name_rules().allow(name), "{provider}: {name}");
            let reply = call(&tools, name, json!({})).await;
            assert_eq!(reply.text(), format!("fx: {}", reply.tool.unwrap()));
            assert_eq!(reply.repaired, None);
        }
        for own in odd {
            assert_eq!(call(&tools, own, json!({})).await.text(), format!("fx: {own}"));
            assert_eq!(
                call(&tools, &format!("fx.{own}"), json!({})).await.text(),
                format!("fx: {own}")
            );
        }
    }
    // A name from the listing for one provider is accepted from the others, too.
    let openai = listed(&board.toolset_with(View::new().provider(Provider::OpenAi))).await;
    for name in openai {
        assert!(!call(&board.toolset(), &name, json!({})).await.is_error(), "{name}");
    }
}

/// A view has its own naming style and rules; the config has the style of views without one.
#[tokio::test]
async fn a_view_is_named_as_it_says_or_as_the_config_says() {
    let config = Config::from_text("naming = 'mcp_dunder'", Format::Toml, &Env::process());
    assert_eq!(config.problems, []);
    let board = board_with(config.config, vec![(server("git", &["log"]), "")]);
    assert_eq!(listed(&board.toolset()).await, ["mcp__git__log"]);
    for (style, expected) in [
        (NameStyle::Dot, "git.log"),
        (NameStyle::Bare, "log"),
        (NameStyle::Template("{tool}_in_{server}".to_owned()), "log_in_git"),
    ] {
        let tools = board.toolset_with(View::new().naming(style));
        assert_eq!(listed(&tools).await, [expected]);
        assert_eq!(call(&tools, expected, json!({})).await.text(), "git: log");
    }
    let view = View::new().naming(NameStyle::Dot).name_rules(NameRules::STRICT);
    assert_eq!(listed(&board.toolset_with(view)).await, ["git__log"]);

    let other = Config::from_text("naming = 'dot'", Format::Toml, &Env::process()).config;
    board.apply(other).await;
    assert_eq!(listed(&board.toolset()).await, ["git.log"]);
}

/// A template makes names that no other style knows, so only the name table of the view resolves them.
#[tokio::test]
async fn each_of_many_names_from_a_template_leads_to_its_own_tool() {
    let own_names: Vec<String> = (0..300).map(|n| format!("read_{n}")).collect();
    let own_names: Vec<&str> = own_names.iter().map(String::as_str).collect();
    let board = board_of(vec![(server("git", &own_names), "")]);
    let tools = board.toolset_with(View::new().naming(NameStyle::Template("{tool}_in_{server}".to_owned())));
    assert_eq!(listed(&tools).await.len(), own_names.len());
    for own in own_names {
        let reply = call(&tools, &format!("{own}_in_git"), json!({})).await;
        assert_eq!((reply.text(), reply.repaired), (format!("git: {own}"), None));
    }
}

/// A typo is corrected if only one tool can be meant, and the correction is reported.
#[tokio::test]
async fn small_slips_of_a_model_are_repaired_and_reported() {
    let board = board_of(vec![
        (server("k8s", &["get_pods", "get-logs"]), ""),
        (server("other", &["Get_Logs"]), ""),
    ]);
    let tools = board.toolset();
    listed(&tools).await;
    for slip in [
        "google:get_pods",
        "functions.k8s__get_pods",
        "K8S.Get-Pods",
        "k8s_get_pods",
        "get_pods<|channel|>commentary",
    ] {
        let reply = call(&tools, slip, json!({})).await;
        assert_eq!(reply.text(), "k8s: get_pods", "{slip}");
        assert_eq!(reply.repaired, Some(format!("`{slip}` was taken for `k8s.get_pods`")));
        assert_eq!(serde_json::to_value(&reply).unwrap()["repaired"], json!(reply.repaired));
    }
    let reply = call(&tools, "GET_LOGS", json!({})).await;
    assert_contains(
        &reply.text(),
        &["`GET_LOGS` could mean k8s.get-logs or other.Get_Logs. "],
    );
    let exact = call(&tools, "get-logs", json!({})).await;
    assert_eq!((exact.text().as_str(), exact.repaired), ("k8s: get-logs", None));
}

/// An unknown name gets an answer with the names that exist.
#[tokio::test]
async fn an_unknown_name_is_answered_with_names_and_servers() {
    let board = board_of(vec![
        (server("k8s", &["get_pods", "get_logs"]), ""),
        (server("git", &["show"]), ""),
    ]);
    let tools = board.toolset();
    listed(&tools).await;
    let reply = call(&tools, "k8s.get_podz", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::UnknownTool);
    assert_contains(
        &reply.text(),
        &[
            "there is no tool `k8s.get_podz`",
            "`k8s.get_pods`",
            "Available tools of server `k8s`: get_logs, get_pods",
            "Available servers: git, k8s",
        ],
    );
}

/// A filtered tool is reachable by no name, exact or not, and the caller gets the reason.
#[tokio::test]
async fn a_hidden_tool_is_reached_by_no_name() {
    let board = board_of(vec![
        (server("fx", &["delete_all", "show"]), "delete*"),
        (server("two", &["Delete-All"]), "*"),
    ]);
    for provider in [Provider::Mcp, Provider::OpenAi] {
        let tools = board.toolset_with(View::new().provider(provider));
        assert_eq!(listed(&tools).await, ["fx__show"]);
        for asked in [
            "fx.delete_all",
            "fx__delete_all",
            "mcp__fx__delete_all",
            "delete_all",
            "functions.delete_all",
            "FX.Delete-All",
        ] {
            let reply = call(&tools, asked, json!({})).await;
            assert_outcome(&reply, Kind::NotPermitted, false);
            assert_contains(&reply.text(), &["may not be used", "the config hides it"]);
        }
    }
}

/// A name that one server hides may still belong to a server without a known catalog.
#[tokio::test]
async fn a_hidden_name_does_not_stand_before_a_server_that_is_not_known_yet() {
    let board = board_of(vec![(server("one", &["show"]), "show"), (server("two", &["show"]), "")]);
    // Nothing was listed, so the second server may not be ready when the name is looked up.
    assert_eq!(call(&board.toolset(), "show", json!({})).await.text(), "two: show");
}
