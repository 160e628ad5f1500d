//! The `initialize` handshake of the legacy era (V1-INIT-1, V1-INIT-3).

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::raw::{Raw, RawRef};

/// What each side sends in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialize<'a> {
    /// The protocol version that the client offers or the server selects.
    pub version: String,
    /// The capabilities, not parsed.
    pub capabilities: RawRef<'a>,
    /// The implementation info, not parsed, if present.
    pub info: Option<RawRef<'a>>,
    /// The server's instructions for the model.
    pub instructions: Option<String>,
}

impl<'a> Initialize<'a> {
    /// Reads the params of a client or the result of a server.
    pub fn read(value: RawRef<'a>) -> Result<Self, ErrorObject> {
        let names = [
            "protocolVersion",
            "capabilities",
            "clientInfo",
            "serverInfo",
            "instructions",
        ];
        let [version, capabilities, client, server, instructions] =
            pick(value, names).map_err(|error| invalid_params(error.to_string()))?;
        Ok(Self {
            version: version
                .and_then(RawRef::text)
                .ok_or_else(|| invalid_params("`protocolVersion` must be a string"))?
                .into_owned(),
            capabilities: capabilities
                .filter(|capabilities| capabilities.is_object())
                .ok_or_else(|| invalid_params("`capabilities` must be an object"))?,
            info: client.or(server),
            instructions: instructions.and_then(RawRef::text).map(Into::into),
        })
    }
}

/// The params of a client.
pub fn initialize_params(version: &str, capabilities: RawRef<'_>, client_info: RawRef<'_>) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("protocolVersion", version);
        fields.json("capabilities", capabilities.as_str());
        fields.json("clientInfo", client_info.as_str());
        fields.end();
    })
}

/// The result of a server.
pub fn initialize_result(
    version: &str,
    capabilities: RawRef<'_>,
    server_info: RawRef<'_>,
    instructions: Option<&str>,
) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("protocolVersion", version);
        fields.json("capabilities", capabilities.as_str());
        fields.json("serverInfo", server_info.as_str());
        if let Some(instructions) = instructions {
            fields.text("instructions", instructions);
        }
        fields.end();
    })
}
