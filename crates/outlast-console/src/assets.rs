//! The style sheet and the scripts. Their URLs contain a version, so that browsers cache them until
//! they change.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// An embedded file.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $content_type:expr,)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            text: include_str!(concat!("../assets/", $name)),
        }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "api.js": SCRIPT,
    "badges.js": SCRIPT,
    "connections.js": SCRIPT,
    "console.css": STYLE,
    "console.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "keys.js": SCRIPT,
    "drafts.js": SCRIPT,
    "morph.js": SCRIPT,
    "requests.js": SCRIPT,
    "stream.js": SCRIPT,
    "task.js": SCRIPT,
    "task-status.js": SCRIPT,
    "tasks.js": SCRIPT,
    "theme.js": SCRIPT,
    "time.js": SCRIPT,
    "tree.js": SCRIPT,
    "tools.js": SCRIPT,
    "traffic.js": SCRIPT,
    "workspace.css": STYLE,
};

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A digest of all assets. One version for all, because modules import each other by name.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in ASSETS {
        digest.update(asset.name);
        digest.update(asset.text);
    }
    let digest = digest.finalize();
    digest
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
});

/// `GET /assets/VERSION/NAME`. Needs no token: the files contain no data.
pub(crate) async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // A page of an earlier version gets the current file, and must not cache it under that URL.
    let caching = if version == *VERSION {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(asset.content_type),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
    ];
    (headers, asset.text).into_response()
}
