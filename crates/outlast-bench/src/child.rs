//! Measurements that want a process of their own: memory and opening. A child prints numbers.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use outlast_store::{Durability, SqliteOptions};
use tokio::runtime::Runtime;

use crate::load::fill;
use crate::machine::{processor, resident};
use crate::rmcp::Peer;
use crate::subject::{Subject, owner};
use crate::{Done, WORKERS};

/// What a child does.
pub(crate) enum Job {
    /// Fills a memory store; tells how much memory that took.
    RetainMemory(usize),
    /// The same for the peer.
    RetainPeer(usize),
    /// Fills a file; tells how much memory that took.
    Fill(PathBuf, usize),
    /// Opens a file; tells the seconds until the store and until the engine are there, the memory that
    /// took, and the tasks that were found.
    Open(PathBuf),
    /// Touches so many bytes of memory; tells the seconds that took.
    Touch(u64),
    /// Lives through so many batches in memory, each on an empty store, for whoever holds a profiler to
    /// it; tells the processor time of a life, in microseconds.
    Live(usize),
}

impl Job {
    pub(crate) fn read(args: impl Iterator<Item = String>) -> Done<Self> {
        let args: Vec<String> = args.collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(match args[..] {
            ["memory", tasks] => Self::RetainMemory(tasks.parse()?),
            ["peer", tasks] => Self::RetainPeer(tasks.parse()?),
            ["fill", path, tasks] => Self::Fill(path.into(), tasks.parse()?),
            ["open", path] => Self::Open(path.into()),
            ["touch", bytes] => Self::Touch(bytes.parse()?),
            ["live", batches] => Self::Live(batches.parse()?),
            _ => return Err("no such job".into()),
        })
    }

    fn args(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        match self {
            Self::RetainMemory(tasks) => vec!["memory".into(), tasks.to_string()],
            Self::RetainPeer(tasks) => vec!["peer".into(), tasks.to_string()],
            Self::Fill(file, tasks) => vec!["fill".into(), path(file), tasks.to_string()],
            Self::Open(file) => vec!["open".into(), path(file)],
            Self::Touch(bytes) => vec!["touch".into(), bytes.to_string()],
            Self::Live(batches) => vec!["live".into(), batches.to_string()],
        }
    }
}

/// Lets a child do the job and reads its numbers.
pub(crate) fn measured(job: &Job) -> Done<Vec<f64>> {
    let child = Command::new(std::env::current_exe()?)
        .arg("child")
        .args(job.args())
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(format!("a measurement ended with {}", child.status).into());
    }
    let numbers = String::from_utf8(child.stdout)?;
    Ok(numbers
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?)
}

pub(crate) fn run(job: Job) -> Done<()> {
    let runtime = crate::runtime(WORKERS)?;
    match job {
        Job::RetainMemory(tasks) => {
            let subject = runtime.block_on(Subject::memory())?;
            let grown = growth(|| fill(&runtime, &subject, tasks, 16))?;
            println!("{grown}");
        }
        Job::RetainPeer(tasks) => {
            let peer = Peer::new();
            println!("{}", growth(|| fill(&runtime, &peer, tasks, 1))?);
        }
        Job::Fill(path, tasks) => {
            // As a file grows, only faster: what is measured later syncs every commit.
            let options = SqliteOptions {
                durability: Durability::Process,
                ..SqliteOptions::default()
            };
            let subject = runtime.block_on(Subject::sqlite(&path, options))?;
            println!("{}", growth(|| fill(&runtime, &subject, tasks, 256))?);
            runtime.block_on(subject.engine.store().close())?;
        }
        Job::Open(path) => open(&runtime, &path)?,
        Job::Touch(bytes) => {
            let began = Instant::now();
            let touched: Vec<Vec<u8>> = (0..bytes / CHUNK)
                .map(|_| vec![1; CHUNK as usize])
                .collect();
            drop(std::hint::black_box(touched));
            println!("{}", began.elapsed().as_secs_f64());
        }
        Job::Live(batches) => {
            let before = processor();
            for _ in 0..batches {
                let subject = runtime.block_on(Subject::memory())?;
                fill(&runtime, &subject, 128, 16);
            }
            println!("{}", (processor() - before) * 1e6 / (batches * 128) as f64);
        }
    }
    Ok(())
}

fn open(runtime: &Runtime, path: &PathBuf) -> Done<()> {
    let (before, began) = (resident()?, Instant::now());
    let store = outlast_store::Sqlite::open_blocking(path, SqliteOptions::default())?;
    let there = began.elapsed().as_secs_f64();
    let clock = std::sync::Arc::new(outlast_engine::SystemClock);
    let subject = runtime.block_on(Subject::on(std::sync::Arc::new(store), clock))?;
    let ready = began.elapsed().as_secs_f64();
    let took = resident()? - before;
    let found = runtime.block_on(subject.engine.usage(&owner()))?.retained;
    println!("{there} {ready} {took} {found}");
    runtime.block_on(subject.engine.store().close())?;
    Ok(())
}

/// How much more memory this process holds after `work`.
fn growth(work: impl FnOnce()) -> Done<u64> {
    let before = resident()?;
    work();
    Ok(resident()?.saturating_sub(before))
}

/// How much memory is touched at a time.
const CHUNK: u64 = 64 << 20;
