//! Native tools with typed arguments and results, whose schemas are derived.

use std::future::Future;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    context::ToolContext,
    into_answer::{IntoAnswer, ToolError},
    tool::NativeTool,
};

impl NativeTool {
    /// Creates a tool whose arguments are deserialised into `A` and described by its derived JSON Schema. Arguments that do not fit are an
    /// error of the tool that names the field.
    ///
    /// ```
    /// # mod pegboard { pub use {pegboard_client::{native as in_process, native::*}, schemars}; }
    /// use pegboard::{NativeTool, NativeTools, in_process::Json, schemars::JsonSchema};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// #[schemars(crate = "pegboard::schemars")]
    /// struct Search {
    ///     /// The words to look for.
    ///     query: String,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// #[schemars(crate = "pegboard::schemars")]
    /// struct Found {
    ///     hits: usize,
    /// }
    ///
    /// let search = NativeTool::typed("search", "Searches the notes.", |search: Search, context| async move {
    ///     context.progress(1.0, Some(2.0), "reading");
    ///     if search.query.is_empty() {
    ///         return Err("`query` is empty");
    ///     }
    ///     Ok(Json(Found { hits: search.query.len() }))
    /// })
    /// .output::<Found>()
    /// .read_only();
    ///
    /// // For `Builder::in_process` or `View::tools`.
    /// let tools = NativeTools::new([search]);
    /// ```
    pub fn typed<A, F, R>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoAnswer> + Send + 'static,
    {
        Self::with_context(name, description, schema_of::<A>(), move |arguments, context| {
            let running = parse::<A>(arguments).map(|arguments| run(arguments, context));
            async move { running?.await.into_answer() }
        })
    }

    /// Describes the structured content of the tool's results by the JSON Schema of `T`.
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(schema_of::<T>())
    }
}

/// The JSON Schema of a type. Definitions are inlined, because not all model APIs resolve references.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type tells a model nothing.
    schema.remove("title");
    schema.to_value()
}

/// Deserialises the arguments. The error names the field.
fn parse<A: DeserializeOwned>(arguments: Map<String, Value>) -> Result<A, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            "." => ToolError::new(format!("the arguments do not fit: {}", error.inner())),
            path => ToolError::new(format!("the argument `{path}` does not fit: {}", error.inner())),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Page {
        /// The number of the page.
        number: u32,
        range: Option<Range>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Range {
        from: u32,
    }

    fn parsed(arguments: Value) -> Result<(u32, Option<u32>), String> {
        let Value::Object(arguments) = arguments else {
            return Err("no object".to_owned());
        };
        let page = parse::<Page>(arguments).map_err(|error| error.to_string())?;
        Ok((page.number, page.range.map(|range| range.from)))
    }

    #[test]
    fn the_schema_is_derived_without_references() {
        let schema = schema_of::<Page>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["number"]["description"], "The number of the page.");
        assert_eq!(schema["required"], json!(["number"]));
        assert!(!schema.to_string().contains("$ref"), "{schema}");
        assert_eq!((schema.get("title"), schema.get("$schema")), (None, None));
    }

    #[test]
    fn an_argument_that_does_not_fit_is_named() {
        assert_eq!(parsed(json!({"number": 3, "range": {"from": 1}})), Ok((3, Some(1))));
        let nested = parsed(json!({"number": 3, "range": {"from": "x"}})).unwrap_err();
        assert!(nested.contains("`range.from`") && nested.contains("u32"), "{nested}");
        let missing = parsed(json!({})).unwrap_err();
        assert!(missing.contains("`number`"), "{missing}");
    }
}
