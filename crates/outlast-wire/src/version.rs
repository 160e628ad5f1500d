//! Protocol versions, and the era each belongs to (V2-ERA-12).

/// The newest version without `initialize`.
pub const MODERN: &str = "2026-07-28";
/// The newest version with `initialize`, the only one that has V1 tasks.
pub const LEGACY: &str = "2025-11-25";
/// Every version with `initialize`, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = [LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version of a request without a version header, if nothing else is known (V1-HTTP-11).
pub const ASSUMED: &str = "2025-03-26";

/// How a protocol version starts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// With an `initialize` handshake.
    Legacy,
    /// Without a handshake: each request contains its metadata.
    Modern,
}

/// The era of a supported version.
pub fn era(version: &str) -> Option<Era> {
    if version == MODERN {
        Some(Era::Modern)
    } else if LEGACY_VERSIONS.contains(&version) {
        Some(Era::Legacy)
    } else {
        None
    }
}
