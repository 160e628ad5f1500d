//! The arguments of a call.

use outlast_engine::Origin;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ToolFailure;

/// The arguments of a call.
///
/// ```
/// use outlast::tools::{Arguments, ToolFailure};
/// use serde_json::json;
///
/// # fn run() -> Result<(), ToolFailure> {
/// let given = json!({ "title": "Tides", "pages": 3 });
/// let arguments = Arguments::from(given.as_object().cloned().unwrap_or_default());
/// assert_eq!(arguments.text("title")?, "Tides");
/// assert_eq!(arguments.number("pages", 1.0)?, 3.0);
/// assert_eq!(arguments.number("copies", 1.0)?, 1.0);
/// assert!(arguments.text("pages").is_err());
/// # Ok(()) }
/// # assert!(run().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// The arguments of a `tools/call`; empty if they are absent.
    pub(super) fn of(call: &Origin) -> Result<Self, String> {
        let Some(params) = &call.params else {
            return Ok(Self::default());
        };
        let params: Params = params
            .open()
            .map_err(|error| format!("invalid params: {error}"))?;
        Ok(Self(params.arguments.unwrap_or_default()))
    }

    /// The value under `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The text under `name`.
    pub fn text(&self, name: &str) -> Result<&str, ToolFailure> {
        let found = self.get(name).and_then(Value::as_str);
        found.ok_or_else(|| format!("argument {name} must be a string").into())
    }

    /// The number under `name`, or `otherwise` if it is absent.
    pub fn number(&self, name: &str, otherwise: f64) -> Result<f64, ToolFailure> {
        match self.get(name) {
            None => Ok(otherwise),
            Some(value) => value
                .as_f64()
                .ok_or_else(|| format!("argument {name} must be a number").into()),
        }
    }

    /// Deserializes all arguments into a `T`. The error names the wrong argument.
    pub fn read<T: for<'a> Deserialize<'a>>(self) -> Result<T, ToolFailure> {
        let read = serde_path_to_error::deserialize(Value::Object(self.0));
        read.map_err(|error| match error.path().iter().next() {
            Some(_) => format!("argument {}: {}", error.path(), error.inner()).into(),
            None => format!("invalid arguments: {}", error.inner()).into(),
        })
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}
