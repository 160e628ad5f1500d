//! A simulated disk: it has everything that was synced, and any part of the other writes.
//!
//! What the model allows after the loss of power, for each file on its own:
//!
//! - A sector of 512 bytes is written as a whole: it has the synced content or the content after
//!   any later write to it, independently of other sectors.
//! - The size is one that the file had since its last sync. Bytes within the size that were never
//!   written to the disk read as zeros, as journaling file systems guarantee.
//! - A truncation takes place or does not. If it is lost, all writes after it are lost, too.
//! - Changes of names reach the disk in order, at the latest with the sync of any file, as in
//!   journaling file systems. In other images each change reaches the disk on its own, at the
//!   latest with the sync of the folder, which is all that POSIX guarantees.
//!
//! A sync that is under way when the power fails has had no effect that can be relied on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use outlast_testkit::death::SeededRandom;

/// One operation on the files of a folder. Inodes have the numbers that the system gave them.
#[derive(Clone, Debug)]
pub(crate) enum FileOperation {
    Create {
        inode: u64,
        name: String,
    },
    /// A file that existed before; nothing changes.
    Open {
        inode: u64,
        name: String,
    },
    Write {
        inode: u64,
        at: usize,
        bytes: Arc<[u8]>,
    },
    Truncate {
        inode: u64,
        length: usize,
    },
    Unlink {
        name: String,
    },
    Rename {
        from: String,
        to: String,
    },
    SyncBegin {
        target: SyncTarget,
        number: u64,
    },
    SyncEnd {
        number: u64,
    },
}

/// What is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncTarget {
    Folder,
    File(u64),
}

/// Files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The content of the disk and the writes that are not synced, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    files: Vec<SimulatedFile>,
    /// The index in `files` for the number that the system uses now.
    by_inode: HashMap<u64, usize>,
    /// Names that are certainly on the disk.
    names: BTreeMap<String, usize>,
    /// The later changes of names.
    entries: Vec<PendingName>,
    /// Syncs under way.
    syncs: HashMap<u64, PendingSync>,
}

#[derive(Clone, Debug, Default)]
struct SimulatedFile {
    synced: Vec<u8>,
    /// What happened since, in order.
    pending: Vec<ContentChange>,
    /// How many changes were taken from the front of `pending`.
    taken: usize,
}

#[derive(Clone, Debug)]
enum ContentChange {
    Write { at: usize, bytes: Arc<[u8]> },
    Truncate { length: usize },
}

/// A change of names.
#[derive(Clone, Debug)]
struct PendingName {
    change: NameOperation,
    /// A file was synced since, so a journal has it.
    in_journal: bool,
}

#[derive(Clone, Debug)]
enum NameOperation {
    Create { name: String, file: usize },
    Unlink { name: String },
    Rename { from: String, to: String },
}

#[derive(Clone, Copy, Debug)]
struct PendingSync {
    target: SyncTarget,
    /// The index of the file, for files.
    file: usize,
    /// How many changes of the file there were.
    changes: usize,
    /// How many entries there were.
    entries: usize,
}

/// What the disk holds after the loss of power.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) files: Files,
    /// Writes of which the disk has some sectors and not others.
    pub(crate) torn: usize,
    /// Writes of which the disk has nothing.
    pub(crate) missing: usize,
}

/// Which of the unsynced changes an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteChoice {
    /// All, as after a kill of the process.
    Everything,
    /// None.
    Nothing,
    /// Some.
    Random,
}

impl Disk {
    /// A disk with these files, all synced.
    pub(crate) fn holding(files: &Files) -> Self {
        let mut disk = Self::default();
        for (name, content) in files {
            disk.names.insert(name.clone(), disk.files.len());
            disk.files.push(SimulatedFile {
                synced: content.clone(),
                ..SimulatedFile::default()
            });
        }
        disk
    }

