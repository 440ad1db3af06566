//! Puts references to the user's secrets in place of variables that are not set.

use serde_json::{Map, Value, json};

/// How a config refers to a secret of the user.
pub fn secret_reference(name: &str) -> String {
    ["${secret:", name, "}"].concat()
}

/// Has the settings of a server take a value from the user's secret of this name where they took it from the variable. Returns whether anything
/// has changed.
pub fn take_from_secret(settings: &mut Map<String, Value>, name: &str) -> bool {
    let reference = secret_reference(name);
    let mut is_changed = false;
    for value in settings.values_mut() {
        is_changed |= replace(value, name, &reference);
    }
    if settings.get("bearer_token_env_var").and_then(Value::as_str) == Some(name) {
        settings.remove("bearer_token_env_var");
        settings.insert("bearer_token".to_owned(), json!(reference));
        is_changed = true;
    }
    let passed = settings.get_mut("env_pass").and_then(Value::as_array_mut);
    if let Some(passed) = passed
        && passed.iter().any(|one| one.as_str() == Some(name))
    {
        passed.retain(|one| one.as_str() != Some(name));
        if passed.is_empty() {
            settings.remove("env_pass");
        }
        give_secret(settings, name);
        is_changed = true;
    }
    is_changed
}

/// Sets the variable of this name for the process of a server, from the user's secret of the same name.
pub fn give_secret(settings: &mut Map<String, Value>, name: &str) {
    let env = settings.entry("env").or_insert_with(|| json!({}));
    if let Some(env) = env.as_object_mut() {
        env.insert(name.to_owned(), json!(secret_reference(name)));
    }
}

fn replace(value: &mut Value, name: &str, reference: &str) -> bool {
    match value {
        Value::String(text) => {
            let replaced = replace_in_text(text, name, reference);
            let is_changed = replaced != *text;
            *text = replaced;
            is_changed
        }
        Value::Array(list) => list
            .iter_mut()
            .fold(false, |is_changed, value| replace(value, name, reference) | is_changed),
        Value::Object(table) => table
            .values_mut()
            .fold(false, |is_changed, value| replace(value, name, reference) | is_changed),
        _ => false,
    }
}

/// Replaces `${NAME}`, `${env:NAME}`, `{{.NAME}}` and `{{ .NAME }}`. A `$$` is an escaped `$`.
fn replace_in_text(text: &str, name: &str, reference: &str) -> String {
    let forms = [
        ["${", name, "}"].concat(),
        ["${env:", name, "}"].concat(),
        ["{{.", name, "}}"].concat(),
        ["{{ .", name, " }}"].concat(),
    ];
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let form = forms.iter().find(|form| rest.starts_with(form.as_str()));
        let length = match form {
            Some(form) => {
                replaced.push_str(reference);
                form.len()
            }
            None => {
                let length = if rest.starts_with("$$") { 2 } else { first.len_utf8() };
                replaced.push_str(rest.get(..length).unwrap_or_default());
                length
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_variable_and_no_other_one_becomes_the_secret() {
        for (text, expected) in [
            ("Bearer ${T}", "Bearer ${secret:T}"),
            ("${env:T}{{.T}}{{ .T }}", "${secret:T}${secret:T}${secret:T}"),
            ("$${T} ${T2} $T", "$${T} ${T2} $T"),
            ("$$${T}", "$$${secret:T}"),
            ("ä${T}", "ä${secret:T}"),
        ] {
            assert_eq!(replace_in_text(text, "T", "${secret:T}"), expected);
        }
    }

    #[test]
    fn variables_that_are_passed_on_by_name_become_secrets_too() {
        let mut settings =
            json!({"command": "x", "args": ["--key", "${K}"], "env_pass": ["T", "U"], "env": {"A": "b"}});
        let settings = settings.as_object_mut().unwrap();
        assert!(
            take_from_secret(settings, "T") && take_from_secret(settings, "K") && !take_from_secret(settings, "NO")
        );
        assert_eq!(
            Value::Object(settings.clone()),
            json!({"command": "x", "args": ["--key", "${secret:K}"], "env_pass": ["U"], "env": {"A": "b", "T": "${secret:T}"}})
        );
        let mut remote = json!({"url": "https://x.example", "bearer_token_env_var": "T"});
        let remote = remote.as_object_mut().unwrap();
        assert!(take_from_secret(remote, "T"));
        assert_eq!(remote["bearer_token"], "${secret:T}");
        assert!(!remote.contains_key("bearer_token_env_var"));
    }
}
