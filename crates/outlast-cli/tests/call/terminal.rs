//! What a person at a terminal sees.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::stage::Server;

/// What a terminal of so many columns shows of a call that counts down.
fn shown(columns: u16, variables: &[(&str, &str)]) -> String {
    let server = Server::start();
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
    let words = ["call", "--as", "v1", "{}", "countdown", "from=20"];
    let mut child = server
        .command(&words)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(theirs)
        .spawn()
        .expect("it starts");
    let mut seen = Vec::new();
    // A terminal that nobody has open any more ends with an error.
    let _ = File::from(ours).read_to_end(&mut seen);
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(seen).expect("text")
}

#[test]
fn a_line_on_a_terminal_moves_and_the_last_one_stays() {
    // S4-58, S4-60, S4-68.
    let seen = shown(200, &[]);
    let frames: Vec<_> = seen.split("\r\x1b[2K").collect();
    let turning = |sign: &str| {
        let begin = format!("{sign} Working: task ");
        frames
            .iter()
            .any(|frame| frame.starts_with(&begin) && frame.contains("/20"))
    };
    assert!(turning("|") && turning("/"), "{seen:?}");
    let last = frames.last().expect("there is one");
    assert!(
        last.starts_with("\x1b[32m✔\x1b[0m Completed: task "),
        "{last:?}"
    );
    assert!(last.contains("[####################] 20/20"), "{last:?}");
}

#[test]
fn a_line_is_cut_to_the_width_of_the_terminal() {
    let seen = shown(30, &[("NO_COLOR", "1")]);
    let mut frames: Vec<_> = seen.split("\r\x1b[2K").collect();
    let last = frames.pop().expect("there is one");
    assert!(last.starts_with("✔ Completed: task "), "{last:?}");
    let working = frames.iter().filter(|frame| frame.contains("Working"));
    for frame in working.clone() {
        assert!(frame.trim_end().chars().count() <= 30, "{frame:?}");
    }
    assert!(working.count() > 0, "{seen:?}");
}
