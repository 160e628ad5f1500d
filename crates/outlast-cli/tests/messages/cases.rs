//! The cases of invalid usage, by what the user gets wrong.

use std::net::TcpListener;

use crate::sandbox::Sandbox;

/// No program listens on this port, so connections are refused.
const NOWHERE: &str = "http://127.0.0.1:1/mcp";

/// A valid task id without a task.
const NO_TASK: &str = "00000000000000000000000000";

pub(crate) fn print_all(sandbox: &Sandbox, found: &mut String) {
    let mut print = |title: &str, cases: &[&[&str]]| {
        found.push_str(&format!("\n=== {title} ===\n"));
        for case in cases {
            found.push_str(&sandbox.run(case));
        }
    };
    print("Commands and options", COMMANDS);
    print("Targets", TARGETS);

    sandbox.write("servers.json", SERVERS);
    sandbox.write(
        "broken.json",
        "{ \"mcpServers\": { \"a\": { \"command\": } } }",
    );
    sandbox.write("empty.json", "{ \"mcpServers\": {} }");
    sandbox.write(
        "typo.json",
        "{ \"mcpServers\": { \"a\": { \"comand\": \"cat\" } } }",
    );
    sandbox.write(
        "self.json",
        "{ \"mcpServers\": { \"me\": { \"url\": \"http://127.0.0.1:8040/mcp\" } } }",
    );
    print("Configuration files", FILES);
    print("Settings of the gateway", SETTINGS);

    sandbox.write(
        "text.db",
        "This is a text and not a database, long enough to have a header.",
    );
    print("Stores", STORES);
    print("No gateway runs", NO_GATEWAY);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("it listens").to_string();
    sandbox.replace(taken.as_str(), "127.0.0.1:8040");
    print(
        "A port that is in use",
        &[
            &["serve", "--store", "memory:", "--http", &taken, "--", "cat"],
            &["demo", "--store", "memory:", "--http", &taken],
        ],
    );
    drop(listener);

    let demo = ["demo", "--http", "127.0.0.1:0", "--step-ms", "10"];
    let server = sandbox.serve(&demo, "127.0.0.1:8041");
    let (url, root) = (server.url(), format!("http://{}/", server.authority()));
    print(
        "Calls",
        &[
            &["call", url],
            &["call", url, "countdwn"],
            &["call", url, "countdown"],
            &["call", url, "countdown", "from=many"],
            &["call", url, "countdown", "from"],
            &["call", url, "countdown", "--args", "from=1"],
            &["call", url, "countdown", "--args", "@missing.json"],
            &["call", url, "confirm", "file=report.pdf"],
            &["call", url, "confirm", "file=report.pdf", "--no-input"],
            &["call", &root, "countdown", "from=1"],
            &["call", url, "countdown", "from=1", "--", "cat"],
            &["call", "localhost:8041/mcp", "countdown", "--", "cat"],
            &["call", "--task", "--no-task", url, "countdown", "from=1"],
        ],
    );
    print(
        "Tasks",
        &[
            &["tasks", "list", url],
            &["tasks", "get", url, NO_TASK],
            &["tasks", "get", url, "nonsense"],
            &["tasks", "result", url, NO_TASK],
            &["tasks", "cancel", url, NO_TASK],
            &["tasks", "answer", url, NO_TASK],
            &["tasks", "answer", url, NO_TASK, "--with", "yes"],
            &["tasks", "list", url, "--store", "sqlite:tasks.db"],
            &["tasks", "get", "--store", DEMO_STORE, NO_TASK],
            &["tasks", "get", "--store", DEMO_STORE, "nonsense"],
            &["tasks", "cancel", "--store", DEMO_STORE, NO_TASK],
            &["tasks", "answer", NO_TASK],
            &["tasks", "list", "--store", DEMO_STORE, "--owner", "bob"],
            &[
                "tasks",
                "list",
                "--store",
                DEMO_STORE,
                "--owner",
                "principal:bob",
            ],
            &["tasks", "list", "--limit", "many"],
            &["demo", "--store", DEMO_STORE],
        ],
    );
    drop(server);

    let gateway = ["serve", "--http", "127.0.0.1:0", "--no-probe", "--", "cat"];
    let gateway = sandbox.serve(&gateway, "127.0.0.1:8042");
    let (url, other) = (
        gateway.url(),
        format!("http://{}/other", gateway.authority()),
    );
    print(
        "A gateway with a token",
        &[
            &["tools", url, "--token", "wrong"],
            &["tools", &other],
            &["serve", "--", "cat"],
            &["demo", "--store", "sqlite:data/outlast/tasks.db"],
        ],
    );
    drop(gateway);

    found.push_str("\n=== Servers that cannot be reached when the gateway starts ===\n");
    for url in [NOWHERE, "http://no-such-host.invalid/mcp"] {
        let serve = [
            "serve",
            "--http",
            "127.0.0.1:0",
            "--store",
            "memory:",
            "--url",
            url,
        ];
        found.push_str(&sandbox.first_failure(&serve));
    }
}

const DEMO_STORE: &str = "sqlite:data/outlast/demo.db";

