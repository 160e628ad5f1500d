//! Connections to the database, made again after they are lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_engine::StoreError;
use outlast_engine::store::{Health, Reason};
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{PostgresError, describe};
use super::options::Options;
use super::tls;

/// A parameter of a statement and its type. With the type, a statement needs one round trip and no
/// name, so it works behind a pooler of connections.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Makes connections.
pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
}

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl Connector {
    pub(super) fn new(options: &Options) -> Result<Self, PostgresError> {
        let tls = tls::connector(&options.verification)?;
        let mut config = options.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.tcp_user_timeout(STATEMENT_TIMEOUT);
        Ok(Self { config, tls })
    }

    /// Connects, and drives the connection in a task that ends with it.
    pub(super) async fn connect(&self) -> Result<Client, PostgresError> {
        let (client, connection) = self.open().await?;
        tokio::spawn(async move {
            // The statements that fail report the loss.
            let _ = connection.await;
        });
        Ok(client)
    }

    /// Connects. The caller drives the connection.
    pub(super) async fn open(
        &self,
    ) -> Result<(Client, Connection<Socket, TlsStream>), PostgresError> {
        match timeout(STATEMENT_TIMEOUT, self.config.connect(self.tls.clone())).await {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(PostgresError::Timeout(STATEMENT_TIMEOUT.as_secs())),
        }
    }
}

/// A connection with the statements that were prepared on it.
pub(super) struct Session {
    client: Client,
    prepared: parking_lot::Mutex<HashMap<String, Statement>>,
    /// Set before the first statement is prepared.
    settings: OnceCell<()>,
}

/// One connection that is made again when it is lost.
pub(super) struct Link {
    connector: Arc<Connector>,
    state: Mutex<LinkState>,
    health: Arc<watch::Sender<Health>>,
    /// Whether the connections are known to end at the database. A pooler may give the reply to a
    /// statement that was sent ahead to another client, if this process is killed.
    is_direct: Arc<AtomicBool>,
    /// Locked while a statement runs alone.
    alone: Mutex<()>,
}

#[derive(Default)]
struct LinkState {
    session: Option<Arc<Session>>,
    /// When the last attempt to connect failed, and why.
    failed: Option<(Instant, String)>,
}

/// Why a statement failed.
pub(super) enum Failed {
    /// The database refused it.
    Refused(StoreError),
    /// Nothing was sent.
    NotSent(StoreError),
    /// The connection was lost. The statement may have been executed.
    Lost(StoreError),
}

impl Failed {
    pub(super) fn error(self) -> StoreError {
        match self {
            Self::Refused(error) | Self::NotSent(error) | Self::Lost(error) => error,
        }
    }
}

impl Session {
    fn new(client: Client) -> Self {
        Self {
            client,
            prepared: parking_lot::Mutex::default(),
            settings: OnceCell::new(),
        }
    }

    /// Runs a statement that is prepared the first time. Only on a connection that no other program
    /// shares.
    async fn query_prepared(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let settings = || self.client.batch_execute(PREPARED_SETTINGS);
        self.settings.get_or_try_init(settings).await?;
        let prepared = self.prepared.lock().get(sql).cloned();
        let statement = match prepared {
            Some(statement) => statement,
            None => {
                let types: Vec<_> = parameters.iter().map(|(_, of)| of.clone()).collect();
                let statement = self.client.prepare_typed(sql, &types).await?;
                let mut prepared = self.prepared.lock();
                if prepared.len() < MAX_PREPARED {
                    prepared.insert(sql.to_owned(), statement.clone());
                }
                statement
            }
        };
        let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
        self.client.query(&statement, &values).await
    }
}

impl Link {
    pub(super) fn new(
        connector: Arc<Connector>,
        health: Arc<watch::Sender<Health>>,
        is_direct: Arc<AtomicBool>,
    ) -> Self {
        Self {
            connector,
            state: Mutex::default(),
            health,
            is_direct,
            alone: Mutex::default(),
        }
    }

