//! Members of an unparsed object: looked up, set and removed in its text.
//!
//! Everything except the named member keeps its bytes: order, spelling of numbers, white space,
//! unknown members. Names are compared unescaped (`"_m\u0065ta"` is `_meta`). Of duplicates the
//! last one counts, as in common parsers, and an edit leaves one.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::skim::Skimmer;
use crate::json::write::quote;
use crate::meta::META;
use crate::raw::{Raw, RawRef};

/// The value is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON object")]
pub struct NotAnObject;

/// One member of an unparsed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The unescaped name.
    pub name: Cow<'a, str>,
    /// The value, not parsed.
    pub value: RawRef<'a>,
}

/// The edit of one part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Keep it unchanged.
    Keep,
    /// Remove it.
    Drop,
    /// Replace it.
    Replace(Raw),
}

/// Applies `edit` to every member of `object`. Returns `None` if all are unchanged.
pub fn edited(
    object: RawRef<'_>,
    mut edit: impl FnMut(&str, RawRef<'_>) -> Edit,
) -> Result<Option<Raw>, NotAnObject> {
    let text = object.as_str();
    let found = member_spans(text)?;
    let judge =
        |place: &MemberSpan<'_>| edit(&place.name, RawRef::scanned(&text[place.value.clone()]));
    let edits: Vec<_> = found.iter().map(judge).collect();
    if edits.iter().all(|edit| *edit == Edit::Keep) {
        return Ok(None);
    }
    // There is a member, because otherwise nothing would have been edited.
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return Ok(None);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first.key.start]);
    let mut before = None;
    for (at, (place, edit)) in found.iter().zip(&edits).enumerate() {
        if *edit == Edit::Drop {
            continue;
        }
        if before.is_some() {
            out.push_str(&text[found[at - 1].value.end..place.key.start]);
        }
        before = Some(at);
        out.push_str(&text[place.key.start..place.value.start]);
        match edit {
            Edit::Replace(new) => out.push_str(new.as_str()),
            _ => out.push_str(&text[place.value.clone()]),
        }
    }
    out.push_str(&text[last.value.end..]);
    Ok(Some(RawRef::scanned(&out).to_raw()))
}

/// Changes of an object and of its `_meta`, made together.
#[derive(Clone, Debug, Default)]
pub struct Rewrite<'a> {
    /// Members to remove.
    pub drop: &'a [&'a str],
    /// Keys of `_meta` to remove. `_meta` is removed if it would be empty.
    pub drop_meta: &'a [&'a str],
    /// Members to set.
    pub set: Vec<(&'a str, RawRef<'a>)>,
    /// Keys of `_meta` to set.
    pub set_meta: Vec<(&'a str, RawRef<'a>)>,
}

impl Rewrite<'_> {
    /// Returns `object` with all changes, in one copy. A `_meta` that is not an object is replaced
    /// if a key is set in it.
    pub fn apply(&self, object: RawRef<'_>) -> Result<Raw, NotAnObject> {
        let text = object.as_str();
        let found = member_spans(text)?;
        let old = found.iter().rev().find(|place| place.name == META);
        let old = old.map(|place| &text[place.value.clone()]);
        let old = old.filter(|old| old.starts_with('{'));
        let mut set: Vec<_> = self
            .set
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let new = match old {
            None if self.set_meta.is_empty() => None,
            old => {
                let old = old.unwrap_or("{}");
                let keys = member_spans(old)?;
                let set = self.set_meta.iter();
                let set: Vec<_> = set.map(|(key, value)| (*key, value.as_str())).collect();
                Some(merged(old, &keys, self.drop_meta, &set))
            }
        };
        let is_empty = |meta: &String| member_spans(meta).is_ok_and(|keys| keys.is_empty());
        let emptied = !self.drop_meta.is_empty() && new.as_ref().is_some_and(is_empty);
        let mut drop = self.drop.to_vec();
        match &new {
            Some(_) if emptied => drop.push(META),
            Some(new) => set.push((META, new)),
            None => {}
        }
        let new = merged(text, &found, &drop, &set);
        Ok(RawRef::scanned(&new).to_raw())
    }
}

