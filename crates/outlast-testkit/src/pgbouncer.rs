//! A real PgBouncer in transaction mode, in front of a [`PostgresServer`]: statements of one client
//! run on any of its connections.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::daemon::program;
use crate::postgres::{PostgresServer, as_user, free_port, unprivileged_user};
use crate::until;

/// A running pooler. It ends with the process that started it.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    /// Stops the pooler when the other end of its standard input is closed.
    guard: Child,
}

impl PgBouncer {
    /// Starts a pooler for the database of `server`.
    ///
    /// # Panics
    ///
    /// If PgBouncer is not installed.
    pub fn start(server: &PostgresServer) -> Self {
        let program = program("pgbouncer", "pgbouncer");
        // Another process may take a free port first.
        (0..MAX_PORTS)
            .find_map(|_| Self::listen(server, &program).ok())
            .unwrap_or_else(|| {
                let log = server.folder().join("pgbouncer.log");
                let log = std::fs::read_to_string(log).unwrap_or_default();
                panic!("PgBouncer does not start: {log}")
            })
    }

    fn listen(server: &PostgresServer, program: &Path) -> io::Result<Self> {
        let port = free_port();
        let folder = server.folder().display();
        let settings = format!(
            "[databases]
             postgres = host=127.0.0.1 port={} dbname=postgres user=outlast
             [pgbouncer]
             listen_addr = 127.0.0.1
             listen_port = {port}
             unix_socket_dir =
             auth_type = any
             pool_mode = transaction
             max_client_conn = 1000
             default_pool_size = 10
             logfile = {folder}/pgbouncer.log
            ",
            server.port()
        );
        let settings: Vec<_> = settings.lines().map(str::trim).collect();
        let file = server.write_file(&format!("pgbouncer-{port}.ini"), &settings.join("\n"));
        let mut shell = as_user(Command::new("sh"), unprivileged_user(), server.folder());
        let script = r#""$0" -q "$1" & pid=$!; cat > /dev/null; kill $pid"#;
        let mut guard = shell
            .args(["-c", script])
            .arg(program)
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut listens = false;
        until("PgBouncer listens or ends", || {
            listens = TcpStream::connect(("127.0.0.1", port)).is_ok();
            listens || !matches!(guard.try_wait(), Ok(None))
        });
        if listens {
            Ok(Self { port, guard })
        } else {
            Err(io::Error::other("PgBouncer ended"))
        }
    }

    /// The URL of a schema, through the pooler.
    pub fn url(&self, schema: &str) -> String {
        let port = self.port;
        format!("postgres://outlast@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable")
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It stops the pooler.
        let _ = self.guard.wait();
    }
}

/// How many ports are tried.
const MAX_PORTS: usize = 5;