    /// The connection, made now if it does not exist. The flag says whether it is new.
    pub(super) async fn session(&self) -> Result<(Arc<Session>, bool), StoreError> {
        let mut state = self.state.lock().await;
        let open = state.session.as_ref();
        if let Some(session) = open.filter(|session| !session.client.is_closed()) {
            return Ok((session.clone(), false));
        }
        // Callers that waited for the same attempt do not repeat it.
        if let Some((at, why)) = &state.failed
            && at.elapsed() < RECONNECT_INTERVAL
        {
            return Err(self.down(why.clone()));
        }
        match self.connector.connect().await {
            Ok(client) => {
                let session = Arc::new(Session::new(client));
                *state = LinkState {
                    session: Some(session.clone()),
                    failed: None,
                };
                self.set_health(Health::Ready);
                Ok((session, true))
            }
            Err(error) => {
                let why = error.to_string();
                state.failed = Some((Instant::now(), why.clone()));
                Err(self.down(why))
            }
        }
    }

    /// Closes the connection. The next use makes another.
    pub(super) async fn reset(&self) {
        self.state.lock().await.session = None;
    }

    /// Runs a statement that may be repeated without harm: if the connection was lost, it runs once
    /// more.
    pub(super) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        match self.query_once(sql, parameters).await {
            Err(Failed::Lost(_)) => {
                let again = self.query_once(sql, parameters).await;
                again.map_err(Failed::error)
            }
            reply => reply.map_err(Failed::error),
        }
    }

    /// Runs a statement once. A statement that takes too long closes the connection.
    pub(super) async fn query_once(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failed> {
        if *self.health.borrow() == Health::Closed {
            return Err(Failed::NotSent(closed()));
        }
        let is_direct = self.is_direct.load(Ordering::Relaxed);
        let _alone = if is_direct {
            None
        } else {
            Some(self.alone.lock().await)
        };
        let (session, _) = self.session().await.map_err(Failed::NotSent)?;
        let reply = async {
            if is_direct {
                session.query_prepared(sql, parameters).await
            } else {
                session.client.query_typed(sql, parameters).await
            }
        };
        match timeout(STATEMENT_TIMEOUT, reply).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(self.failed(&session.client, &error).await),
            Err(_) => {
                self.reset().await;
                Err(Failed::Lost(self.down(NO_ANSWER.to_owned())))
            }
        }
    }

    /// Judges the error of a statement.
    async fn failed(&self, client: &Client, error: &tokio_postgres::Error) -> Failed {
        // A server that shuts down answers the statement and closes the connection after that.
        let class = error.code().map(|code| code.code()[..2].to_owned());
        let goes_down = class.as_deref() == Some(OPERATOR_INTERVENTION);
        if client.is_closed() || class.is_none() || goes_down {
            self.reset().await;
            Failed::Lost(self.down(describe(error)))
        } else {
            Failed::Refused(unavailable(describe(error)))
        }
    }

    fn down(&self, why: String) -> StoreError {
        self.set_health(Health::Down(Reason::new(why.clone())));
        unavailable(why)
    }

    /// A closed store stays closed.
    fn set_health(&self, health: Health) {
        self.health.send_if_modified(|now| {
            let changes = *now != Health::Closed && *now != health;
            if changes {
                *now = health;
            }
            changes
        });
    }
}

pub(super) fn unavailable(why: impl Into<Arc<str>>) -> StoreError {
    StoreError::Unavailable(Reason::new(why))
}

pub(super) fn closed() -> StoreError {
    unavailable("it was closed")
}

/// The plan of a prepared statement is kept while its tables grow, so it must use their indexes.
const PREPARED_SETTINGS: &str = "SET enable_seqscan = off; SET jit = off";

/// The maximum number of prepared statements of a connection. A search has one for each combination of
/// its conditions.
const MAX_PREPARED: usize = 100;

const NO_ANSWER: &str = "the database did not answer in time";

/// The class of SQL states of a server that is being stopped.
const OPERATOR_INTERVENTION: &str = "57";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an idle connection waits before it checks that the server exists.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);

/// How long a statement may take. `write_batch` in `v1.sql` waits for a shorter time.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest time between two attempts to connect.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
