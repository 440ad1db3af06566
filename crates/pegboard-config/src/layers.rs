//! Layers the settings of a server: its own table over the top of the file over the preset.

use super::{
    check::TableChecker,
    expand::Env,
    field::Applies,
    fields::{SERVER, ServerTable, TopTable, server, top as top_fields},
    merge,
    preset::Preset,
    problem::Report,
    setting::{Rank, Values},
    tree::{self, Format},
};

/// The settings of a preset, validated like those of a file. They refer to no variables, so the environment is empty.
pub(super) fn from_preset(preset: Preset) -> Values {
    let mut report = Report::new(preset.as_str());
    let root = tree::read(preset.settings(), Some(Format::Toml));
    let entries = root.ok().and_then(tree::Node::into_entries).unwrap_or_default();
    let env = Env::new(|_| None);
    TableChecker::new(&mut report, &env, Rank::Preset).section(SERVER, &entries, "preset")
}

/// Fills the settings of a server from the tops that apply to it, the strongest first, and then from the preset that one of them names.
pub(super) fn fill_from_tops(written: Values, tops: &[&Values]) -> Values {
    let own = ServerTable::new(&written).set(&server::preset);
    let of_top = || tops.iter().find_map(|top| TopTable::new(top).set(&top_fields::preset));
    let preset = own.or_else(of_top).unwrap_or_default();
    let mut values = merge::expand(written);
    let other = match values.find(&server::url) {
        Some(_) => Applies::Stdio,
        None => Applies::Remote,
    };
    for top in tops {
        merge::fill_from_weaker(&mut values, merge::expand((*top).clone()), other);
    }
    merge::fill_from_weaker(&mut values, merge::expand(from_preset(preset)), other);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, Config, Policy, choice::Choice as _};
    use pegboard_base::name::NameStyle;

    #[test]
    fn the_preset_of_the_file_names_the_tools_unless_the_file_does() {
        let naming = |text: &str| Config::from_text(text, Format::Toml, &Env::new(|_| None)).config.naming;
        for (preset, expected) in [
            ("pegboard", NameStyle::Dunder),
            ("tarsy", NameStyle::Dot),
            ("ai-agent", NameStyle::Dunder),
            ("antwort", NameStyle::Bare),
            ("goat", NameStyle::McpDunder),
            ("minion", NameStyle::McpSingle),
        ] {
            assert_eq!(naming(&format!("preset = '{preset}'")), expected, "{preset}");
            let text = format!("preset = '{preset}'\nnaming = 'dot'");
            assert_eq!(naming(&text), NameStyle::Dot, "{preset}");
        }
        // Names are those of the whole view, so that one server's preset cannot choose them.
        let one = "[servers.x]\ncommand = 'a'\npreset = 'goat'";
        assert_eq!(naming(one), NameStyle::Dunder);
    }

    #[test]
    fn what_a_server_is_asked_for_is_written_or_all() {
        let policy = |settings: &str| -> Policy {
            let text = format!("[servers.x]\ncommand = 'a'\n{settings}");
            let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
            assert_eq!(loaded.problems, [], "{settings}");
            let mut servers = loaded.config.servers.into_values();
            servers.next().unwrap().policy
        };
        for (settings, resources, prompts) in [
            ("", true, true),
            ("capabilities = ['tools']", false, false),
            ("capabilities = []", false, false),
            ("capabilities = ['prompts']", false, true),
            ("primitives = ['tools', 'resources']", true, false),
            ("preset = 'goat'\ncapabilities = ['prompts']", false, true),
        ] {
            let expected = Capabilities { resources, prompts };
            assert_eq!(policy(settings).capabilities, expected, "{settings}");
        }
    }

    #[test]
    fn every_preset_is_a_config_without_problems() {
        let names = ["tarsy", "ai-agent", "antwort", "goat", "minion"];
        for preset in names.map(|name| Preset::from_word(name).unwrap()) {
            let mut report = Report::new("preset");
            let root = tree::read(preset.settings(), Some(Format::Toml)).unwrap();
            let entries = root.into_entries().unwrap();
            let env = Env::new(|_| None);
            let values = TableChecker::new(&mut report, &env, Rank::Preset).section(SERVER, &entries, "preset");
            let problems: Vec<_> = report.into_problems().iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{preset:?}: {problems:?}");
            assert!(values.iter().count() > 8, "{preset:?}");
        }
    }
}
