//! The ledger: what is promised is there, whatever becomes of the tables, and no frame counts that was not whole.

use std::fs;
use std::sync::Arc;

use outlast_engine::laws::given;
use outlast_engine::store::{Health, Inserted};
use outlast_engine::transition::Command;
use outlast_engine::{Outcome, Scope, Store};
use outlast_store::sqlite::{FailAs, Look, Moment};
use outlast_store::{Durability, OpenError, SqliteOptions};

use crate::opened::{Gate, Place, Saboteur, recovered};

/// Tasks in every stage, of which the tables have the first two only.
async fn written(place: &Place) -> Arc<dyn Store> {
    let store = place.open().await;
    let first = given::stored(&store, given::task(1)).await;
    let second = given::stored(&store, given::task(2)).await;
    place.settle();
    given::ended(&store, &first, given::result("1")).await;
    given::changed(&store, &second, given::status(&second, "on")).await;
    let third = given::stored(&store, given::task(3)).await;
    given::ended(&store, &third, given::result("[3]")).await;
    let fourth = given::stored(&store, given::task(4)).await;
    given::removed(&store, &fourth).await;
    given::stored(&store, given::task(5)).await;
    store
}

#[tokio::test]
async fn tables_without_their_log_are_filled_from_the_ledger() {
    let place = Place::new();
    let store = written(&place).await;
    let all = given::listed(&store, &given::ada(), 9).await;
    // As after a loss of power: nothing that was not synced is left.
    let copy = place.copy();
    for log in ["tasks.db-wal", "tasks.db-shm"] {
        fs::remove_file(copy.file(log)).unwrap();
    }
    let store = copy.open().await;
    assert_eq!(given::listed(&store, &given::ada(), 9).await, all);
    for _ in 0..2 {
        assert_eq!(
            given::body(&store, given::id(1)).await,
            Some(given::raw("1"))
        );
        let third = given::loaded(&store, given::id(3)).await.unwrap();
        assert_eq!(third.revision.0, 2);
        assert_eq!(third.origin.params, given::task(3).origin.params);
        let second = given::shown_open(&store, given::id(2)).await;
        assert_eq!(second.message.as_deref(), Some("on"));
        // The same from the tables.
        copy.settle();
    }
    let count = "SELECT count(*) FROM tasks WHERE state = 'result'";
    assert_eq!(copy.look::<u32>(count), 2);
}

#[tokio::test]
async fn a_ledger_that_was_cut_anywhere_keeps_what_was_whole() {
    let place = Place::new();
    let store = written(&place).await;
    let whole = place.copy();
    drop(store);
    let ledger = fs::read(whole.file("tasks.db.ledger-a")).unwrap();
    let used = ledger.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut seen = Vec::new();
    for cut in (0..=used).step_by(97).chain([used]) {
        let copy = whole.copy();
        let mut torn = ledger[..cut].to_vec();
        torn.resize(ledger.len(), 0);
        fs::write(copy.file("tasks.db.ledger-a"), &torn).unwrap();
        let store = copy.open().await;
        let found = given::listed(&store, &given::ada(), 9).await.len();
        let ended = given::body(&store, given::id(1)).await.is_some();
        seen.push((ended, found));
        // It goes on where it was cut.
        given::stored(&store, given::task(9)).await;
        let store = copy.copy().open().await;
        assert!(given::shown(&store, given::id(9)).await.is_some(), "{cut}");
    }
    assert!(seen.is_sorted_by_key(|(ended, _)| *ended), "{seen:?}");
    assert_eq!(seen.first(), Some(&(false, 2)));
    assert_eq!(seen.last(), Some(&(true, 4)), "two, three, five and one");
}

