//! Builds the images of a recording, opens each as a restarted program would, and checks every
//! fact.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use outlast_engine::laws::fixtures;
use outlast_engine::store::InsertResult;
use outlast_engine::task::NewTask;
use outlast_engine::{Store, StoreError, Task};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_testkit::death::SeededRandom;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::contents::{StoreContents, owners, task_name};
use crate::disk::{Disk, FileOperation, Image, WriteChoice};
use crate::facts::{Contradiction, Facts};
use crate::recording::{RecordedEvent, Recording, write_files};

/// The result of the checks of a recording.
#[derive(Debug, Default)]
pub(crate) struct CheckResult {
    /// At how many positions the power failed.
    pub(crate) cuts: usize,
    pub(crate) images: usize,
    /// How many acknowledged facts were checked, in all images together.
    pub(crate) facts: usize,
    /// How many writes were torn.
    pub(crate) torn: usize,
    /// How many writes were missing as a whole.
    pub(crate) missing: usize,
    pub(crate) failures: Vec<FailedImage>,
}

/// An image that contradicts the facts.
#[derive(Debug)]
pub(crate) struct FailedImage {
    /// Before which event the power failed, and which image of that moment it is.
    pub(crate) image: (usize, u64),
    pub(crate) broken: Vec<Contradiction>,
    pub(crate) files: crate::disk::Files,
}

/// Checks at least `wanted` images: at every cut one in which the disk has everything that was
/// written until then, and at least half as many others in which a part is missing.
pub(crate) fn check(recording: &Recording, seed: u64, wanted: usize) -> CheckResult {
    let cuts = cuts(&recording.events);
    let others = wanted.saturating_sub(cuts.len()).max(cuts.len() / 2);
    let mut work: Vec<_> = cuts.iter().map(|cut| (*cut, 1)).collect();
    let mut random = SeededRandom::new(seed);
    for _ in 0..others {
        work[random.below(cuts.len() as u64) as usize].1 += 1;
    }
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    let tallies: Vec<CheckResult> = std::thread::scope(|scope| {
        let share = |thread| {
            let mine: Vec<_> = work.iter().copied().skip(thread).step_by(threads).collect();
            scope.spawn(move || check_cuts(recording, seed, &mine))
        };
        let shares: Vec<_> = (0..threads).map(share).collect();
        let joined = shares.into_iter().map(|share| share.join());
        joined.map(|result| result.expect("a check ends")).collect()
    });
    tallies
        .into_iter()
        .fold(CheckResult::default(), CheckResult::and)
}

/// The *cuts*: the positions in the recording at which a power loss makes a difference. These are
/// before each operation that changes the disk, and at the end.
pub(crate) fn cuts(events: &[RecordedEvent]) -> Vec<usize> {
    let changes = |event: &RecordedEvent| match event {
        RecordedEvent::ProcessNote(_) => false,
        RecordedEvent::FileOperation(
            FileOperation::Open { .. } | FileOperation::SyncBegin { .. },
        ) => false,
        // Reserved space. It contains zeros only, so its loss changes nothing.
        RecordedEvent::FileOperation(FileOperation::Write { bytes, .. }) => {
            bytes.iter().any(|byte| *byte != 0)
        }
        RecordedEvent::FileOperation(_) => true,
    };
    let before = (0..events.len()).filter(|at| changes(&events[*at]));
    before.chain([events.len()]).collect()
}

/// The random numbers of one image.
pub(crate) fn random(seed: u64, cut: usize, number: u64) -> SeededRandom {
    SeededRandom::new(seed ^ ((cut as u64) << 20) ^ number)
}

/// Checks the given number of images at each cut.
fn check_cuts(recording: &Recording, seed: u64, cuts: &[(usize, u64)]) -> CheckResult {
    let checker = ImageChecker::new();
    let mut result = CheckResult::default();
    let mut moment = Moment::first(recording);
    for (cut, images) in cuts {
        if let Err(broken) = moment.advance(recording, *cut) {
            result.failures.push(FailedImage {
                image: (*cut, 0),
                broken,
                files: moment.disk.newest(),
            });
            return result;
        }
        result.cuts += 1;
        for number in 0..*images {
            let mut random = random(seed, *cut, number);
            let choice = match number {
                0 => WriteChoice::Everything,
                _ if random.percent(15) => WriteChoice::Nothing,
                _ => WriteChoice::Random,
            };
            let image = moment.disk.image(choice, &mut random);
            let broken = checker.check(&image, &moment.facts, random.percent(10));
            result.images += 1;
            result.facts += moment.facts.count();
            result.torn += image.torn;
            result.missing += image.missing;
            if !broken.is_empty() {
                result.failures.push(FailedImage {
                    image: (*cut, number),
                    broken,
                    files: image.files,
                });
            }
        }
    }
    result
}

impl CheckResult {
    fn and(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.images += other.images;
        self.facts += other.facts;
        self.torn += other.torn;
        self.missing += other.missing;
        self.failures.extend(other.failures);
    }
}

