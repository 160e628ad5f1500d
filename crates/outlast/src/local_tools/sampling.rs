//! Typed messages to and from the model of the client (`sampling/createMessage`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ElicitError, ToolContext};
use crate::content;

/// A request to the model of the client. It asks for at most 1,000 tokens unless
/// [`SamplingRequest::max_tokens`] sets another number.
///
/// ```
/// use outlast::tools::SamplingRequest;
///
/// let request = SamplingRequest::new("Write one line about tides.")
///     .system_prompt("You are brief.")
///     .max_tokens(100);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingRequest {
    messages: Vec<SamplingMessage>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamplingMessage {
    role: Role,
    content: Value,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// What the model returned.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingResponse {
    /// Who speaks.
    pub role: Role,
    /// One content block, or a list of them.
    pub content: Value,
    /// The name of the model.
    pub model: String,
    /// Why the model stopped, such as `endTurn`.
    pub stop_reason: Option<String>,
}

impl SamplingRequest {
    /// A request with one message of the user.
    pub fn new(text: impl Into<String>) -> Self {
        Self::conversation([SamplingMessage::user(text)])
    }

    /// A request with several messages.
    pub fn conversation(messages: impl IntoIterator<Item = SamplingMessage>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            max_tokens: DEFAULT_MAX_TOKENS,
            system_prompt: None,
            temperature: None,
            stop_sequences: Vec::new(),
        }
    }

    /// Sets the maximum of tokens.
    pub fn max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    /// Sets the system prompt. A client may ignore it.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the temperature.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Adds a text at which the model stops.
    pub fn stop_at(mut self, text: impl Into<String>) -> Self {
        self.stop_sequences.push(text.into());
        self
    }
}

impl SamplingMessage {
    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, content::text_block(text))
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content::text_block(text))
    }

    /// A message with a block of [`content`](crate::content), such as an image.
    pub fn new(role: Role, block: Value) -> Self {
        Self {
            role,
            content: block,
        }
    }
}

impl SamplingResponse {
    /// The first text of the response, or an empty text.
    pub fn text(&self) -> &str {
        let blocks = match &self.content {
            Value::Array(blocks) => blocks.as_slice(),
            block => std::slice::from_ref(block),
        };
        let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
        texts.next().unwrap_or_default()
    }
}

impl ToolContext {
    /// Asks the model of the client.
    ///
    /// ```
    /// use outlast::prelude::*;
    /// use outlast::tools::SamplingRequest;
    ///
    /// let write = Tool::new("write", "Writes a line", |_, cx| async move {
    ///     let response = cx.sample(SamplingRequest::new("Write one line about tides.")).await?;
    ///     Ok(text(response.text()))
    /// });
    /// ```
    pub async fn sample(&self, request: SamplingRequest) -> Result<SamplingResponse, ElicitError> {
        let params = serde_json::to_value(request)
            .map_err(|error| ElicitError::NotAForm(error.to_string()))?;
        let response = self.sample_raw(params).await?;
        serde_path_to_error::deserialize(response)
            .map_err(|error| ElicitError::Unreadable(error.to_string()))
    }
}

/// How many tokens are requested by default.
const DEFAULT_MAX_TOKENS: u32 = 1_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_the_shape_of_the_protocol() {
        let request = SamplingRequest::conversation([
            SamplingMessage::user("one"),
            SamplingMessage::assistant("two"),
        ]);
        let request = request.max_tokens(9).system_prompt("be brief").stop_at("x");
        let text = |text| json!({ "type": "text", "text": text });
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({
                "messages": [
                    { "role": "user", "content": text("one") },
                    { "role": "assistant", "content": text("two") },
                ],
                "maxTokens": 9,
                "systemPrompt": "be brief",
                "stopSequences": ["x"],
            })
        );
    }

    #[test]
    fn the_text_of_a_response_is_its_first_text() {
        for content in [
            json!({ "type": "text", "text": "here" }),
            json!([{ "type": "image" }, { "type": "text", "text": "here" }]),
        ] {
            let response = json!({ "role": "assistant", "content": content, "model": "m" });
            let response: SamplingResponse = serde_json::from_value(response).unwrap();
            assert_eq!(response.text(), "here");
        }
    }
}
