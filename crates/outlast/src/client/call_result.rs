//! The result of a tool, as Rust values.

use outlast_engine::Outcome;
use outlast_wire::{Raw, object, tool};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::error::{Error, PeerError};
use super::execution::{Execution, OutcomeError};

/// The result of a tool that succeeded.
///
/// ```no_run
/// # use outlast::client::Client;
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// #[derive(serde::Deserialize)]
/// struct Price {
///     euros: f64,
/// }
///
/// let call = client.call_tool("price", serde_json::json!({ "from": "Rome" })).await?;
/// let result = call.result().await?;
/// println!("{}", result.text());
/// let price: Price = result.structured()?;
/// # drop(price);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult(Raw);

/// Why a call has no result of a tool that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The tool failed, with this text for the model.
    #[error("the tool failed: {0}")]
    Tool(String),
    /// The call ended with a JSON-RPC error.
    #[error(transparent)]
    Rejected(PeerError),
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The call has no outcome.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
}

impl CallResult {
    /// The first text of the content, or an empty text.
    pub fn text(&self) -> String {
        tool::first_text(self.0.borrow()).unwrap_or_default()
    }

    /// The blocks of the content.
    pub fn content(&self) -> Vec<Value> {
        let content = object::find(self.0.borrow(), &["content"]);
        content.and_then(|all| all.open().ok()).unwrap_or_default()
    }

    /// The structured content as a `T`. Without structured content, the first text is read as JSON,
    /// because older servers send it so.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        if let Some(value) = object::find(self.0.borrow(), &["structuredContent"]) {
            return value.open::<Value>().and_then(serde_json::from_value);
        }
        let text = tool::first_text(self.0.borrow());
        let text = text.ok_or_else(|| serde_json::Error::custom("the result has no content"))?;
        serde_json::from_str(&text)
    }

    /// The whole result.
    pub fn raw(&self) -> &Raw {
        &self.0
    }
}

impl Execution {
    /// Waits for the result. A failed, rejected or cancelled call is an error;
    /// [`Execution::outcome`] has all cases as a value.
    pub async fn result(&self) -> Result<CallResult, ResultError> {
        let outcome = self.outcome().await?;
        let text = outcome.text().unwrap_or_default();
        match outcome {
            Outcome::Result(result) => Ok(CallResult(result)),
            Outcome::ToolError(..) => Err(ResultError::Tool(text)),
            Outcome::Cancelled => Err(ResultError::Cancelled),
            Outcome::Error(error, ..) => Err(match PeerError::read(error.borrow()) {
                Some(error) => ResultError::Rejected(error),
                None => {
                    let why = "the error of the call is not a JSON-RPC error object";
                    OutcomeError::Request(Error::Malformed(why.into())).into()
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(value: Value) -> CallResult {
        CallResult(Raw::encode(&value).unwrap())
    }

    #[test]
    fn structured_content_is_read_from_member_or_text() {
        let text = json!([{ "type": "text", "text": "[1, 2]" }]);
        let both = result(json!({ "content": text, "structuredContent": [3] }));
        assert_eq!(both.structured::<Vec<u8>>().unwrap(), [3]);
        let only_text = result(json!({ "content": text }));
        assert_eq!(only_text.structured::<Vec<u8>>().unwrap(), [1, 2]);
        assert_eq!(only_text.text(), "[1, 2]");
        assert_eq!(only_text.content().len(), 1);
        let nothing = result(json!({ "content": [] }));
        let refused = nothing.structured::<Vec<u8>>().unwrap_err().to_string();
        assert!(refused.contains("no content"), "{refused}");
    }
}
