//! The background gateway: one for each store, started by the first relay, gone when it has had nothing to do for a while.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::Outlast;
use outlast::back::Target;
use outlast::front::Front;
use outlast::gateway::{Gateway, Settings, Upstream, policy};
use outlast::transport::http::raise_open_file_limit;
use outlast::transport::stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;

use super::desk::Desk;
use super::hello::Hello;
use super::{log, socket};
use crate::args;
use crate::exit::Failure;
use crate::logs::{self, Bounded};
use crate::place;
use crate::serve;
use crate::target::child_of;

pub(crate) async fn run(args: args::Background) -> Result<(), Failure> {
    // The host's terminal may go: we stay. It fails where we lead a group already, and then that is enough.
    let _ = rustix::process::setsid();
    let path = socket(&args.store)?;
    logs::to_file(&args.logs, LevelFilter::INFO, Bounded::open(&log(&path))?)?;
    raise_open_file_limit();
    // Only one has the store; whoever comes second leaves here.
    let store = outlast::store::open_store(&args.store, Default::default()).await?;
    let outlast = Outlast::builder()
        .store(store)
        .policy(policy())
        .children(place::children(&args.store))
        .build();
    let mut gateway = outlast.gateway(Vec::new()).await?;
    gateway.started().await?;
    let listener = listen(&path)?;
    let background = Arc::new(Background {
        desk: Front::serving(gateway.engine().clone(), Arc::new(Desk), Vec::new()),
        engine: gateway.engine().clone(),
        gateway: Mutex::new((gateway, BTreeMap::new())),
        connected: AtomicUsize::new(0),
    });
    let served = background
        .serve(listener, Duration::from_millis(args.idle_ms))
        .await;
    let _ = std::fs::remove_file(&path);
    let engine = background.engine.clone();
    match Arc::into_inner(background) {
        Some(background) => {
            drop((engine, background.desk, background.engine));
            let (gateway, _) = background.gateway.into_inner();
            gateway.shutdown().await?;
        }
        // Relays are still there: what they began is settled at the next start.
        None => drop(engine.shutdown(DRAIN).await?),
    }
    served
}

/// Listens at `path`, where nobody else could come in for a moment, either: the socket is made in a folder of ours and
/// moved when it is closed to others.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".new");
    let folder = PathBuf::from(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let listener = UnixListener::bind(&made)?;
    std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&made, path)?;
    std::fs::remove_dir(&folder)?;
    Ok(listener)
}

struct Background {
    gateway: Mutex<(Gateway, BTreeMap<Hello, Arc<Front>>)>,
    engine: outlast::engine::Engine,
    /// For those who only look at tasks.
    desk: Arc<Front>,
    connected: AtomicUsize,
}

impl Background {
    /// Serves relays until there has been nothing to do for `idle`, or somebody stops us.
    async fn serve(
        self: &Arc<Self>,
        listener: UnixListener,
        idle: Duration,
    ) -> Result<(), Failure> {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut busy = Instant::now();
        loop {
            let open = self.connected.load(Ordering::SeqCst);
            // A question that waits for its answer belongs to a call that runs.
            if open > 0 || self.engine.running() > 0 {
                busy = Instant::now();
            }
            if busy.elapsed() >= idle {
                return Ok(());
            }
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted?;
                    let background = Connected::new(self.clone());
                    tokio::spawn(async move {
                        if let Err(error) = background.0.relay(stream).await {
                            tracing::warn!(%error, "a relay is not served");
                        }
                    });
                }
                () = tokio::time::sleep((idle / 4).max(LOOK)) => {}
                _ = terminated.recv() => return Ok(()),
            }
        }
    }

    async fn relay(&self, stream: UnixStream) -> Result<(), Failure> {
        let (read, write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, read.read_line(&mut line))
            .await
            .map_err(|_| Failure::Usage("it did not say which server it stands for".into()))??;
        let hello: Hello = serde_json::from_str(&line).map_err(std::io::Error::other)?;
        let front = self.front(hello).await?;
        stdio::serve_on(front, read, write).await?;
        Ok(())
    }

    /// The front before the server that a relay stands for: the same for the same words.
    async fn front(&self, hello: Hello) -> Result<Arc<Front>, Failure> {
        let Some((program, rest)) = hello.command.split_first() else {
            return Ok(self.desk.clone());
        };
        let mut gateway = self.gateway.lock().await;
        let (gateway, known) = &mut *gateway;
        if let Some(front) = known.get(&hello) {
            return Ok(front.clone());
        }
        let settings = match &hello.settings {
            Some(text) => {
                let object = serde_json::from_str(text).map_err(std::io::Error::other)?;
                serve::read_settings(&object).map_err(Failure::Usage)?
            }
            None => Settings::default(),
        };
        let args = rest.iter().map(Into::into).collect();
        let mut options = child_of(program.into(), args, false);
        let env = hello.env.iter();
        options.env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        options.inherits = false;
        options.directory = hello.directory.clone();
        let directory = hello.directory.as_deref().unwrap_or(Path::new("/"));
        // The number tells apart what differs only in its environment, which has no place in a name.
        let name = format!(
            "{}-{}",
            serve::called(&hello.command, directory),
            known.len() + 1
        );
        let front = gateway.add(Upstream::new(name, Target::child(options), settings));
        known.insert(hello, front.clone());
        Ok(front)
    }
}

/// A relay that is connected, until it is dropped.
struct Connected(Arc<Background>);

impl Connected {
    fn new(background: Arc<Background>) -> Self {
        background.connected.fetch_add(1, Ordering::SeqCst);
        Self(background)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long calls may go on when somebody stops us.
const DRAIN: Duration = Duration::from_secs(10);

/// How long a relay may take for its first line.
const PATIENCE: Duration = Duration::from_secs(10);

/// The shortest pause between two looks.
const LOOK: Duration = Duration::from_millis(50);
