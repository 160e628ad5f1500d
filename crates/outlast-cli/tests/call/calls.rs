//! `outlast call`, `outlast tasks … TARGET` and `outlast doctor` with a server in another process.

use outlast_testkit::{RunningCommand, example};

use crate::harness::DemoServer;

#[test]
fn a_tool_runs_as_a_task_and_prints_its_result() {
    let server = DemoServer::start();
    // A V2 server decides itself: a call that ends within the grace period is not a task.
    for (how, from) in [("v1", "3"), ("v2", "60"), ("auto", "60")] {
        let output = server.run(&[
            "call",
            "--as",
            how,
            "{}",
            "countdown",
            &format!("from={from}"),
        ]);
        assert_eq!(
            (output.out.as_str(), output.code),
            ("lift-off\n", Some(0)),
            "{how}: {}",
            output.err
        );
        assert!(
            output.err.contains("Working: task"),
            "{how}: {}",
            output.err
        );
        let progress = format!("/{from}");
        assert!(output.err.contains(&progress), "{how}: {}", output.err);
    }
    let output = server.run(&["call", "--as", "plain", "{}", "countdown", "from=60"]);
    assert_eq!(output.out, "lift-off\n");
    assert!(!output.err.contains("task"), "{}", output.err);
    let output = server.run(&[
        "call",
        "--json",
        "--no-task",
        "{}",
        "countdown",
        "--args",
        r#"{"from":1}"#,
    ]);
    assert_eq!(output.json()["content"][0]["text"], "lift-off");
    assert!(!output.err.contains("task"), "{}", output.err);
}

#[test]
fn the_error_of_a_call_goes_to_standard_error() {
    // A task of V1 that the server stops ends with a JSON-RPC error.
    let mut server = DemoServer::with_store(std::time::Duration::from_secs(60));
    let left = server.run(&["call", "--as", "v1", "--detach", "{}", "flaky"]);
    let task = left.out.trim().to_owned();
    server.kill();
    server.start_again();
    let store = server.store();
    let watched = server.run(&["tasks", "watch", "--store", &store, &task]);
    assert_eq!(watched.code, Some(9), "{}", watched.err);
    assert!(watched.err.contains("(-3"), "{}", watched.err);
    assert!(!watched.out.contains("(-3"), "{}", watched.out);
    // With --json it is data.
    let result = server.run(&["tasks", "result", "--json", "--store", &store, &task]);
    assert_eq!(result.json()["error"]["data"]["outcome"], "unknown");
}

#[test]
fn an_error_of_the_tool_has_its_own_exit_code() {
    let server = DemoServer::start();
    let output = server.run(&["call", "{}", "flaky"]);
    assert_eq!(
        (output.out.as_str(), output.code),
        ("the weather service is down\n", Some(7))
    );
}

#[test]
fn a_wrong_call_is_reported_with_a_next_step() {
    let server = DemoServer::start();
    for (words, code, expected) in [
        (
            &["call", "{}", "countdown", "from=x"][..],
            2,
            "argument `from` must be of type integer",
        ),
        (&["call", "{}", "countdown"], 2, "the tool needs `from`"),
        (&["call", "{}", "nope"], 2, "the server has no tool nope"),
        (&["call", "{}", "countdwon"], 2, "next: call countdown;"),
        (&["call", "{}"], 2, "no tool is given"),
        (
            &[
                "call",
                "--as",
                "v1",
                "--no-task",
                "{}",
                "long_running_task",
                "duration=1",
            ],
            2,
            "runs only as a task",
        ),
        (
            &["call", "--as", "v3", "{}", "countdown", "from=1"],
            2,
            "invalid value 'v3'",
        ),
        (
            &["call", "some-name", "x"],
            2,
            "no configuration file in this folder",
        ),
        (
            &["tasks", "get", "{}", "nope"],
            3,
            "the server has no task nope",
        ),
        (
            &["tasks", "cancel", "nope"],
            2,
            "only a running server can cancel a task",
        ),
        (
            &["doctor", "http://127.0.0.1:1/mcp"],
            6,
            "cannot connect to http://127.0.0.1:1/mcp",
        ),
        (&["doctor", "--", "/no/such/program"], 6, "/no/such/program"),
    ] {
        let output = server.run(words);
        assert_eq!(output.code, Some(code), "{words:?}: {}", output.err);
        assert!(output.err.contains(expected), "{words:?}: {}", output.err);
        let helps = output.err.contains("next:") || output.err.contains("try '--help'");
        assert!(helps, "{words:?}: {}", output.err);
    }
}

