//! The schemas of the documents, derived from the types that are written and read.

use pegboard::Event;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings, transform::ReplaceBoolSchemas};

use super::{
    super::{
        calls::CallRequest,
        documents::{ReloadedDocument, StatusDocument, ToolsDocument, WarningsDocument},
        problem::ProblemDocument,
        reply::ReplyDocument,
        sign_in::SignInLinkDocument,
        sign_ins::SignInsDocument,
    },
    parts::Object,
};

/// The schemas of all documents, by name.
pub(super) fn schemas() -> Object {
    let mut written = generator(SchemaSettings::draft2020_12().for_serialize());
    add::<ProblemDocument>(&mut written);
    add::<StatusDocument>(&mut written);
    add::<ToolsDocument>(&mut written);
    add::<WarningsDocument>(&mut written);
    add::<ReloadedDocument>(&mut written);
    add::<ReplyDocument>(&mut written);
    add::<SignInLinkDocument>(&mut written);
    add::<SignInsDocument>(&mut written);
    add::<Event>(&mut written);
    let mut read = generator(SchemaSettings::draft2020_12().for_deserialize());
    add::<CallRequest>(&mut read);
    let mut schemas = written.take_definitions(true);
    schemas.extend(read.take_definitions(true));
    schemas
}

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let settings = settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    // Generators of clients do not know that `true` is a schema.
    let mut no_booleans = ReplaceBoolSchemas::default();
    no_booleans.skip_additional_properties = true;
    settings.with_transform(no_booleans).into_generator()
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}