/// Returns every member of `object` in the order of the text, duplicates included.
pub fn members(object: RawRef<'_>) -> Result<Vec<Member<'_>>, NotAnObject> {
    let text = object.as_str();
    let mut found = Vec::new();
    walk(text, |name, _, value| {
        let value = RawRef::scanned(&text[value]);
        found.push(Member { name, value });
    })?;
    Ok(found)
}

/// Returns the values of the named members, in the order of `names`.
pub fn pick<'a, const N: usize>(
    object: RawRef<'a>,
    names: [&str; N],
) -> Result<[Option<RawRef<'a>>; N], NotAnObject> {
    let text = object.as_str();
    let mut found = [None; N];
    walk(text, |name, _, value| {
        if let Some(at) = names.iter().position(|requested| *requested == name) {
            found[at] = Some(RawRef::scanned(&text[value]));
        }
    })?;
    Ok(found)
}

/// Returns the value at `path`, if every step of it is an object.
pub fn find<'a>(object: RawRef<'a>, path: &[&str]) -> Option<RawRef<'a>> {
    path.iter().try_fold(object, |inside, name| {
        let [value] = pick(inside, [*name]).ok()?;
        value
    })
}

/// Returns `object` with the value at `path` set to `value`.
///
/// A step that is absent or not an object becomes an object.
pub fn set(object: RawRef<'_>, path: &[&str], value: RawRef<'_>) -> Result<Raw, NotAnObject> {
    let text = set_text(object.as_str(), path, value.as_str())?;
    Ok(RawRef::scanned(&text).to_raw())
}

/// Returns `object` without the member at `path`, and without steps that become empty.
pub fn remove(object: RawRef<'_>, path: &[&str]) -> Result<Raw, NotAnObject> {
    let text = without(object, path)?;
    Ok(RawRef::scanned(&text).to_raw())
}

/// The text of [`remove`], borrowed if nothing changes.
pub(crate) fn without<'a>(object: RawRef<'a>, path: &[&str]) -> Result<Cow<'a, str>, NotAnObject> {
    remove_text(object.as_str(), path)
}

/// Returns the elements of an unparsed array, or `None` if the value is not an array.
pub fn elements(array: RawRef<'_>) -> Option<Vec<RawRef<'_>>> {
    let text = array.as_str();
    let mut skimmer = Skimmer::new(text);
    let mut found = Vec::new();
    skimmer.expect(b'[')?;
    if skimmer.peek()? == b']' {
        return Some(found);
    }
    loop {
        found.push(RawRef::scanned(&text[skimmer.value()?]));
        if skimmer.peek()? == b']' {
            return Some(found);
        }
        skimmer.expect(b',')?;
    }
}

fn set_text(object: &str, path: &[&str], value: &str) -> Result<String, NotAnObject> {
    let [name, inner @ ..] = path else {
        return Ok(value.to_owned());
    };
    let found = member_spans(object)?;
    let present = found.iter().rev().find(|place| place.name == *name);
    let old = present.map(|place| &object[place.value.clone()]);
    let new = match (old, inner) {
        (_, []) => value.to_owned(),
        (Some(old), _) if old.starts_with('{') => set_text(old, inner, value)?,
        _ => set_text("{}", inner, value)?,
    };
    Ok(splice(object, &found, name, Some(&new)))
}

fn remove_text<'a>(object: &'a str, path: &[&str]) -> Result<Cow<'a, str>, NotAnObject> {
    let [name, inner @ ..] = path else {
        return Ok(Cow::Borrowed(object));
    };
    let found = member_spans(object)?;
    let Some(present) = found.iter().rev().find(|place| place.name == *name) else {
        return Ok(Cow::Borrowed(object));
    };
    if inner.is_empty() {
        return Ok(Cow::Owned(splice(object, &found, name, None)));
    }
    let old = &object[present.value.clone()];
    let once = found.iter().filter(|place| place.name == *name).count() == 1;
    let kept = match remove_text(old, inner) {
        Ok(Cow::Owned(new)) => (!member_spans(&new)?.is_empty()).then_some(new),
        _ if once => return Ok(Cow::Borrowed(object)),
        // An earlier duplicate may contain the member too, and some parsers use the first one.
        _ => Some(old.to_owned()),
    };
    Ok(Cow::Owned(splice(object, &found, name, kept.as_deref())))
}

