//! The text that names a store: `memory:`, `sqlite:PATH`, `postgres://…`, or a path.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use outlast_engine::{MemoryStore, Store};

use crate::open_error::OpenError;
#[cfg(feature = "postgres")]
use crate::postgres::{Postgres, PostgresUrl};
#[cfg(feature = "sqlite")]
use crate::sqlite::{Sqlite, SqliteOptions};

/// The store to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// Tasks are lost at the end of the process.
    Memory,
    /// Tasks are stored in this file.
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    /// Tasks are stored in this database, which several processes can use.
    #[cfg(feature = "postgres")]
    Postgres(PostgresUrl),
}

/// Why a text does not name a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// The path is missing.
    #[error("`{0}` names no file; write `sqlite:PATH` or `memory:`")]
    NoPath(String),
    /// The program was built without this kind of store.
    #[error(
        "this program was built without {scheme} stores; build it with the feature `{feature}`"
    )]
    NotBuilt {
        /// The kind of store.
        scheme: String,
        /// The feature that adds it.
        feature: &'static str,
    },
    /// The URL has no authority part.
    #[error("`{0}` is not a PostgreSQL URL; write `postgres://USER@HOST/DATABASE`")]
    NoAuthority(String),
    /// The scheme does not exist.
    #[error(
        "unknown kind of store `{0}`; use `sqlite:PATH`, `postgres://…` or `memory:`, and `./{0}:…` for a file of that name"
    )]
    Unknown(String),
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let Some((scheme, rest)) = split_scheme(text) else {
            return file(text, text);
        };
        match scheme {
            "memory" if rest.is_empty() || rest == "//" => Ok(Self::Memory),
            "sqlite" => file(rest.strip_prefix("//").unwrap_or(rest), text),
            "file" => file(rest.strip_prefix("//").unwrap_or(rest), text),
            "postgres" | "postgresql" => postgres(scheme, rest),
            _ => Err(StoreUrlError::Unknown(scheme.to_owned())),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(scheme: &str, rest: &str) -> Result<StoreUrl, StoreUrlError> {
    if rest.starts_with("//") {
        Ok(StoreUrl::Postgres(PostgresUrl::new(format!(
            "{scheme}:{rest}"
        ))))
    } else {
        Err(StoreUrlError::NoAuthority(format!("{scheme}:…")))
    }
}

#[cfg(not(feature = "postgres"))]
fn postgres(scheme: &str, _: &str) -> Result<StoreUrl, StoreUrlError> {
    Err(StoreUrlError::NotBuilt {
        scheme: scheme.to_owned(),
        feature: "postgres",
    })
}

/// Opens the store that `url` names: `memory:`, `sqlite:PATH`, `postgres://…`, or a path.
/// [`open_store`] takes options for a file.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    Ok(match url.parse()? {
        StoreUrl::Memory => Arc::new(MemoryStore::new()),
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite(path) => Arc::new(Sqlite::open(&path, SqliteOptions::default()).await?),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => Arc::new(Postgres::open(&url).await?),
    })
}

/// Opens the store at `url`. The options apply to a store with a file.
#[cfg(feature = "sqlite")]
pub async fn open_store(
    url: &StoreUrl,
    options: SqliteOptions,
) -> Result<Arc<dyn Store>, OpenError> {
    Ok(match url {
        StoreUrl::Memory => Arc::new(MemoryStore::new()),
        StoreUrl::Sqlite(path) => Arc::new(Sqlite::open(path, options).await?),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => Arc::new(Postgres::open(url).await?),
    })
}

/// Splits the scheme at the first colon. A single letter is a drive, and a path may contain colons
/// later.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'));
    is_scheme.then_some((scheme, rest))
}

fn file(path: &str, text: &str) -> Result<StoreUrl, StoreUrlError> {
    match path {
        // SQLite's name for a database without a file.
        "" | ":memory:" => Err(StoreUrlError::NoPath(text.to_owned())),
        #[cfg(feature = "sqlite")]
        path => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
        #[cfg(not(feature = "sqlite"))]
        _ => Err(StoreUrlError::NotBuilt {
            scheme: "SQLite".into(),
            feature: "sqlite",
        }),
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_store_url_is_parsed() {
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
    fn an_invalid_store_url_is_refused_with_a_suggestion() {
        for (text, part) in [
            #[cfg(not(feature = "postgres"))]
            (
                "postgres://localhost/tasks",
                "built without postgres stores",
            ),
            #[cfg(feature = "postgres")]
            ("postgres:tasks", "not a PostgreSQL URL"),
            ("redis://localhost", "unknown kind of store `redis`"),
            ("sqlite:", "names no file"),
            ("sqlite::memory:", "`memory:`"),
            ("", "names no file"),
        ] {
            let refused = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}