const COMMANDS: &[&[&str]] = &[
    &[],
    &["frobnicate"],
    &["serv"],
    &["call"],
    &["call", "--tsak", NOWHERE, "render"],
    &["call", NOWHERE, "get-sum", "--a", "2"],
    &["call", "--as", "v3", NOWHERE, "render"],
    &["call", "--ttl", "1h", NOWHERE, "render"],
    &["tasks"],
    &["tasks", "get"],
    &["tasks", "result"],
    &["tasks", "remove", NO_TASK],
    &["doctor"],
    &["tools"],
    &["serve"],
    &["serve", "--http", "80400", "--", "cat"],
    &["serve", "--http", "localhost", "--", "cat"],
    &["serve", "--header", "x", "--", "cat"],
    &["serve", "--url", NOWHERE, "--header", "secret"],
    &["serve", "--url", NOWHERE, "--", "cat"],
    &["serve", "--log", "verbose", "--", "cat"],
    &["serve", "--log-format", "xml", "--", "cat"],
    &["serve", "--name", "a b", "--", "cat"],
    &["serve", "--tokens", "missing.json", "--", "cat"],
    &["stdio"],
    &["adopt"],
    &["gateway"],
    &["gateway", "restart"],
    &["store", "backup"],
    &["demo", "--rounds", "some"],
    &["--color", "blue", "demo"],
];

const TARGETS: &[&[&str]] = &[
    &["call", NOWHERE, "render"],
    &["call", "localhost:8040/mcp", "render"],
    &["call", "http://", "render"],
    &["call", "ftp://example.org/mcp", "render"],
    &["call", "http://no-such-host.invalid/mcp", "render"],
    &["call", "render", "--", "no-such-command-of-outlast"],
    &["call", "render", "--", "true"],
    &[
        "call",
        "render",
        "--",
        "sh",
        "-c",
        "echo an error of the server >&2; exit 3",
    ],
    &["call", "render", "--", "cat"],
    &["call", "files", "render"],
    &["doctor", "--", "no-such-command-of-outlast"],
    &["tasks", "list", NOWHERE],
    &["tasks", "result", NOWHERE, NO_TASK],
];

const SERVERS: &str = r#"{
  "mcpServers": {
    "files": { "command": "cat" },
    "remote": { "url": "http://127.0.0.1:1/mcp" },
    "old": { "type": "sse", "url": "http://127.0.0.1:1/sse" },
    "unset": { "command": "${OUTLAST_NO_SUCH_VARIABLE}" },
    "interactive": { "command": "cat", "env": { "KEY": "${input:key}" } }
  }
}"#;

const FILES: &[&[&str]] = &[
    &["tools", "--config", "missing.json", "files"],
    &["tools", "--config", "broken.json", "a"],
    &["tools", "--config", "empty.json", "a"],
    &["tools", "--config", "typo.json", "a"],
    &["tools", "--config", "servers.json", "file"],
    &["tools", "--config", "servers.json", "remote"],
    &["tools", "--config", "servers.json", "old"],
    &["tools", "--config", "servers.json", "unset"],
    &["tools", "--config", "servers.json", "interactive"],
    &["serve", "--config", "missing.json"],
    &["serve", "--config", "empty.json"],
    &["serve", "--config", "typo.json"],
    &["serve", "--config", "self.json", "--store", "memory:"],
    &["stdio", "--config", "servers.json"],
    &["stdio", "--config", "servers.json", "file"],
    &["stdio", "--config", "servers.json", "remote"],
    &["adopt", "missing.json"],
    &["adopt", "broken.json"],
    &["adopt", "empty.json"],
    &["adopt", "--undo", "servers.json"],
    &["adopt", "--dry-run", "--program", "outlast", "servers.json"],
];

const SETTINGS: &[&[&str]] = &[
    &["serve", "--settings", "graceMs=5", "--", "cat"],
    &["serve", "--settings", "{\"graceMS\": 5}", "--", "cat"],
    &[
        "serve",
        "--settings",
        "{\"graceMs\": \"soon\"}",
        "--",
        "cat",
    ],
    &[
        "serve",
        "--settings",
        "{\"task\": \"sometimes\"}",
        "--",
        "cat",
    ],
    &["serve", "--settings", "{\"unheard\": 1}", "--", "cat"],
    &["serve", "--settings", "[]", "--", "cat"],
    &["serve", "--limits", "{\"openTask\": 5}", "--", "cat"],
    &["serve", "--limits", "{\"openTasks\": -5}", "--", "cat"],
    &["stdio", "--settings", "graceMs=5", "--", "cat"],
];

const STORES: &[&[&str]] = &[
    &["tasks", "list"],
    &["tasks", "list", "--store", "sqlite:missing.db"],
    &["tasks", "list", "--store", "sqlite:text.db"],
    &["tasks", "list", "--store", "sqlite:"],
    &["tasks", "list", "--store", "memory:"],
    &["tasks", "list", "--store", "tasks"],
    &["tasks", "get", "--store", "sqlite:missing.db", NO_TASK],
    &["demo", "--store", "sqlite:missing/folder/demo.db"],
    &["demo", "--store", "sqlite:text.db"],
    &["demo", "--store", "postgres:tasks"],
    &["demo", "--store", "redis:x"],
    &["store", "backup", "copy.db"],
    &["store", "backup", "copy.db", "--store", "memory:"],
    &["store", "backup", "copy.db", "--store", "sqlite:missing.db"],
];

const NO_GATEWAY: &[&[&str]] = &[
    &["gateway", "status"],
    &["gateway", "stop"],
    &["gateway", "logs"],
    &["gateway", "token", "--store", "sqlite:other.db"],
    &["gateway", "status", "--store", "memory:"],
];
