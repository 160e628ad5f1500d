//! From a path to a running store: lock, look, make or migrate, read ledger and tables, start.

use std::path::Path;
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

use super::condition::Condition;
use super::error::OpenError;
use super::file::{self, Found};
use super::filler::Filler;
use super::ledger::{self, Files, Ledger};
use super::lock::Lock;
use super::options::{Durability, SqliteOptions};
use super::readers::Readers;
use super::recent::Recent;
use super::store::{Shared, Sqlite};
use super::unwritten::Unwritten;
use super::writer::{Tools, Writer};
use super::{connect, records, scan, schema};

impl Sqlite {
    /// Opens the store at `path`, and makes it if there is nothing.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let (reply, answer) = oneshot::channel();
        let asked = path.clone();
        // A thread of its own: reading a large file takes seconds, and any runtime may be around us.
        std::thread::spawn(move || reply.send(Self::open_blocking(asked, options)));
        answer.await.unwrap_or_else(|_| {
            let ended = std::io::Error::other("the thread that opens it ended early");
            Err(OpenError::io(&path)(ended))
        })
    }

    /// The same as [`Sqlite::open`], for callers without a runtime.
    pub fn open_blocking(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> Result<Self, OpenError> {
        let named = path.as_ref();
        let path = file::resolve(named).map_err(OpenError::io(named))?;
        let lock = Lock::take(&path)?;
        if file::inspect(&path)? == Found::Nothing {
            schema::create(&path, &options)?;
        }
        for ours in ["", "-wal", "-shm"].map(|suffix| file::beside(&path, suffix)) {
            file::restrict(&ours).map_err(OpenError::io(&ours))?;
        }
        let refused = || OpenError::sqlite(&path);
        let mut connection = connect::writing(&path, &options).map_err(refused())?;
        schema::update(&mut connection, &path)?;
        if options.durability == Durability::Power {
            // What the process before left with the system may not be on the disk, and is relied on from now on.
            connect::sync_log(&path).map_err(OpenError::io(&path))?;
        }
        let files = Files::read(&path)?;
        let found = ledger::read(&path, &connection, &files);
        let found = found.map_err(|trouble| trouble.at(&path))?;
        drop(files);
        let shared = Arc::new(Shared {
            index: scan::index(&connection, &path, &found.changes)?,
            recent: Recent::new(options.recent_bytes),
            filled: found.filled.into(),
            used: Default::default(),
            unwritten: Unwritten::found(found.changes),
            condition: Condition::new(),
            record_expiry: Default::default(),
        });
        let expiry = records::next_expiry(&connection).map_err(refused())?;
        let expiries = [expiry, shared.unwritten.next_expiry()];
        shared.expect_expiry(expiries.into_iter().flatten().min());
        let (readers, threads) = Readers::start(&path, options.readers).map_err(refused())?;
        let io = || OpenError::io(&path);
        let ledger = Ledger::go_on(&path, found.name, found.end, options.durability);
        let ledger = ledger.map_err(io())?;
        let filler = Filler::start(shared.clone(), connection, path.clone(), options.clone());
        let tools = Tools {
            ledger,
            filler: filler.map_err(io())?,
            lock,
            readers: threads,
        };
        let (queue, operations) = mpsc::channel();
        let writer = Writer::new(shared.clone(), operations, &path, options, tools);
        let thread = std::thread::Builder::new().name("outlast-writer".to_owned());
        let thread = thread.spawn(move || writer.run());
        Ok(Self::new(
            shared,
            queue,
            readers,
            thread.map_err(OpenError::io(named))?,
        ))
    }
}
