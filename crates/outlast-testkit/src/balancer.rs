//! A real load balancer that forwards requests to the nodes by turns, with its file in
//! `packaging/cluster`.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::daemon::program;
use crate::postgres::free_port;
use crate::until;

/// A load balancer until it is dropped.
#[derive(Debug)]
pub struct LoadBalancer {
    address: SocketAddr,
    folder: PathBuf,
    /// Stops the program when the other end of its standard input is closed.
    guard: Child,
}

impl LoadBalancer {
    /// Starts nginx in front of three nodes. It writes its files into `folder`.
    ///
    /// # Panics
    ///
    /// If nginx is not installed.
    pub fn nginx(folder: &Path, nodes: &[SocketAddr]) -> Self {
        let program = program("nginx", "nginx-light");
        let port = free_port();
        let text = with_nodes(&packaged("nginx.conf"), nodes);
        let here = folder.display();
        let text = replaced(&text, "listen 8080;", &format!("listen 127.0.0.1:{port};"));
        let text = replaced(&text, "/var/log/nginx", &here.to_string());
        let text = replaced(&text, "/run/nginx.pid", &format!("{here}/nginx.pid"));
        // The usual folders belong to root.
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let folders = folders.map(|name| format!("    {name}_temp_path {here}/{name};\n"));
        let text = replaced(&text, "http {\n", &format!("http {{\n{}", folders.concat()));
        let is_root = rustix::process::geteuid().is_root();
        // The folder of a test is open to its user only.
        let user = if is_root { "user root;\n" } else { "" };
        let file = folder.join("nginx.conf");
        std::fs::write(&file, format!("{user}{text}")).expect("the folder can be written");
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD])
            .arg(program)
            .args(["-e".as_ref(), folder.join("error.log").as_os_str()])
            .args(["-c".as_ref(), file.as_os_str()])
            .args(["-g", "daemon off;"]);
        Self::start(command, port, folder)
    }

    /// Starts HAProxy in front of three nodes.
    ///
    /// # Panics
    ///
    /// If HAProxy is not installed.
    pub fn haproxy(folder: &Path, nodes: &[SocketAddr]) -> Self {
        let program = program("haproxy", "haproxy");
        let port = free_port();
        let text = with_nodes(&packaged("haproxy.cfg"), nodes);
        let text = replaced(&text, "bind :8080", &format!("bind 127.0.0.1:{port}"));
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, text).expect("the folder can be written");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD]).arg(program).args([
            "-db".as_ref(),
            "-f".as_ref(),
            file.as_os_str(),
        ]);
        Self::start(command, port, folder)
    }

    fn start(mut command: Command, port: u16, folder: &Path) -> Self {
        let guard = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        until("the load balancer listens", || {
            TcpStream::connect(address).is_ok()
        });
        Self {
            address,
            folder: folder.to_owned(),
            guard,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests nginx has sent to each node, by address. A request that a node did not
    /// accept counts for the next one.
    pub fn served(&self) -> BTreeMap<String, usize> {
        let log = std::fs::read_to_string(self.folder.join("access.log")).expect("a log");
        let mut served = BTreeMap::new();
        for line in log.lines() {
            let node = line.rsplit(' ').next().expect("a line has words");
            *served.entry(node.to_owned()).or_default() += 1;
        }
        served
    }

    /// Asserts that nginx has sent about a third of the requests to each of three nodes.
    ///
    /// # Panics
    ///
    /// If it has not.
    pub fn assert_balanced(&self, nodes: &[SocketAddr]) {
        let served = self.served();
        let all: usize = served.values().sum();
        for node in nodes {
            let own = served.get(&node.to_string()).copied();
            let share = own.unwrap_or_default() as f64 / all as f64;
            assert!((0.3..0.37).contains(&share), "{served:?}");
        }
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It stops the program.
        let _ = self.guard.wait();
    }
}

/// A file of `packaging/cluster`.
///
/// # Panics
///
/// If there is no such file.
pub fn packaged(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/cluster");
    std::fs::read_to_string(folder.join(name)).expect("the file exists")
}

fn with_nodes(text: &str, nodes: &[SocketAddr]) -> String {
    let numbered = (11..).zip(nodes);
    numbered.fold(text.to_owned(), |text, (number, node)| {
        replaced(&text, &format!("10.0.0.{number}:8040"), &node.to_string())
    })
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the file has {from}");
    text.replace(from, to)
}

const GUARD: &str = r#""$0" "$@" & pid=$!; cat > /dev/null; kill $pid; wait $pid"#;
