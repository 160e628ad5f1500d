//! From a path to a running store: lock, look, make or migrate, scan, start.

use std::path::Path;
use std::sync::{Arc, mpsc};

use outlast_engine::store::Health;
use tokio::sync::{oneshot, watch};

use super::error::OpenError;
use super::file::{self, Found};
use super::lock::Lock;
use super::options::SqliteOptions;
use super::readers::Readers;
use super::recent::Recent;
use super::store::{Shared, Sqlite};
use super::writer::Writer;
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
        let shared = Arc::new(Shared {
            index: scan::index(&connection, &path)?,
            recent: Recent::new(options.recent_bytes),
            health: watch::Sender::new(Health::Ready),
            record_expiry: Default::default(),
        });
        shared.expect_expiry(records::next_expiry(&connection).map_err(refused())?);
        let (readers, threads) = Readers::start(&path, options.readers).map_err(refused())?;
        let (queue, operations) = mpsc::channel();
        let writer = Writer::new(shared.clone(), operations, path, options, lock, threads);
        let thread = std::thread::Builder::new().name("outlast-writer".to_owned());
        let thread = thread.spawn(move || writer.run(connection));
        Ok(Self::new(
            shared,
            queue,
            readers,
            thread.map_err(OpenError::io(named))?,
        ))
    }
}
