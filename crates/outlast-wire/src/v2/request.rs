//! The per-request metadata in `_meta` of every V2 request (V2-META).

use std::borrow::Cow;

use memchr::memchr2;

use crate::codes::invalid_params;
use crate::envelope::{ErrorObject, Id};
use crate::json::write::quoted;
use crate::meta;
use crate::object::{NotAnObject, Rewrite, find, pick};
use crate::raw::{Raw, RawRef};

/// The per-request metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMeta<'a> {
    /// The protocol version.
    pub version: Cow<'a, str>,
    /// The client capabilities for this request, not parsed.
    pub capabilities: RawRef<'a>,
    /// The client info, not parsed.
    pub client: Option<RawRef<'a>>,
    /// The minimum level of log messages for this request.
    pub log_level: Option<&'static str>,
    /// The progress token.
    pub token: Option<Id>,
}

impl<'a> RequestMeta<'a> {
    /// Reads the metadata of a request.
    ///
    /// A request with none of the keys is not a modern one and gives `None` (V2-ERA-8). A request
    /// with some of the keys that lacks a required one, or has an unknown log level, is invalid
    /// (V2-META-3, V2-META-8). The client info is optional (V2-META-4).
    pub fn read(params: Option<RawRef<'a>>) -> Result<Option<Self>, ErrorObject> {
        let keys = [
            meta::PROTOCOL_VERSION,
            meta::CLIENT_CAPABILITIES,
            meta::CLIENT_INFO,
            meta::LOG_LEVEL,
            meta::PROGRESS_TOKEN,
        ];
        let Some([version, capabilities, client, level, token]) = params
            .filter(|params| may_have_keys(*params))
            .and_then(|params| find(params, &[meta::META]))
            .and_then(|meta| pick(meta, keys).ok())
        else {
            return Ok(None);
        };
        if version.or(capabilities).or(client).is_none() {
            return Ok(None);
        }
        let missing = |key| invalid_params(format!("`_meta` lacks a valid `{key}`"));
        Ok(Some(Self {
            version: version
                .and_then(RawRef::text)
                .ok_or_else(|| missing(meta::PROTOCOL_VERSION))?,
            capabilities: capabilities
                .filter(|capabilities| capabilities.is_object())
                .ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?,
            client,
            log_level: match level {
                Some(level) => Some(log_level(level).ok_or_else(|| missing(meta::LOG_LEVEL))?),
                None => None,
            },
            token: token.and_then(|token| Id::read(token).ok()),
        }))
    }
}

/// Whether a key of ours may be present. Each contains a slash, possibly escaped. Small legacy
/// requests contain none and need not be parsed.
fn may_have_keys(params: RawRef<'_>) -> bool {
    memchr2(b'/', b'\\', params.as_str().as_bytes()).is_some()
}

/// Returns `params` with the metadata that every request of a client needs (V2-META-1, V2-META-2).
pub fn request_params(
    params: Option<RawRef<'_>>,
    version: &str,
    capabilities: RawRef<'_>,
    client_info: Option<RawRef<'_>>,
) -> Result<Raw, NotAnObject> {
    let version = quoted(version);
    let mut rewrite = Rewrite::default();
    frame(
        &mut rewrite,
        RawRef::scanned(&version),
        capabilities,
        client_info,
    );
    rewrite.apply(params.unwrap_or(RawRef::EMPTY_OBJECT))
}

/// The same as part of other changes of the params.
pub fn frame<'a>(
    rewrite: &mut Rewrite<'a>,
    version: RawRef<'a>,
    capabilities: RawRef<'a>,
    client_info: Option<RawRef<'a>>,
) {
    rewrite.set_meta.extend([
        (meta::PROTOCOL_VERSION, version),
        (meta::CLIENT_CAPABILITIES, capabilities),
    ]);
    let info = client_info.map(|info| (meta::CLIENT_INFO, info));
    rewrite.set_meta.extend(info);
}

fn log_level(level: RawRef<'_>) -> Option<&'static str> {
    let word = level.text()?;
    LOG_LEVELS.into_iter().find(|known| *known == word)
}

const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::INVALID_PARAMS;
    use crate::version::MODERN;

    #[test]
    fn the_metadata_of_a_request_is_read() {
        let info = RawRef::parse(r#"{"name":"n","version":"1"}"#).unwrap();
        let capabilities = RawRef::parse(r#"{"sampling":{}}"#).unwrap();
        let params = RawRef::parse(r#"{"name":"x","_meta":{"progressToken":1}}"#).unwrap();
        let said = request_params(Some(params), MODERN, capabilities, Some(info)).unwrap();
        let read = RequestMeta::read(Some(said.borrow())).unwrap().unwrap();
        assert_eq!(read.version, MODERN);
        assert_eq!((read.capabilities, read.client), (capabilities, Some(info)));
        assert_eq!(meta::progress_token(said.borrow()), Some(1.into()));
    }

    /// V2-ERA-8, V2-META-3, V2-META-8.
    #[test]
    fn incomplete_metadata_is_invalid_and_missing_metadata_is_legacy() {
        let read = |meta: &str| {
            let params = Raw::parse(format!("{{\"_meta\":{meta}}}")).unwrap();
            RequestMeta::read(Some(params.borrow()))
                .map(|meta| meta.is_some())
                .map_err(|e| e.code)
        };
        let prefix = "io.modelcontextprotocol";
        assert_eq!(read(r#"{"progressToken":1}"#), Ok(false));
        assert_eq!(read("null"), Ok(false));
        assert_eq!(
            read(&format!(r#"{{"{prefix}/protocolVersion":"v"}}"#)),
            Err(INVALID_PARAMS)
        );
        assert_eq!(
            read(&format!(r#"{{"{prefix}/clientCapabilities":{{}}}}"#)),
            Err(INVALID_PARAMS)
        );
        for slash in [r"\/", r"\u002f", r"\u002F"] {
            let escaped = format!(r#"{{"{prefix}{slash}protocolVersion":"v"}}"#);
            assert_eq!(read(&escaped), Err(INVALID_PARAMS), "{escaped}");
        }
        let both = format!(r#""{prefix}/protocolVersion":"v","{prefix}/clientCapabilities":{{}}"#);
        assert_eq!(read(&format!("{{{both}}}")), Ok(true));
        assert_eq!(
            read(&format!(r#"{{{both},"{prefix}/logLevel":"debug"}}"#)),
            Ok(true)
        );
        assert_eq!(
            read(&format!(r#"{{{both},"{prefix}/logLevel":"loud"}}"#)),
            Err(INVALID_PARAMS)
        );
    }
}
