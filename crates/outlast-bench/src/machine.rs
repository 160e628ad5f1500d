//! The load of the machine, and the processor time and memory of a process, as the operating system
//! reports them.

use std::fs;
use std::time::Instant;

use crate::BenchResult;

/// Measures how much other programs use the machine.
pub(crate) struct MachineLoad {
    began: Instant,
    ticks: Option<Ticks>,
}

#[derive(Clone, Copy)]
struct Ticks {
    /// Of all processes, on all cores.
    busy: u64,
    idle: u64,
    /// Of this process and its children that have ended.
    own: u64,
}

impl MachineLoad {
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            ticks: Ticks::now(),
        }
    }

    pub(crate) fn report(&self) -> String {
        let took = self.began.elapsed().as_secs_f64();
        let others = self.ticks.zip(Ticks::now()).map(|(before, after)| {
            let busy = after.busy - before.busy;
            let all = (busy + after.idle - before.idle).max(1);
            busy.saturating_sub(after.own - before.own) as f64 * 100.0 / all as f64
        });
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        match others {
            Some(others) => {
                format!("{took:.0} s; other programs used {others:.0} % of the {cores} cores")
            }
            None => format!("{took:.0} s; the load of other programs is not known here"),
        }
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let all: Vec<u64> = stat
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        let idle = all.get(3)? + all.get(4)?;
        Some(Self {
            busy: all.iter().sum::<u64>() - idle,
            idle,
            own: times_of("self", 4)?,
        })
    }
}

/// The sum of user time and system time, from field `first`, in hundredths of a second.
fn times_of(process: &str, first: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name in brackets: state, then numbers; the times are fields 14 to 17.
    let times = stat.rsplit(')').next()?.split_whitespace();
    Some(
        times
            .skip(11)
            .take(first)
            .filter_map(|number| number.parse::<u64>().ok())
            .sum(),
    )
}

/// The processor time that this process has used so far, in seconds.
pub(crate) fn processor() -> BenchResult<f64> {
    processor_of(std::process::id())
}

/// The processor time that a running process has used so far, in seconds.
pub(crate) fn processor_of(process: u32) -> BenchResult<f64> {
    let times = times_of(&process.to_string(), 2);
    let times = times.ok_or("the system does not report the times of a process")?;
    // The operating system always counts in hundredths of a second here.
    Ok(times as f64 / 100.0)
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident_of(process: u32) -> BenchResult<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes = kilobytes.ok_or("the system does not report VmRSS")?;
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}

/// Writes to most of the free memory once.
///
/// A virtual machine gets a page from its host when it is first used, which can take longer than
/// the measured work. No figure includes that.
pub(crate) fn touch_memory() {
    let free = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = free
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = free.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    let bytes = ((free.unwrap_or(0) << 10) / 4 * 3).min(MAX_TOUCHED_BYTES);
    let touched: Vec<Vec<u8>> = (0..bytes / CHUNK_BYTES)
        .map(|_| vec![1; CHUNK_BYTES])
        .collect();
    drop(std::hint::black_box(touched));
}

const MAX_TOUCHED_BYTES: usize = 8 << 30;

const CHUNK_BYTES: usize = 64 << 20;
