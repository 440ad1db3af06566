//! What a project file may set: defaults of its own servers, and stricter masking, approval and limits for all servers.
//!
//! `InProject` says what each setting does.

use super::{
    field::{Effect, Field, Floor, InProject},
    fields::{
        ServerTable, TOP, TopTable, masking as of_masking, pattern, server, top as top_fields, view as view_fields,
    },
    from_setting::FromSetting as _,
    loaded::Loaded,
    policy::Approval,
    problem::{Report, join},
    project_floor,
    resolve::gateway,
    setting::{Found, Setting, Values},
};

/// Applies the top of a project file to all servers as far as that is stricter, and returns the defaults of its own servers.
pub(super) fn apply(written: Values, loaded: &mut Loaded, report: &mut Report) -> Values {
    let mut own = Values::default();
    let queues = TopTable::new(&written).get(&top_fields::queues);
    for (name, found) in written.into_iter() {
        let Some(field) = TOP.fields().find(|field| field.name == name) else {
            continue;
        };
        match field.in_project {
            _ if field.effect == Effect::Foreign => {}
            InProject::OwnServers => own.insert(field, found),
            InProject::Approval => stricter_approval(found, loaded, report),
            InProject::Masking => {
                if let Some(found) = stricter_masking(found, "", report) {
                    add_masking(&mut loaded.top, found);
                }
            }
            InProject::Lowers => lower(field, found, loaded, report),
            InProject::Views => add_views(found, loaded, report),
            InProject::IfUnset if loaded.top.find(field).is_none() => loaded.top.insert(field, found),
            InProject::IfUnset => leave_out(&found, "", "another config file sets it", report),
            InProject::LeftOut => leave_out(&found, "", "a project file cannot set it", report),
            InProject::Queues => {}
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
            let has_grants = matches!(view, Setting::Table(values) if values.find(&view_fields::grants).is_some());
            if has_grants {
                let path = join(&found.key, name);
                report.warn(found.at, &path, "is left out: a project file cannot grant capabilities");
            }
            !has_grants
        });
    }
    let known = TopTable::new(&loaded.top).find(&top_fields::views);
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
    added.insert(&top_fields::views, found);
    gateway::merge(&mut added, &mut loaded.top);
    added.fill_from(std::mem::take(&mut loaded.top));
    loaded.top = added;
}

fn leave_out(found: &Found, path: &str, why: &str, report: &mut Report) {
    report.warn(found.at, &join(path, &found.key), format!("is left out: {why}"));
}

/// Sets `approval` for all servers if it is stricter than before.
fn stricter_approval(found: Found, loaded: &mut Loaded, report: &mut Report) {
    let before = ServerTable::new(&loaded.top).get(&server::approval);
    let after = Approval::from_setting(&found.setting).unwrap_or_default();
    if after > before {
        loaded.top.insert(&server::approval, found);
    } else if after < before {
        leave_out(&found, "", "a project file can only make approval stricter", report);
    }
}

fn lower(limit: &Field, found: Found, loaded: &mut Loaded, report: &mut Report) {
    let before = loaded
        .top
        .find(limit)
        .and_then(|found| usize::from_setting(&found.setting));
    let before = before.or(limit.default.number());
    let after = usize::from_setting(&found.setting);
    if after < before {
        loaded.top.insert(limit, found);
    } else if after > before {
        leave_out(&found, "", "a project file can only lower it", report);
    }
}

/// Removes from the masking of a project file's server what would mask less.
pub(super) fn keep_masking(written: &mut Values, path: &str, report: &mut Report) {
    if let Some(found) = written.remove(&server::masking)
        && let Some(found) = stricter_masking(found, path, report)
    {
        written.insert(&server::masking, found);
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
    for field in of_masking::SECTION.fields() {
        if let Floor::Default(is_weaker) = field.floor
            && table.find(field).is_some_and(|own| is_weaker(&own.setting, None))
            && let Some(removed) = table.remove(field)
        {
            leave_out(&removed, &path_of_table, WHY, report);
        }
    }
    if let Some(custom) = table.find_mut(&of_masking::custom)
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
    let replacement = super::key::Table::<pattern::In>::new(custom).get(&pattern::replacement);
    if replacement.is_some_and(|text| text.contains('$'))
        && let Some(removed) = custom.remove(&pattern::replacement)
    {
        let why = "in a project file it cannot refer to the match";
        leave_out(&removed, &join(path, of_masking::custom.name), why, report);
    }
}

/// Adds stricter masking to that of all servers: lists are joined.
fn add_masking(top: &mut Values, added: Found) {
    let Some(known) = top.find_mut(&top_fields::masking) else {
        top.insert(&top_fields::masking, added);
        return;
    };
    let as_table = |found: &Found| match &found.setting {
        Setting::Table(table) => table.clone(),
        setting => {
            let mut table = Values::default();
            table.insert(&of_masking::enabled, found.beside(setting.clone()));
            table
        }
    };
    let (mut table, added) = (as_table(known), as_table(&added));
    for field in of_masking::SECTION.fields() {
        let Some(new) = added.find(field) else { continue };
        match (table.find_mut(field).map(|old| &mut old.setting), &new.setting) {
            (Some(Setting::List(old)), Setting::List(new)) => old.extend(new.iter().cloned()),
            _ => table.insert(field, new.clone()),
        }
    }
    known.setting = Setting::Table(table);
}
