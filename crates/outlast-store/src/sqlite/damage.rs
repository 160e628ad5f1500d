//! Checks of the files before and after SQLite opens them: whether the log belongs to the file, and
//! whether both are complete.
//!
//! SQLite drops the rest of a log at the first frame with a wrong checksum, and applies any log to
//! any file. Both would silently lose acknowledged tasks, so the log is checked first. The formats
//! are described at <https://www.sqlite.org/fileformat2.html>.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rusqlite::Connection;

use super::file;
use super::mark::Mark;
use super::options::Durability;
use super::schema;
use crate::open_error::OpenError;
use crate::private_file;

/// The content of the log next to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Log {
    /// There is no log, or it contains no transaction.
    Empty,
    /// The log contains transactions that the file may not have.
    Transactions,
}

/// Checks the log of the store at `path` without changing any file.
pub(super) fn check_log(path: &Path, durability: Durability) -> Result<Log, OpenError> {
    let log_path = file::side_file(path, "-wal");
    let refused = |what: &str| OpenError::corrupt(&log_path, what);
    let log = match private_file::open_unchanged(&log_path) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Log::Empty),
        Err(error) => return Err(OpenError::io(&log_path)(error)),
    };
    let scan = match LogScan::of(log).map_err(OpenError::io(&log_path))? {
        LogScanResult::Nothing => return Ok(Log::Empty),
        LogScanResult::BadHeader => return Err(refused("its header is damaged")),
        LogScanResult::Frames(scan) => scan,
    };
    // A commit is written after the sync of the previous one, so a crash leaves at most one torn
    // commit.
    if durability == Durability::Power && scan.commits_after_damage > 1 {
        return Err(refused(
            "a transaction in its middle is damaged, and those after it cannot be read",
        ));
    }
    if let Some((first, last)) = scan.marks {
        let found = mark_in_file(path, scan.page_bytes).map_err(OpenError::io(path))?;
        // If the page in the file is torn, the log contains the complete page.
        if let Some(found) = found
            && (found.store != last.store
                || found.commits.saturating_add(1) < first.commits
                || found.commits > last.commits)
        {
            return Err(refused(OTHER_LOG));
        }
    }
    // `VACUUM INTO` increases the schema cookie of the copy, whose pages have other numbers than
    // those of the original. A log has no older cookie than the file to which it belongs.
    if let Some(cookie) = scan.schema_cookie
        && header_of(path)
            .map_err(OpenError::io(path))?
            .schema_cookie()
            > Some(cookie)
    {
        return Err(refused(OTHER_LOG));
    }
    Ok(match scan.commits {
        0 => Log::Empty,
        _ => Log::Transactions,
    })
}

/// Refuses a file that ends before the last page that its header counts. Only for a file without a
/// log: a log may contain the missing pages.
pub(super) fn check_length(path: &Path) -> Result<(), OpenError> {
    let Header(header, length) = header_of(path).map_err(OpenError::io(path))?;
    if header.len() < HEADER_BYTES {
        return Err(OpenError::corrupt(path, "it ends within its header"));
    }
    let page_bytes = match number(&header, 14) & 0xffff {
        // The largest page size does not fit into two bytes.
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = u64::from(number(&header, 28));
    // The count is valid if it was written with the last change.
    if number(&header, 24) == number(&header, 92) && length < pages * page_bytes {
        let what = format!("{length} bytes are left of {}", pages * page_bytes);
        return Err(OpenError::corrupt(path, what));
    }
    Ok(())
}

/// The header of a file, as far as it exists, and the length of the file.
struct Header(Vec<u8>, u64);

impl Header {
    /// The number that SQLite changes with the schema, and with each `VACUUM`.
    fn schema_cookie(&self) -> Option<u32> {
        (self.0.len() == HEADER_BYTES).then(|| number(&self.0, SCHEMA_COOKIE_OFFSET_BYTES))
    }
}

fn header_of(path: &Path) -> io::Result<Header> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(Header(header, length))
}

/// Returns the first problem that SQLite finds in the structure of the file.
pub(super) fn quick_check(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0))?;
    Ok((found != "ok").then_some(found))
}

