//! The outcome of a task for a page: content blocks, structured content, or an error.
//!
//! Nothing of an outcome is trusted: text is text, a URL is a link only with `http` or `https`, and
//! an image is shown only with a type that cannot contain a script.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use outlast_engine::Ending;
use outlast_engine::engine::EndedTask;
use outlast_engine::store::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::format;
use crate::json_tree;

/// An outcome, opened for a page.
#[derive(Debug, Default)]
pub(crate) struct OutcomeView {
    pub(crate) blocks: Vec<ContentBlock>,
    /// The number of blocks that are not shown.
    pub(crate) blocks_left: usize,
    pub(crate) has_structured: bool,
    pub(crate) error: Option<ErrorView>,
    /// The size of the body.
    pub(crate) size: String,
    /// Whether the body is something else, so that only its tree is shown.
    pub(crate) is_other: bool,
}

/// A JSON-RPC error.
#[derive(Debug)]
pub(crate) struct ErrorView {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) has_data: bool,
}

/// A content block.
#[derive(Debug)]
pub(crate) enum ContentBlock {
    Text {
        text: String,
        is_cut: bool,
    },
    /// The number of the block, and its media type.
    Image {
        at: usize,
        media_type: String,
    },
    Link {
        name: String,
        uri: String,
        is_web: bool,
        description: String,
    },
    File {
        at: usize,
        media_type: String,
        size: String,
    },
    Other {
        at: usize,
        kind: String,
    },
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockBody<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(default)]
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(borrow, default)]
    blob: Option<&'a RawValue>,
}

impl OutcomeView {
    /// Opens an outcome. `None` if there is no body.
    pub(crate) fn of(ended: &EndedTask) -> Option<Self> {
        let body = ended.body.as_ref()?;
        let mut view = Self {
            size: format::bytes(body.size()),
            ..Self::default()
        };
        if let Ending::Error(_) = ended.summary.ending {
            match body.open::<ErrorBody<'_>>() {
                Ok(error) => {
                    view.error = Some(ErrorView {
                        code: error.code.map_or("", |code| code.get()).to_owned(),
                        message: json_tree::cut(&error.message, MAX_TEXT_CHARS).0,
                        has_data: error.data.is_some(),
                    });
                }
                Err(_) => view.is_other = true,
            }
            return Some(view);
        }
        let Ok(opened) = body.open::<Body<'_>>() else {
            view.is_other = true;
            return Some(view);
        };
        let content = opened.content.unwrap_or_default();
        view.blocks_left = content.len().saturating_sub(MAX_BLOCKS);
        let shown = content.iter().take(MAX_BLOCKS).enumerate();
        view.blocks = shown
            .map(|(at, block)| ContentBlock::of(at, block))
            .collect();
        view.has_structured = opened.structured.is_some();
        view.is_other = view.blocks.is_empty() && !view.has_structured;
        Some(view)
    }
}

impl ContentBlock {
    fn of(at: usize, raw: &RawValue) -> Self {
        let other = |kind: &str| Self::Other {
            at,
            kind: kind.to_owned(),
        };
        let Ok(block) = serde_json::from_str::<BlockBody<'_>>(raw.get()) else {
            return other("unknown");
        };
        let media_type = block.mime_type.clone().unwrap_or_default();
        match (block.kind.as_str(), block.text, block.data, block.resource) {
            ("text", Some(text), ..) => Self::text(&text),
            ("image", _, Some(_), _) if is_safe_image(&media_type) => {
                Self::Image { at, media_type }
            }
            ("image" | "audio", _, Some(data), _) => Self::File {
                at,
                media_type,
                size: format::bytes(data.get().len() / 4 * 3),
            },
            ("resource_link", ..) => {
                let uri = block.uri.unwrap_or_default();
                Self::link(block.name.unwrap_or_default(), uri, block.description)
            }
            ("resource", _, _, Some(resource)) => {
                match serde_json::from_str::<Resource<'_>>(resource.get()) {
                    Ok(Resource {
                        text: Some(text), ..
                    }) => Self::text(&text),
                    Ok(Resource {
                        blob: Some(blob),
                        mime_type,
                        ..
                    }) => Self::File {
                        at,
                        media_type: mime_type.unwrap_or_default(),
                        size: format::bytes(blob.get().len() / 4 * 3),
                    },
                    Ok(Resource { uri, .. }) => Self::link(String::new(), uri, None),
                    Err(_) => other("resource"),
                }
            }
            (kind, ..) => other(kind),
        }
    }

    fn text(text: &str) -> Self {
        let (text, is_cut) = json_tree::cut(text, MAX_TEXT_CHARS);
        Self::Text { text, is_cut }
    }

    fn link(name: String, uri: String, description: Option<String>) -> Self {
        let scheme = uri
            .split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        Self::Link {
            name: if name.is_empty() { uri.clone() } else { name },
            is_web: matches!(scheme.as_str(), "http" | "https"),
            uri,
            description: description.unwrap_or_default(),
        }
    }
}

/// The decoded bytes of a content block, and its media type if a page may show it.
pub(crate) fn block_bytes(body: &str, at: usize) -> Option<(Vec<u8>, Option<String>)> {
    let opened: Body<'_> = serde_json::from_str(body).ok()?;
    let raw = *opened.content?.get(at)?;
    let block: BlockBody<'_> = serde_json::from_str(raw.get()).ok()?;
    let (data, media_type) = match (block.data, block.resource) {
        (Some(data), _) => (data, block.mime_type),
        (None, Some(resource)) => {
            let resource: Resource<'_> = serde_json::from_str(resource.get()).ok()?;
            (resource.blob?, resource.mime_type)
        }
        (None, None) => return None,
    };
    let text: String = serde_json::from_str(data.get()).ok()?;
    let bytes = BASE64_STANDARD.decode(text.as_bytes()).ok()?;
    Some((bytes, media_type.filter(|name| is_safe_image(name))))
}

/// Whether an image of that type contains no script.
fn is_safe_image(media_type: &str) -> bool {
    matches!(
        media_type,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    )
}

/// Whether a status has an outcome to show.
pub(crate) fn has_outcome(status: Status) -> bool {
    matches!(status, Status::Completed | Status::Failed)
}

const MAX_BLOCKS: usize = 100;

/// The rest of a longer text can be downloaded.
const MAX_TEXT_CHARS: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_without_scripts_are_shown() {
        let body = r#"{"content":[{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},
            {"type":"image","mimeType":"image/png","data":"iVBORw=="}]}"#;
        let opened: Body<'_> = serde_json::from_str(body).unwrap();
        let content = opened.content.unwrap();
        assert!(matches!(
            ContentBlock::of(0, content[0]),
            ContentBlock::File { .. }
        ));
        assert!(matches!(
            ContentBlock::of(1, content[1]),
            ContentBlock::Image { at: 1, .. }
        ));
        assert_eq!(
            block_bytes(body, 0).unwrap().1,
            None,
            "it is downloaded, not shown"
        );
        assert_eq!(
            block_bytes(body, 1).unwrap().1.as_deref(),
            Some("image/png")
        );
        assert!(block_bytes(body, 2).is_none());
    }

    #[test]
    fn a_link_with_a_script_is_text() {
        let link = ContentBlock::link("x".into(), "JavaScript:alert(1)".into(), None);
        assert!(matches!(link, ContentBlock::Link { is_web: false, .. }));
        let link = ContentBlock::link("x".into(), "HTTPS://example.com".into(), None);
        assert!(matches!(link, ContentBlock::Link { is_web: true, .. }));
    }
}