/// Returns `object` in which `name` occurs once with the value `new`, or not at all.
fn splice(object: &str, found: &[MemberSpan<'_>], name: &str, new: Option<&str>) -> String {
    let last = found.iter().rposition(|place| place.name == name);
    let mut out =
        String::with_capacity(object.len() + new.map_or(0, |new| new.len() + name.len() + 4));
    let mut empty = true;
    // Everything up to the first member, or up to and including the brace of an empty object.
    let brace = object.find('{').map_or(0, |at| at + 1);
    out.push_str(&object[..found.first().map_or(brace, |place| place.key.start)]);
    for (at, place) in found.iter().enumerate() {
        let named = place.name == name;
        if named && (new.is_none() || last != Some(at)) {
            continue;
        }
        if !empty {
            out.push_str(&object[found[at - 1].value.end..place.key.start]);
        }
        empty = false;
        match new {
            Some(new) if named => {
                out.push_str(&object[place.key.start..place.value.start]);
                out.push_str(new);
            }
            _ => out.push_str(&object[place.key.start..place.value.end]),
        }
    }
    if let (None, Some(new)) = (last, new) {
        if !empty {
            out.push(',');
        }
        quote(&mut out, name);
        out.push(':');
        out.push_str(new);
    }
    out.push_str(&object[found.last().map_or(brace, |place| place.value.end)..]);
    out
}

/// Returns `object` without the members in `drop`, and with each member in `set` exactly once.
fn merged(object: &str, found: &[MemberSpan<'_>], drop: &[&str], set: &[(&str, &str)]) -> String {
    let more: usize = set
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut out = String::with_capacity(object.len() + more);
    let mut empty = true;
    let brace = object.find('{').map_or(0, |at| at + 1);
    out.push_str(&object[..found.first().map_or(brace, |place| place.key.start)]);
    let mut done = vec![false; set.len()];
    for (at, place) in found.iter().enumerate() {
        if drop.contains(&&*place.name) {
            continue;
        }
        let new = set.iter().position(|(name, _)| *name == place.name);
        // Of duplicates the last one is replaced, and the others are removed.
        if new.is_some() && found[at + 1..].iter().any(|later| later.name == place.name) {
            continue;
        }
        if !empty {
            out.push_str(&object[found[at - 1].value.end..place.key.start]);
        }
        empty = false;
        match new {
            Some(new) => {
                done[new] = true;
                out.push_str(&object[place.key.start..place.value.start]);
                out.push_str(set[new].1);
            }
            None => out.push_str(&object[place.key.start..place.value.end]),
        }
    }
    for ((name, value), _) in set.iter().zip(done).filter(|(_, done)| !done) {
        if !empty {
            out.push(',');
        }
        empty = false;
        quote(&mut out, name);
        out.push(':');
        out.push_str(value);
    }
    out.push_str(&object[found.last().map_or(brace, |place| place.value.end)..]);
    out
}

/// The position of a member in the text of its object.
struct MemberSpan<'a> {
    name: Cow<'a, str>,
    key: Range<usize>,
    value: Range<usize>,
}

fn member_spans(object: &str) -> Result<Vec<MemberSpan<'_>>, NotAnObject> {
    let mut found = Vec::new();
    walk(object, |name, key, value| {
        found.push(MemberSpan { name, key, value });
    })?;
    Ok(found)
}

/// Calls `visit` with name, key and value of every member.
fn walk<'a>(
    object: &'a str,
    visit: impl FnMut(Cow<'a, str>, Range<usize>, Range<usize>),
) -> Result<(), NotAnObject> {
    visit_members(object, visit).ok_or(NotAnObject)
}

