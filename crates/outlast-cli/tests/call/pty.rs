//! A terminal of a given width, in which a command runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

pub(crate) struct Pty {
    ours: OwnedFd,
    theirs: File,
}

impl Pty {
    pub(crate) fn new(columns: u16) -> Self {
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

    /// Runs `command` to its end with output and errors on the terminal; returns what the terminal received. `typed` comes from
    /// a pipe.
    pub(crate) fn run(self, mut command: Command, typed: &str) -> String {
        let theirs = || self.theirs.try_clone().expect("a terminal");
        let mut child = command
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .expect("it starts");
        // The terminal ends when the last process has closed it.
        drop((command, self.theirs));
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have ended.
        let _ = stdin.write_all(typed.as_bytes());
        drop(stdin);
        let mut seen = Vec::new();
        let _ = File::from(self.ours).read_to_end(&mut seen);
        child.wait().expect("it ends");
        String::from_utf8_lossy(&seen).into_owned()
    }
}
