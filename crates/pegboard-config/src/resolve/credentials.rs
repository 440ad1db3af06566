//! Resolves the credentials of a remote server. A server has one kind of them.

use std::{path::PathBuf, sync::Arc};

use http::{HeaderName, HeaderValue};

use super::{context::Context, oauth, stdio};
use crate::{
    choice::AuthKind,
    fields::{API_KEY_HEADER, ServerTable, auth, server},
    from_setting::FromSetting as _,
    key::Table,
    problem::join,
    setting::{Setting, Text, Values},
    transport::{Auth, HeadersHelper},
    tree::Location,
};
use pegboard_base::secret::Secret;

/// The credentials, and the header with the API key if there is one.
pub(super) type Credentials = (Auth, Option<(String, Secret)>);

/// Credentials that the config holds, or says where they are.
enum Held {
    Bearer(Text),
    File(PathBuf),
    Basic(Auth),
    Helper(Arc<HeadersHelper>),
    ApiKey(String, Secret),
}

pub(super) fn resolve(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Credentials> {
    let nothing = Values::default();
    let table = values.table(&server::auth).unwrap_or(Table::new(&nothing));
    let kind = kind(values, table);
    let at = values
        .at(&server::auth)
        .or(values.at(&server::bearer_token))
        .unwrap_or(context.at);
    let mut held = collect_held(context, values, table, at)?;
    let sign_in = oauth::Wish::read(values, table);
    if matches!(kind, Some(AuthKind::OAuth | AuthKind::ClientCredentials)) {
        return match held.is_empty() {
            true => oauth::settings(context, values, table, kind == Some(AuthKind::ClientCredentials))
                .map(|settings| (Auth::OAuth(Arc::new(settings)), None)),
            false => context.refuse(at, "auth", "has credentials of another kind than `type`; keep one"),
        };
    }
    if kind == Some(AuthKind::None) {
        return Some((Auth::Anonymous, None));
    }
    let Some(one) = held.pop() else {
        let has_header = values
            .get(&server::headers)
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        return match (kind, sign_in) {
            (Some(kind), _) => {
                let message = format!("does not hold what `{}` needs", kind.as_str());
                context.refuse(at, "auth", &message)
            }
            (None, oauth::Wish::On { .. }) if !has_header => {
                let settings = oauth::settings(context, values, table, false)?;
                Some((Auth::OAuth(Arc::new(settings)), None))
            }
            (None, oauth::Wish::Off) => Some((Auth::Anonymous, None)),
            (None, _) => Some((Auth::None, None)),
        };
    };
    if !held.is_empty() {
        return context.refuse(at, "auth", "names more than one way to say who we are");
    }
    if let oauth::Wish::On { at, key } = &sign_in {
        let message = "has no effect, because the server has other credentials";
        context.report.warn(*at, &join(context.path, key), message);
    }
    match (kind, one) {
        (Some(AuthKind::Bearer) | None, Held::Bearer(token)) => Some((Auth::Bearer(to_secret(token)), None)),
        (Some(AuthKind::Bearer) | None, Held::File(path)) => Some((Auth::BearerFile(path), None)),
        (None, Held::Helper(helper)) => Some((Auth::HeadersHelper(helper), None)),
        (Some(AuthKind::Basic) | None, Held::Basic(basic)) => Some((basic, None)),
        (Some(AuthKind::ApiKey) | None, Held::ApiKey(header, key)) => Some((Auth::None, Some((header, key)))),
        // An API key may also be written as `bearer`.
        (Some(AuthKind::ApiKey), Held::Bearer(token)) => {
            Some((Auth::None, Some((API_KEY_HEADER.into(), to_secret(token)))))
        }
        (kind, _) => {
            let message = format!("does not hold what `{}` needs", kind.map_or("type", AuthKind::as_str));
            context.refuse(at, "auth", &message)
        }
    }
}

fn to_secret(text: Text) -> Secret {
    Secret::new(text.value)
}

/// The kind of credentials that the config names.
fn kind(values: ServerTable<'_>, table: Table<'_, auth::In>) -> Option<AuthKind> {
    let short = values.find(&server::auth);
    let short = short.and_then(|found| AuthKind::from_setting(&found.setting));
    short.or(values.get(&server::auth_type)).or(table.get(&auth::kind))
}

/// All credentials that are written. Returns `None` after reporting a problem with one of them.
fn collect_held(
    context: &mut Context<'_>,
    values: ServerTable<'_>,
    table: Table<'_, auth::In>,
    at: Location,
) -> Option<Vec<Held>> {
    let bearer = match (values.get(&server::bearer_token), table.get(&auth::bearer)) {
        (Some(_), Some(_)) => {
            return context.refuse(at, "auth", "`bearer_token` and `auth.bearer` are the same; keep one");
        }
        (one, other) => one.or(other),
    };
    let api_key = table.get(&auth::api_key);
    let sent = [&bearer, &api_key].into_iter().flatten();
    if sent.into_iter().any(|text| HeaderValue::from_str(&text.value).is_err()) {
        return context.refuse(at, "auth", "its value cannot be sent in a header");
    }
    let header = table.get(&auth::header).unwrap_or_else(|| API_KEY_HEADER.into());
    if api_key.is_some() && HeaderName::from_bytes(header.as_bytes()).is_err() {
        return context.refuse(at, "auth.header", "is not a header name");
    }
    let basic = table.get(&auth::user).map(|user| Auth::Basic {
        user,
        password: table.get(&auth::password).map_or_else(|| Secret::new(""), to_secret),
    });
    let mut held = Vec::new();
    held.extend(bearer.map(Held::Bearer));
    let file = table.get(&auth::bearer_file);
    held.extend(file.map(|path| Held::File(context.resolve_path(&path))));
    held.extend(basic.map(Held::Basic));
    held.extend(api_key.map(|key| Held::ApiKey(header, to_secret(key))));
    if values.find(&server::headers_helper).is_some() {
        held.push(Held::Helper(Arc::new(helper(context, values)?)));
    }
    Some(held)
}

/// Characters of a command line that only a shell can run.
const SHELL: [char; 16] = [
    '\'', '"', '\\', '$', '`', '|', '&', ';', '<', '>', '(', ')', '*', '?', '\n', '#',
];

fn helper(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<HeadersHelper> {
    let key = server::headers_helper.name;
    let at = values.at(&server::headers_helper).unwrap_or(context.at);
    let mut words = values.get(&server::headers_helper).unwrap_or_default();
    let is_line = |text: &Text| text.written.contains(char::is_whitespace) || text.written.contains(SHELL);
    let is_text = values
        .find(&server::headers_helper)
        .is_some_and(|found| matches!(found.setting, Setting::Text(_)));
    if let ([line], true) = (words.as_slice(), is_text)
        && is_line(line)
    {
        let line = line.clone();
        let word = |value: &str| Text {
            value: value.to_owned(),
            written: value.to_owned(),
            at: line.at,
        };
        let is_one_word = !line.written.contains(char::is_whitespace);
        words = match (line.is_from_variable(), line.written.contains(SHELL)) {
            // A single word with variables is a path.
            (true, _) if is_one_word => vec![line.clone()],
            // The value of a variable must become neither several words nor a command.
            (true, _) => {
                return context.refuse(at, key, "has variables; write the program and its arguments as a list");
            }
            (false, true) if cfg!(windows) => ["cmd", "/C", &line.value].map(word).to_vec(),
            (false, true) => ["sh", "-c", &line.value].map(word).to_vec(),
            (false, false) => line.value.split_whitespace().map(word).collect(),
        };
    }
    let Some((program, args)) = words
        .split_first()
        .filter(|(program, _)| !program.value.trim().is_empty())
    else {
        return context.refuse(at, key, "is empty");
    };
    let mut command = stdio::with_surroundings(context, values, &program.value)?;
    command.args = args.iter().map(|arg| Secret::new(arg.value.as_str())).collect();
    let mut helper = HeadersHelper::new(command);
    helper.ttl = values.get(&server::headers_helper_ttl);
    Some(helper)
}
