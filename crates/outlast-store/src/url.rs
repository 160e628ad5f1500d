//! The text by which people name a store: `memory:`, `sqlite:PATH`, or simply a path.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use outlast_engine::{MemoryStore, Store};

use crate::sqlite::{OpenError, Sqlite, SqliteOptions};

/// Which store to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// Tasks live as long as the process.
    Memory,
    /// Tasks live in this file.
    Sqlite(PathBuf),
}

/// Why a text names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUrl {
    /// Nothing is left where a path should be.
    #[error("`{0}` names no file; write `sqlite:PATH` or `memory:`")]
    NoPath(String),
    /// The scheme will exist.
    #[error("`{0}` stores are not built yet; use `sqlite:PATH` or `memory:`")]
    NotBuilt(String),
    /// The scheme does not exist.
    #[error(
        "no store is called `{0}`; use `sqlite:PATH` or `memory:`, and `./{0}:…` for a file of that name"
    )]
    Unknown(String),
}

impl FromStr for StoreUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let Some((scheme, rest)) = split_scheme(text) else {
            return file(text, text);
        };
        match scheme {
            "memory" if rest.is_empty() || rest == "//" => Ok(Self::Memory),
            "sqlite" => file(rest.strip_prefix("//").unwrap_or(rest), text),
            "file" => file(rest.strip_prefix("//").unwrap_or(rest), text),
            "postgres" | "postgresql" => Err(BadUrl::NotBuilt(scheme.to_owned())),
            _ => Err(BadUrl::Unknown(scheme.to_owned())),
        }
    }
}

/// Opens the store that `url` names. The options apply where there is a file.
pub async fn open_store(
    url: &StoreUrl,
    options: SqliteOptions,
) -> Result<Arc<dyn Store>, OpenError> {
    Ok(match url {
        StoreUrl::Memory => Arc::new(MemoryStore::new()),
        StoreUrl::Sqlite(path) => Arc::new(Sqlite::open(path, options).await?),
    })
}

/// The scheme before the first colon. A single letter is a drive, and a path may contain colons later.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'));
    is_scheme.then_some((scheme, rest))
}

fn file(path: &str, text: &str) -> Result<StoreUrl, BadUrl> {
    match path {
        // SQLite's own name for a database without a file.
        "" | ":memory:" => Err(BadUrl::NoPath(text.to_owned())),
        path => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_file_is_understood() {
        for (text, path) in [
            ("sqlite:tasks.db", "tasks.db"),
            ("sqlite:/var/lib/tasks.db", "/var/lib/tasks.db"),
            ("sqlite:///var/lib/tasks.db", "/var/lib/tasks.db"),
            ("tasks.db", "tasks.db"),
            ("./odd:name.db", "./odd:name.db"),
            ("C:\\tasks.db", "C:\\tasks.db"),
        ] {
            assert_eq!(text.parse(), Ok(StoreUrl::Sqlite(path.into())), "{text}");
        }
        assert_eq!("memory:".parse(), Ok(StoreUrl::Memory));
    }

    #[test]
    fn a_text_that_names_no_store_says_what_would() {
        for (text, part) in [
            ("postgres://localhost/tasks", "not built yet"),
            ("redis://localhost", "no store is called `redis`"),
            ("sqlite:", "names no file"),
            ("sqlite::memory:", "`memory:`"),
            ("", "names no file"),
        ] {
            let refused = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}
