//! The fields at the top of a config file.

use std::collections::BTreeMap;

use super::server_table::SERVER;
use crate::{
    audit::audit,
    field::{Applies, DefaultValue, Field, ForAll, InProject, Usage, ValueKind},
    key::{Nested, choice, either, flag, foreign, map, number, parse_problem, plain, table},
    policy::{Queue, mask_settings::masking, queue},
    preset::Preset,
    serve::serve,
    settings::settings,
    view::{NAMING_KINDS, view},
};
use pegboard_base::name::NameStyle;

settings! {
    board of top {
        /// The preset that provides the defaults of every server.
        preset: Preset = choice().common();
        /// Queues that calls wait in, by name, with the most calls in flight at once.
        queues: BTreeMap<String, Queue> = map(&ValueKind::Either(&[number(1, 1_000_000), ValueKind::Table(&queue::SECTION)]))
            .in_project(InProject::Queues);
        /// What is masked in the output of every server.
        masking: Nested<masking::In> = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&masking::SECTION)]))
            .protects()
            .in_project(InProject::Masking);
        /// The audit log of all calls: a file, or a table. Without it there is none.
        audit: Nested<audit::In> = table(ValueKind::Either(&[ValueKind::Text, ValueKind::Table(&audit::SECTION)]))
            .aka(&["audit_log"])
            .protects()
            .in_project(InProject::LeftOut)
            .common();
        /// How tools are named for models: a style, or a template such as `{server}_{tool}`.
        naming: NameStyle = either(NAMING_KINDS, NameStyle::Dunder, DefaultValue::Text("dunder"))
            .syntax(|text| parse_problem(NameStyle::parse(text)), "")
            .in_project(InProject::IfUnset)
            .common();
        /// Named views: parts of the board for clients of the gateway, by name.
        views: BTreeMap<String, Nested<view::In>> = map(&ValueKind::Table(&view::SECTION)).in_project(InProject::Views).common();
        /// Settings of the gateway, `pegboard serve`.
        serve: Nested<serve::In> = table(ValueKind::Table(&serve::SECTION)).in_project(InProject::LeftOut).common();
        /// Whether commands and hosts start a daemon in the background, in which the servers run once for all of them.
        daemon: bool = flag(true).in_project(InProject::IfUnset).common();
    }
}

const FOR_ALL: usize = count_for_all(SERVER.parts);

static FIELDS_FOR_ALL: [Field; FOR_ALL] = fields_for_all(SERVER.parts);

/// The settings of servers that may stand at the top of a file, for every server that does not set them itself.
pub(super) static OF_SERVERS: [&Field; FOR_ALL] = refer_to(&FIELDS_FOR_ALL);

/// Settings of other programs that share the file.
pub(super) static FOREIGN: &[&Field] = &[&foreign("inputs")];

/// The same field at the top of a file, where it applies to every server that does not set it.
const fn at_top(field: &Field, ForAll { aliases, doc }: ForAll) -> Field {
    Field {
        aliases,
        converted: &[],
        default: DefaultValue::None,
        applies: Applies::All,
        usage: match field.usage {
            Usage::Common => Usage::Ordinary,
            usage => usage,
        },
        doc,
        ..*field
    }
}

/// How many fields of servers may stand at the top of a file.
const fn count_for_all(parts: &[&[&Field]]) -> usize {
    let (mut part, mut count) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            count += parts[part][index].for_all.is_some() as usize;
            index += 1;
        }
        part += 1;
    }
    count
}

/// These fields as they stand there.
const fn fields_for_all<const N: usize>(parts: &[&[&Field]]) -> [Field; N] {
    let mut fields = [plain("", ValueKind::Any, ""); N];
    let (mut part, mut count) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            let field = parts[part][index];
            if let Some(for_all) = field.for_all {
                fields[count] = at_top(field, for_all);
                count += 1;
            }
            index += 1;
        }
        part += 1;
    }
    fields
}

/// References to fields.
const fn refer_to<const N: usize>(fields: &'static [Field; N]) -> [&'static Field; N] {
    let mut references = [&fields[0]; N];
    let mut index = 0;
    while index < N {
        references[index] = &fields[index];
        index += 1;
    }
    references
}
