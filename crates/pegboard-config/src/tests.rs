//! Tests of whole files, from text to config.

mod designs;
mod effects;
mod found;
mod gateway;
mod golden;
mod in_effect;
mod life;
mod masking;
mod misconfigured;
mod problems;
mod project_floor;
mod protection;
mod reference;
mod results;
mod safety;
mod shown;
mod top_level_health;
mod trust;

use std::collections::BTreeMap;

use super::*;
use pegboard_base::name::{NameStyle, ServerName};

fn env() -> Env<'static> {
    Env::from_pairs([("GITHUB_TOKEN", "s3cr3t"), ("ZONE", "UTC"), ("HOME", "/home/me")])
}

fn toml(text: &str) -> Loaded {
    Config::load(&[Source::text("pegboard.toml", text, Some(Format::Toml))], &env())
}

/// The one server called `x`.
fn server(text: &str) -> ServerConfig {
    let loaded = toml(text);
    let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
    assert_eq!(problems, Vec::<String>::new());
    loaded.config.servers[&ServerName::parse("x").unwrap()].clone()
}

fn problems(text: &str) -> Vec<String> {
    toml(text).problems.iter().map(ToString::to_string).collect()
}
