//! What a project file may set: defaults of its own servers, and stricter masking, approval and limits for all servers.
//!
//! A setting without a rule here is left out with a warning.

use super::{
    fields::{SERVER, TopTable, masking as of_masking, pattern, server, top as top_fields, view as view_fields},
    key::Key,
    loaded::Loaded,
    problem::{Report, join},
    project_floor::{self, approval_rank},
    resolve::gateway,
    setting::{Found, Setting, Values},
};
use pegboard_mask::MaskStyle;

/// What a setting at the top of a project file does.
enum Rule {
    /// It applies to the file's own servers, as if each of them had it in its own table.
    OwnServers,
    /// It applies to all servers if it is stricter.
    Approval,
    /// It adds to the masking of all servers.
    Masking,
    /// It lowers a limit of the board.
    Lowers(&'static Key<top_fields::In, usize>),
    /// It adds queues and lowers the limits of others.
    Queues,
    /// It adds views of other names.
    Views,
    /// It applies if no other file sets it.
    IfUnset,
    /// It belongs to another program.
    Foreign,
    /// It is left out.
    LeftOut,
}

fn rule(name: &str) -> Rule {
    let limits = [
        &top_fields::MAX_SERVERS,
        &top_fields::MAX_PROCESSES,
        &top_fields::MAX_STARTS,
        &top_fields::MAX_BUFFERED,
    ];
    if let Some(limit) = limits.into_iter().find(|limit| limit.name == name) {
        return Rule::Lowers(limit);
    }
    match name {
        _ if name == server::APPROVAL.name => Rule::Approval,
        _ if name == top_fields::MASKING.name => Rule::Masking,
        _ if name == top_fields::QUEUES.name => Rule::Queues,
        _ if name == top_fields::VIEWS.name => Rule::Views,
        _ if name == top_fields::NAMING.name => Rule::IfUnset,
        "inputs" => Rule::Foreign,
        _ if SERVER.fields.iter().any(|field| field.name == name) => Rule::OwnServers,
        _ => Rule::LeftOut,
    }
}

/// Applies the top of a project file to all servers as far as that is stricter, and returns the defaults of its own servers.
pub(super) fn apply(written: Values, loaded: &mut Loaded, report: &mut Report) -> Values {
    let mut own = Values::default();
    let queues = TopTable::new(&written).get(&top_fields::QUEUES);
    for (name, found) in written.into_iter() {
        match rule(name) {
            Rule::OwnServers => {
                if let Some(field) = SERVER.fields.iter().find(|field| field.name == name) {
                    own.insert(field, found);
                }
            }
            Rule::Approval => stricter_approval(found, loaded, report),
            Rule::Masking => {
                if let Some(found) = stricter_masking(found, "", report) {
                    add_masking(&mut loaded.top, found);
                }
            }
            Rule::Lowers(limit) => lower(limit, found, loaded, report),
            Rule::Views => add_views(found, loaded, report),
            Rule::IfUnset if loaded.top.find(&top_fields::NAMING).is_none() => {
                loaded.top.insert(&top_fields::NAMING, found);
            }
            Rule::IfUnset => leave_out(&found, "", "another config file sets it", report),
            Rule::LeftOut => leave_out(&found, "", "a project file cannot set it", report),
            Rule::Queues | Rule::Foreign => {}
        }
    }
    for (name, queue) in queues {
        let known = loaded.config.queues.entry(name).or_insert(queue);
        known.concurrent = known.concurrent.min(queue.concurrent);
    }
    project_floor::keep(&mut own, &loaded.top, "", report);
    own
}

/// Adds the views whose names no other file has. A view can only show less of the board, but another file's clients rely on its own. Grants would show
/// tools that require a capability, so a view with some is left out.
fn add_views(mut found: Found, loaded: &mut Loaded, report: &mut Report) {
    if let Setting::Map(added) = &mut found.setting {
        added.retain(|name, view| {
            let has_grants = matches!(view, Setting::Table(values) if values.find(&view_fields::GRANTS).is_some());
            if has_grants {
                let path = join(&found.key, name);
                report.warn(found.at, &path, "is left out: a project file cannot grant capabilities");
            }
            !has_grants
        });
    }
    let known = TopTable::new(&loaded.top).find(&top_fields::VIEWS);
    if let (Some(Setting::Map(known)), Setting::Map(added)) = (known.map(|known| &known.setting), &mut found.setting) {
        for name in known.keys() {
            if added.remove(name).is_some() {
                let path = join(&found.key, name);
                report.warn(
                    found.at,
                    &path,
                    "is left out: another config file has a view of that name",
                );
            }
        }
    }
    let mut added = Values::default();
    added.insert(&top_fields::VIEWS, found);
    gateway::merge(&mut added, &mut loaded.top);
    added.fill_from(std::mem::take(&mut loaded.top));
    loaded.top = added;
}

fn leave_out(found: &Found, path: &str, why: &str, report: &mut Report) {
    report.warn(found.at, &join(path, &found.key), format!("is left out: {why}"));
}

/// Sets `approval` for all servers if it is stricter than before.
fn stricter_approval(found: Found, loaded: &mut Loaded, report: &mut Report) {
    let approval = |values: &Values| super::fields::ServerTable::new(values).get(&server::APPROVAL);
    let mut written = Values::default();
    written.insert(&server::APPROVAL, found.clone());
    let (before, after) = (approval_rank(approval(&loaded.top)), approval_rank(approval(&written)));
    if after > before {
        loaded.top.insert(&server::APPROVAL, found);
    } else if after < before {
        leave_out(&found, "", "a project file can only make approval stricter", report);
    }
}

fn lower(limit: &Key<top_fields::In, usize>, found: Found, loaded: &mut Loaded, report: &mut Report) {
    let mut written = Values::default();
    written.insert(limit, found.clone());
    let (before, after) = (
        TopTable::new(&loaded.top).get(limit),
        TopTable::new(&written).get(limit),
    );
    if after < before {
        loaded.top.insert(limit, found);
    } else if after > before {
        leave_out(&found, "", "a project file can only lower it", report);
    }
}

/// Removes from the masking of a project file's server what would mask less.
pub(super) fn keep_masking(written: &mut Values, path: &str, report: &mut Report) {
    if let Some(found) = written.remove(&server::MASKING)
        && let Some(found) = stricter_masking(found, path, report)
    {
        written.insert(&server::MASKING, found);
    }
}

/// Removes from a masking setting of a project file, at its top or of a server, what would mask less. Returns what is left.
fn stricter_masking(mut found: Found, path: &str, report: &mut Report) -> Option<Found> {
    const WHY: &str = "a project file cannot weaken masking";
    let path_of_table = join(path, &found.key);
    let table = match &mut found.setting {
        Setting::Bool(true) => return Some(found),
        Setting::Table(table) => table,
        _ => {
            leave_out(&found, path, WHY, report);
            return None;
        }
    };
    let values = super::key::Table::<of_masking::In>::new(table);
    let weaker = [
        (
            &of_masking::ENABLED.field,
            values.set(&of_masking::ENABLED) == Some(false),
        ),
        (
            &of_masking::DEFAULTS.field,
            values.set(&of_masking::DEFAULTS) == Some(false),
        ),
        (&of_masking::EXCEPT.field, values.find(&of_masking::EXCEPT).is_some()),
        (
            &of_masking::STYLE.field,
            values.set(&of_masking::STYLE) == Some(MaskStyle::Value),
        ),
    ];
    for (field, _) in weaker.iter().filter(|(_, is_weaker)| *is_weaker) {
        if let Some(removed) = table.remove(field) {
            leave_out(&removed, &path_of_table, WHY, report);
        }
    }
    if let Some(custom) = table.find_mut(&of_masking::CUSTOM)
        && let Setting::List(patterns) = &mut custom.setting
    {
        for pattern in patterns {
            keep_no_part_of_match(pattern, &path_of_table, report);
        }
    }
    Some(found)
}

/// Removes a replacement with references to groups: it could put the secret back.
fn keep_no_part_of_match(custom: &mut Setting, path: &str, report: &mut Report) {
    let Setting::Table(custom) = custom else { return };
    let replacement = super::key::Table::<pattern::In>::new(custom).get(&pattern::REPLACEMENT);
    if replacement.is_some_and(|text| text.contains('$'))
        && let Some(removed) = custom.remove(&pattern::REPLACEMENT)
    {
        let why = "in a project file it cannot refer to the match";
        leave_out(&removed, &join(path, of_masking::CUSTOM.name), why, report);
    }
}

/// Adds stricter masking to that of all servers: lists are joined.
fn add_masking(top: &mut Values, added: Found) {
    let Some(known) = top.find_mut(&top_fields::MASKING) else {
        top.insert(&top_fields::MASKING, added);
        return;
    };
    let as_table = |found: &Found| match &found.setting {
        Setting::Table(table) => table.clone(),
        setting => {
            let mut table = Values::default();
            table.insert(&of_masking::ENABLED, found.beside(setting.clone()));
            table
        }
    };
    let (mut table, added) = (as_table(known), as_table(&added));
    for field in of_masking::SECTION.fields {
        let Some(new) = added.find(field) else { continue };
        match (table.find_mut(field).map(|old| &mut old.setting), &new.setting) {
            (Some(Setting::List(old)), Setting::List(new)) => old.extend(new.iter().cloned()),
            _ => table.insert(field, new.clone()),
        }
    }
    known.setting = Setting::Table(table);
}
