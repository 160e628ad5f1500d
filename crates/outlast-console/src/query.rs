//! The search language: `status:failed tool:render server:files owner:me age:<1h text`.
//!
//! A qualifier is a name, a colon and a value; a value with spaces is in quotes. Several statuses
//! are separated by commas. Every other word is a text that the id, the tool or the status message
//! contains.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_engine::store::{Filter, Status, Statuses};
use outlast_wire::Timestamp;

use crate::access::Viewer;
use crate::console::App;
use crate::task_row::{Origin, TaskRow};

/// A search that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// The filter for the store, restricted to what the viewer may see.
    pub(crate) filter: Filter,
    /// What could not be read, and how to write it.
    pub(crate) problems: Vec<String>,
    /// Whether nothing can match.
    pub(crate) is_impossible: bool,
    /// The origins; all if empty.
    origins: Vec<Origin>,
    /// The name of the server as it was typed.
    server: Option<Arc<str>>,
    /// Whether tasks of the viewer match.
    includes_own: bool,
}

impl Query {
    /// Reads a search of `viewer`.
    pub(crate) fn of(app: &App, text: &str, viewer: &Viewer) -> Self {
        let mut query = Self::read(text, viewer, app.engine().now());
        if let (Some(name), Some(upstreams)) = (&query.filter.runner, app.upstreams()) {
            let all = upstreams.all();
            let mut all = all.iter().map(|served| &served.upstream);
            let found = all.find(|upstream| upstream.name() == name);
            // Tasks of a server that is no longer configured are found, too.
            let runner = found.map_or_else(
                || format!("{UPSTREAM_KIND}{name}").into(),
                |upstream| upstream.runner().clone(),
            );
            query.filter.runner = Some(runner);
        }
        query
    }

    /// Reads a search of `viewer` at `now`.
    fn read(text: &str, viewer: &Viewer, now: Timestamp) -> Self {
        let mut query = Self::default();
        let mut statuses = Vec::new();
        let mut words = Vec::new();
        for word in words_of(text) {
            let Some((name, value)) = word.qualifier() else {
                words.push(word.text);
                continue;
            };
            match name {
                "status" => query.read_statuses(&value, &mut statuses),
                "tool" => query.filter.tool = Some(value),
                "server" => {
                    query.server = Some(value.clone());
                    query.filter.runner = Some(value);
                }
                "origin" => query.read_origins(&value),
                "owner" => query.read_owner(&value, viewer),
                "age" => query.read_age(&value, now),
                _ => query.problems.push(format!(
                    "there is no qualifier `{name}:`; use status, origin, tool, server, \
                     owner or age"
                )),
            }
        }
        query.filter.statuses = statuses.into_iter().collect::<Statuses>();
        let words = words.join(" ");
        if !words.is_empty() {
            query.filter.text = Some(words.into());
        }
        let asked = query.filter.owner.as_ref();
        query.includes_own = asked.is_none_or(|owner| viewer.identity_owner() == Some(owner));
        if let Some(owner) = viewer.owner() {
            if query
                .filter
                .owner
                .as_ref()
                .is_some_and(|asked| asked != owner)
            {
                query.is_impossible = true;
                query
                    .problems
                    .push("your token shows your own tasks only".to_owned());
            }
            query.filter.owner = Some(owner.clone());
        }
        query
    }

    fn read_statuses(&mut self, value: &str, statuses: &mut Vec<Status>) {
        for word in value.split(',').filter(|word| !word.is_empty()) {
            match word {
                "open" => statuses.extend([Status::Working, Status::InputRequired]),
                "ended" => {
                    statuses.extend([Status::Completed, Status::Failed, Status::Cancelled]);
                }
                word => match Status::parse(word) {
                    Some(status) => statuses.push(status),
                    None => self.problems.push(format!(
                        "`{word}` is no status; use working, input_required, completed, failed, \
                         cancelled, open or ended"
                    )),
                },
            }
        }
    }

    fn read_origins(&mut self, value: &str) {
        for word in value.split(',').filter(|word| !word.is_empty()) {
            match Origin::ALL.into_iter().find(|origin| origin.word() == word) {
                Some(origin) => self.origins.push(origin),
                None => self.problems.push(format!(
                    "`{word}` is no origin; use store, requested or hosted"
                )),
            }
        }
    }

    /// Whether tasks of this origin match.
    pub(crate) fn shows(&self, origin: Origin) -> bool {
        self.origins.is_empty() || self.origins.contains(&origin)
    }

