//! A server that is a child process.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{self, Client, ReconnectPolicy, Target};
use outlast::transport::child::ChildOptions;
use outlast::transport::link::TransportError;
use outlast_testkit::eventually;

use crate::harness::collector;

/// A server as a shell script: responds to `initialize`, and to everything else with an empty
/// result.
const SERVER: &str = r#"
echo "starting" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}' ;;
    *'"die"'*) echo "dying" >&2; exit 3 ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done
"#;

fn shell(script: &str) -> ChildOptions {
    let mut options = ChildOptions::new("sh").args(["-c", script]);
    options.grace_period = Duration::from_millis(200);
    options
}

#[tokio::test]
async fn messages_and_output_of_a_child_arrive() {
    // V1-STDIO-4.
    let (received, collect) = collector();
    let options = shell(SERVER).with_on_output(Arc::new(collect));
    let client = Client::connect(Target::child(options), crate::harness::options())
        .await
        .unwrap();
    client.ping().await.unwrap();
    client.close().await;
    assert_eq!(*received.lock().unwrap(), ["starting"]);
}

#[tokio::test]
async fn the_end_of_a_child_reports_status_and_output() {
    let client = Client::connect(Target::child(shell(SERVER)), crate::harness::options())
        .await
        .unwrap();
    let died = client.request("die", None).await;
    let Err(client::Error::Transport(TransportError::Ended { status, printed })) = died else {
        panic!("{died:?}");
    };
    assert!(
        status.contains('3') && printed.contains("dying"),
        "{status} {printed}"
    );
    // A command that does not exist is reported, too.
    for script in [
        "echo 'no such luck' >&2; exit 7",
        "echo 'no such luck'; exit 7",
        r#"echo '{"level":"error","text":"no such luck"}'; exit 7"#,
    ] {
        let failed = Client::connect(Target::child(shell(script)), crate::harness::options()).await;
        let text = failed.err().unwrap().to_string();
        assert!(
            text.contains("no such luck") && text.contains('7'),
            "{text}"
        );
    }
    let nothing = ChildOptions::new("/nonexistent/program");
    let failed = Client::connect(Target::child(nothing), crate::harness::options()).await;
    assert!(matches!(
        failed.err(),
        Some(client::Error::Transport(TransportError::Unreachable(_)))
    ));
}

#[tokio::test]
async fn a_child_that_ends_is_restarted_with_a_reconnect_policy() {
    let restart = ReconnectPolicy::default().with_first_delay(Duration::from_millis(1));
    let options = crate::harness::options().with_reconnect(restart);
    let client = Client::connect(Target::child(shell(SERVER)), options)
        .await
        .unwrap();
    assert!(client.request("die", None).await.is_err());
    client.ping().await.unwrap();
}

#[tokio::test]
async fn a_hanging_child_is_killed_with_its_group() {
    // V1-INIT-10.
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ $! > {}; {SERVER} while :; do sleep 1; done",
        pids.display()
    );
    let client = Client::connect(Target::child(shell(&script)), crate::harness::options())
        .await
        .unwrap();
    client.close().await;
    let pids = std::fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace() {
        eventually("the process ends", async || !is_running(pid)).await;
    }
    drop(client);
}

/// A killed process is a zombie until its parent reaps it.
fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z")
}
