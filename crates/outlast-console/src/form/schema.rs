//! One part of a JSON Schema, with its references, `null` types and single-branch combinators
//! resolved.

use outlast::wire::{Raw, RawRef};
use outlast_wire::object;

/// A part of a schema. Annotations of the place where it is used come before those of its target.
#[derive(Clone)]
pub(super) struct SchemaPart<'a> {
    root: RawRef<'a>,
    /// From the place of use to the target of its references.
    layers: Vec<RawRef<'a>>,
    /// The references that lead here, to detect a recursive schema.
    references: Vec<String>,
    /// Whether `null` is allowed.
    pub(super) is_nullable: bool,
    /// Why a form cannot express this part, if it cannot.
    pub(super) unsupported: Option<&'static str>,
}

impl<'a> SchemaPart<'a> {
    pub(super) fn root(schema: RawRef<'a>) -> Self {
        let empty = Self {
            root: schema,
            layers: Vec::new(),
            references: Vec::new(),
            is_nullable: false,
            unsupported: None,
        };
        empty.resolved(schema)
    }

    /// A part below this one.
    pub(super) fn child(&self, schema: RawRef<'a>) -> Self {
        let empty = Self {
            layers: Vec::new(),
            is_nullable: false,
            unsupported: None,
            ..self.clone()
        };
        empty.resolved(schema)
    }

    fn resolved(mut self, schema: RawRef<'a>) -> Self {
        let mut next = Some(schema);
        while let Some(layer) = next.take() {
            if self.layers.len() >= MAX_LAYERS {
                self.unsupported = Some("its schema has too many layers");
                return self;
            }
            if !layer.is_object() {
                self.unsupported = Some("it accepts any value");
                return self;
            }
            self.layers.push(layer);
            let member = |name: &str| object::find(layer, &[name]);
            if let Some(reference) = member("$ref").and_then(RawRef::text) {
                if self.references.iter().any(|seen| *seen == *reference) {
                    self.unsupported = Some("its schema contains itself");
                    return self;
                }
                next = target(self.root, &reference);
                self.references.push(reference.into_owned());
                if next.is_none() {
                    self.unsupported = Some("its schema refers to another document");
                }
            } else if let Some(all) = member("allOf").and_then(object::elements) {
                match all[..] {
                    [one] => next = Some(one),
                    _ => self.unsupported = Some("its schema combines several schemas"),
                }
            } else if let Some(branches) = branches(layer) {
                self.is_nullable |= branches.iter().any(|branch| is_null(*branch));
                let others: Vec<_> = branches
                    .into_iter()
                    .filter(|branch| !is_null(*branch))
                    .collect();
                match others[..] {
                    [one] => next = Some(one),
                    _ if others.iter().all(|one| constant(*one).is_some()) => {}
                    _ => self.unsupported = Some("it accepts values of several types"),
                }
            }
        }
        self
    }

    /// A member of the first layer that has it.
    pub(super) fn member(&self, name: &str) -> Option<RawRef<'a>> {
        let mut layers = self.layers.iter();
        layers.find_map(|layer| object::find(*layer, &[name]))
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        let found = self.member(name).and_then(RawRef::text)?;
        Some(found.into_owned())
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.member(name).and_then(RawRef::number)
    }

    /// The type, if there is one. Sets whether `null` is allowed.
    pub(super) fn kind(&mut self) -> Option<String> {
        let kind = self.member("type")?;
        if let Some(one) = kind.text() {
            return Some(one.into_owned());
        }
        let all = object::elements(kind)?.into_iter().filter_map(RawRef::text);
        let mut all: Vec<_> = all.map(std::borrow::Cow::into_owned).collect();
        let count = all.len();
        all.retain(|kind| kind != "null");
        self.is_nullable |= all.len() < count;
        match &all[..] {
            [one] => Some(one.clone()),
            _ => {
                self.unsupported = Some("it accepts values of several types");
                None
            }
        }
    }

    /// The allowed values with their titles, if they are listed.
    pub(super) fn choices(&mut self) -> Option<Vec<(Raw, Option<String>)>> {
        for layer in self.layers.clone() {
            if let Some(branches) = branches(layer) {
                let branches = branches.into_iter().filter(|branch| !is_null(*branch));
                let found: Option<Vec<_>> = branches.map(constant).collect();
                if let Some(found) = found.filter(|found| !found.is_empty()) {
                    return Some(found);
                }
            }
        }
        if let Some(value) = self.member("const") {
            return Some(vec![(value.to_raw(), None)]);
        }
        let values = object::elements(self.member("enum")?)?;
        let titles = self.member("enumNames").and_then(object::elements);
        let titles = titles.unwrap_or_default();
        let title = |at: usize| titles.get(at)?.text().map(std::borrow::Cow::into_owned);
        self.is_nullable |= values.iter().any(|value| value.is_null());
        let values = values.into_iter().enumerate();
        let values = values.filter(|(_, value)| !value.is_null());
        Some(
            values
                .map(|(at, value)| (value.to_raw(), title(at)))
                .collect(),
        )
    }
}

/// The branches of a choice between schemas.
fn branches(layer: RawRef<'_>) -> Option<Vec<RawRef<'_>>> {
    let member = |name: &str| object::find(layer, &[name]).and_then(object::elements);
    member("oneOf").or_else(|| member("anyOf"))
}

/// Whether a branch allows only `null`.
fn is_null(branch: RawRef<'_>) -> bool {
    let kind = object::find(branch, &["type"]).and_then(RawRef::text);
    kind.as_deref() == Some("null")
}

/// The only value that a branch allows, and its title.
fn constant(branch: RawRef<'_>) -> Option<(Raw, Option<String>)> {
    let value = object::find(branch, &["const"])?;
    let title = object::find(branch, &["title"]).and_then(RawRef::text);
    Some((value.to_raw(), title.map(std::borrow::Cow::into_owned)))
}

/// The part of the document to which a reference such as `#/$defs/Address` leads.
fn target<'a>(root: RawRef<'a>, reference: &str) -> Option<RawRef<'a>> {
    let path = reference.strip_prefix('#')?;
    let mut found = root;
    for token in path.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        found = object::find(found, &[&token])?;
    }
    Some(found)
}

/// How many references and combinators may lead to one part.
const MAX_LAYERS: usize = 16;
