//! One task and one page of tasks, with few and with many retained, beside a bare hash map.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use outlast_engine::{Engine, IdMap, Scope, TaskId};

use crate::load::fill;
use crate::retained;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::subject::{Subject, owner};
use crate::table::{Bar, Row, Table, Unit, nanos};
use crate::{Done, Stage};

pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let scale = stage.scale;
    let sizes = [scale.few, scale.many, scale.most];
    let mut memory = Vec::new();
    for size in sizes {
        let subject = stage.runtime.block_on(Subject::memory())?;
        fill(stage.runtime, &subject, size, 16);
        memory.push(Kept::of(stage, subject)?);
    }
    compare(stage, "memory", &memory, table);
    drop(memory);
    let mut sqlite = Vec::new();
    for size in sizes {
        let path = retained::file(stage, size)?;
        let subject = Subject::sqlite(&path, Default::default());
        let subject = stage.runtime.block_on(subject)?;
        sqlite.push(Kept::of(stage, subject)?);
    }
    compare(stage, "SQLite", &sqlite, table);
    Ok(())
}

/// An engine and what can be looked up in it.
struct Kept {
    engine: Engine,
    /// All ids, in no order.
    ids: Vec<TaskId>,
    /// Cursors from all over the list, in no order.
    cursors: Vec<String>,
    /// The limit: the same ids in a hash map.
    bare: Bare,
}

/// A value as large as what we keep at hand of a task.
type Bare = IdMap<Arc<[u64; 16]>>;

impl Kept {
    fn of(stage: &Stage<'_>, subject: Subject) -> Done<Self> {
        let engine = subject.engine;
        let (mut ids, mut cursors) = (Vec::new(), Vec::new());
        stage.runtime.block_on(async {
            let mut cursor: Option<String> = None;
            loop {
                let page = engine.page(&owner(), cursor.as_deref(), PAGE).await?;
                ids.extend(page.tasks.iter().map(|task| task.id()));
                // A page from there on is full.
                cursors.extend(cursor.take().filter(|_| page.next.is_some()));
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => return Done::Ok(()),
                }
            }
        })?;
        let bare = ids.iter().map(|id| (*id, Arc::new([0; 16]))).collect();
        shuffle(&mut ids);
        shuffle(&mut cursors);
        Ok(Self {
            engine,
            ids,
            cursors,
            bare,
        })
    }

    /// Nanoseconds for one task, any of `among`.
    async fn get(&self, among: &[TaskId], from: usize) -> f64 {
        let scope = Scope::Of(owner());
        let ids = among.iter().cycle().skip(from % among.len());
        let began = Instant::now();
        for id in ids.take(GETS) {
            let found = self.engine.get(&scope, *id).await;
            black_box(found.expect("it is kept"));
        }
        began.elapsed().as_nanos() as f64 / GETS as f64
    }

    /// The tasks that somebody polls: as many as there are where few are retained, from all over.
    fn polled(&self, few: usize) -> &[TaskId] {
        &self.ids[..few.min(self.ids.len())]
    }

    /// Nanoseconds for the first page, which is the one that is looked at over and over.
    async fn first_page(&self) -> f64 {
        let owner = owner();
        let began = Instant::now();
        for _ in 0..PAGES {
            let page = self.engine.page(&owner, None, PAGE).await;
            black_box(page.expect("there is a first page"));
        }
        began.elapsed().as_nanos() as f64 / PAGES as f64
    }

    /// Nanoseconds for one page, from anywhere in the list.
    async fn page(&self, from: usize) -> f64 {
        let owner = owner();
        let cursors = self.cursors.iter().cycle().skip(from % self.cursors.len());
        let began = Instant::now();
        for cursor in cursors.take(PAGES) {
            let page = self.engine.page(&owner, Some(cursor), PAGE).await;
            let page = page.expect("the cursor is ours");
            assert_eq!(page.tasks.len(), PAGE);
            black_box(page);
        }
        began.elapsed().as_nanos() as f64 / PAGES as f64
    }

    /// The same in the hash map. Where to look next is only known when the last value is there, so that
    /// the processor cannot look for several at once.
    fn bare(&self, from: usize) -> f64 {
        let mut at = from;
        let began = Instant::now();
        for _ in 0..GETS {
            let found = self.bare.get(&self.ids[at % self.ids.len()]).cloned();
            at += 1 + found.map_or(0, |found| black_box(found)[0] as usize);
        }
        began.elapsed().as_nanos() as f64 / GETS as f64
    }
}

fn compare(stage: &Stage<'_>, store: &str, kept: &[Kept], table: &mut Table) {
    let mut from = 0;
    let few_of_all = stage.scale.few;
    let gets = Rounds::<9>::run(stage.scale.rounds * 2, |side| {
        from += GETS;
        let kept = &kept[side % 3];
        match side / 3 {
            0 => stage.runtime.block_on(kept.get(&kept.ids, from)),
            1 => kept.bare(from),
            _ => stage
                .runtime
                .block_on(kept.get(kept.polled(few_of_all), from)),
        }
    });
    let pages = Rounds::<6>::run(stage.scale.rounds * 2, |side| {
        from += PAGES;
        let kept = &kept[side % 3];
        match side < 3 {
            true => stage.runtime.block_on(kept.page(from)),
            false => stage.runtime.block_on(kept.first_page()),
        }
    });
    let sizes: Vec<_> = kept.iter().map(|kept| kept.ids.len()).collect();
    for (side, size) in sizes.iter().enumerate() {
        table.row(Row {
            figure: format!(
                "`get` on {store}, {} retained; beside a bare hash map",
                count(*size)
            ),
            ours: nanos(gets.of(side)),
            other: nanos(gets.of(side + 3)),
            value: gets.ratio(side, side + 3),
            unit: Unit::Ratio,
            bar: Bar::None,
        });
    }
    let [few, .., most] = &sizes[..] else { return };
    table.row(Row {
        figure: format!(
            "the bare hash map itself, {}; beside {}",
            count(*most),
            count(*few)
        ),
        ours: nanos(gets.of(5)),
        other: nanos(gets.of(3)),
        value: gets.ratio(5, 3),
        unit: Unit::Ratio,
        bar: Bar::None,
    });
    let mut grown = |what: String, rounds: [f64; 3], bar| {
        let [most_took, few_took, value] = rounds;
        table.row(Row {
            figure: format!(
                "{what} on {store}, {} retained; beside {}",
                count(*most),
                count(*few)
            ),
            ours: nanos(most_took),
            other: nanos(few_took),
            value,
            unit: Unit::Ratio,
            bar,
        });
    };
    let figures = [gets.of(8), gets.of(6), gets.ratio(8, 6)];
    let what = format!("`get` of {} tasks that are polled", count(few_of_all));
    grown(what, figures, Bar::AtMost(1.5));
    let figures = [gets.of(2), gets.of(0), gets.ratio(2, 0)];
    grown("`get` of any task".to_owned(), figures, Bar::None);
    let figures = [pages.of(5), pages.of(3), pages.ratio(5, 3)];
    grown(format!("first page of {PAGE}"), figures, Bar::AtMost(2.0));
    let figures = [pages.of(2), pages.of(0), pages.ratio(2, 0)];
    grown(format!("any page of {PAGE}"), figures, Bar::None);
}

/// Puts things in no order, the same each time.
fn shuffle<T>(things: &mut [T]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in (1..things.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        things.swap(at, (state % (at as u64 + 1)) as usize);
    }
}

const GETS: usize = 20_000;

const PAGES: usize = 500;

/// Tasks on a page.
const PAGE: usize = 50;