    /// Whether a task that is not in the store matches.
    pub(crate) fn matches_row(&self, row: &TaskRow) -> bool {
        let filter = &self.filter;
        let named = |wanted: &Option<Arc<str>>, name: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == name)
        };
        let contains = |text: &str, part: &str| {
            text.to_ascii_lowercase()
                .contains(&part.to_ascii_lowercase())
        };
        let texts = [row.tool.as_deref(), row.status_message.as_deref()];
        self.shows(row.origin)
            && self.includes_own
            && !self.is_impossible
            && (filter.statuses == Statuses::default() || filter.statuses.contains(row.status))
            && filter
                .created_from
                .is_none_or(|from| row.created_at >= from)
            && named(&self.server, Some(&row.server))
            && named(&filter.tool, row.tool.as_deref())
            && filter.text.as_deref().is_none_or(|text| {
                row.task_id.starts_with(text)
                    || texts.iter().flatten().any(|found| contains(found, text))
            })
    }

    fn read_owner(&mut self, value: &str, viewer: &Viewer) {
        let owner = match value {
            "me" => viewer.identity_owner().cloned(),
            value => Some(value.parse().unwrap_or_else(|_| Owner::principal(value))),
        };
        match owner {
            Some(owner) => self.filter.owner = Some(owner),
            None => self
                .problems
                .push("your token has no tasks of its own".to_owned()),
        }
    }

    fn read_age(&mut self, value: &str, now: Timestamp) {
        match value.strip_prefix('<').and_then(duration_ms) {
            Some(ms) => self.filter.created_from = Some(Timestamp(now.0.saturating_sub(ms))),
            None => self.problems.push(format!(
                "`age:{value}` is no age; write `age:<1h`, with s, min, h or d"
            )),
        }
    }
}

/// A word of a search.
struct Word {
    text: String,
    /// The number of bytes before the first quote.
    unquoted: usize,
}

impl Word {
    /// The name and the value, if the word is a qualifier. A quoted word is a text.
    fn qualifier(&self) -> Option<(&str, Arc<str>)> {
        let (name, value) = self.text.split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        (is_name && name.len() < self.unquoted).then(|| (name, value.into()))
    }
}

/// The words of a text. White space in quotes belongs to a word.
fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut unquoted) = (false, None);
    for char in text.chars().take(MAX_QUERY_CHARS) {
        if char == '"' {
            is_quoted = !is_quoted;
            unquoted.get_or_insert(word.len());
        } else if char.is_whitespace() && !is_quoted {
            push(&mut words, &mut word, &mut unquoted);
        } else {
            word.push(char);
        }
    }
    push(&mut words, &mut word, &mut unquoted);
    words
}

fn push(words: &mut Vec<Word>, word: &mut String, unquoted: &mut Option<usize>) {
    let unquoted = unquoted.take().unwrap_or(word.len());
    if !word.is_empty() {
        let text = std::mem::take(word);
        words.push(Word { text, unquoted });
    }
}

/// Reads `30s`, `5min`, `1h` or `7d`.
fn duration_ms(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let unit_ms = match text.get(digits..)? {
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms)
}

/// The start of the names of the runners of a gateway.
const UPSTREAM_KIND: &str = "upstream:";

/// The rest of a longer search is ignored.
const MAX_QUERY_CHARS: usize = 1_000;

#[cfg(test)]
mod tests {
    use outlast::server::{Identity, Scopes};

    use super::*;

    fn read(scopes: Scopes, text: &str) -> Query {
        let identity = Identity::principal("ada").with_scopes(scopes);
        let viewer = Viewer::of(identity).unwrap();
        Query::read(text, &viewer, Timestamp(10_000_000))
    }

    #[test]
    fn qualifiers_and_words_become_a_filter() {
        let query = read(
            Scopes::ALL,
            "status:failed,working tool:render server:\"my files\" owner:bob age:<1h two words",
        );
        assert_eq!(query.problems, Vec::<String>::new());
        let filter = query.filter;
        assert_eq!(filter.tool.as_deref(), Some("render"));
        assert_eq!(filter.runner.as_deref(), Some("my files"));
        assert_eq!(filter.owner, Some(Owner::principal("bob")));
        assert_eq!(filter.created_from, Some(Timestamp(6_400_000)));
        assert_eq!(filter.text.as_deref(), Some("two words"));
        assert!(filter.statuses.contains(Status::Failed));
        assert!(!filter.statuses.contains(Status::Completed));
    }

    #[test]
    fn a_quoted_word_is_a_text_even_with_a_colon() {
        let query = read(Scopes::ALL, "\"tool:render\" http://a");
        assert_eq!(query.filter.tool, None);
        assert_eq!(query.filter.text.as_deref(), Some("tool:render"));
        assert_eq!(query.problems.len(), 1, "{:?}", query.problems);
    }

    #[test]
    fn an_owner_searches_its_own_tasks_only() {
        let own = read(Scopes::READ, "owner:me");
        assert_eq!(own.filter.owner, Some(Owner::principal("ada")));
        assert!(!own.is_impossible);
        let other = read(Scopes::READ, "owner:bob");
        assert!(other.is_impossible && other.filter.owner == Some(Owner::principal("ada")));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("status:done", "`done` is no status"),
            ("age:1h", "write `age:<1h`"),
            ("age:<5", "with s, min, h or d"),
            ("color:red", "there is no qualifier `color:`"),
        ] {
            let problems = read(Scopes::ALL, text).problems;
            assert!(problems[0].contains(part), "{text}: {problems:?}");
        }
    }
}
