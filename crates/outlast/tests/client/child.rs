//! A server that is a child process.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{self, Client, ClientOptions, ReconnectPolicy, Target};
use outlast::transport::child::ChildOptions;
use outlast::transport::link::LinkError;
use outlast_testkit::eventually;

use crate::stage::collector;

/// A server in a few lines of shell: says hello, answers everything with an empty result.
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
    options.patience = Duration::from_millis(200);
    options
}

#[tokio::test]
async fn a_child_is_spoken_to_and_what_it_says_of_itself_is_heard() {
    // V1-STDIO-4.
    let (heard, hear) = collector();
    let options = ChildOptions {
        on_output: Some(Arc::new(hear)),
        ..shell(SERVER)
    };
    let client = Client::connect(Target::child(options), crate::stage::options())
        .await
        .unwrap();
    client.ping().await.unwrap();
    client.close().await;
    assert_eq!(*heard.lock().unwrap(), ["starting"]);
}

#[tokio::test]
async fn a_child_that_dies_says_how_and_what_it_said_last() {
    let client = Client::connect(Target::child(shell(SERVER)), crate::stage::options())
        .await
        .unwrap();
    let died = client.request("die", None).await;
    let Err(client::Error::Transport(LinkError::Ended { status, printed })) = died else {
        panic!("{died:?}");
    };
    assert!(
        status.contains('3') && printed.contains("dying"),
        "{status} {printed}"
    );
    // One that never lived says it as well.
    for script in [
        "echo 'no such luck' >&2; exit 7",
        "echo 'no such luck'; exit 7",
        r#"echo '{"level":"error","text":"no such luck"}'; exit 7"#,
    ] {
        let failed = Client::connect(Target::child(shell(script)), crate::stage::options()).await;
        let text = failed.err().unwrap().to_string();
        assert!(
            text.contains("no such luck") && text.contains('7'),
            "{text}"
        );
    }
    let nothing = ChildOptions::new("/nonexistent/program");
    let failed = Client::connect(Target::child(nothing), crate::stage::options()).await;
    assert!(matches!(
        failed.err(),
        Some(client::Error::Transport(LinkError::Unreachable(_)))
    ));
}

#[tokio::test]
async fn a_child_that_dies_is_started_again_if_that_is_wanted() {
    let restart = ReconnectPolicy {
        first_delay: Duration::from_millis(1),
        ..ReconnectPolicy::default()
    };
    let options = ClientOptions {
        reconnect: Some(restart),
        ..crate::stage::options()
    };
    let client = Client::connect(Target::child(shell(SERVER)), options)
        .await
        .unwrap();
    assert!(client.request("die", None).await.is_err());
    client.ping().await.unwrap();
}

#[tokio::test]
async fn a_child_that_does_not_want_to_leave_is_killed_with_all_it_started() {
    // V1-INIT-10.
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ $! > {}; {SERVER} while :; do sleep 1; done",
        pids.display()
    );
    let client = Client::connect(Target::child(shell(&script)), crate::stage::options())
        .await
        .unwrap();
    client.close().await;
    let pids = std::fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace() {
        eventually("the process ends", async || !lives(pid)).await;
    }
    drop(client);
}

/// A process that was killed is a zombie until its parent asks for it.
fn lives(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z")
}
