//! A search: newest first over one or all owners, in pages, by the fields of a [`Filter`].

use std::sync::Arc;

use crate::id::TaskId;
use crate::laws::fixtures::*;
use crate::origin::Origin;
use crate::outcome::{ErrorCode, Outcome};
use crate::store::{Filter, Status, Store};
use crate::task::{NewTask, Task};

/// A search without a filter returns the tasks of all owners, newest first.
pub async fn search_covers_all_owners_newest_first(store: &Arc<dyn Store>) {
    let mut expected = Vec::new();
    for n in 0..20 {
        let owner = if n % 3 == 0 { bob() } else { ada() };
        expected.insert(0, stored(store, task_of(n, &owner)).await.id);
    }
    for limit in [1, 3, 20, 100] {
        assert_eq!(
            search_all_pages(store, &Filter::default(), limit).await,
            expected
        );
    }
}

/// A search for an owner returns no task of another one.
pub async fn search_by_owner_shows_own_tasks_only(store: &Arc<dyn Store>) {
    let own = stored(store, task_of(1, &ada())).await.id;
    let other = stored(store, task_of(2, &bob())).await.id;
    for (owner, expected) in [(ada(), own), (bob(), other)] {
        let filter = Filter {
            owner: Some(owner),
            ..Filter::default()
        };
        assert_eq!(search_all_pages(store, &filter, 10).await, [expected]);
    }
}

/// A search by status follows the current state of each task.
pub async fn search_by_status_follows_the_state(store: &Arc<dyn Store>) {
    let tasks = stored_all(store, 0..6).await;
    changed(store, &tasks[1], request_input(&tasks[1], "name")).await;
    ended(store, &tasks[2], result("1")).await;
    ended(
        store,
        &tasks[3],
        Outcome::error(ErrorCode(-32603), "broken"),
    )
    .await;
    let flagged = raw(r#"{"isError":true,"content":[]}"#);
    ended(store, &tasks[4], Outcome::ToolError(flagged, None)).await;
    ended(store, &tasks[5], Outcome::Cancelled).await;
    let expected = [vec![0], vec![1], vec![2], vec![4, 3], vec![5]];
    for (status, numbers) in Status::ALL.into_iter().zip(expected) {
        let filter = Filter {
            statuses: [status].into_iter().collect(),
            ..Filter::default()
        };
        let ids: Vec<_> = numbers.into_iter().map(|n: usize| tasks[n].id).collect();
        assert_eq!(
            search_all_pages(store, &filter, 10).await,
            ids,
            "{}",
            status.word()
        );
    }
    let open = Filter {
        statuses: [Status::Working, Status::InputRequired]
            .into_iter()
            .collect(),
        ..Filter::default()
    };
    assert_eq!(
        search_all_pages(store, &open, 1).await,
        [tasks[1].id, tasks[0].id]
    );
}

/// Tool, runner, creation time and text narrow a search, for open and for ended tasks.
pub async fn search_by_names_time_and_text(store: &Arc<dyn Store>) {
    let mut ids = Vec::new();
    for (n, (tool, runner)) in [("render", "files"), ("Export", "files"), ("render", "web")]
        .into_iter()
        .enumerate()
    {
        let origin = Origin {
            tool: Some(tool.into()),
            runner: runner.into(),
            ..origin()
        };
        let new = NewTask {
            origin: Arc::new(origin),
            ..new_task(n as u64)
        };
        ids.push(stored(store, Task::new(new, CREATED.plus(n as u64))).await);
    }
    let failure = Outcome::error(ErrorCode(-32603), "disk FULL");
    for round in ["open", "ended"] {
        let [first, second, third] = [0, 1, 2].map(|n: usize| ids[n].id);
        let by = |change: &dyn Fn(&mut Filter)| {
            let mut filter = Filter::default();
            change(&mut filter);
            filter
        };
        let text = |text: &str| by(&|filter| filter.text = Some(text.into()));
        let prefix = second.to_string()[..8].to_owned();
        for (filter, expected) in [
            (
                by(&|filter| filter.tool = Some("render".into())),
                vec![third, first],
            ),
            (by(&|filter| filter.tool = Some("rend".into())), vec![]),
            (
                by(&|filter| filter.runner = Some("files".into())),
                vec![second, first],
            ),
            (
                by(&|filter| filter.created_from = Some(CREATED.plus(1))),
                vec![third, second],
            ),
            (text("exp"), vec![second]),
            (text(&prefix), vec![second]),
            (text("pages"), vec![]),
            (text("no such text"), vec![]),
        ] {
            assert_eq!(
                search_all_pages(store, &filter, 10).await,
                expected,
                "{round}: {filter:?}"
            );
        }
        let broken = if round == "ended" {
            vec![first]
        } else {
            vec![]
        };
        assert_eq!(
            search_all_pages(store, &text("disk full"), 10).await,
            broken
        );
        if round == "open" {
            ids[0] = ended(store, &ids[0], failure.clone()).await;
            ids[1] = ended(store, &ids[1], result("1")).await;
        }
    }
}

/// A search continues after its position, although the task there was removed and others were
/// added.
pub async fn search_continues_at_its_position(store: &Arc<dyn Store>) {
    let tasks = stored_all(store, 0..6).await;
    let filter = Filter::default();
    let first = store.search(&filter, None, 2).await;
    let first = first.expect("the store is open");
    assert_eq!(first.tasks.len(), 2);
    removed(store, &tasks[4]).await;
    removed(store, &tasks[3]).await;
    stored_all(store, 100..103).await;
    let second = store.search(&filter, first.next, 2).await;
    let second = second.expect("the store is open");
    let ids: Vec<_> = second.tasks.iter().map(|task| task.id()).collect();
    assert_eq!(ids, [tasks[2].id, tasks[1].id]);
}

/// A search among many tasks finds the only one that matches, whatever number of steps it takes.
pub async fn search_finds_one_task_among_many(store: &Arc<dyn Store>) {
    let rare = stored(store, task_of(0, &bob())).await.id;
    stored_all(store, 1..1_100).await;
    let filter = Filter {
        text: Some(rare.to_string().into()),
        ..Filter::default()
    };
    assert_eq!(search_all_pages(store, &filter, 10).await, [rare]);
}

/// All tasks that match, read in pages. Every page has at most `limit` tasks.
async fn search_all_pages(store: &Arc<dyn Store>, filter: &Filter, limit: usize) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = store.search(filter, after, limit).await;
        let page = page.expect("the store is open");
        assert!(page.tasks.len() <= limit);
        ids.extend(page.tasks.iter().map(|task| task.id()));
        match page.next {
            Some(next) => {
                assert!(after.is_none_or(|after| next < after), "a search moves on");
                after = Some(next);
            }
            None => return ids,
        }
    }
}
