//! Files of builds from before version 1 of the schema are refused by name. P11 applies from
//! version 1 on; `upgrade.rs` has a file of each.

use std::fs;

use outlast_store::OpenError;

use crate::harness::StoreFolder;

#[tokio::test]
async fn an_unreleased_builds_file_is_refused_and_not_changed() {
    for version in [1, 2] {
        let folder = StoreFolder::new();
        let old = rusqlite::Connection::open(folder.path()).unwrap();
        old.execute_batch(
            "CREATE TABLE opened (id TEXT); CREATE TABLE meta (name TEXT, value INT)",
        )
        .unwrap();
        old.pragma_update(None, "application_id", 0x4f75_744c)
            .unwrap();
        old.pragma_update(None, "user_version", version).unwrap();
        drop(old);
        let before = fs::read(folder.path()).unwrap();
        let refused = folder.refusal().await;
        assert!(matches!(refused, OpenError::Unreleased { .. }), "{refused}");
        let words = refused.to_string();
        assert!(words.contains("before its first release"), "{words}");
        assert!(words.contains("move it away"), "{words}");
        assert_eq!(fs::read(folder.path()).unwrap(), before);
        let refused = outlast_store::sqlite::SqliteReader::open(folder.path());
        assert!(matches!(refused, Err(OpenError::Unreleased { .. })));
    }
}

/// Such a build had files named ledgers next to the database.
#[tokio::test]
async fn a_ledger_of_an_unreleased_build_is_named() {
    for suffix in ["ledger-a", "ledger-b"] {
        let folder = StoreFolder::new();
        let ledger = folder.file(&format!("tasks.db.{suffix}"));
        fs::write(&ledger, "frames").unwrap();
        let refused = folder.refusal().await.to_string();
        assert!(refused.contains(suffix), "{refused}");
        assert!(!folder.path().exists());
        assert_eq!(fs::read(&ledger).unwrap(), b"frames");
    }
}
