//! Records child processes for the next run of this process. A process that is killed cannot end
//! its children, and a server that survives its pipe must be gone before its call is run again.
//!
//! Each child has a file, named by its process id, until all processes of its group are gone.
//! Process ids are reused, so the file contains the start time, too. A process with the same id and
//! another start time is not touched.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_store::private_file;
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use tokio::time::Instant;

/// A folder of child process records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ChildRegistry(Arc<Path>);

/// The record of a child. Dropping it removes the file.
pub(crate) struct ChildRecord(PathBuf);

impl ChildRegistry {
    /// Records children in this folder. Only one process can use it at a time.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into().into())
    }

    /// Ends the children of a previous run of this process, and waits until they are gone.
    pub async fn end_orphans(&self) -> io::Result<()> {
        match self.require_private_folder() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        let paths: Vec<_> = fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let child = name.and_then(|name| Pid::from_raw(name.parse().ok()?));
            if let Some(child) = child {
                end(child, private_file::read_to_string(&path)?.trim()).await?;
            }
            fs::remove_file(&path)?;
        }
        Ok(())
    }

    /// Records a child that leads a process group.
    pub(crate) fn record(&self, child: Pid) -> io::Result<ChildRecord> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.0)?;
        self.require_private_folder()?;
        let path = self.0.join(child.as_raw_nonzero().to_string());
        let mut file = private_file::open(&path, |options| {
            options.write(true).create(true).truncate(true);
        })?;
        writeln!(file, "{}", start_time(child).unwrap_or_default())?;
        Ok(ChildRecord(path))
    }
}

impl ChildRegistry {
    /// Rejects a folder that is a symbolic link or belongs to another user: its files are removed,
    /// and they name the processes to end.
    fn require_private_folder(&self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.0)?;
        if found.is_dir() && found.uid() == geteuid().as_raw() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "{} is not a folder of this user; remove it",
                self.0.display()
            )))
        }
    }
}

impl Drop for ChildRecord {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::info!(%error, "could not remove the record of a child process");
        }
    }
}

/// Ends the group of a child with that start time: SIGTERM, then SIGKILL.
async fn end(child: Pid, recorded: &str) -> io::Result<()> {
    for (signal, limit) in [(Signal::TERM, TERM_TIMEOUT), (Signal::KILL, KILL_TIMEOUT)] {
        if !is_running(child, recorded) {
            return Ok(());
        }
        tracing::info!(process = %child.as_raw_nonzero(), "ending a server of a previous run");
        // An error means that the group has no processes left.
        let _ = kill_process_group(child, signal);
        let until = Instant::now() + limit;
        while is_running(child, recorded) && Instant::now() < until {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
    if is_running(child, recorded) {
        Err(io::Error::other(format!(
            "a server of a previous run does not end (process {}); kill it, then start again",
            child.as_raw_nonzero()
        )))
    } else {
        Ok(())
    }
}

/// Whether a process of the group of a child with that start time exists. A group id is not reused
/// while the group has members, so a group without its leader is the child's.
#[cfg(target_os = "linux")]
fn is_running(child: Pid, recorded: &str) -> bool {
    match start_time(child) {
        Some(now) => now == recorded,
        None => {
            let boot = recorded.split(' ').next().unwrap_or_default();
            boot == linux::boot() && linux::has_members(child)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn is_running(child: Pid, recorded: &str) -> bool {
    !recorded.is_empty() && start_time(child).is_some_and(|now| now == recorded)
}

/// The start time of a process, if it exists.
#[cfg(target_os = "linux")]
fn start_time(process: Pid) -> Option<String> {
    let stat = linux::stat(&process.as_raw_nonzero().to_string())?;
    Some(format!("{} {}", linux::boot(), stat.start_ticks))
}

#[cfg(not(target_os = "linux"))]
fn start_time(process: Pid) -> Option<String> {
    let process = process.as_raw_nonzero().to_string();
    let shown = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &process])
        .output();
    let text = String::from_utf8(shown.ok()?.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Process information from `/proc`.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::Pid;

    /// A running process.
    pub(super) struct Stat {
        group: i32,
        /// In clock ticks since boot.
        pub(super) start_ticks: u64,
    }

    pub(super) fn stat(process: &str) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The program name can contain any character and ends with the last bracket.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<_> = rest.split(' ').collect();
        let gone = matches!(*fields.first()?, "Z" | "X");
        let stat = Stat {
            group: fields.get(2)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        };
        (!gone).then_some(stat)
    }

    /// The id of the current boot.
    pub(super) fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        id.unwrap_or_default().trim().to_owned()
    }

    pub(super) fn has_members(group: Pid) -> bool {
        let group = group.as_raw_nonzero().get();
        let Ok(all) = fs::read_dir("/proc") else {
            return false;
        };
        let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        numbers
            .filter_map(|process| stat(&process))
            .any(|stat| stat.group == group)
    }
}

/// How long to wait after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to check whether a process is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn spawn_ignoring_sigterm() -> (Child, Pid) {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM HUP; while :; do sleep 0.05; done"]);
        let child = command.process_group(0).spawn().unwrap();
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        (child, id)
    }

    #[tokio::test]
    async fn orphans_end_and_processes_with_a_reused_id_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let registry = ChildRegistry::at(folder.path().join("children"));
        registry.end_orphans().await.unwrap();
        let (mut child, id) = spawn_ignoring_sigterm();
        std::mem::forget(registry.record(id).unwrap());
        let file = registry.0.join(id.as_raw_nonzero().to_string());
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        registry.end_orphans().await.unwrap();
        assert!(child.try_wait().unwrap().is_some());
        assert!(!file.exists());

        let (mut other, id) = spawn_ignoring_sigterm();
        std::mem::forget(registry.record(id).unwrap());
        let file = registry.0.join(id.as_raw_nonzero().to_string());
        fs::write(&file, "another time").unwrap();
        registry.end_orphans().await.unwrap();
        assert!(other.try_wait().unwrap().is_none() && !file.exists());
        kill_process_group(id, Signal::KILL).unwrap();
        other.wait().unwrap();
    }

    #[tokio::test]
    async fn a_folder_behind_a_symbolic_link_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, link] = ["victim", "link"].map(|name| folder.path().join(name));
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("7"), "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let registry = ChildRegistry::at(&link);
        assert!(registry.end_orphans().await.is_err());
        assert!(registry.record(Pid::from_raw(8).unwrap()).is_err());
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);

        let registry = ChildRegistry::at(&victim);
        fs::write(folder.path().join("other"), "precious").unwrap();
        std::os::unix::fs::symlink(folder.path().join("other"), victim.join("8")).unwrap();
        assert!(registry.record(Pid::from_raw(8).unwrap()).is_err());
        let other = fs::read_to_string(folder.path().join("other")).unwrap();
        assert_eq!(other, "precious");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_whole_process_group_of_an_orphan_ends() {
        let folder = tempfile::tempdir().unwrap();
        let registry = ChildRegistry::at(folder.path());
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "trap '' TERM; (while :; do sleep 0.05; done) & sleep 0.3",
        ]);
        let mut child = command.process_group(0).spawn().unwrap();
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        std::mem::forget(registry.record(id).unwrap());
        child.wait().unwrap();
        assert!(linux::has_members(id));
        registry.end_orphans().await.unwrap();
        assert!(!linux::has_members(id));
    }
}
