//! A long run of the death tests on one store: `soak DEATH_CHILD MINUTES [SEED]`.
//!
//! It kills the child every few seconds and then checks every acknowledgement. It prints a table,
//! and fails if a promise is broken or if a file or a process keeps growing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use outlast_testkit::death::{ChildProcess, Death, Journal, SeededRandom};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let program = PathBuf::from(args.next().expect("the path of the program `death_child`"));
    let minutes: u64 = args
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number of minutes");
    let seed = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let folder = tempfile::tempdir().expect("a folder for the store");
    let path = folder.path().join("tasks.db");
    println!("soak of {minutes} min, seed {seed}");
    println!(
        "| minute | kills | facts checked | refusals (disk trouble) | file MiB | WAL MiB | memory MiB |"
    );
    println!("|---|---|---|---|---|---|---|");

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut soak = Soak {
        random: SeededRandom::new(seed),
        journal: Journal::default(),
        kills: 0,
        rows: Vec::new(),
    };
    let began = Instant::now();
    for minute in 1..=minutes {
        let mut row = MinuteFigures::default();
        while began.elapsed() < Duration::from_secs(60 * minute) {
            if let Err(why) = soak.run_and_kill(&program, &path, &mut row, &runtime) {
                let kept = folder.keep();
                eprintln!(
                    "broken after {} kills: {why}; the store is in {}",
                    soak.kills,
                    kept.display()
                );
                return ExitCode::FAILURE;
            }
        }
        let (facts, refusals) = (soak.journal.facts(), soak.journal.unavailable());
        println!(
            "| {minute} | {} | {facts} | {refusals} | {:.1} | {:.1} | {:.1} |",
            soak.kills,
            mebibytes(row.file),
            mebibytes(row.wal),
            mebibytes(row.memory),
        );
        soak.rows.push(row);
    }
    match growth(&soak.rows) {
        Some(what) => {
            eprintln!("{what} keeps growing");
            ExitCode::FAILURE
        }
        None => {
            println!(
                "\n{} kills, {} facts, no promise broken, no growth",
                soak.kills,
                soak.journal.facts()
            );
            ExitCode::SUCCESS
        }
    }
}

struct Soak {
    random: SeededRandom,
    journal: Journal,
    kills: u64,
    rows: Vec<MinuteFigures>,
}

/// The largest figures of one minute.
#[derive(Clone, Copy, Debug, Default)]
struct MinuteFigures {
    file: u64,
    wal: u64,
    memory: u64,
}

impl Soak {
    fn run_and_kill(
        &mut self,
        program: &Path,
        path: &Path,
        row: &mut MinuteFigures,
        runtime: &tokio::runtime::Runtime,
    ) -> Result<(), String> {
        let trouble = match self.random.below(10) {
            0 => Some(format!("fsync@{}", 1 + self.random.below(500))),
            1 => Some(format!("full@{}", 1 + self.random.below(500))),
            _ => None,
        };
        let length = Duration::from_millis(500 + self.random.below(5_500));
        // The figures are read before the child is killed.
        let child = ChildProcess::start(
            program,
            path,
            self.random.next(),
            Death::After(Duration::ZERO),
            trouble.as_deref(),
            Some(TASK_TTL),
        )
        .map_err(|error| error.to_string())?;
        std::thread::sleep(length);
        row.memory = row.memory.max(child.memory().unwrap_or_default());
        row.file = row.file.max(size(path));
        row.wal = row.wal.max(size(&path.with_extension("db-wal")));
        let ended = child.end().map_err(|error| error.to_string())?;
        if !ended.as_planned {
            return Err("the child ended before it was killed".into());
        }
        self.kills += 1;
        let recorded = self.journal.note(ended.acks);
        let checked = recorded.and_then(|()| runtime.block_on(self.journal.check(path)));
        self.journal.forget_expired();
        checked.map_err(|broken| format!("{broken:?}"))
    }
}

/// The figure that is larger in the last third of the run than in the middle, by more than half and
/// 8 MiB.
fn growth(rows: &[MinuteFigures]) -> Option<&'static str> {
    let third = rows.len() / 3;
    if third == 0 {
        return None;
    }
    let largest =
        |rows: &[MinuteFigures], of: Figure| rows.iter().map(of).max().unwrap_or_default();
    let grows = |of: Figure| {
        let middle = largest(&rows[third..2 * third], of);
        let last = largest(&rows[2 * third..], of);
        last > middle + middle / 2 + (8 << 20)
    };
    let figures: [(&str, Figure); 3] = [
        ("the file", |row| row.file),
        ("the WAL", |row| row.wal),
        ("the process", |row| row.memory),
    ];
    figures
        .into_iter()
        .find(|(_, of)| grows(*of))
        .map(|(what, _)| what)
}

type Figure = fn(&MinuteFigures) -> u64;

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Short enough that the store reaches a steady state within minutes.
const TASK_TTL: Duration = Duration::from_secs(30);
