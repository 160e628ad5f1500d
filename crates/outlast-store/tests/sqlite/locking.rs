//! One process per file.

use std::process::{Child, Command, Stdio};

use outlast_engine::laws::fixtures;
use outlast_store::sqlite::SqliteReader;
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
async fn a_second_process_is_refused_naming_the_lock_holder() {
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
async fn a_side_file_that_is_a_symbolic_link_is_refused() {
    for suffix in [".lock", "-wal"] {
        let folder = StoreFolder::new();
        folder.open().await.close().await.unwrap();
        let (victim, side_file) = (folder.file("victim"), side_file(&folder, suffix));
        std::fs::write(&victim, "precious").unwrap();
        let _ = std::fs::remove_file(&side_file);
        std::os::unix::fs::symlink(&victim, &side_file).unwrap();
        let why = folder.refusal().await.to_string();
        assert!(why.contains("is a symbolic link"), "{suffix}: {why}");
        assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_reader_refuses_links_and_pipes() {
    let folder = StoreFolder::new();
    folder.open().await.close().await.unwrap();
    let reader = SqliteReader::open(folder.path()).unwrap().unwrap();
    let (victim, lock) = (folder.file("victim"), side_file(&folder, ".lock"));
    std::fs::write(&victim, "precious").unwrap();
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&victim, &lock).unwrap();
    let why = reader.holder().unwrap_err().to_string();
    assert!(why.contains("is a symbolic link"), "{why}");

    std::fs::remove_file(&lock).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::RUSR).unwrap();
    let why = reader.holder().unwrap_err().to_string();
    assert!(why.contains("is not a regular file"), "{why}");
}

fn side_file(folder: &StoreFolder, suffix: &str) -> std::path::PathBuf {
    let mut name = folder.path().as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

const STORE_VARIABLE: &str = "OUTLAST_TEST_STORE";
