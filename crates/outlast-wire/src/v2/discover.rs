//! `server/discover`: the versions and capabilities of a server (V2-DISC-1).

use crate::json::write::ObjectWriter;
use crate::meta;
use crate::neutral::MAX_SAFE_INTEGER;
use crate::object::{self, pick};
use crate::raw::{Raw, RawRef};
use crate::v2::cache::CacheHint;

/// The description of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discover<'a> {
    /// The supported versions.
    pub versions: Vec<String>,
    /// The capabilities, not parsed.
    pub capabilities: RawRef<'a>,
    /// The instructions for the model.
    pub instructions: Option<String>,
    /// The implementation info, not parsed, in either of its places (A2-39).
    pub info: Option<RawRef<'a>>,
    /// How long this may be cached.
    pub cache: CacheHint,
}

impl<'a> Discover<'a> {
    /// Reads a result. Returns `None` if it lacks the versions or the capabilities, as the result
    /// of an older server does.
    pub fn read(result: RawRef<'a>) -> Option<Self> {
        let names = [
            "supportedVersions",
            "capabilities",
            "instructions",
            "serverInfo",
        ];
        let [versions, capabilities, instructions, info] = pick(result, names).ok()?;
        let text = |version: RawRef<'_>| Some(version.text()?.into_owned());
        Some(Self {
            versions: object::elements(versions?)?
                .into_iter()
                .map(text)
                .collect::<Option<_>>()?,
            capabilities: capabilities.filter(|capabilities| capabilities.is_object())?,
            instructions: instructions.and_then(text),
            info: meta::value(result, meta::SERVER_INFO).or(info),
            cache: CacheHint::read(result),
        })
    }
}

/// The result of a server. Its implementation info goes into `_meta` (A2-39).
pub fn discover_result(
    versions: &[&str],
    capabilities: RawRef<'_>,
    instructions: Option<&str>,
    server_info: RawRef<'_>,
    cache: CacheHint,
) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("resultType", "complete");
        fields.texts("supportedVersions", versions);
        fields.json("capabilities", capabilities.as_str());
        if let Some(instructions) = instructions {
            fields.text("instructions", instructions);
        }
        fields.number("ttlMs", cache.ttl_ms.min(MAX_SAFE_INTEGER));
        fields.text("cacheScope", cache.scope.as_str());
        fields.nested(meta::META, |out| {
            let mut fields = ObjectWriter::begin(out);
            fields.json(meta::SERVER_INFO, server_info.as_str());
            fields.end();
        });
        fields.end();
    })
}
