//! The page of one tool: what it does, its schema, a form that calls it, its cost, and who calls it.

use std::collections::BTreeMap;

use maud::{Markup, html};
use pegboard::{ListedTool, Provider};
use pegboard_gateway::Scope;
use serde_json::Value;

use super::{
    recent,
    tools::{BYTES_PER_TOKEN, risk},
};
use crate::{
    json::pretty,
    layout::{self, Page},
    schema::{Field, Kind, all_fields, form_fields},
    text::{count_of, line, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// What a person has written into the form, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// The values by the name of the field.
    pub(super) values: BTreeMap<String, String>,
    /// The arguments as JSON, in place of the fields.
    pub(super) raw: String,
    pub(super) error: Option<String>,
    pub(super) result: Option<Markup>,
}

/// The page of a tool.
pub(super) fn page<'a>(ui: &Ui, visitor: &Visitor, listed: &'a ListedTool, filled: &Filled) -> Page<'a> {
    let tool = &listed.tool;
    let schema = tool.input_schema.value();
    let title = tool.title.as_deref().filter(|title| *title != tool.name);
    let body = html! {
        header.page {
            div {
                p.crumbs { a href="/ui/tools" { "Tools" } " / " a href={ "/ui/servers/" (segment(tool.server.as_str())) } { (shown(tool.server.as_str())) } }
                h1 { (line(&tool.name)) }
                @if let Some(title) = title { p.soft { (line(title)) } }
            }
            div.line { "Risk: " (risk(listed)) @if !listed.available { (layout::badge("rest", "not available")) } }
        }
        @if let Some(result) = &filled.result { (result) }
        div.columns {
            div {
                section aria-labelledby="what" {
                    h2 #what { "What it does" }
                    @match &tool.description {
                        Some(description) => { p.prose { (shown(description)) } }
                        None => { (layout::empty("The server does not say.")) }
                    }
                }
                section aria-labelledby="arguments" {
                    h2 #arguments { "Arguments" }
                    (fields(&all_fields(&schema)))
                }
                @if let Some(output) = &tool.output_schema {
                    section aria-labelledby="output" { h2 #output { "Result" } (fields(&all_fields(&output.value()))) }
                }
                section aria-labelledby="callers" {
                    h2 #callers { "Who calls it" }
                    (callers(ui, visitor, listed))
                }
            }
            div {
                section.boxed aria-labelledby="call" {
                    h2 #call { "Call it" }
                    (form(visitor, listed, &form_fields(&schema), filled))
                }
                section aria-labelledby="cost" {
                    h2 #cost { "Cost in tokens" }
                    (cost(listed))
                }
                details {
                    summary { "Definition as JSON" }
                    pre tabindex="0" { code { (shown(&pretty(&schema))) } }
                }
            }
        }
    };
    Page {
        title: &tool.name,
        section: "/ui/tools",
        live: None,
        body,
    }
}

fn fields(fields: &[Field]) -> Markup {
    html! {
        @if fields.is_empty() { (layout::empty("None.")) } @else {
            dl.fields { @for field in fields {
                div {
                    dt { code { (line(&field.path)) } @if field.is_required { " " span.tag { "required" } } }
                    dd {
                        span.soft { (line(&field.type_text)) @if let Some(default) = &field.default { ", default " code { (line(default)) } } }
                        @if let Some(description) = &field.description { p { (shown(description)) } }
                    }
                }
            } }
        }
    }
}

fn form(visitor: &Visitor, listed: &ListedTool, fields: &[Field], filled: &Filled) -> Markup {
    let who = visitor.who();
    if !who.may(Scope::Call) {
        return layout::empty("Your token lacks the scope `call`.");
    }
    html! {
        @if let Some(error) = &filled.error { p.notice.bad role="alert" { (shown(error)) } }
        form.call method="post" action=(super::tools::path(listed)) {
            (who.token_field())
            @for (at, field) in fields.iter().enumerate() { (control(at, field, filled)) }
            @if fields.is_empty() { p.soft { "It takes no arguments." } }
            details open[!filled.raw.is_empty()] {
                summary { "Write the arguments as JSON instead" }
                label.hidden for="raw" { "Arguments as JSON" }
                textarea #raw name="raw" rows="6" spellcheck="false" placeholder="{}" { (filled.raw) }
            }
            button.primary type="submit" { "Call the tool" }
        }
    }
}