#[test]
fn a_task_is_detached_found_again_watched_and_cancelled() {
    for how in ["v1", "v2"] {
        let server = DemoServer::start();
        let call = [
            "call",
            "--as",
            how,
            "--detach",
            "{}",
            "countdown",
            "from=1000",
        ];
        let left = server.run(&call);
        assert_eq!(left.code, Some(0), "{how}: {}", left.err);
        let task = left.out.trim();
        let got = server.run(&["tasks", "get", "--json", "{}", task]);
        assert_eq!(got.json()["status"], "working");
        let listed = server.run(&["tasks", "list", "--as", how, "--json", "{}"]);
        match how {
            "v1" => assert_eq!(listed.json()[0]["taskId"], task),
            _ => assert!(listed.err.contains("does not support listing tasks")),
        }
        // Without `--as`, the era that can list tasks is used.
        let listed = server.run(&["tasks", "list", "--json", "{}"]);
        assert_eq!(listed.code, Some(0), "{how}: {}", listed.err);
        let cancelled = server.run(&["tasks", "cancel", "{}", task]);
        assert_eq!(cancelled.code, Some(0), "{how}: {}", cancelled.err);
        let watched = server.run(&["tasks", "watch", "{}", task]);
        assert_eq!(watched.code, Some(8), "{how}: {}", watched.err);
        let again = server.run(&["tasks", "cancel", "{}", task]);
        assert_eq!(again.code, Some(1), "{how}: {}", again.err);
        assert!(
            again.err.contains("has already ended (cancelled)"),
            "{how}: {}",
            again.err
        );
    }
}

#[test]
fn an_empty_list_of_an_anonymous_caller_is_explained() {
    let server = DemoServer::start();
    for (words, printed) in [
        (&["tasks", "list", "{}"][..], ""),
        (&["tasks", "list", "--json", "{}"], "[]\n"),
    ] {
        let listed = server.run(words);
        assert_eq!(
            (listed.out.as_str(), listed.code),
            (printed, Some(0)),
            "{}",
            listed.err
        );
        assert!(listed.err.contains("without a token"), "{}", listed.err);
        assert!(listed.err.contains("next:"), "{}", listed.err);
    }
}

#[test]
fn the_result_of_a_detached_task_is_awaited() {
    for how in ["v1", "v2"] {
        let server = DemoServer::start();
        let call = [
            "call",
            "--as",
            how,
            "--detach",
            "--json",
            "{}",
            "countdown",
            "from=60",
        ];
        let left = server.run(&call).json();
        let task = left["taskId"].as_str().expect("an id");
        let output = server.run(&["tasks", "result", "{}", task]);
        assert_eq!(output.json()["content"][0]["text"], "lift-off", "{how}");
    }
}

