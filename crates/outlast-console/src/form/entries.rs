//! What was typed into a form: texts by the JSON pointer of their field.
//!
//! The pointer of a list has the number of its items, that of an optional group `on` if the group
//! is used. The members of an object that its schema does not name are JSON at the pointer of the
//! object with [`OTHER_MEMBERS`].

use std::collections::BTreeMap;

/// What was typed into a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries(BTreeMap<String, Vec<String>>);

impl Entries {
    /// The text of a field.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.all(pointer).first().map(String::as_str)
    }

    /// All values of a field with several.
    pub fn all(&self, pointer: &str) -> &[String] {
        self.0.get(pointer).map_or(&[], Vec::as_slice)
    }

    /// Sets the text of a field.
    pub fn set(&mut self, pointer: impl Into<String>, text: impl Into<String>) {
        self.0.insert(pointer.into(), vec![text.into()]);
    }

    pub(super) fn set_all(&mut self, pointer: &str, texts: Vec<String>) {
        self.0.insert(pointer.to_owned(), texts);
    }

    /// Adds an item at the end of a list.
    pub fn add_item(&mut self, list: &str) {
        let count = self.count(list);
        if count < MAX_ITEMS {
            self.set(list, (count + 1).to_string());
        }
    }

    /// Removes the item at `pointer` from its list. The later ones move up.
    pub fn remove_item(&mut self, pointer: &str) {
        let Some((list, at)) = pointer.rsplit_once('/') else {
            return;
        };
        let (list, Ok(removed)) = (list.to_owned(), at.parse::<usize>()) else {
            return;
        };
        let count = self.count(&list);
        if removed >= count {
            return;
        }
        let before = format!("{list}/");
        let moved = std::mem::take(&mut self.0)
            .into_iter()
            .filter_map(|(key, texts)| {
                let Some(rest) = key.strip_prefix(&before) else {
                    return Some((key, texts));
                };
                let (at, inside) = rest
                    .split_once('/')
                    .map_or((rest, None), |(at, inside)| (at, Some(inside)));
                match at.parse::<usize>() {
                    Ok(at) if at == removed => None,
                    Ok(at) if at > removed => {
                        let at = at - 1;
                        let inside = inside
                            .map(|inside| format!("/{inside}"))
                            .unwrap_or_default();
                        Some((format!("{before}{at}{inside}"), texts))
                    }
                    _ => Some((key, texts)),
                }
            });
        self.0 = moved.collect();
        self.set(list, (count - 1).to_string());
    }

    /// How many items a list has.
    pub(super) fn count(&self, list: &str) -> usize {
        let count = self.text(list).and_then(|text| text.parse().ok());
        count.unwrap_or(0).min(MAX_ITEMS)
    }
}

impl FromIterator<(String, String)> for Entries {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let mut entries = Self::default();
        for (pointer, text) in pairs {
            // Browsers send line breaks as CR LF.
            let text = text.replace("\r\n", "\n");
            entries.0.entry(pointer).or_default().push(text);
        }
        entries
    }
}

/// The pointer of a member.
pub(super) fn member(of: &str, name: &str) -> String {
    format!("{of}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The pointer of an item.
pub(super) fn item(of: &str, at: usize) -> String {
    format!("{of}/{at}")
}

/// The pointer of the members that the schema does not name. No pointer contains `~` before
/// another character than `0` or `1`.
pub(super) fn others(of: &str) -> String {
    format!("{of}{OTHER_MEMBERS}")
}

/// The end of the pointer of the members that the schema of an object does not name.
pub const OTHER_MEMBERS: &str = "/~other";

/// How many items of a list a form shows.
pub(super) const MAX_ITEMS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> Entries {
        let pairs = pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        pairs.collect()
    }

    #[test]
    fn a_removed_item_leaves_no_gap() {
        let mut list = entries(&[
            ("/a", "3"),
            ("/a/0/x", "zero"),
            ("/a/1/x", "one"),
            ("/a/2/x", "two"),
            ("/ab/1", "other"),
        ]);
        list.remove_item("/a/1");
        assert_eq!(
            list,
            entries(&[
                ("/a", "2"),
                ("/a/0/x", "zero"),
                ("/a/1/x", "two"),
                ("/ab/1", "other")
            ])
        );
        list.remove_item("/a/7");
        list.remove_item("nothing");
        assert_eq!(list.count("/a"), 2);
        list.add_item("/a");
        assert_eq!(list.count("/a"), 3);
    }

    #[test]
    fn a_list_has_a_largest_number_of_items() {
        let mut list = entries(&[("/a", "99999999")]);
        list.add_item("/a");
        assert_eq!(list.count("/a"), MAX_ITEMS);
    }

    #[test]
    fn line_breaks_are_those_that_were_typed() {
        assert_eq!(entries(&[("/a", "x\r\ny")]).text("/a"), Some("x\ny"));
    }
}
