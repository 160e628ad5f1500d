//! A terminal of a given width, in which a command runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal that no command uses yet.
pub struct Pty {
    ours: OwnedFd,
    theirs: File,
}

/// A command that runs in a terminal. It is killed when this is dropped.
pub struct TerminalProcess {
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Ends when the last process has closed the terminal.
    reader: JoinHandle<()>,
}

impl Pty {
    /// A terminal with this number of columns.
    pub fn new(columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it can be used");
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).expect("it has a size");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let theirs = File::options()
            .write(true)
            .open(OsStr::from_bytes(name.as_bytes()))
            .expect("it can be opened");
        Self { ours, theirs }
    }

    /// Runs `command` to its end with output and errors on the terminal; returns what the terminal
    /// received. `typed` comes from a pipe.
    pub fn run(self, command: Command, typed: &str) -> String {
        let (mut child, ours) = self.spawn(command, Stdio::piped());
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have ended.
        let _ = stdin.write_all(typed.as_bytes());
        drop(stdin);
        let mut seen = Vec::new();
        let _ = File::from(ours).read_to_end(&mut seen);
        child.wait().expect("it ends");
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Starts `command` with output and errors on the terminal, and without input.
    pub fn start(self, command: Command) -> TerminalProcess {
        let (child, ours) = self.spawn(command, Stdio::null());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, mut ours) = (seen.clone(), File::from(ours));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = ours.read(&mut buffer) {
                let mut all = all.lock();
                all.extend_from_slice(&buffer[..read]);
            }
        });
        TerminalProcess {
            child,
            seen,
            reader,
        }
    }

    fn spawn(self, mut command: Command, stdin: Stdio) -> (Child, OwnedFd) {
        let theirs = || self.theirs.try_clone().expect("a terminal");
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(stdin)
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .expect("it starts");
        // The terminal ends when the last process has closed it.
        drop((command, self.theirs));
        (child, self.ours)
    }
}

impl TerminalProcess {
    /// What the terminal has received until now.
    pub fn received(&self) -> String {
        let seen = self.seen.lock();
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// How the command ended, once it has and all of its output was received.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("it can be waited for")?;
        self.reader.is_finished().then_some(status)
    }
}

impl Drop for TerminalProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
