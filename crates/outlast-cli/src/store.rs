//! `outlast store`: copies a store.

use outlast::store::StoreUrl;
use outlast_store::sqlite;
use outlast_store::sqlite::{BackupError, Existing};

use crate::args::{Backup, Store, StoreCommand};
use crate::dirs;
use crate::exit::Failure;
use crate::terminal;

pub(crate) fn run(store: &Store) -> Result<(), Failure> {
    match &store.command {
        StoreCommand::Backup(backup) => run_backup(backup),
    }
}

fn run_backup(backup: &Backup) -> Result<(), Failure> {
    let url = match &backup.store {
        Some(url) => url.clone(),
        None => dirs::default_store()?,
    };
    let path = match &url {
        StoreUrl::Sqlite(path) => path,
        StoreUrl::Memory => {
            return Err(Failure::Usage(
                "a store in memory has no file\n  next: name one with --store sqlite:PATH".into(),
            ));
        }
        StoreUrl::Postgres(url) => {
            return Err(Failure::Usage(format!(
                "{url} is a database, not a file\n  next: copy it with `pg_dump`"
            )));
        }
    };
    let existing = if backup.force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    match sqlite::backup(path, &backup.file, existing) {
        Ok(()) => {
            let (from, to) = (path.display(), backup.file.display());
            terminal::say!(
                "copied {from} to {to}; it contains arguments and results in clear text"
            );
            Ok(())
        }
        Err(error @ BackupError::Exists(_)) => Err(Failure::Usage(format!(
            "{error}\n  next: choose another file, or use --force"
        ))),
        Err(BackupError::NoStore(path)) => Err(Failure::NoStore(path)),
        Err(error) => Err(error.into()),
    }
}