    /// Applies a recorded operation. An error means that the recording contradicts the model.
    pub(crate) fn apply(&mut self, operation: &FileOperation) -> Result<(), String> {
        match operation {
            FileOperation::Create { inode, name } => {
                let file = self.files.len();
                self.files.push(SimulatedFile::default());
                self.by_inode.insert(*inode, file);
                let name = name.clone();
                self.rename(NameOperation::Create { name, file });
            }
            FileOperation::Open { inode, name } => {
                let Some(file) = self.newest_names().get(name).copied() else {
                    return Err(format!("{name} was opened and is not there"));
                };
                self.by_inode.insert(*inode, file);
            }
            FileOperation::Write { inode, at, bytes } => {
                let (at, bytes) = (*at, bytes.clone());
                self.file(*inode)?
                    .pending
                    .push(ContentChange::Write { at, bytes });
            }
            FileOperation::Truncate { inode, length } => {
                let length = *length;
                self.file(*inode)?
                    .pending
                    .push(ContentChange::Truncate { length });
            }
            FileOperation::Unlink { name } => {
                self.rename(NameOperation::Unlink { name: name.clone() });
            }
            FileOperation::Rename { from, to } => {
                let (from, to) = (from.clone(), to.clone());
                self.rename(NameOperation::Rename { from, to });
            }
            FileOperation::SyncBegin { target, number } => {
                let (file, changes) = match target {
                    SyncTarget::Folder => (0, 0),
                    SyncTarget::File(inode) => {
                        let file = self.file(*inode)?;
                        let changes = file.taken + file.pending.len();
                        (self.by_inode[inode], changes)
                    }
                };
                let begun = PendingSync {
                    target: *target,
                    file,
                    changes,
                    entries: self.entries.len(),
                };
                self.syncs.insert(*number, begun);
            }
            FileOperation::SyncEnd { number } => {
                let begun = self.syncs.remove(number);
                let begun = begun.ok_or_else(|| format!("sync {number} ended without a begin"))?;
                match begun.target {
                    SyncTarget::Folder => self.sync_folder(begun.entries),
                    SyncTarget::File(_) => self.sync_file(begun),
                }
            }
        }
        Ok(())
    }

    /// What a reader of the running system sees.
    pub(crate) fn newest(&self) -> Files {
        let mut random = SeededRandom::new(0);
        self.image(WriteChoice::Everything, &mut random).files
    }

    /// One of the states in which the loss of power may leave the disk now.
    pub(crate) fn image(&self, choice: WriteChoice, random: &mut SeededRandom) -> Image {
        let mut image = Image::default();
        for (name, file) in self.names_after_loss(choice, random) {
            let content = self.files[file].after_loss(choice, random, &mut image);
            image.files.insert(name, content);
        }
        image
    }

    fn file(&mut self, inode: u64) -> Result<&mut SimulatedFile, String> {
        let file = self.by_inode.get(&inode);
        let file = file.ok_or_else(|| format!("inode {inode} is not known"))?;
        Ok(&mut self.files[*file])
    }

    fn rename(&mut self, change: NameOperation) {
        self.entries.push(PendingName {
            change,
            in_journal: false,
        });
    }

    fn sync_folder(&mut self, entries: usize) {
        for entry in self.entries.drain(..entries) {
            entry.change.apply(&mut self.names);
        }
        // Other syncs of the folder that are under way have fewer to do.
        for begun in self.syncs.values_mut() {
            begun.entries = begun.entries.saturating_sub(entries);
        }
    }

    fn sync_file(&mut self, begun: PendingSync) {
        let file = &mut self.files[begun.file];
        let count = begun.changes.saturating_sub(file.taken);
        for change in file.pending.drain(..count) {
            change.apply(&mut file.synced);
        }
        file.taken += count;
        for entry in self.entries.iter_mut().take(begun.entries) {
            entry.in_journal = true;
        }
    }

    fn newest_names(&self) -> BTreeMap<String, usize> {
        let mut names = self.names.clone();
        for entry in &self.entries {
            entry.change.apply(&mut names);
        }
        names
    }

    fn names_after_loss(
        &self,
        choice: WriteChoice,
        random: &mut SeededRandom,
    ) -> BTreeMap<String, usize> {
        let in_order = choice != WriteChoice::Random || random.percent(50);
        let mut names = self.names.clone();
        if in_order {
            let certain = self.entries.iter().rposition(|entry| entry.in_journal);
            let certain = certain.map_or(0, |last| last + 1);
            let count = match choice {
                WriteChoice::Everything => self.entries.len(),
                WriteChoice::Nothing => certain,
                WriteChoice::Random => {
                    certain + random.below((self.entries.len() - certain) as u64 + 1) as usize
                }
            };
            for entry in &self.entries[..count] {
                entry.change.apply(&mut names);
            }
            return names;
        }
        let likely = random.below(101);
        let mut lost = BTreeSet::new();
        for entry in &self.entries {
            let touched = entry.change.names();
            let possible = touched.iter().all(|name| !lost.contains(*name));
            if possible && random.percent(likely) {
                entry.change.apply(&mut names);
            } else {
                lost.extend(touched);
            }
        }
        names
    }
}

