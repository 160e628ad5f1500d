//! Tools whose arguments and results are Rust types, which define the JSON Schemas.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Tool, ToolContext, ToolFailure};

impl Tool {
    /// A tool whose arguments are an `A`. Wrong arguments are a tool error that names the argument
    /// (V1-TLS-2). The tool returns content (see [`text`](crate::text)) or [`Json`].
    ///
    /// # Panics
    ///
    /// If `A`, or the type in a [`Json`], is not an object in JSON, as the protocol requires.
    pub fn typed<A, R, F, W>(name: &str, description: &str, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: Output,
        F: Fn(A, ToolContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, ToolFailure>> + Send + 'static,
    {
        let tool = Self::new(name, description, move |arguments, cx| {
            let work = arguments.read().map(|arguments| run(arguments, cx));
            async move { work?.await?.into_result() }
        });
        let tool = tool.input(schema_of::<A>());
        match R::schema() {
            Some(schema) => tool.output(schema),
            None => tool,
        }
    }
}

/// The return type of a typed tool: content, or [`Json`].
pub trait Output: Send + 'static {
    /// The JSON Schema of `structuredContent`, if it has any.
    fn schema() -> Option<Value>;

    /// The result of the call.
    fn into_result(self) -> Result<Value, ToolFailure>;
}

/// A value for `structuredContent`, with its schema in `tools/list` (V1-TLS-3). It is repeated as
/// text for clients without support for structured content (V1-TLS-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl Output for Value {
    fn schema() -> Option<Value> {
        None
    }

    fn into_result(self) -> Result<Value, ToolFailure> {
        Ok(self)
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Output for Json<T> {
    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn into_result(self) -> Result<Value, ToolFailure> {
        let value = serde_json::to_value(self.0)?;
        let mut result = super::text(value.to_string());
        result["structuredContent"] = value;
        Ok(result)
    }
}

/// The schema of an object.
fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = root_schema::<T>();
    if schema.get("type").is_none() && ["oneOf", "anyOf"].iter().any(|of| schema.get(of).is_some())
    {
        // A choice of objects.
        schema["type"] = json!("object");
    }
    assert!(
        schema["type"] == "object",
        "{} is not an object in JSON",
        T::schema_name()
    );
    schema
}

/// The schema of a type. Subschemas are inlined unless the type is recursive, because many clients
/// do not follow references.
pub(super) fn root_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // V1-BASE-8: this is the default dialect.
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::text;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Trip {
        /// Where from.
        from: String,
        #[serde(default = "one")]
        seats: u8,
        luggage: Option<Luggage>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Luggage {
        bags: Vec<u32>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Price {
        euros: f64,
    }

    fn one() -> u8 {
        1
    }

    fn priced() -> Tool {
        Tool::typed("price", "prices a trip", |trip: Trip, _| async move {
            let bags: u32 = trip.luggage.iter().flat_map(|luggage| &luggage.bags).sum();
            let euros = f64::from(trip.seats) * 10.0 + f64::from(bags) + trip.from.len() as f64;
            Ok(Json(Price { euros }))
        })
    }

    #[test]
    fn a_typed_tool_has_the_schemas_of_its_types() {
        let listed = priced().listed();
        let input = &listed["inputSchema"];
        assert_eq!(input["type"], "object");
        assert_eq!(input["required"], json!(["from"]));
        assert_eq!(input["properties"]["from"]["description"], "Where from.");
        assert_eq!(input["properties"]["seats"]["default"], 1);
        // Without references.
        assert_eq!((input.get("$defs"), input.get("$schema")), (None, None));
        assert_eq!(listed["outputSchema"]["required"], json!(["euros"]));
        for schema in ["inputSchema", "outputSchema"] {
            assert!(jsonschema::validator_for(&listed[schema]).is_ok());
        }
        let plain = Tool::typed("plain", "says a word", |_: Trip, _| async move {
            Ok(text("word"))
        });
        assert_eq!(plain.listed().get("outputSchema"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_structured_result_follows_its_schema_and_has_text() {
        // V1-TLS-3, V1-TLS-7.
        let (ending, body) = super::super::tests::run_one(
            priced(),
            json!({ "from": "Rome", "luggage": { "bags": [1, 2] } }),
        )
        .await;
        assert_eq!(ending, outlast_engine::Ending::Result);
        let body = body.unwrap();
        let validator = jsonschema::validator_for(&priced().listed()["outputSchema"]).unwrap();
        assert!(validator.is_valid(&body["structuredContent"]), "{body}");
        assert_eq!(body["structuredContent"], json!({ "euros": 17.0 }));
        let text = body["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            body["structuredContent"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_names_the_wrong_argument() {
        // V1-TLS-2, V1-TLS-5.
        for (arguments, named) in [
            (json!({ "seats": 2 }), "missing field `from`"),
            (
                json!({ "from": 7 }),
                "argument from: invalid type: integer `7`",
            ),
            (json!({ "from": "x", "seats": 300 }), "argument seats: "),
            (json!({ "from": "x", "seats": 1.5 }), "argument seats: "),
            (
                json!({ "from": "x", "luggage": { "bags": [1, "two"] } }),
                "argument luggage.bags[1]: invalid type: string \"two\"",
            ),
        ] {
            let (ending, body) = super::super::tests::run_one(priced(), arguments).await;
            assert_eq!(ending, outlast_engine::Ending::ToolError);
            let body = body.unwrap();
            let said = body["content"][0]["text"].as_str().unwrap();
            assert!(said.contains(named), "{said}");
        }
    }

    #[test]
    #[should_panic(expected = "is not an object in JSON")]
    fn arguments_that_are_not_an_object_panic() {
        let _ = Tool::typed("odd", "takes a number", |_: u32, _| async move {
            Ok(text("never"))
        });
    }
}
