//! The `_meta` of a modern request, which also decides the era of a request (V2-ERA-8, V2-META).

use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::log::Level;
use outlast_wire::v2;
use outlast_wire::{Raw, RawRef, codes, version};

/// What the `_meta` of a modern request declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestMeta {
    /// The version, if it is not supported.
    unsupported: Option<String>,
    /// Whether the caller has declared the tasks extension (V2-CAP-1).
    pub(super) tasks: bool,
    /// The lowest level of log messages for this request.
    pub(super) level: Option<Level>,
    /// The progress token.
    pub(super) token: Option<Id>,
    /// The capabilities of the caller.
    pub(super) capabilities: Raw,
    /// The name and version of the caller.
    pub(super) info: Option<Raw>,
}

impl RequestMeta {
    /// Reads the metadata of a request; `None` for a legacy request, which has none.
    pub(crate) fn read(params: Option<RawRef<'_>>) -> Result<Option<Self>, ErrorObject> {
        let Some(meta) = v2::RequestMeta::read(params)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            unsupported: (meta.version != version::MODERN).then(|| meta.version.into_owned()),
            tasks: v2::declares_tasks(meta.capabilities),
            level: meta.log_level.and_then(|level| level.parse().ok()),
            token: meta.token,
            capabilities: meta.capabilities.to_raw(),
            info: meta.client.map(RawRef::to_raw),
        }))
    }

    /// The version.
    pub(crate) fn version(&self) -> &str {
        self.unsupported.as_deref().unwrap_or(version::MODERN)
    }

    /// Checks that the version is supported (V2-VER-1).
    pub(crate) fn check_version(&self) -> Result<(), ErrorObject> {
        match &self.unsupported {
            None => Ok(()),
            Some(unsupported) => Err(codes::unsupported_version(unsupported, &VERSIONS)),
        }
    }
}

/// The error for a modern request without metadata (V2-META-3).
pub(crate) fn missing_meta() -> ErrorObject {
    codes::invalid_params(format!(
        "`_meta` must have `{}` and `{}`",
        outlast_wire::meta::PROTOCOL_VERSION,
        outlast_wire::meta::CLIENT_CAPABILITIES,
    ))
}

/// Whether a method exists in the modern era only.
pub(crate) fn is_modern_only(method: &str) -> bool {
    [v2::method::DISCOVER, v2::method::LISTEN, v2::method::UPDATE].contains(&method)
}

/// The versions that are supported without a session.
pub(super) const VERSIONS: [&str; 1] = [version::MODERN];
