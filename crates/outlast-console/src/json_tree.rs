//! A JSON value as a tree whose children are rendered when they are opened.
//!
//! Values are never parsed into numbers, so that large integers stay exact. Only the members of the
//! opened value are read; a value of 16 MiB costs one scan.

use std::borrow::Cow;
use std::fmt;

use askama::Template;
use outlast_wire::Raw;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::format;

/// The children of one value.
#[derive(Debug, Template)]
#[template(path = "json-children.html")]
pub(crate) struct Children {
    /// The URL of a child without its path.
    pub(crate) url: String,
    pub(crate) nodes: Vec<TreeNode>,
    /// The path of this value, for the next page.
    pub(crate) path: String,
    /// Where the next page starts, if there is one.
    pub(crate) next: Option<usize>,
    pub(crate) left: usize,
}

/// Rendered by its own template, which escapes.
impl askama::filters::HtmlSafe for Children {}

/// A member or an element.
#[derive(Debug)]
pub(crate) struct TreeNode {
    /// Its name or its number.
    pub(crate) key: String,
    /// Its JSON pointer from the root.
    pub(crate) path: String,
    pub(crate) kind: ValueKind,
    /// A leaf as JSON text, cut; else a description of the size.
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Object,
    Array,
    Text,
    Number,
    Other,
}

impl ValueKind {
    fn of(value: &str) -> Self {
        match value.as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b'-' | b'0'..=b'9') => Self::Number,
            _ => Self::Other,
        }
    }

    /// The class for the style.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "text",
            Self::Number => "number",
            Self::Other => "other",
        }
    }

    /// Whether it has children.
    pub(crate) fn is_branch(self) -> bool {
        matches!(self, Self::Object | Self::Array)
    }
}

/// The children of the value at `path` from `offset` on; `None` if there is no such value.
pub(crate) fn children(root: &Raw, url: String, path: &str, offset: usize) -> Option<Children> {
    let value = find(root.as_str(), path)?;
    let mut nodes = Vec::new();
    let mut total = 0;
    each(value, |key, child| {
        if total >= offset && nodes.len() < PAGE_SIZE {
            nodes.push(TreeNode::of(path, key, child));
        }
        total += 1;
        true
    })?;
    let shown = offset + nodes.len();
    Some(Children {
        url,
        nodes,
        path: path.to_owned(),
        next: (shown < total).then_some(shown),
        left: total.saturating_sub(shown),
    })
}

/// The text of the value at a JSON pointer.
pub(crate) fn find<'a>(root: &'a str, path: &str) -> Option<&'a str> {
    let mut value = root;
    let path = path.strip_prefix('/');
    for part in path
        .into_iter()
        .flat_map(|path| path.split('/'))
        .take(MAX_DEPTH)
    {
        let wanted = part.replace("~1", "/").replace("~0", "~");
        let mut found = None;
        each(value, |key, child| {
            if key == wanted {
                found = Some(child);
            }
            found.is_none()
        })?;
        value = found?;
    }
    Some(value)
}

impl TreeNode {
    fn of(parent: &str, key: &str, value: &str) -> Self {
        let kind = ValueKind::of(value);
        let (text, is_cut) = if kind.is_branch() {
            (format::bytes(value.len()), false)
        } else {
            cut(value, MAX_LEAF_CHARS)
        };
        let key_path = key.replace('~', "~0").replace('/', "~1");
        Self {
            key: key.to_owned(),
            path: format!("{parent}/{key_path}"),
            kind,
            text,
            is_cut,
        }
    }
}

/// The first characters of a text.
pub(crate) fn cut(text: &str, max_chars: usize) -> (String, bool) {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => (text[..at].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

/// Calls `each` with the key and the text of every child, until it returns `false`. `None` if the
/// value has no children.
fn each<'a>(value: &'a str, mut each: impl FnMut(&str, &'a str) -> bool) -> Option<()> {
    let mut reader = serde_json::Deserializer::from_str(value);
    let visitor = Each(&mut each);
    match ValueKind::of(value) {
        ValueKind::Object => reader.deserialize_map(visitor).ok(),
        ValueKind::Array => reader.deserialize_seq(visitor).ok(),
        ValueKind::Text | ValueKind::Number | ValueKind::Other => None,
    }
}

struct Each<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str, &'de str) -> bool> Visitor<'de> for Each<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut goes_on = true;
        while let Some((key, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            goes_on = goes_on && (self.0)(&key, value.get());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (mut goes_on, mut at) = (true, 0_usize);
        while let Some(value) = seq.next_element::<&'de RawValue>()? {
            goes_on = goes_on && (self.0)(&at.to_string(), value.get());
            at += 1;
        }
        Ok(())
    }
}

/// The number of children that are rendered at once.
const PAGE_SIZE: usize = 200;

const MAX_LEAF_CHARS: usize = 2_000;

const MAX_DEPTH: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn large_integers_stay_exact() {
        let root = raw(r#"{"a":{"id":12345678901234567890123}}"#);
        let found = children(&root, String::new(), "/a", 0).unwrap();
        assert_eq!(found.nodes[0].text, "12345678901234567890123");
        assert_eq!(found.nodes[0].kind, ValueKind::Number);
    }

    #[test]
    fn keys_with_slashes_are_found_by_their_pointer() {
        let root = raw(r#"{"a/b~c":[1,{"x":"y"}]}"#);
        let found = children(&root, String::new(), "", 0).unwrap();
        assert_eq!(found.nodes[0].path, "/a~1b~0c");
        let found = children(&root, String::new(), "/a~1b~0c/1", 0).unwrap();
        assert_eq!(found.nodes[0].text, "\"y\"");
        assert!(
            children(&root, String::new(), "/a~1b~0c/0", 0).is_none(),
            "a leaf"
        );
        assert!(children(&root, String::new(), "/other", 0).is_none());
    }

    #[test]
    fn children_come_in_pages() {
        let items: Vec<_> = (0..450).collect();
        let root = raw(&serde_json::to_string(&items).unwrap());
        let first = children(&root, String::new(), "", 0).unwrap();
        assert_eq!(
            (first.nodes.len(), first.next, first.left),
            (200, Some(200), 250)
        );
        let last = children(&root, String::new(), "", 400).unwrap();
        assert_eq!((last.nodes.len(), last.next), (50, None));
        assert_eq!(last.nodes[49].key, "449");
    }

    #[test]
    fn a_leaf_is_cut_between_characters() {
        assert_eq!(cut("äöü", 2), ("äö".to_owned(), true));
        assert_eq!(cut("äöü", 3), ("äöü".to_owned(), false));
    }
}
