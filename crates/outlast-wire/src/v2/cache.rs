//! Cache hints on list and read results (V2-CACHE-1). Their `ttlMs` is not the TTL of a task
//! (V2-GET-14).

use crate::neutral::MAX_SAFE_INTEGER;
use crate::object::pick;
use crate::raw::RawRef;

/// How long a result may be cached, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    /// How long it is fresh, in milliseconds.
    pub ttl_ms: u64,
    /// Who may share it.
    pub scope: CacheScope,
}

/// Who may share a cached result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// All callers.
    Public,
    /// Only callers with the same authorization context.
    Private,
}

impl CacheHint {
    /// Reads the hint of a result. Absent or invalid values mean not fresh and not shared
    /// (V2-CACHE-4).
    pub fn read(result: RawRef<'_>) -> Self {
        let [ttl, scope] = pick(result, ["ttlMs", "cacheScope"]).unwrap_or_default();
        Self::of(ttl, scope)
    }

    /// The hint of `ttlMs` and `cacheScope`.
    pub(super) fn of(ttl: Option<RawRef<'_>>, scope: Option<RawRef<'_>>) -> Self {
        let public = scope.and_then(RawRef::text).as_deref() == Some("public");
        Self {
            ttl_ms: ttl.and_then(crate::peer::millis).unwrap_or_default(),
            scope: if public {
                CacheScope::Public
            } else {
                CacheScope::Private
            },
        }
    }

    /// `ttlMs` as a JSON number.
    pub(super) fn written_ttl(self) -> String {
        self.ttl_ms.min(MAX_SAFE_INTEGER).to_string()
    }
}

impl CacheScope {
    /// The word of the specification.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::ResultMembers;

    #[test]
    fn an_invalid_cache_hint_is_stale_and_private() {
        let hint = CacheHint {
            ttl_ms: 5,
            scope: CacheScope::Public,
        };
        let finish = ResultMembers {
            cache: Some(hint),
            ..ResultMembers::default()
        };
        let result = finish.apply(RawRef::parse(r#"{"tools":[]}"#).unwrap());
        let result = result.unwrap();
        assert_eq!(CacheHint::read(result.borrow()), hint);
        let odd = RawRef::parse(r#"{"ttlMs":-5,"cacheScope":"mine"}"#).unwrap();
        let stale = CacheHint {
            ttl_ms: 0,
            scope: CacheScope::Private,
        };
        assert_eq!(CacheHint::read(odd), stale);
    }
}
