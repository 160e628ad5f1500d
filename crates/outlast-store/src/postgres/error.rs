//! Why a PostgreSQL store could not be opened.

use std::path::PathBuf;

/// Why a PostgreSQL store could not be opened. The text after the semicolon says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// A newer version wrote the tables.
    #[error(
        "the schema `{schema}` has version {found}, this program supports versions up to {known}; use a newer outlast"
    )]
    Newer {
        /// The schema.
        schema: String,
        /// Its version.
        found: i32,
        /// The newest version that this program supports.
        known: i32,
    },
    /// The URL or a `PG…` variable cannot be used.
    #[error("the PostgreSQL URL is invalid: {0}; write postgres://USER@HOST/DATABASE")]
    Url(String),
    /// The database does not store text as UTF-8.
    #[error("the database has the encoding {0}; create one with the encoding UTF8")]
    Encoding(String),
    /// The certificates to verify the server cannot be used.
    #[error("cannot use the root certificates in {}: {why}; name a PEM file with sslrootcert", .path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The database refused something or cannot be reached.
    #[error("cannot use the PostgreSQL database: {}; check the URL and that the database runs", describe(.0))]
    Database(#[from] tokio_postgres::Error),
    /// A row cannot be read.
    #[error("{0}; use the outlast that wrote it")]
    Row(String),
    /// The database did not answer.
    #[error(
        "the PostgreSQL database did not answer within {0} s; check the URL and that the database runs"
    )]
    Timeout(u64),
}

/// An error with its cause, which the error alone does not show.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
