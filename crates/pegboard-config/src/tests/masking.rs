//! What files may say about masking, and how the settings for all servers come under those of one.

use super::*;
use pegboard_mask::{MaskStyle, Masking};

#[test]
fn what_cannot_be_followed_is_an_error_with_its_line_and_the_server_is_not_used() {
    let loaded = toml(
        "[masking]\npatterns = ['pasword']\n\n[servers.x]\ncommand = 'a'\ndata_masking = { pattern_groups = ['kubernets'], custom_patterns = [\n  { pattern = '(' },\n] }\n",
    );
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "pegboard.toml:2: masking.patterns: there is no pattern `pasword` (did you mean `password`?)",
            "pegboard.toml:6: servers.x.data_masking.groups: there is no pattern group `kubernets` (did you mean `kubernetes`?)",
            "pegboard.toml:7: servers.x.data_masking.custom: `(` cannot be used as a pattern: unclosed group",
        ]
    );
    assert!(loaded.config.servers.is_empty());
}

#[test]
fn settings_of_a_server_come_on_top_of_those_for_all() {
    let loaded = toml(
        "[masking]\ngroups = ['basic']\nexcept = ['demo-.*']\n[servers.a]\ncommand = 'a'\n[servers.b]\ncommand = 'b'\nmasking = false\n[servers.c]\ncommand = 'c'\nmasking = { patterns = ['email'], style = 'full', defaults = false }\n",
    );
    assert_eq!(loaded.problems, []);
    let masking = |name: &str| {
        loaded.config.servers[&ServerName::parse(name).unwrap()]
            .policy
            .masking
            .clone()
    };
    assert_eq!(masking("a"), loaded.config.masking);
    assert_eq!(masking("a").groups, ["basic"]);
    assert!(masking("a").enabled && masking("a").defaults);
    assert!(!masking("b").enabled);
    let c = masking("c");
    assert_eq!(
        (c.groups, c.patterns, c.except),
        (
            vec!["basic".to_owned()],
            vec!["email".to_owned()],
            vec!["demo-.*".to_owned()]
        )
    );
    assert_eq!((c.style, c.defaults), (MaskStyle::Whole, false));
}

#[test]
fn masking_is_on_when_nobody_says_anything() {
    let loaded = toml("[servers.a]\ncommand = 'a'\n");
    assert_eq!(
        loaded.config.servers.into_values().next().unwrap().policy.masking,
        Masking::default()
    );
    assert!(Masking::default().enabled);
}

#[test]
fn the_value_of_a_variable_is_not_shown_where_it_cannot_be_used() {
    let env = Env::new(|_| Some("(canary".to_owned()));
    for setting in [
        "custom = [{ pattern = '${A}' }]",
        "except = ['x${A}']",
        "groups = ['${A}']",
        "patterns = ['${A}']",
    ] {
        let text = format!("[masking]\n{setting}\n");
        let loaded = Config::from_text(&text, Format::Toml, &env);
        let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(!problems[0].contains("canary"), "{problems:?}");
    }
}
