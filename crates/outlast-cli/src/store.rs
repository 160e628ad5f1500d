//! `outlast store`: copies a store, to a file or to a database.

use outlast::store::{OpenError, StoreUrl};
use outlast_store::postgres::{CopyCounts, CopyError, copy_from_sqlite};
use outlast_store::sqlite;
use outlast_store::sqlite::{BackupError, Existing};

use crate::args::{Backup, Copy, Store, StoreCommand};
use crate::dirs;
use crate::exit::Failure;
use crate::terminal;

pub(crate) async fn run(store: &Store) -> Result<(), Failure> {
    match &store.command {
        StoreCommand::Backup(backup) => run_backup(backup),
        StoreCommand::Copy(copy) => run_copy(copy).await,
    }
}

async fn run_copy(copy: &Copy) -> Result<(), Failure> {
    let (StoreUrl::Sqlite(from), StoreUrl::Postgres(to)) = (&copy.from, &copy.to) else {
        return Err(Failure::Usage(
            "only a store in a file can be copied, and only to a database\n  next: outlast store copy sqlite:PATH \
             postgres://USER@HOST/DATABASE"
                .into(),
        ));
    };
    match copy_from_sqlite(from, to).await {
        Ok(CopyCounts { tasks, records }) => {
            let from = from.display();
            terminal::say!(
                "copied {tasks} tasks and {records} records from {from} to {to}, and compared them\n  next: start \
                 gateways with --store {to}, and give them the same --tokens FILE"
            );
            Ok(())
        }
        Err(CopyError::NoStore(path)) => Err(Failure::NoStore(path)),
        Err(CopyError::Open(error)) => Err(error.into()),
        Err(CopyError::Store(error)) => Err(error.into()),
        Err(CopyError::Database(error)) => Err(OpenError::from(error).into()),
        Err(error @ CopyError::NotEmpty(_)) => Err(Failure::Usage(error.to_string())),
        Err(error) => Err(std::io::Error::other(error).into()),
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
