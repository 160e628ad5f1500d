//! The cost of a request that one node forwards to another: `forwarding PROGRAM SERVER [--quick]`.
//!
//! Two processes `PROGRAM serve -- SERVER` share a database. A session has its home at the first
//! one. The same requests are sent to it and to the other node, in turns. What is compared is the
//! processor time of both processes together; the server behind them is not counted. The table goes
//! to stdout.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    panic!("it reads the processor time of a process from /proc");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use outlast_testkit::mcp::{HttpConnection, HttpResponse};
    use outlast_testkit::{PostgresServer, ServerProcess, until};
    use serde_json::{Value, json};

    pub(super) fn main() {
        let mut words = std::env::args().skip(1);
        let mut next = || words.next().expect("usage: forwarding PROGRAM SERVER");
        let (program, server) = (next(), next());
        let is_quick = words.next().as_deref() == Some("--quick");
        let (rounds, requests) = if is_quick { (3, 200) } else { (7, 2_000) };
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let tokens = folder.path().join("tokens.json");
        let text = json!({ "ada": TOKEN }).to_string();
        std::fs::write(&tokens, text).expect("the folder can be written");
        let store = PostgresServer::shared().fresh_url();
        let nodes = ["home", "other"].map(|name| {
            let mut command = Command::new(&program);
            command
                .args(["serve", "--http", "127.0.0.1:0", "--store", &store])
                .args([
                    "--no-probe",
                    "--log",
                    "error",
                    "--limits",
                    LIMITS,
                    "--tokens",
                ])
                .arg(&tokens)
                .args(["--", &server])
                .env("XDG_DATA_HOME", folder.path().join(name))
                .env_remove("OUTLAST_TOKEN")
                .stderr(Stdio::null());
            ServerProcess::start(&mut command, 1)
        });
        let [home, other] = nodes.each_ref();
        // The nodes publish their addresses first; a node without one cannot keep a home.
        std::thread::sleep(Duration::from_secs(2));
        let session = open_session(home);
        until("the other node knows the home", || {
            let mut connection = HttpConnection::open(other.authority());
            post(&mut connection, &session, &request("ping", json!({}))).status == 200
        });
        let task = json!({ "name": "echo", "arguments": { "say": "hi" }, "task": {} });
        let mut connection = HttpConnection::open(home.authority());
        let created = post(&mut connection, &session, &request("tools/call", task)).json();
        let task = created["result"]["task"]["taskId"].clone();
        println!("| request | local | forwarded | ratio |");
        println!("|---|---|---|---|");
        let call = json!({ "name": "echo", "arguments": { "say": "hi" } });
        for (name, message) in [
            ("`ping`", request("ping", json!({}))),
            (
                "`tasks/get`",
                request("tasks/get", json!({ "taskId": task })),
            ),
            ("`tools/call`", request("tools/call", call)),
        ] {
            let measure = |node: &ServerProcess| {
                let before = used(&nodes);
                send(node.authority(), &session, &message, requests);
                used(&nodes).saturating_sub(before) / (CONNECTIONS * requests)
            };
            // Opens connections, here and between the nodes.
            measure(other);
            let measured: Vec<_> = (0..rounds)
                .map(|_| (measure(home), measure(other)))
                .collect();
            let local = median(measured.iter().map(|round| micros(round.0)).collect());
            let forwarded = median(measured.iter().map(|round| micros(round.1)).collect());
            let ratios = measured
                .iter()
                .map(|round| micros(round.1) / micros(round.0));
            let ratio = median(ratios.collect());
            println!("| {name} | {local:.1} µs CPU | {forwarded:.1} µs CPU | {ratio:.2} × |");
        }
    }

    fn open_session(node: &ServerProcess) -> String {
        let hello = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let mut connection = HttpConnection::open(node.authority());
        let answer = post(&mut connection, "", &request("initialize", hello));
        let session = answer.header("mcp-session-id").expect("a session");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post(&mut connection, session, &initialized).status, 202);
        session.to_owned()
    }

    /// Sends this number of requests on each of some connections.
    fn send(authority: &str, session: &str, message: &Value, requests: u32) {
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut connection = HttpConnection::open(authority);
                    for _ in 0..requests {
                        let response = post(&mut connection, session, message);
                        assert_eq!(response.status, 200, "{}", response.body);
                    }
                });
            }
        });
    }

    fn request(method: &str, params: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    }

    fn post(connection: &mut HttpConnection, session: &str, message: &Value) -> HttpResponse {
        let token = format!("Bearer {TOKEN}");
        let headers = [("authorization", &*token), ("mcp-session-id", session)];
        connection.post("/mcp", VERSION, message, &headers)
    }

    /// The processor time of the processes, in user mode and in the system.
    fn used(nodes: &[ServerProcess]) -> Duration {
        let ticks: u64 = nodes.iter().map(|node| ticks(node.id())).sum();
        Duration::from_millis(ticks * MS_PER_TICK)
    }

    fn ticks(process: u32) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
        // The name of the program is in parentheses.
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let fields = fields.split(' ').skip(11).take(2);
        let ticks = fields.map(|field| field.parse::<u64>().expect("a number"));
        ticks.sum()
    }

    fn micros(time: Duration) -> f64 {
        time.as_secs_f64() * 1e6
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    const CONNECTIONS: u32 = 16;

    const VERSION: &str = "2025-11-25";

    const TOKEN: &str = "the-token-of-ada-at-every-node";

    const LIMITS: &str = r#"{"requestsPerSecond": 1000000}"#;

    /// Linux reports processor time in hundredths of a second.
    const MS_PER_TICK: u64 = 10;
}