/// Returns the mark in the file itself, without its log.
fn mark_in_file(path: &Path, page_bytes: u32) -> io::Result<Option<Mark>> {
    let mut file = File::open(path)?;
    let at = u64::from(schema::MARK_PAGE - 1) * u64::from(page_bytes);
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::with_capacity(page_bytes as usize);
    file.take(page_bytes.into()).read_to_end(&mut bytes)?;
    Ok(Mark::find(&bytes))
}

enum LogScanResult {
    /// There is no header: no transaction was ever written.
    Nothing,
    BadHeader,
    Frames(LogScan),
}

/// The content of a log, as SQLite reads it.
#[derive(Debug, Default)]
struct LogScan {
    page_bytes: u32,
    /// The number of complete transactions.
    commits: u64,
    /// The number of transactions of this log that end at or after its first damaged frame.
    commits_after_damage: u64,
    /// The first and the last mark in complete transactions.
    marks: Option<(Mark, Mark)>,
    /// The schema cookie in the last first page of complete transactions.
    schema_cookie: Option<u32>,
}

impl LogScan {
    fn of(log: File) -> io::Result<LogScanResult> {
        let mut log = BufReader::with_capacity(1 << 18, log);
        let mut header = [0; LOG_HEADER_BYTES];
        if !filled(&mut log, &mut header)? || header.iter().all(|byte| *byte == 0) {
            return Ok(LogScanResult::Nothing);
        }
        let magic = number(&header, 0);
        if magic & !1 != MAGIC {
            return Ok(LogScanResult::BadHeader);
        }
        let big_endian = magic & 1 == 1;
        let mut sum = Checksum::default();
        sum.add(&header[..24], big_endian);
        if !sum.is(&header[24..32]) {
            return Ok(LogScanResult::BadHeader);
        }
        let salts = &header[16..24];
        let page_bytes = number(&header, 8);
        if !(512..=65_536).contains(&page_bytes) {
            return Ok(LogScanResult::BadHeader);
        }
        let mut scan = Self {
            page_bytes,
            ..Self::default()
        };
        let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
        let mut damaged = false;
        // What a transaction contains is valid once its last frame is read.
        let (mut pending, mut pending_cookie) = (None, None);
        while filled(&mut log, &mut frame)? {
            let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
            let ends_transaction = number(head, 4) != 0;
            if !damaged {
                sum.add(&head[..8], big_endian);
                sum.add(page, big_endian);
                damaged = head[8..16] != *salts || !sum.is(&head[16..24]);
            }
            if damaged {
                // Frames with other salts are remains of an earlier log.
                if head[8..16] == *salts && ends_transaction {
                    scan.commits_after_damage += 1;
                }
                continue;
            }
            match number(head, 0) {
                schema::MARK_PAGE => pending = Mark::find(page),
                1 => pending_cookie = Some(number(page, SCHEMA_COOKIE_OFFSET_BYTES)),
                _ => {}
            }
            if ends_transaction {
                scan.commits += 1;
                scan.schema_cookie = pending_cookie.take().or(scan.schema_cookie);
                if let Some(mark) = pending.take() {
                    let first = scan.marks.map_or(mark, |(first, _)| first);
                    scan.marks = Some((first, mark));
                }
            }
        }
        Ok(LogScanResult::Frames(scan))
    }
}

/// The running checksum of a log.
#[derive(Clone, Copy, Debug, Default)]
struct Checksum(u32, u32);

impl Checksum {
    fn add(&mut self, bytes: &[u8], big_endian: bool) {
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if big_endian {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            self.0 = self.0.wrapping_add(word(0)).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(word(4)).wrapping_add(self.0);
        }
    }

    fn is(self, stored: &[u8]) -> bool {
        number(stored, 0) == self.0 && number(stored, 4) == self.1
    }
}

/// The big-endian number at an offset.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Fills `bytes`. Returns whether there was enough input.
fn filled(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

const OTHER_LOG: &str = "it is the log of another file, or of a later or earlier state of this one";

/// The length of the header of an SQLite file.
const HEADER_BYTES: usize = 100;

/// Where the schema cookie is in the header.
const SCHEMA_COOKIE_OFFSET_BYTES: usize = 40;

const MAGIC: u32 = 0x377f_0682;

const LOG_HEADER_BYTES: usize = 32;

const FRAME_HEADER_BYTES: usize = 24;
