//! A real PostgreSQL in a temporary folder, on a free port of the loopback address.
//!
//! The programs are searched in the folder that `OUTLAST_POSTGRES_BIN` names, on `PATH`, and where
//! Debian installs them. Without them the test fails. The database ends with the process that
//! started it, also if that process is killed. PostgreSQL refuses to run as root; then it runs as
//! the user `postgres` or `daemon`.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A running database server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    user: Option<User>,
    folder: PathBuf,
    port: u16,
    settings: String,
    schemas: AtomicU32,
    /// Stops the server when the other end of its standard input is closed.
    guard: Child,
}

/// Whether the server waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Commits survive a crash of the server.
    On,
    /// Faster.
    Off,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl PostgresServer {
    /// The server that all tests of this process share. It does not wait for the disk.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Sync::Off, ""))
    }

    /// Starts a server with further settings, such as `-c ssl=on`.
    pub fn start(sync: Sync, settings: &str) -> Self {
        let programs = programs();
        let user = unprivileged_user();
        let folder = tempfile::Builder::new()
            .prefix("outlast-postgres-")
            .tempdir()
            .expect("a temporary folder can be created")
            .keep();
        if let Some(user) = user {
            chown(&folder, Some(user.uid), Some(user.gid)).expect("root may change the owner");
        }
        let guard = guard(&programs, user, &folder);
        let sync = match sync {
            Sync::On => "on",
            Sync::Off => "off -c synchronous_commit=off -c full_page_writes=off",
        };
        let mut server = Self {
            programs,
            user,
            folder,
            port: 0,
            settings: format!("-c fsync={sync} -c max_connections=300 {settings}"),
            schemas: AtomicU32::new(0),
            guard,
        };
        server.create();
        // Another process may take a free port first.
        let started = (0..MAX_PORTS).any(|_| {
            server.port = free_port();
            server.launch().is_ok()
        });
        assert!(started, "PostgreSQL does not start: {}", server.log());
        server
    }

    /// The URL of a schema that no other test uses.
    pub fn fresh_url(&self) -> String {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        self.url(&format!("test_{number}"))
    }

    /// The URL of a schema.
    pub fn url(&self, schema: &str) -> String {
        let port = self.port;
        format!("postgres://outlast@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable")
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the database, which is deleted with it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file that only the server can read, and returns its path.
    pub fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("the folder can be written");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, private).expect("the file is ours");
        if let Some(user) = self.user {
            chown(&path, Some(user.uid), Some(user.gid)).expect("root may change the owner");
        }
        path
    }

    /// Stops the server as a crash does, and starts it again.
    pub fn crash_and_restart(&self) {
        self.crash();
        self.launch().unwrap_or_else(|error| {
            panic!("PostgreSQL does not start again: {error}: {}", self.log())
        });
    }

    /// Stops the server as a crash does.
    pub fn crash(&self) {
        let data = self.data();
        let mut command = self.command("pg_ctl");
        command
            .arg("-D")
            .arg(data)
            .args(["-m", "immediate", "-w", "stop"]);
        run(&mut command).expect("a running server can be stopped");
    }

    /// Starts the server after [`crash`](Self::crash).
    pub fn launch(&self) -> io::Result<()> {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= {}",
            self.port, self.settings
        );
        let mut command = self.command("pg_ctl");
        command
            .arg("-D")
            .arg(self.data())
            .arg("-l")
            .arg(self.folder.join("log"));
        run(command.args(["-w", "-t", "60", "-o", &options, "start"]))
    }

    fn create(&self) {
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data());
        let words = [
            "-U",
            "outlast",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ];
        let created = run(command.args(words));
        created.expect("initdb creates a database in a temporary folder");
    }

    /// A command of PostgreSQL, as the user that it accepts.
    fn command(&self, program: &str) -> Command {
        as_user(
            Command::new(self.programs.join(program)),
            self.user,
            &self.folder,
        )
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_else(|error| error.to_string())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It stops the server and deletes the folder.
        let _ = self.guard.wait();
    }
}

/// Starts a shell that stops the server when this process ends.
fn guard(programs: &Path, user: Option<User>, folder: &Path) -> Child {
    let mut shell = as_user(Command::new("sh"), user, folder);
    let script = r#"cat > /dev/null; "$0" -D "$1/data" -m immediate -w stop; rm -rf "$1""#;
    shell
        .args(["-c", script])
        .arg(programs.join("pg_ctl"))
        .arg(folder)
        .current_dir("/")
        // Ctrl-C ends the tests. The end of their process ends the server.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell can be started")
}

pub(crate) fn as_user(mut command: Command, user: Option<User>, folder: &Path) -> Command {
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command.current_dir(folder);
    command
}

/// Runs a command without its output: the server would keep a pipe open.
fn run(command: &mut Command) -> io::Result<()> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = quiet.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(status.to_string()))
    }
}

/// The folder of the programs of PostgreSQL.
fn programs() -> PathBuf {
    let named = std::env::var_os("OUTLAST_POSTGRES_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = std::env::split_paths(&path).collect();
    let mut installed: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    installed.sort();
    let all = named
        .into_iter()
        .chain(on_path)
        .chain(installed.into_iter().rev());
    let complete = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "postgres"].iter().all(|program| {
            let found = fs::metadata(folder.join(program));
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    };
    all.into_iter().find(complete).expect(
        "this test needs PostgreSQL: install it (`apt-get install postgresql`), or name the folder of \
         `initdb` in OUTLAST_POSTGRES_BIN",
    )
}

/// The user that runs the server, if this process runs as root.
pub(crate) fn unprivileged_user() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users can be read");
    let find = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        let uid = fields.next()?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(User { uid, gid })
    };
    let user = find("postgres").or_else(|| find("daemon"));
    Some(user.expect(
        "there is a user `postgres` or `daemon`, because PostgreSQL refuses to run as root",
    ))
}

/// A free port outside the range from which the system takes ports of outgoing connections: while
/// the server is down, no connection may take its port.
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports = std::iter::repeat_with(|| {
        let [high, low] = outlast_engine::random::bytes();
        FIRST_PORT + u16::from_be_bytes([high, low]) % PORT_COUNT
    });
    ports
        .take(usize::from(PORT_COUNT))
        .find(is_free)
        .expect("a port is free")
}

const FIRST_PORT: u16 = 15_000;

const PORT_COUNT: u16 = 15_000;

/// How many ports are tried.
const MAX_PORTS: usize = 5;