fn control(at: usize, field: &Field, filled: &Filled) -> Markup {
    let (id, name) = (format!("arg-{at}"), format!("arg.{}", field.path));
    let value = filled.values.get(&field.path).map(String::as_str).unwrap_or_default();
    let hint = format!("{id}-hint");
    html! {
        div.field {
            label for=(id) { (line(&field.path)) @if field.is_required { " " span.tag { "required" } } }
            @match &field.kind {
                Kind::Flag => {
                    select id=(id) name=(name) aria-describedby=(hint) {
                        @for choice in ["", "true", "false"] { option value=(choice) selected[choice == value] { @if choice.is_empty() { "not set" } @else { (choice) } } }
                    }
                }
                Kind::Choice(choices) => {
                    select id=(id) name=(name) aria-describedby=(hint) {
                        option value="" { "not set" }
                        @for choice in choices {
                            @let json = choice.to_string();
                            option value=(json) selected[json == value] { (line(&choice_text(choice))) }
                        }
                    }
                }
                Kind::Number { is_integer } => {
                    input id=(id) name=(name) type="number" step=(if *is_integer { "1" } else { "any" }) value=(value) aria-describedby=(hint);
                }
                Kind::Text => { textarea.one id=(id) name=(name) rows="1" aria-describedby=(hint) { (value) } }
                Kind::Json => { textarea id=(id) name=(name) rows="3" spellcheck="false" placeholder="JSON" aria-describedby=(hint) { (value) } }
            }
            span.soft id=(hint) { (line(&field.type_text)) @if let Some(default) = &field.default { ", default " (line(default)) } }
        }
    }
}

fn choice_text(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}

/// About how many tokens the definition takes for each provider.
fn cost(listed: &ListedTool) -> Markup {
    let rows = Provider::ALL.into_iter().map(|provider| {
        let defined = provider.define(&listed.tool, None);
        let size = defined.map(|definition| {
            let list = provider.list([(listed.name.as_str(), &definition)]);
            let bytes: usize = list.iter().map(|value| value.to_string().len()).sum();
            (bytes / BYTES_PER_TOKEN, definition.lost)
        });
        (provider, size)
    });
    html! {
        table {
            thead { tr { th { "Provider" } th.n { "Tokens" } } }
            tbody { @for (provider, size) in rows {
                tr {
                    th scope="row" { (provider.as_str()) }
                    @match size {
                        Ok((tokens, lost)) => { td.n { (count_of(tokens)) @if !lost.is_empty() { span.soft title=(lost.join("; ")) { " (" (lost.len()) " rules dropped)" } } } }
                        Err(why) => { td { (layout::badge("wait", "not offered")) " " span.soft { (line(&why.to_string())) } } }
                    }
                }
            } }
        }
    }
}

/// Who has called the tool, by the calls that were recorded.
fn callers(ui: &Ui, visitor: &Visitor, listed: &ListedTool) -> Markup {
    let tool = &listed.tool;
    let mut calls = recent::seen_calls(ui, visitor);
    calls.retain(|call| call.server.as_ref() == Some(&tool.server) && call.tool.as_deref() == Some(tool.name.as_str()));
    let mut agents: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for call in &calls {
        let (all, failed) = agents.entry(recent::agent(call)).or_default();
        *all += 1;
        *failed += usize::from(call.is_error);
    }
    calls.truncate(10);
    html! {
        @if calls.is_empty() { (recent::nothing(ui, "It was not called since calls are recorded.")) } @else {
            ul.plain { @for (agent, (all, failed)) in agents { li { b { (agent) } ": " (count_of(all)) " calls" @if failed > 0 { ", " (count_of(failed)) " failed" } } } }
            (recent::table(&calls))
        }
    }
}
