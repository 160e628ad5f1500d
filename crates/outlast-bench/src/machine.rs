//! What the machine says of itself: how busy others keep it, and how much memory this process holds.

use std::fs;
use std::time::Instant;

use crate::Done;
use crate::child::{Job, measured};

/// Watches how busy the machine is with others.
pub(crate) struct Watch {
    began: Instant,
    ticks: Option<Ticks>,
}

#[derive(Clone, Copy)]
struct Ticks {
    /// All that was done on all cores.
    busy: u64,
    idle: u64,
    /// What this process and its dead children did.
    own: u64,
}

impl Watch {
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
                format!("{took:.0} s; others used {others:.0} % of the {cores} cores meanwhile")
            }
            None => format!("{took:.0} s; how busy others were is not known here"),
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
        // The times of living children come in with their death.
        Some(Self {
            busy: all.iter().sum::<u64>() - idle,
            idle,
            own: times_of("self", 4)?,
        })
    }
}

/// The sum of the first of user time, system time, and both of dead children, in hundredths of a second.
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
pub(crate) fn processor() -> f64 {
    // The system counts in hundredths, whatever its timer does.
    Ticks::now().map_or(f64::NAN, |ticks| ticks.own as f64 / 100.0)
}

/// The processor time that a living process has used so far, in seconds.
pub(crate) fn processor_of(process: u32) -> Done<f64> {
    let times = times_of(&process.to_string(), 2);
    let times = times.ok_or("the system does not tell the times of a process")?;
    Ok(times as f64 / 100.0)
}

/// Uses most of the free memory once, up to `most` bytes.
///
/// A virtual machine gets memory from its host when it touches it for the first time, which takes longer than
/// whatever it wants the memory for: here some ten microseconds for a page. That is no part of any figure.
pub(crate) fn warm_up(most: u64) -> Done<()> {
    let free = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = free
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = free.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let bytes = (free.unwrap_or(0) << 10) / 4 * 3;
    let took = measured(&Job::Touch(bytes.min(most)))?[0];
    eprintln!("memory was touched once, in {took:.0} s");
    Ok(())
}

/// The memory that this process holds, in bytes.
pub(crate) fn resident() -> Done<u64> {
    resident_of(std::process::id())
}

/// The memory that a process holds, in bytes.
pub(crate) fn resident_of(process: u32) -> Done<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes
        .ok_or("the system does not tell VmRSS")?
        .parse::<u64>()?
        << 10)
}