#[tokio::test]
async fn a_look_sees_what_the_tables_do_not_have_yet() {
    let place = Place::new();
    let _store = written(&place).await;
    let look = Look::at(place.path()).unwrap().unwrap();
    for scope in [Scope::Anyone, Scope::Of(given::ada())] {
        let ids: Vec<_> = look
            .newest(&scope, 3)
            .unwrap()
            .iter()
            .map(|task| task.id)
            .collect();
        assert_eq!(ids, [5, 3, 2].map(given::id));
        assert!(look.task(&scope, given::id(4)).unwrap().is_none());
        let second = look.task(&scope, given::id(2)).unwrap().unwrap();
        assert_eq!(second.message.as_deref(), Some("on"));
        for (id, body) in [(1, "1"), (3, "[3]")] {
            let found = look.body(&scope, given::id(id)).unwrap();
            assert_eq!(found, Some(given::raw(body)));
        }
    }
}

#[tokio::test]
async fn records_are_there_at_once_and_after_a_kill() {
    let place = Place::new();
    let store = place.open().await;
    let mut old = given::record("session", "a");
    let new = given::record("session", "b");
    let gone = given::record("session", "c");
    store
        .write_records(vec![given::put(&old), given::put(&gone)])
        .await
        .unwrap();
    place.settle();
    old.bytes = (*b"changed").into();
    let delete = outlast_engine::store::RecordWrite::Delete(gone.key.clone());
    let writes = vec![given::put(&old), given::put(&new), delete];
    store.write_records(writes).await.unwrap();
    for store in [store, place.copy().open().await] {
        let all = store
            .records("session", None, given::CREATED)
            .await
            .unwrap();
        assert_eq!(all, [old.clone(), new.clone()]);
        let found = store.record(&gone.key, given::CREATED).await.unwrap();
        assert_eq!(found, None);
        let found = store.record(&old.key, given::CREATED).await.unwrap();
        assert_eq!(found, Some(old.clone()));
    }
}

#[tokio::test]
async fn the_files_take_turns_and_stay_short() {
    let place = Place::new();
    let quick = SqliteOptions {
        durability: Durability::Process,
        ..SqliteOptions::default()
    };
    let store = place.open_with(quick.clone()).await;
    let body = format!("\"{}\"", "x".repeat(100_000));
    let mut longest = 0;
    for n in 0..900 {
        let task = given::stored(&store, given::task(n)).await;
        given::ended(&store, &task, given::result(&body)).await;
        for file in ["a", "b"] {
            let file = place.file(&format!("tasks.db.ledger-{file}"));
            longest = longest.max(file.metadata().unwrap().len());
        }
    }
    assert!((10 << 20..60 << 20).contains(&longest), "{longest} bytes");
    let store = place.copy().open_with(quick).await;
    assert_eq!(given::listed(&store, &given::ada(), 1_000).await.len(), 900);
    for n in [0, 450, 899] {
        let found = given::body(&store, given::id(n)).await;
        assert_eq!(found.map(|body| body.size()), Some(100_002));
    }
}

#[tokio::test]
async fn the_ledger_of_another_file_does_not_count() {
    let place = Place::new();
    let _store = written(&place).await;
    let other = place.copy();
    for file in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        fs::remove_file(other.file(file)).unwrap();
    }
    let store = other.open().await;
    assert!(given::listed(&store, &given::ada(), 9).await.is_empty());
    given::stored(&store, given::task(7)).await;
    let store = other.copy().open().await;
    assert_eq!(
        given::listed(&store, &given::ada(), 9).await,
        [given::id(7)]
    );
}

#[tokio::test]
async fn a_ledger_that_lacks_a_frame_is_refused_by_name() {
    let place = Place::new();
    let _store = written(&place).await;
    let copy = place.copy();
    let ledger = copy.file("tasks.db.ledger-a");
    let bytes = fs::read(&ledger).unwrap();
    let first = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    fs::write(&ledger, &bytes[first..]).unwrap();
    let file = rusqlite::Connection::open(copy.path()).unwrap();
    file.execute("UPDATE meta SET value = 0 WHERE name = 'filled_to'", ())
        .unwrap();
    drop(file);
    let refused = copy.refusal().await;
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert!(
        refused.to_string().contains("goes on with frame 2"),
        "{refused}"
    );
}

