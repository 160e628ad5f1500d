//! Simulates a power loss: everything that the store acknowledged before it is there afterwards.
//!
//! Processes work on a real store. A library that is loaded into them (`record.c`) records each
//! write, truncation, rename and sync of its files, and in the same order each request to the store
//! and each acknowledgement. Then, for each position in the recording, the test builds images of
//! the disk as a power loss may leave it: one with everything that was written until then, others
//! without any part of what was not synced, down to single sectors. It opens each image with the
//! real store and checks each acknowledged fact.
//!
//! | where | what |
//! |---|---|
//! | `record.c` | the recorder |
//! | `load.rs` | the recorded process |
//! | `recording.rs` | starts processes, reads the record |
//! | `disk.rs` | the possible contents of a disk after a power loss |
//! | `facts.rs` | requested and acknowledged changes |
//! | `contents.rs` | everything in a store |
//! | `images.rs` | builds, opens and checks the images |
//!
//! The recording depends on the scheduler; its images depend on the seed alone. A failure keeps the
//! recording and prints how to check it again: `CRASH_RECORD=FOLDER CRASH_SEED=N`.
#![cfg(target_os = "linux")]

mod contents;
mod disk;
mod facts;
mod images;
mod load;
mod recording;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::disk::{FileOperation, Files, SyncTarget, WriteChoice};
use crate::facts::{Contradiction, Facts, ProcessNote};
use crate::images::{CheckResult, ImageChecker, Moment, cuts, random};
use crate::load::ProcessEnd;
use crate::recording::{RecordedEvent, Recording, compile, write_files};

#[test]
fn every_acknowledged_fact_survives_the_loss_of_power() {
    let result = check_images(500, 6);
    assert!(result.images >= 500, "only {} images", result.images);
    assert!(result.facts >= 2_000, "only {} facts", result.facts);
    assert!(result.torn >= 100, "only {} torn writes", result.torn);
    assert!(
        result.missing >= 100,
        "only {} missing writes",
        result.missing
    );
}

/// `cargo xtask soak images`.
#[test]
#[ignore = "takes minutes"]
fn acknowledged_facts_survive_power_loss_in_10000_images() {
    let result = check_images(10_000, 8);
    assert!(result.images >= 10_000, "only {} images", result.images);
}

/// The check detects that a disk skipped one sync: facts that were acknowledged after it are lost.
#[test]
fn a_sync_that_did_not_take_place_is_detected() {
    let harness = Harness::new();
    let recording = harness.record(Default::default(), &[ProcessEnd::Closed], 1, 20);
    let checker = ImageChecker::new();
    let syncs = syncs_before_acknowledgements(&recording);
    let (mut tried, mut lost) = (0, 0);
    for (sync, next) in syncs.into_iter().rev().take(40) {
        let mut without = recording.clone();
        without.events.remove(sync);
        let mut moment = Moment::first(&without);
        moment.advance(&without, next - 1).expect("notes fit");
        let image = moment
            .disk
            .image(WriteChoice::Nothing, &mut random(1, sync, 0));
        let broken = checker.check(&image, &moment.facts, false);
        tried += 1;
        lost += usize::from(
            broken
                .iter()
                .any(|broken| matches!(broken, Contradiction::Lost(_))),
        );
    }
    println!("{tried} syncs left out one by one, {lost} found out");
    assert!(tried >= 10, "only {tried} syncs were left out");
    assert!(lost * 2 >= tried, "{lost} of {tried} were found out");
}

/// The check detects a store that acknowledges before it has written.
#[test]
fn an_acknowledgement_before_the_sync_is_detected() {
    let harness = Harness::new();
    let mut recording = harness.record(Default::default(), &[ProcessEnd::Closed], 2, 10);
    let early = |event| match event {
        RecordedEvent::ProcessNote(ProcessNote::Requested { request, .. }) => {
            let acknowledged = RecordedEvent::ProcessNote(ProcessNote::Acknowledged { request });
            vec![event, acknowledged]
        }
        event => vec![event],
    };
    recording.events = recording.events.into_iter().flat_map(early).collect();
    let result = images::check(&recording, 2, 0);
    let lost = |broken: &Contradiction| matches!(broken, Contradiction::Lost(_));
    let found = result
        .failures
        .iter()
        .filter(|failure| failure.broken.iter().any(lost));
    let found = found.count();
    println!(
        "{} images, {found} have lost an early acknowledgement",
        result.images
    );
    assert!(found >= 20, "only {found} of {} images", result.images);
}

/// Makes recordings with `steps` steps of each worker, and checks at least `wanted` images.
fn check_images(wanted: usize, steps: u64) -> CheckResult {
    let (seed, began) = (seed(), Instant::now());
    let mut all = CheckResult::default();
    let mut harness = Harness::new();
    if let Ok(folder) = std::env::var("CRASH_RECORD") {
        let recording = Recording::read(Path::new(&folder)).expect("a record that was kept");
        all = harness.check(&recording, seed, wanted);
    }
    let share = (wanted / 2).min(MAX_IMAGES_PER_RECORDING);
    for round in 0.. {
        if all.images >= wanted {
            break;
        }
        let seed = seed.wrapping_add(round);
        let ends = [ProcessEnd::Killed, ProcessEnd::Closed, ProcessEnd::Killed];
        let first = harness.record(Default::default(), &ends, seed, steps);
        all.add(harness.check(&first, seed, share));
        // The power fails a second time, after processes continued on an image of the first.
        let base = one_image(&first, seed);
        let second = harness.record(base, &[ProcessEnd::Killed, ProcessEnd::Closed], seed, steps);
        all.add(harness.check(&second, seed, share));
    }
    println!(
        "{} images of {} moments in {:.1} s: {} facts checked, {} torn and {} missing writes",
        all.images,
        all.cuts,
        began.elapsed().as_secs_f64(),
        all.facts,
        all.torn,
        all.missing
    );
    all
}