impl NameOperation {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Unlink { name } => {
                names.remove(name);
            }
            Self::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Create { name, .. } | Self::Unlink { name } => vec![name],
            Self::Rename { from, to } => vec![from, to],
        }
    }
}

impl SimulatedFile {
    fn after_loss(
        &self,
        choice: WriteChoice,
        random: &mut SeededRandom,
        image: &mut Image,
    ) -> Vec<u8> {
        let mut content = self.synced.clone();
        if choice == WriteChoice::Everything || self.pending.is_empty() {
            for change in &self.pending {
                change.apply(&mut content);
            }
            return content;
        }
        if choice == WriteChoice::Nothing {
            let writes = self.pending.iter().filter(|change| change.is_write());
            image.missing += writes.count();
            return content;
        }
        let pending = self.until_lost_truncation(random);
        let last = last_persisted(pending, random, image);
        let has = |number: usize, sector: usize| last.get(&sector).is_some_and(|at| *at >= number);
        // The size that goes with what was written, and the largest that the file had.
        let (mut size, mut largest) = (content.len(), content.len());
        let mut sizes = vec![size];
        for (number, change) in pending.iter().enumerate() {
            match change {
                ContentChange::Truncate { length } => {
                    content.truncate(*length);
                    content.resize(*length, 0);
                    (size, largest) = (*length, *length);
                    sizes = vec![size];
                }
                ContentChange::Write { at, bytes } => {
                    largest = largest.max(at + bytes.len());
                    sizes.push(largest);
                    for sector in sectors(*at, bytes.len()) {
                        if has(number, sector) {
                            let part = part(sector, *at, bytes.len());
                            size = size.max(part.end);
                            put(
                                &mut content,
                                part.start,
                                &bytes[part.start - at..part.end - at],
                            );
                        }
                    }
                }
            }
        }
        let size = match random.below(100) {
            0..70 => size,
            70..85 => largest,
            _ => sizes[random.below(sizes.len() as u64) as usize],
        };
        content.resize(size, 0);
        content
    }

    /// The changes before the first truncation that is lost.
    fn until_lost_truncation(&self, random: &mut SeededRandom) -> &[ContentChange] {
        let truncations: Vec<_> = (0..self.pending.len())
            .filter(|number| !self.pending[*number].is_write())
            .collect();
        let kept = random.below(truncations.len() as u64 + 1) as usize;
        let end = truncations.get(kept).copied();
        &self.pending[..end.unwrap_or(self.pending.len())]
    }
}

/// For each sector the last of the writes to it that reached the disk.
fn last_persisted(
    pending: &[ContentChange],
    random: &mut SeededRandom,
    image: &mut Image,
) -> BTreeMap<usize, usize> {
    let likely = match random.below(4) {
        0 => 0,
        1 => 100,
        _ => random.below(101),
    };
    let tearing = [0, 30, 100][random.below(3) as usize];
    let mut last = BTreeMap::new();
    for (number, change) in pending.iter().enumerate() {
        if !change.is_write() {
            continue;
        }
        if !random.percent(likely) {
            image.missing += 1;
            continue;
        }
        let torn = random.percent(tearing);
        let (mut kept, mut dropped) = (0, 0);
        for sector in change.sectors() {
            if torn && random.percent(50) {
                dropped += 1;
            } else {
                last.insert(sector, number);
                kept += 1;
            }
        }
        image.torn += usize::from(kept > 0 && dropped > 0);
        image.missing += usize::from(kept == 0);
    }
    last
}

impl ContentChange {
    fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    fn sectors(&self) -> Range<usize> {
        match self {
            Self::Write { at, bytes } => sectors(*at, bytes.len()),
            Self::Truncate { .. } => 0..0,
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(content, *at, bytes),
            Self::Truncate { length } => content.resize(*length, 0),
        }
    }
}

/// Puts `bytes` into the content at `at`, which grows if it must.
fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[at..end].copy_from_slice(bytes);
}

/// The sectors that `length` bytes at `at` lie in.
fn sectors(at: usize, length: usize) -> Range<usize> {
    match length {
        0 => 0..0,
        _ => at / SECTOR_BYTES..(at + length - 1) / SECTOR_BYTES + 1,
    }
}

/// Which of the `length` bytes at `at` lie in that sector, as places in the file.
fn part(sector: usize, at: usize, length: usize) -> Range<usize> {
    let start = (sector * SECTOR_BYTES).max(at);
    let end = ((sector + 1) * SECTOR_BYTES).min(at + length);
    start..end
}

/// The size of the unit that a disk writes as a whole.
const SECTOR_BYTES: usize = 512;