#[tokio::test]
async fn tables_that_cannot_be_written_lose_nothing_and_recover() {
    for (moment, fail) in [
        (Moment::BeforeFill, FailAs::FsyncError),
        (Moment::AfterFill, FailAs::FsyncError),
        (Moment::BeforeFill, FailAs::DiskFull),
    ] {
        let place = Place::new();
        let probe = Arc::new(Saboteur::default());
        let store = place.open_with(probe.options()).await;
        let task = given::stored(&store, given::task(1)).await;
        place.settle();
        probe.fail(moment, fail);
        given::ended(&store, &task, given::result("1")).await;
        let new = given::stored(&store, given::task(2)).await;
        let mut health = store.health();
        health
            .wait_for(|health| *health != Health::Ready)
            .await
            .unwrap();
        assert_eq!(given::body(&store, task.id).await, Some(given::raw("1")));
        let killed = place.copy().open().await;
        assert_eq!(given::body(&killed, task.id).await, Some(given::raw("1")));

        recovered(&store).await;
        given::ended(&store, &new, Outcome::Cancelled).await;
        let ended = "SELECT count(*) FROM tasks WHERE state IN ('result', 'cancelled')";
        assert_eq!(place.look::<u32>(ended), 2, "{moment:?} {fail:?}");
    }
}

/// While one generation of changes is written, the next is read together with it.
#[tokio::test]
async fn a_task_that_changes_while_it_is_written_is_read_whole() {
    let place = Place::new();
    let (gate, open) = Gate::at(Moment::BeforeFill);
    let options = SqliteOptions {
        probe: Some(Arc::new(gate)),
        recent_bytes: 0,
        ..SqliteOptions::default()
    };
    let store = place.open_with(options).await;
    let large = format!("\"{}\"", "x".repeat(10_000));
    let first = given::stored(&store, given::task(1)).await;
    let second = given::stored(&store, given::task(2)).await;
    let second = given::ended(&store, &second, given::result(&large)).await;
    open.reached();
    let first = given::ended(&store, &first, given::result("1")).await;
    let ttl = 2 * given::TTL;
    let second = given::changed(&store, &second, Command::Extend { ttl }).await;
    for open in [Some(open), None] {
        for (task, body) in [(&first, "1"), (&second, &*large)] {
            assert_eq!(given::loaded(&store, task.id).await.as_ref(), Some(task));
            assert_eq!(given::body(&store, task.id).await, Some(given::raw(body)));
        }
        if open.is_some() {
            drop(open);
            place.settle();
        }
    }
}

#[tokio::test]
async fn what_comes_while_the_tables_fail_follows_by_itself() {
    let place = Place::new();
    let probe = Arc::new(Saboteur::default());
    let store = place.open_with(probe.options()).await;
    probe.fail(Moment::BeforeFill, FailAs::DiskFull);
    probe.fail(Moment::BeforeFill, FailAs::DiskFull);
    let task = given::stored(&store, given::task(1)).await;
    let mut health = store.health();
    let full = |health: &Health| matches!(health, Health::NoRoom(_));
    health.wait_for(full).await.unwrap();
    given::ended(&store, &task, given::result("1")).await;
    let refused = store.insert(given::insertion(given::task(2))).await;
    assert!(refused.is_err(), "what is left is for finishing");
    recovered(&store).await;
    let file = rusqlite::Connection::open(place.path()).unwrap();
    let sql = "SELECT count(*) FROM tasks WHERE state = 'result'";
    for _ in 0..100 {
        if file.query_row(sql, (), |row| row.get(0)) == Ok(1) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the end is not in the tables");
}

#[tokio::test]
async fn a_key_that_passed_to_another_task_is_its_own_after_a_kill() {
    let place = Place::new();
    let store = place.open().await;
    let keyed = |n: u64| given::task_with_key(n, &given::ada(), &format!("key {}", n % 20));
    for n in 0..20 {
        given::stored(&store, keyed(n)).await;
    }
    place.settle();
    for n in 0..20 {
        given::removed(&store, &keyed(n)).await;
        given::stored(&store, keyed(n + 20)).await;
    }
    let store = place.copy().open().await;
    for n in 0..20 {
        let again = store.insert(given::insertion(keyed(n + 40))).await.unwrap();
        assert!(
            matches!(again, Inserted::Known(id) if id == given::id(n + 20)),
            "{n}"
        );
    }
}
