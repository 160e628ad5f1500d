//! Ensures that only one gateway starts on a store.
//!
//! A start holds a file lock next to the store until its socket is open. A process that waits for
//! the lock also checks the socket, so if several relays start a gateway, one gateway remains.
//! `outlast serve` holds the lock while a gateway in the background stops, so no relay can start
//! another in between.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast::store::Store;
use outlast::store::{OpenError, StoreUrl};
use outlast_store::private_file;

use super::control::{self, ControlReply, FirstLine, GatewayKind, Status};
use super::socket;
use crate::dirs;
use crate::exit::Failure;
use crate::terminal::say;

/// The lock for starting a gateway on a store, held until this is dropped.
pub(crate) struct StartLock {
    _file: File,
}

impl StartLock {
    /// Takes the lock, unless another process holds it.
    fn try_take(socket: &Path) -> io::Result<Option<Self>> {
        let file = private_file::open(&socket.with_extension("start"), |options| {
            options.write(true).create(true).truncate(false);
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock for a gateway in the background. Returns `None` if another gateway serves the
    /// store by then.
    pub(super) async fn take_unless_served(socket: &Path) -> Result<Option<Self>, Failure> {
        Self::take_unless(socket, || UnixStream::connect(socket).is_ok()).await
    }

    async fn take_unless(
        socket: &Path,
        served: impl Fn() -> bool,
    ) -> Result<Option<Self>, Failure> {
        let until = Instant::now() + OTHER_START_TIMEOUT;
        loop {
            let lock = Self::try_take(socket).map_err(Failure::unwritable_store_folder(socket))?;
            if served() {
                return Ok(None);
            }
            if lock.is_some() {
                return Ok(lock);
            }
            if Instant::now() > until {
                return Err(Failure::StoreFault(format!(
                    "another gateway has been starting at {} for {} s\n  next: stop it, or name another --store",
                    socket.display(),
                    OTHER_START_TIMEOUT.as_secs()
                )));
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// Prepares the start of `outlast serve` on `store`: a gateway in the background stops when its
/// calls have ended. Its relays then connect to this process.
pub(crate) async fn take_over(store: &StoreUrl) -> Result<Option<StartLock>, Failure> {
    let socket = socket::path(store)?;
    let lock = StartLock::take_unless(&socket, || false).await?;
    let mut waits = false;
    loop {
        match control::open(&socket, &FirstLine::Status) {
            Ok((_, ControlReply::Status(status))) if status.kind == GatewayKind::Serve => {
                return Err(Failure::StoreFault(format!(
                    "`outlast serve` runs on {} already: process {}{}\n  next: stop it with `outlast gateway stop`, \
                     or name another --store",
                    status.store,
                    status.pid,
                    at_url(&status)
                )));
            }
            Ok(_) => {}
            Err(error) if control::is_absent(&error) => return Ok(lock),
            Err(error) => return Err(error.into()),
        }
        match control::open(&socket, &FirstLine::Stop { unless_busy: true }) {
            Ok((stream, ControlReply::Stopping(status))) => {
                wait_until_ended(stream, &status).await?;
                return Ok(lock);
            }
            Ok((_, ControlReply::Busy(status))) if !waits => {
                waits = true;
                say!(
                    "waiting for the gateway in the background (process {}) until its {} running calls end\n  next: to end \
                     them now, `outlast gateway stop`",
                    status.pid,
                    status.calls
                );
            }
            Ok(_) => {}
            Err(error) if control::is_absent(&error) => return Ok(lock),
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(BUSY_CHECK_INTERVAL).await;
    }
}

fn at_url(status: &Status) -> String {
    match status.urls.first() {
        Some(url) => format!(", at {url}"),
        None => String::new(),
    }
}

/// Waits until the process of a stopping gateway has ended, which closes its connection.
pub(super) async fn wait_until_ended(stream: UnixStream, status: &Status) -> Result<(), Failure> {
    stream.set_nonblocking(true)?;
    let mut stream = tokio::net::UnixStream::from_std(stream)?;
    let mut end = [0];
    let closed = tokio::io::AsyncReadExt::read(&mut stream, &mut end);
    match tokio::time::timeout(STOP_TIMEOUT, closed).await {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::GatewayFault(format!(
            "the gateway (process {}) has not stopped after {} s\n  next: end it with `kill -9 {}`; the next start \
             recovers its tasks",
            status.pid,
            STOP_TIMEOUT.as_secs(),
            status.pid
        ))),
    }
}

/// Opens a store. If another process has it open, for example a gateway that is stopping, waits for
/// a limited time.
pub(crate) async fn open_when_free(url: &StoreUrl) -> Result<Arc<dyn Store>, OpenError> {
    let begun = Instant::now();
    let mut is_reported = false;
    loop {
        match outlast::store::open_store(url, Default::default()).await {
            Err(OpenError::InUse { holder, .. }) if begun.elapsed() < STORE_IN_USE_TIMEOUT => {
                if begun.elapsed() > REPORT_AFTER && !is_reported {
                    is_reported = true;
                    say!(
                        "waiting for {}, which is in use by {holder}",
                        dirs::store_argument(url)
                    );
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}

/// The interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The interval between two checks whether calls still run.
const BUSY_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long another process may take to start a gateway.
const OTHER_START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a gateway may take to stop: 10 s for its calls, 10 s for its servers, and a reserve.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);

/// After this time, a start that waits for its store prints a message.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// How long a gateway waits for a store that another process has open.
const STORE_IN_USE_TIMEOUT: Duration = Duration::from_secs(20);
