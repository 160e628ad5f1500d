//! What a retained task costs in memory and on disk, and the files with many of them.

use std::path::PathBuf;

use outlast_engine::store::Health;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::child::{Job, measured};
use crate::load::Life;
use crate::rawlog::Bytes;
use crate::scale::count;
use crate::subject::Subject;
use crate::table::{Bar, Row, Table, Unit, whole};
use crate::{Done, Stage};

pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let most = stage.scale.most;
    let each = |bytes: f64, tasks: usize| bytes / tasks as f64;
    let peer = each(measured(&Job::RetainPeer(PEER))?[0], PEER);
    let mut row = |what: String, ours: f64, bar: f64| {
        table.row(Row {
            figure: format!("memory of a retained task with a 200-byte result, {what}"),
            ours: format!("{} B", whole(ours)),
            other: format!("rmcp: {} B ({:.2} ×)", whole(peer), ours / peer),
            value: ours,
            unit: Unit::Bytes,
            bar: Bar::AtMost(bar),
        });
    };
    let memory = each(measured(&Job::RetainMemory(most))?[0], most);
    row(
        format!("memory store with {}", count(most)),
        memory,
        1_536.0,
    );
    let path = file(stage, most)?;
    let grown = std::fs::read_to_string(path.with_extension("grown"))?;
    let grown = each(grown.parse()?, most);
    row(
        format!("SQLite with {} made by this process", count(most)),
        grown,
        1_024.0,
    );
    let opened = measured(&Job::Open(path.clone()))?;
    let opened = each(opened[2], opened[3] as usize);
    row(
        format!("SQLite with {} found at open", count(most)),
        opened,
        1_024.0,
    );
    let tasks = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?.query_row(
        "SELECT count(*) FROM tasks",
        (),
        |row| row.get::<_, u32>(0),
    )?;
    let disk = each(std::fs::metadata(&path)?.len() as f64, tasks as usize);
    let bytes = bytes(stage)?;
    let row = bytes.row as f64;
    table.row(Row {
        figure: format!("disk of a retained task, {} in one file", count(most)),
        ours: format!("{} B", whole(disk)),
        other: format!("its columns: {} B", whole(row)),
        value: disk / row,
        unit: Unit::Ratio,
        bar: Bar::None,
    });
    Ok(())
}

/// The file with so many ended tasks, made on first use by a process of its own.
pub(crate) fn file(stage: &Stage<'_>, tasks: usize) -> Done<PathBuf> {
    let path = stage.folder.join(format!("tasks-{tasks}.db"));
    if !path.exists() {
        eprintln!("a file takes on {} tasks", count(tasks));
        let grown = measured(&Job::Fill(path.clone(), tasks))?[0];
        std::fs::write(path.with_extension("grown"), grown.to_string())?;
    }
    Ok(path)
}

/// How many bytes a life writes, found in the rows that it leaves.
pub(crate) fn bytes(stage: &Stage<'_>) -> Done<Bytes> {
    let path = stage.folder.join("bytes.db");
    let subject = stage
        .runtime
        .block_on(Subject::sqlite(&path, Default::default()))?;
    stage.runtime.block_on(async {
        subject.clone().waiting().create().await;
        subject.clone().telling().live().await;
        subject.engine.store().close().await
    })?;
    debug_assert_eq!(*subject.engine.store().health().borrow(), Health::Closed);
    let file = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let bytes = Bytes {
        created: size(&file, "working", &[])?,
        ended: size(&file, "result", REQUEST)?,
        row: size(&file, "result", &[])?,
    };
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(bytes)
}

/// The bytes of a task in this state, but for some columns.
fn size(file: &Connection, state: &str, without: &[&str]) -> Done<usize> {
    let mut statement = file.prepare("SELECT * FROM tasks WHERE state = ?1")?;
    let names: Vec<_> = statement.column_names().map(String::from).collect();
    let mut rows = statement.query([state])?;
    let row = rows.next()?.ok_or("the task is not in the file")?;
    let mut size = 0;
    for (at, name) in names.iter().enumerate() {
        // Computed, not stored.
        if name == "expires" || without.contains(&name.as_str()) {
            continue;
        }
        size += match row.get_ref(at)? {
            ValueRef::Null => 0,
            ValueRef::Integer(number) => (72 - number.unsigned_abs().leading_zeros() as usize) / 8,
            ValueRef::Real(_) => 8,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        };
    }
    Ok(size)
}

/// What is written when a task is created and never again.
const REQUEST: &[&str] = &[
    "owner",
    "created",
    "request_key",
    "method",
    "tool",
    "runner",
    "accepts",
    "retry",
    "progress_token",
    "params",
];

/// How many tasks the peer is asked to retain.
const PEER: usize = 10_000;
