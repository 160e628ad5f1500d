//! One process per file.

use std::process::{Child, Command, Stdio};

use outlast_engine::laws::fixtures;
use outlast_store::{OpenError, Sqlite, SqliteOptions};
use outlast_testkit::OutputLines;

use crate::harness::StoreFolder;

/// A second process of this test program that runs only `test`, for `folder`.
pub(crate) fn another_process(folder: &StoreFolder, test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--ignored"])
        .env(STORE_VARIABLE, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The file that this process was started for.
pub(crate) fn given_path() -> Option<String> {
    std::env::var(STORE_VARIABLE).ok()
}

/// The lines that the process prints after `word`.
pub(crate) fn lines_after(
    child: &mut Child,
    word: &'static str,
) -> impl Iterator<Item = String> + use<> {
    let mut lines = OutputLines::read(child.stdout.take().unwrap());
    std::iter::from_fn(move || lines.next()).filter_map(move |line| {
        let at = line.find(word)?;
        Some(line[at + word.len()..].trim().to_owned())
    })
}

#[tokio::test]
#[ignore = "runs in a process of its own, started by the test below"]
async fn hold_the_file() {
    let Some(path) = given_path() else { return };
    let _store = Sqlite::open(path, SqliteOptions::default()).await.unwrap();
    println!("\nholding it");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_second_process_is_refused_with_the_holder_of_the_lock() {
    let folder = StoreFolder::new();
    let mut first = another_process(&folder, "locking::hold_the_file")
        .spawn()
        .unwrap();
    lines_after(&mut first, "holding").next().unwrap();

    let refused = folder.refusal().await;
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    let words = refused.to_string();
    let process = format!("in use by process {} (sqlite-", first.id());
    assert!(words.contains(&process), "{words}");
    assert!(words.contains(" since 20"), "{words}");
    assert!(words.contains("choose another --store"), "{words}");

    // SIGKILL: nothing is cleaned up, but the lock is free.
    first.kill().unwrap();
    first.wait().unwrap();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
}

#[tokio::test]
async fn a_second_store_in_the_same_process_is_refused() {
    let folder = StoreFolder::new();
    let first = folder.open().await;
    let refused = folder.refusal().await.to_string();
    let process = format!("process {} ", std::process::id());
    assert!(refused.contains(&process), "{refused}");
    // The attempt did not affect the first store.
    fixtures::stored(&first, fixtures::task(1)).await;

    first.close().await.unwrap();
    let second = folder.open().await;
    drop(second);
    folder.open().await;
}

#[tokio::test]
async fn a_file_has_one_lock_however_it_is_named() {
    let folder = StoreFolder::new();
    let _first = folder.open().await;
    let link = folder.file("link.db");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let refused = Sqlite::open(link, SqliteOptions::default()).await;
    assert!(matches!(refused, Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn a_lock_file_that_is_a_symbolic_link_is_refused() {
    let folder = StoreFolder::new();
    let victim = folder.file("victim");
    std::fs::write(&victim, "precious").unwrap();
    let mut lock = folder.path().as_os_str().to_owned();
    lock.push(".lock");
    std::os::unix::fs::symlink(&victim, lock).unwrap();
    let refused = Sqlite::open(folder.path(), SqliteOptions::default()).await;
    let why = match refused {
        Ok(_) => panic!("a link is not followed"),
        Err(error) => error.to_string(),
    };
    assert!(why.contains("is a symbolic link"), "{why}");
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
}

const STORE_VARIABLE: &str = "OUTLAST_TEST_STORE";