/// Where recordings are made.
struct Harness {
    folder: TempDir,
    library: PathBuf,
}

impl Harness {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let library = compile(folder.path()).expect("a C compiler makes the recorder");
        Self { folder, library }
    }

    /// Records one process after the other, each with its end, on a store that starts as `base`.
    fn record(
        &self,
        base: (Files, Facts),
        ends: &[ProcessEnd],
        seed: u64,
        steps: u64,
    ) -> Recording {
        let folder = tempfile::tempdir_in(self.folder.path())
            .expect("a folder")
            .keep();
        // The recorder compares paths, so they must contain no link.
        let folder = folder.canonicalize().expect("a folder that is there");
        let made = Recording::make(&self.library, &folder, base, ends, seed, steps);
        made.unwrap_or_else(|error| panic!("no record with seed {seed}: {error}"))
    }

    /// Checks images of a recording. Panics at a failure, and prints how to repeat it.
    fn check(&mut self, recording: &Recording, seed: u64, wanted: usize) -> CheckResult {
        let result = images::check(recording, seed, wanted);
        if let Some(failure) = result.failures.first() {
            self.folder.disable_cleanup(true);
            let broken = recording.folder.join("broken");
            write_files(&broken, &failure.files).expect("the image can be kept");
            panic!(
                "{} of {} images are wrong; image {:?} first: {:#?}\n\
                 its files are in {}; to check the record again: CRASH_RECORD={} CRASH_SEED={seed} \
                 cargo test --package outlast-testkit --test crash_images -- --nocapture {TEST}",
                result.failures.len(),
                result.images,
                failure.image,
                failure.broken,
                broken.display(),
                recording.folder.display(),
            );
        }
        result
    }
}

/// An image of a power loss in the middle of a sync, with torn writes if possible, and the facts at
/// that moment.
fn one_image(recording: &Recording, seed: u64) -> (Files, Facts) {
    let ends_sync = |at: &usize| {
        let event = recording.events.get(*at);
        matches!(
            event,
            Some(RecordedEvent::FileOperation(FileOperation::SyncEnd { .. }))
        )
    };
    let cuts: Vec<_> = cuts(&recording.events)
        .into_iter()
        .filter(ends_sync)
        .collect();
    // Late enough for the store to have content.
    let late = &cuts[cuts.len() / 2..];
    let mut chosen = None;
    for number in 0..MAX_TORN_IMAGE_ATTEMPTS {
        let mut random = random(seed, 0, number);
        let cut = late[random.below(late.len() as u64) as usize];
        let mut moment = Moment::first(recording);
        moment
            .advance(recording, cut)
            .expect("it was checked before");
        let image = moment.disk.image(WriteChoice::Random, &mut random);
        let torn = image.torn;
        chosen = Some((image.files, moment.facts));
        if torn > 0 {
            break;
        }
    }
    chosen.expect("at least one try")
}

/// The positions of the file syncs after which an acknowledgement comes before the next sync ends,
/// each with the position of that next sync.
fn syncs_before_acknowledgements(recording: &Recording) -> Vec<(usize, usize)> {
    let mut targets = BTreeMap::new();
    let mut ends = Vec::new();
    for (at, event) in recording.events.iter().enumerate() {
        match event {
            RecordedEvent::FileOperation(FileOperation::SyncBegin { target, number }) => {
                targets.insert(*number, *target);
            }
            RecordedEvent::FileOperation(FileOperation::SyncEnd { number }) => {
                ends.push((at, targets.get(number) == Some(&SyncTarget::Folder)));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for pair in ends.windows(2) {
        let ((sync, of_folder), (next, _)) = (pair[0], pair[1]);
        let acknowledged = |event| {
            matches!(
                event,
                &RecordedEvent::ProcessNote(ProcessNote::Acknowledged { .. })
            )
        };
        if !of_folder && recording.events[sync..next].iter().any(acknowledged) {
            found.push((sync, next));
        }
    }
    found
}

fn seed() -> u64 {
    match std::env::var("CRASH_SEED") {
        Ok(seed) => seed.parse().expect("CRASH_SEED is a number"),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a clock that was set").as_nanos() as u64
        }
    }
}

/// How many images of one recording are checked at most, unless it has more moments.
const MAX_IMAGES_PER_RECORDING: usize = 500;

/// How many images are built to find one with torn writes.
const MAX_TORN_IMAGE_ATTEMPTS: u64 = 20;

/// The test that a failure names.
const TEST: &str = "every_acknowledged_fact_survives_the_loss_of_power";