#[test]
fn detaching_from_a_child_server_warns_that_the_task_ends() {
    let server = DemoServer::start();
    let program = example("test_tasks").display().to_string();
    let config = format!(r#"{{ "mcpServers": {{ "mine": {{ "command": "{program}" }} }} }}"#);
    std::fs::write(server.home.path().join("mcp.json"), config).expect("it is written");
    let tool = "long_running_task";
    let by_command = ["call", "--detach", tool, "duration=60", "--", &program];
    let by_name = ["call", "--detach", "mine", tool, "duration=60"];
    for (words, next) in [
        (&by_command[..], format!("ID -- {program}")),
        (&by_name[..], "mine ID".into()),
    ] {
        let left = server.run(words);
        assert_eq!(left.code, Some(0), "{words:?}: {}", left.err);
        let task = left.out.trim();
        assert!(left.err.contains("ends with this command"), "{}", left.err);
        let next = format!("outlast tasks result {}", next.replace("ID", task));
        assert!(left.err.contains(&next), "{}", left.err);
    }
}

#[test]
fn a_user_answers_a_form_and_a_sampling_request() {
    let server = DemoServer::start();
    // A yes-or-no field takes one answer, and is asked again if the answer is neither.
    let typed = Some("maybe\nyes\n");
    let output = server.run_with(&["call", "--interactive", "{}", "confirm", "file=a"], typed);
    assert!(
        output.out.contains("a: confirmed"),
        "{} {}",
        output.out,
        output.err
    );
    assert_eq!(
        output.err.matches("[y]es, [n]o").count(),
        2,
        "{}",
        output.err
    );
    let output = server.run_with(
        &["call", "--interactive", "{}", "confirm", "file=a"],
        Some("d\n"),
    );
    assert!(output.out.contains("a: declined"), "{}", output.out);
    // Without a terminal: the client declares that it does not support input requests.
    let output = server.run(&["call", "{}", "confirm", "file=a"]);
    assert_eq!(output.code, Some(7));
    assert!(
        output.out.contains("does not support form elicitation"),
        "{}",
        output.out
    );
    assert!(
        output.err.contains("next: if it needs your input") && output.err.contains("--detach"),
        "{}",
        output.err
    );
}

#[test]
fn commands_with_and_without_a_user_share_no_session() {
    // The session of a command is stored, and the next one with the same capabilities uses it.
    let server = DemoServer::start();
    for (how, typed, code, expected) in [
        ("--no-input", None, 7, "does not support form elicitation"),
        ("--interactive", Some("yes\n"), 0, "a: confirmed"),
        ("--no-input", None, 7, "does not support form elicitation"),
        ("--interactive", Some("yes\n"), 0, "a: confirmed"),
    ] {
        let words = ["call", "--as", "v1", how, "{}", "confirm", "file=a"];
        let output = server.run_with(&words, typed);
        assert_eq!(output.code, Some(code), "{how}: {}", output.err);
        assert!(output.out.contains(expected), "{how}: {}", output.out);
    }
}

#[test]
fn commands_in_one_session_get_their_own_results_and_progress() {
    let server = DemoServer::start();
    let both = |commands: [Vec<&str>; 2]| {
        let running = commands.map(|words| server.begin(&words));
        running.map(RunningCommand::end)
    };
    let detach = |from| {
        let call = ["call", "--as", "v1", "--detach", "{}", "countdown", from];
        server.run(&call).out.trim().to_owned()
    };
    let tasks = [detach("from=100"), detach("from=130")];
    let result = |id| vec!["tasks", "result", "--as", "v1", "{}", id];
    for (output, id) in both([result(&tasks[0]), result(&tasks[1])])
        .iter()
        .zip(&tasks)
    {
        assert!(output.out.contains("lift-off"), "{id}: {}", output.err);
        assert_eq!(output.code, Some(0), "{id}: {}", output.err);
    }
    let call = |from| vec!["call", "--as", "v1", "{}", "countdown", from];
    let outputs = both([call("from=101"), call("from=131")]);
    for (output, [own, other]) in outputs.iter().zip([["/101", "/131"], ["/131", "/101"]]) {
        assert_eq!(output.out, "lift-off\n", "{own}: {}", output.err);
        assert!(output.err.contains(own), "{own}: {}", output.err);
        assert!(!output.err.contains(other), "{own}: {}", output.err);
    }
}

#[test]
fn a_user_sees_a_sampling_request_and_answers_or_declines() {
    // V1-SAMP-3, S0-73, S0-75.
    let server = DemoServer::start();
    let call = [
        "call",
        "--interactive",
        "{}",
        "confirm_and_sample",
        "topic=tides",
    ];
    for task in ["--task", "--no-task"] {
        let mut words = call.to_vec();
        words.insert(1, task);
        let output = server.run_with(&words, Some("yes\ny\nThey come and go.\n"));
        assert_eq!(output.out, "They come and go.\n", "{}", output.err);
        assert!(
            output.err.contains("asks for a response of a model"),
            "{}",
            output.err
        );
        assert!(
            output.err.contains("system: Write one line"),
            "{}",
            output.err
        );
        assert!(output.err.contains("user: tides"), "{}", output.err);
        assert!(output.err.contains(&server.url), "{}", output.err);
    }
    // The refusal is the response to the request. It does not cancel the call.
    for how in ["v1", "v2"] {
        let mut words = call.to_vec();
        words.splice(1..1, ["--as", how]);
        let output = server.run_with(&words, Some("yes\nd\n"));
        assert_eq!(output.code, Some(7), "{how}: {}", output.err);
        let refusal = "User declined sampling request";
        assert!(output.out.contains(refusal), "{how}: {}", output.out);
    }
}

#[test]
fn a_terminal_accepts_input_requests_as_tasks() {
    // S1-61, S1-62: the server on the pipe reports what the client declared.
    let server = DemoServer::start();
    for (options, declared) in [
        (
            &["--interactive"][..],
            r#""requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}"#,
        ),
        (&["--no-input"], r#""capabilities":{}"#),
    ] {
        let mut words = vec!["call", "--verbose", "--as", "v1"];
        words.extend(options);
        words.extend(["anything", "--", "sh", "-c", "head -n 1 >&2"]);
        let output = server.run(&words);
        assert_eq!(output.code, Some(6), "{}", output.err);
        assert!(output.err.contains(declared), "{}", output.err);
    }
}

#[test]
fn a_waiting_task_is_answered_by_another_command() {
    for how in ["v1", "v2"] {
        is_answered_by_another_command(how);
    }
}

fn is_answered_by_another_command(how: &str) {
    let server = DemoServer::start();
    // There is no terminal. The input request waits.
    let left = server.run(&["call", "--as", how, "--detach", "{}", "confirm", "file=a"]);
    let task = left.out.trim();
    let waits = (0..200).any(|_| {
        let got = server.run(&["tasks", "get", "--json", "{}", task]).json();
        got["status"] == "input_required"
    });
    assert!(waits, "the task sent no input request");
    // A command that only reads the task does not answer, and does not withdraw the input request.
    let got = server.run(&["tasks", "get", "--json", "{}", task]).json();
    assert_eq!(got["status"], "input_required");
    let answer = r#"{"action":"accept","content":{"confirm":false}}"#;
    let output = server.run(&["tasks", "answer", "{}", task, "--with", answer]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let result = server.run(&["tasks", "result", "{}", task]);
    assert!(result.out.contains("a: not confirmed"), "{}", result.out);
    let late = server.run(&["tasks", "answer", "{}", task, "--decline"]);
    assert_eq!(late.code, Some(1), "{}", late.err);
    assert!(
        late.err.contains("has no open input request"),
        "{}",
        late.err
    );
}

#[test]
fn a_name_in_a_configuration_file_is_a_target() {
    let server = DemoServer::start();
    let config = format!(
        "{{ // ours\n \"servers\": {{ \"demo\": {{ \"url\": \"{}\" }} }} }}",
        server.url
    );
    std::fs::write(server.home.path().join("mcp.json"), config).expect("it is written");
    let output = server.run(&["call", "demo", "countdown", "from=1"]);
    assert_eq!(output.out, "lift-off\n", "{}", output.err);
}

#[test]
fn doctor_describes_a_server() {
    let server = DemoServer::start();
    let output = server.run(&["doctor", "{}"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    for expected in [
        "server    outlast-demo",
        "protocol  2026-07-28",
        "tasks     V2: the server decides",
        "also      2025-11-25",
        "  tasks   V1: tools/call",
    ] {
        assert!(output.out.contains(expected), "{expected}: {}", output.out);
    }
    let output = server.run(&["doctor", "--as", "v1", "{}"]);
    for expected in [
        "protocol  2025-11-25",
        "tasks     V1: tools/call",
        "  long_running_task    task required  duration",
        "also      2026-07-28",
    ] {
        assert!(output.out.contains(expected), "{expected}: {}", output.out);
    }
    let json = server.run(&["doctor", "--json", "{}"]).json();
    assert_eq!(json["serverInfo"]["name"], "outlast-demo");
    assert_eq!(json["eras"]["modern"]["protocolVersion"], "2026-07-28");
    assert_eq!(json["eras"]["legacy"]["protocolVersion"], "2025-11-25");
}

#[test]
fn exit_codes_are_documented() {
    let server = DemoServer::start();
    let output = server.run(&["help", "exit-codes"]);
    assert!(
        output.out.contains("7  the tool returned an error"),
        "{}",
        output.out
    );
}