fn visit_members<'a>(
    object: &'a str,
    mut visit: impl FnMut(Cow<'a, str>, Range<usize>, Range<usize>),
) -> Option<()> {
    let mut skimmer = Skimmer::new(object);
    skimmer.expect(b'{')?;
    if skimmer.peek()? == b'}' {
        return Some(());
    }
    loop {
        let key = skimmer.string()?;
        skimmer.expect(b':')?;
        let value = skimmer.value()?;
        visit(key.unescaped(object), key.place, value);
        if skimmer.peek()? == b'}' {
            return Some(());
        }
        skimmer.expect(b',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_copy_makes_all_changes_and_keeps_other_bytes() {
        let rewrite = Rewrite {
            drop: &["task"],
            drop_meta: &["gone"],
            set: vec![("name", RawRef::scanned("\"x\""))],
            set_meta: vec![("token", RawRef::scanned("7"))],
        };
        for (before, after) in [
            ("{}", r#"{"name":"x","_meta":{"token":7}}"#),
            (
                r#"{ "name": "old", "a" : 1.50, "task":{}, "_meta":{"gone":1,"k": 1e1} }"#,
                r#"{ "name": "x", "a" : 1.50, "_meta":{"k": 1e1,"token":7} }"#,
            ),
            (
                r#"{"name":1,"_meta":7,"name":2}"#,
                r#"{"_meta":{"token":7},"name":"x"}"#,
            ),
        ] {
            let new = rewrite.apply(RawRef::parse(before).unwrap()).unwrap();
            assert_eq!(new.as_str(), after);
        }
        let strip = Rewrite {
            drop_meta: &["gone"],
            ..Rewrite::default()
        };
        for (before, after) in [
            (r#"{"a":1,"_meta":{"gone":1}}"#, r#"{"a":1}"#),
            (r#"{"_meta":7}"#, r#"{"_meta":7}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            let new = strip.apply(RawRef::parse(before).unwrap()).unwrap();
            assert_eq!(new.as_str(), after);
        }
        let odd = RawRef::parse("[]").unwrap();
        assert_eq!(rewrite.apply(odd), Err(NotAnObject));
    }

    use crate::json::tests::{any_json, any_object};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn an_edit_changes_no_other_byte() {
        let object = r#"{ "b" : 1.0e2 , "x":{"k" :null},"a":"\u0041" }"#;
        for (path, value, expected) in [
            (&["x"][..], "7", r#"{ "b" : 1.0e2 , "x":7,"a":"\u0041" }"#),
            (
                &["x", "k"],
                "7",
                r#"{ "b" : 1.0e2 , "x":{"k" :7},"a":"\u0041" }"#,
            ),
            (
                &["x", "y"],
                "7",
                r#"{ "b" : 1.0e2 , "x":{"k" :null,"y":7},"a":"\u0041" }"#,
            ),
            (
                &["a", "y"],
                "7",
                r#"{ "b" : 1.0e2 , "x":{"k" :null},"a":{"y":7} }"#,
            ),
            (
                &["c"],
                "[]",
                r#"{ "b" : 1.0e2 , "x":{"k" :null},"a":"\u0041","c":[] }"#,
            ),
        ] {
            assert_eq!(
                set(raw(object), path, raw(value)).unwrap().as_str(),
                expected
            );
        }
        for (path, expected) in [
            (&["b"][..], r#"{ "x":{"k" :null},"a":"\u0041" }"#),
            (&["x"], r#"{ "b" : 1.0e2,"a":"\u0041" }"#),
            (&["a"], r#"{ "b" : 1.0e2 , "x":{"k" :null} }"#),
            (&["x", "k"], r#"{ "b" : 1.0e2,"a":"\u0041" }"#),
            (&["x", "z"], object),
            (&["a", "z"], object),
        ] {
            assert_eq!(remove(raw(object), path).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn names_are_compared_by_meaning_and_the_last_duplicate_counts() {
        let object = r#"{"_m\u0065ta":{"k":1},"a":2,"_meta":{"k":3}}"#;
        assert_eq!(find(raw(object), &["_meta", "k"]), Some(raw("3")));
        let edited = set(raw(object), &["_meta", "k"], raw("4")).unwrap();
        assert_eq!(edited.as_str(), r#"{"a":2,"_meta":{"k":4}}"#);
        assert_eq!(
            remove(raw(object), &["_meta", "k"]).unwrap().as_str(),
            r#"{"a":2}"#
        );
        let hidden = r#"{"_meta":{"k":1},"_meta":{}}"#;
        assert_eq!(
            remove(raw(hidden), &["_meta", "k"]).unwrap().as_str(),
            r#"{"_meta":{}}"#
        );
    }

    #[test]
    fn only_an_object_is_edited() {
        for text in ["[]", "null", "1", "\"{}\""] {
            assert_eq!(set(raw(text), &["a"], raw("1")), Err(NotAnObject));
            assert_eq!(remove(raw(text), &["a"]), Err(NotAnObject));
        }
        assert_eq!(elements(raw("{}")), None);
        assert_eq!(elements(raw(" [ ] ")), Some(vec![]));
        assert_eq!(elements(raw("[1, [2] ]")), Some(vec![raw("1"), raw("[2]")]));
    }

    proptest! {
        #[test]
        fn adding_and_removing_a_member_gives_the_same_bytes(
            mut object in any_object(),
            pretty: bool,
        ) {
            object.as_object_mut().unwrap().remove("new");
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let with = set(raw(&text), &["new", "deep"], raw("[1, 2]")).unwrap();
            prop_assert_eq!(find(with.borrow(), &["new", "deep"]), Some(raw("[1, 2]")));
            let without = remove(with.borrow(), &["new", "deep"]).unwrap();
            prop_assert_eq!(without.as_str(), &text);
        }

        #[test]
        fn setting_a_member_equals_setting_it_in_a_tree(object in any_object(), name: String, value in any_json()) {
            let text = object.to_string();
            let edited = set(raw(&text), &[&name], raw(&value.to_string())).unwrap();
            let mut expected = object.clone();
            expected[&name] = value;
            prop_assert_eq!(edited.open::<Value>().unwrap(), expected);
            let removed = remove(raw(&text), &[&name]).unwrap();
            let mut expected = object;
            expected.as_object_mut().unwrap().remove(&name);
            prop_assert_eq!(removed.open::<Value>().unwrap(), expected);
        }
    }

    #[test]
    fn editing_a_member_keeps_the_bytes_of_the_others() {
        let object = raw(r#"{ "a" : 1.0 , "b":2, "c":{ } }"#);
        let new = || Edit::Replace(raw("[7]").to_raw());
        for (of, expected) in [
            (["-", "", ""], r#"{ "b":2, "c":{ } }"#),
            (["", "-", ""], r#"{ "a" : 1.0, "c":{ } }"#),
            (["", "", "-"], r#"{ "a" : 1.0 , "b":2 }"#),
            (["-", "-", "-"], "{  }"),
            (["-", "", "+"], r#"{ "b":2, "c":[7] }"#),
        ] {
            let edited = edited(object, |name, _| {
                match of[usize::from(name.as_bytes()[0] - b'a')] {
                    "-" => Edit::Drop,
                    "+" => new(),
                    _ => Edit::Keep,
                }
            });
            assert_eq!(edited.unwrap().unwrap().as_str(), expected);
        }
        assert_eq!(edited(object, |_, _| Edit::Keep), Ok(None));
        assert_eq!(edited(raw("{}"), |_, _| Edit::Drop), Ok(None));
        assert_eq!(edited(raw("[]"), |_, _| Edit::Drop), Err(NotAnObject));
    }

    #[test]
    fn members_come_in_the_order_of_the_text() {
        let found = members(raw(r#"{"b":1,"a":{"b":2}}"#)).unwrap();
        let names: Vec<_> = found.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(found[1].value.open::<Value>().unwrap(), json!({"b": 2}));
    }

    fn raw(text: &str) -> RawRef<'_> {
        RawRef::parse(text).unwrap()
    }
}
