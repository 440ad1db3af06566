//! What becomes of results: the file's top, a server over it, a tool over both.

use std::time::Duration;

use super::*;
use pegboard_base::secret::Secret;

fn policy(text: &str) -> Policy {
    let loaded = Config::from_text(text, Format::Toml, &env());
    assert_eq!(loaded.problems, []);
    loaded.config.servers.into_values().next().unwrap().policy
}

#[test]
fn a_tool_overrides_its_server_and_a_server_the_top_part_by_part() {
    let policy = policy(
        r#"
        [result]
        fence = true
        join = "nothing"
        [servers.x]
        command = "a"
        max_result = "12KiB"
        result = { mode = "head_tail", max_lines = 400 }
        [servers.x.tools.page]
        max_result = "300KiB"
        structured = "structured_only"
        [servers.x.tools."shot_*"]
        result = { images = "spill", find_images = true, ceiling = "1MiB" }
        "#,
    );
    let server = policy.result;
    assert_eq!((server.max_bytes, server.ceiling), (12 << 10, 12 << 10));
    assert_eq!((server.max_lines, server.mode), (Some(400), TooLong::HeadTail));
    assert_eq!((server.fence, server.join), (true, Join::Nothing));
    let page = policy.tool_results["page"];
    assert_eq!((page.max_bytes, page.max_lines), (300 << 10, Some(400)));
    assert_eq!((page.structured, page.fence), (Structured::StructuredOnly, true));
    let shot = policy.tool_results["shot_*"];
    assert_eq!((shot.max_bytes, shot.ceiling), (12 << 10, 1 << 20));
    assert_eq!((shot.images, shot.find_images), (Images::Spill, true));
}

#[test]
fn without_a_word_results_are_handed_on_up_to_48_kib_and_then_put_aside() {
    let policy = policy("[servers.x]\ncommand = 'a'\n");
    assert_eq!(policy.result, Results::default());
    assert_eq!((policy.result.max_bytes, policy.result.ceiling), (48 << 10, 500_000));
    assert_eq!(policy.summarise, None);
}

#[test]
fn summarising_is_switched_and_tuned_at_the_top_or_by_a_server() {
    let top = "[summarise]\nurl = 'https://llm.example.com/v1'\nmodel = 'small'\napi_key = '${GITHUB_TOKEN}'\n";
    let of = |server: &str| policy(&format!("{top}[servers.x]\ncommand = 'a'\n{server}"));
    let plain = of("").summarise.unwrap();
    assert_eq!((plain.threshold_tokens, plain.max_tokens), (5000, 1000));
    let model = plain.model.unwrap();
    assert_eq!(
        (model.url.to_string().as_str(), model.model.as_str()),
        ("https://llm.example.com/v1", "small")
    );
    assert_eq!(model.api_key, Some(Secret::new("s3cr3t")));
    assert_eq!(of("summarise = false").summarise, None);
    let tuned = of("summarise = { threshold_tokens = 200, timeout = '5s' }")
        .summarise
        .unwrap();
    assert_eq!((tuned.threshold_tokens, tuned.timeout), (200, Duration::from_secs(5)));
    assert_eq!(tuned.model.unwrap().model, "small");
    let elsewhere = of("summarise = { url = 'http://127.0.0.1:9/v1', model = 'own' }")
        .summarise
        .unwrap();
    assert_eq!(
        elsewhere.model.unwrap().api_key,
        None,
        "a key goes to the address that it stands beside"
    );
}

#[test]
fn a_summariser_needs_an_address_that_can_be_asked() {
    for (url, problem) in [
        ("nowhere", "is not a URL with a host"),
        ("ftp://h/", "must start with https://"),
    ] {
        let text = format!("[servers.x]\ncommand = 'a'\nsummarise = {{ url = '{url}' }}\n");
        let loaded = Config::from_text(&text, Format::Toml, &env());
        let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(problems, [format!("config:3: servers.x.summarise.url: {problem}")]);
    }
}