/// The disk and the facts at one moment of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) disk: Disk,
    pub(crate) facts: Facts,
    at: usize,
}

impl Moment {
    pub(crate) fn first(recording: &Recording) -> Self {
        Self {
            disk: Disk::holding(&recording.base),
            facts: recording.facts.clone(),
            at: 0,
        }
    }

    /// Applies the events before number `to`. Fails if a process found less than was acknowledged.
    pub(crate) fn advance(
        &mut self,
        recording: &Recording,
        to: usize,
    ) -> Result<(), Vec<Contradiction>> {
        for event in &recording.events[self.at..to] {
            match event {
                RecordedEvent::ProcessNote(note) => self.facts.note(note)?,
                RecordedEvent::FileOperation(operation) => {
                    let applied = self.disk.apply(operation);
                    applied.expect("the record was read as a whole before");
                }
            }
        }
        self.at = to;
        Ok(())
    }
}

/// Opens and checks images in a folder of its own.
pub(crate) struct ImageChecker {
    folder: TempDir,
    runtime: Runtime,
}

impl ImageChecker {
    pub(crate) fn new() -> Self {
        // In memory if possible: these files need not survive the test.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let runtime = Builder::new_current_thread().enable_all().build();
        Self {
            folder: folder.expect("a folder for images"),
            runtime: runtime.expect("a runtime"),
        }
    }

    /// Opens an image and returns its contradictions to the facts. `twice` opens it again
    /// afterwards.
    pub(crate) fn check(&self, image: &Image, facts: &Facts, twice: bool) -> Vec<Contradiction> {
        let folder = self.folder.path().join("image");
        write_files(&folder, &image.files).expect("an image can be written");
        let path = folder.join("tasks.db");
        let examined = catch_unwind(AssertUnwindSafe(|| {
            self.runtime.block_on(examine(&path, facts, twice))
        }));
        fs::remove_dir_all(&folder).expect("an image can be removed");
        match examined {
            Ok(Ok(broken)) => broken,
            Ok(Err(refused)) => vec![refused],
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                vec![Contradiction::Panicked(text.unwrap_or_default())]
            }
        }
    }
}

async fn examine(
    path: &Path,
    facts: &Facts,
    twice: bool,
) -> Result<Vec<Contradiction>, Contradiction> {
    let everything = open_and_insert(path, FIRST_UNUSED_NUMBER).await?;
    let mut broken = facts.contradictions(&everything.contents);
    if twice {
        // The content is still there after the store was used and closed.
        let mut again = open_and_insert(path, FIRST_UNUSED_NUMBER + 1).await?;
        again
            .contents
            .remove(&task_name(fixtures::id(FIRST_UNUSED_NUMBER)));
        broken.extend(facts.contradictions(&again.contents));
    }
    Ok(broken)
}

/// Opens a store, reads everything, adds task number `number` and closes the store.
async fn open_and_insert(path: &Path, number: u64) -> Result<StoreContents, Contradiction> {
    let store = Sqlite::open_blocking(path, SqliteOptions::default());
    let store = store.map_err(|error| Contradiction::Refused(error.to_string()))?;
    let refused = |error: StoreError| Contradiction::Refused(error.to_string());
    let everything = StoreContents::of(&store).await.map_err(refused)?;
    let mut counted = 0;
    for owner in owners() {
        counted += store.usage(&owner).await.map_err(refused)?.owner_retained as usize;
    }
    if counted != everything.tasks.len() {
        let read = everything.tasks.len();
        let text = format!("{counted} tasks are counted, {read} can be read");
        return Err(Contradiction::Lost(text));
    }
    let added = store
        .insert(fixtures::insertion(fixtures::task(number)))
        .await;
    if !matches!(added.map_err(refused)?, InsertResult::New(_)) {
        return Err(Contradiction::Refused("a new task is not added".to_owned()));
    }
    // P10: a request that is repeated finds its task.
    if let Some(task) = everything
        .tasks
        .iter()
        .find(|task| task.request_key.is_some())
    {
        let again = store.insert(fixtures::insertion(repeated(task))).await;
        if !matches!(again.map_err(refused)?, InsertResult::Existing(id) if id == task.id) {
            let text = format!("the request key of task {} is not known", task.id);
            return Err(Contradiction::Lost(text));
        }
    }
    store.close().await.map_err(refused)?;
    Ok(everything)
}

/// The request of `task`, made a second time.
fn repeated(task: &Task) -> Task {
    let new = NewTask {
        owner: task.owner.clone(),
        origin: task.origin.clone(),
        request_key: task.request_key.clone(),
        ..fixtures::new_task(FIRST_UNUSED_NUMBER + 2)
    };
    Task::new(new, fixtures::CREATED)
}

/// The first task number that no process uses.
const FIRST_UNUSED_NUMBER: u64 = 1 << 60;
