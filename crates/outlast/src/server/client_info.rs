//! What a client declares about itself: version, capabilities, name. Stored with a legacy session.

use outlast_engine::{InputKind, InputKinds};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::Initialize;
use outlast_wire::{Raw, RawRef, object, version};
use serde::{Deserialize, Serialize};

/// The version, capabilities and name of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientInfo {
    /// The negotiated protocol version.
    pub(crate) version: String,
    pub(super) capabilities: Raw,
    pub(super) info: Option<Raw>,
}

impl ClientInfo {
    /// Reads the params of `initialize` and selects the version: the client's if we support it,
    /// else our latest (V1-INIT-3).
    pub(crate) fn negotiate(params: Option<RawRef<'_>>) -> Result<Self, ErrorObject> {
        let params =
            params.ok_or_else(|| outlast_wire::codes::invalid_params("`params` is missing"))?;
        let initialize = Initialize::read(params)?;
        let known = version::LEGACY_VERSIONS.contains(&initialize.version.as_str());
        Ok(Self {
            version: if known {
                initialize.version
            } else {
                version::LEGACY.to_owned()
            },
            capabilities: initialize.capabilities.to_raw(),
            info: initialize.info.map(RawRef::to_raw),
        })
    }

    /// A client of this version with these capabilities.
    pub(crate) fn new(version: &str, capabilities: Raw) -> Self {
        Self {
            version: version.to_owned(),
            capabilities,
            info: None,
        }
    }

    /// Whether the negotiated version has tasks (V1-CAP-13).
    pub(crate) fn has_tasks(&self) -> bool {
        self.version == version::LEGACY
    }

    /// The input requests that the client accepts (V1-ELIC-1, V1-SAMP-1, V1-ROOT-1).
    pub(crate) fn accepts(&self) -> InputKinds {
        let declared = |value: Option<RawRef<'_>>| value.is_some_and(is_declared);
        let has = |value: Option<RawRef<'_>>, name| {
            declared(value.and_then(|value| object::find(value, &[name])))
        };
        let names = ["elicitation", "sampling", "roots"];
        let [elicitation, sampling, roots] =
            object::pick(self.capabilities.borrow(), names).unwrap_or_default();
        let by_url = has(elicitation, "url");
        let kinds = [
            // `{}` declares forms only.
            (
                InputKind::ElicitForm,
                declared(elicitation) && (!by_url || has(elicitation, "form")),
            ),
            (InputKind::ElicitUrl, by_url),
            (InputKind::Sample, declared(sampling)),
            (InputKind::SampleWithTools, has(sampling, "tools")),
            (InputKind::Roots, declared(roots)),
        ];
        let kinds = kinds.into_iter().filter(|(_, has)| *has);
        kinds.map(|(kind, _)| kind).collect()
    }
}

fn is_declared(value: RawRef<'_>) -> bool {
    value.is_object() || value.boolean() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(version: &str, capabilities: &str) -> ClientInfo {
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}"#
        );
        ClientInfo::negotiate(Some(RawRef::parse(&params).unwrap())).unwrap()
    }

    #[test]
    fn an_unsupported_version_is_negotiated_to_our_latest() {
        // V1-INIT-3.
        assert_eq!(client("2025-06-18", "{}").version, "2025-06-18");
        assert_eq!(client("2025-03-26", "{}").version, "2025-03-26");
        assert_eq!(client("1999-01-01", "{}").version, "2025-11-25");
        assert!(!client("2025-06-18", "{}").has_tasks());
    }

    #[test]
    fn an_empty_elicitation_capability_means_forms_only() {
        // V1-ELIC-1.
        let form = client("2025-11-25", r#"{"elicitation":{}}"#).accepts();
        assert!(form.contains(InputKind::ElicitForm) && !form.contains(InputKind::ElicitUrl));
        let url = client("2025-11-25", r#"{"elicitation":{"url":{}}}"#).accepts();
        assert!(!url.contains(InputKind::ElicitForm) && url.contains(InputKind::ElicitUrl));
        let tools = client("2025-11-25", r#"{"sampling":{"tools":{}},"roots":{}}"#).accepts();
        assert!(tools.contains(InputKind::SampleWithTools) && tools.contains(InputKind::Roots));
        assert!(!tools.contains(InputKind::ElicitForm));
    }
}
