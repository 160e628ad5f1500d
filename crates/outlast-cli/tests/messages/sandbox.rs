//! A separate home directory in which `outlast` runs, and the replacement of text that differs from
//! run to run.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use outlast_testkit::{OutputLines, ServerProcess};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) struct Sandbox {
    home: TempDir,
    /// The replacements in every output.
    replaced: RefCell<Vec<(String, String)>>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let path = home.path().display().to_string();
        Self {
            home,
            replaced: RefCell::new(vec![(path, "/home/ada".into())]),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file into the home directory.
    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path().join(name), content).expect("the home directory is writable");
    }

    /// Replaces `real` by `shown` in every output from now on.
    pub(crate) fn replace(&self, real: impl Into<String>, shown: &str) {
        self.replaced
            .borrow_mut()
            .push((real.into(), shown.to_owned()));
    }

    /// Starts a server of `outlast` and shows its address as `address`.
    pub(crate) fn serve(&self, args: &[&str], address: &str) -> ServerProcess {
        let server = ServerProcess::start(self.command(args).stderr(Stdio::null()), 1);
        self.replace(server.authority(), address);
        self.replace(format!("process {}", server.id()), "process PID");
        server
    }

    /// Runs `outlast` to its end. Returns the command, its output, its error output and its exit
    /// code.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let mut command = self.command(args);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("outlast starts");
        let id = child.id();
        let (send, ended) = mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let Ok(output) = ended.recv_timeout(COMMAND_TIMEOUT) else {
            let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
            // The process may have ended just now.
            let _ = kill_process(pid.expect("a child has an id"), Signal::KILL);
            panic!(
                "outlast {args:?} has not ended after {} s",
                COMMAND_TIMEOUT.as_secs()
            );
        };
        let output = output.expect("its output can be read");
        let quoted: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
        let mut text = format!(
            "\n{}\n",
            format!("$ outlast {}", quoted.join(" ")).trim_end()
        );
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        for line in printed.lines().filter(|line| !depends_on_time(line)) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        match output.status.code() {
            Some(0) => {}
            code => text.push_str(&format!("[exit code {}]\n", code.unwrap_or(-1))),
        }
        self.as_printed(&text)
    }

    /// Runs a server until it prints a failure with its next step. Returns the command and these
    /// two lines.
    pub(crate) fn first_failure(&self, args: &[&str]) -> String {
        let mut command = self.command(args);
        let mut server = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("outlast starts");
        let mut stderr = OutputLines::read(server.stderr.take().expect("a pipe"));
        let what = stderr.until("outlast: ");
        let next = stderr.next().unwrap_or_default();
        // The test needs only its first lines.
        let _ = server.kill();
        let _ = server.wait();
        let quoted: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
        self.as_printed(&format!(
            "\n$ outlast {}\n{what}\n{next}\n",
            quoted.join(" ")
        ))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("XDG_DATA_HOME", self.path().join("data"))
            .env("NO_COLOR", "1");
        command
    }

    fn as_printed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some((before, after)) = text.split_once("kill -9 ") {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            text = format!("{before}kill -9 PID{after}");
        }
        for (real, shown) in self.replaced.borrow().iter() {
            text = text.replace(real, shown);
        }
        // What the resolver of a machine without a network says.
        text = text.replace(
            "Temporary failure in name resolution",
            "Name or service not known",
        );
        let words =
            text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c));
        words.map(shown_word).collect()
    }
}

/// Replaces a word that is a task id or a time.
fn shown_word(word: &str) -> String {
    let body = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let end = &word[body.len()..];
    let is_id = body.len() == TASK_ID_LETTERS
        && body
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_lowercase())
        && body.contains(|c: char| c.is_ascii_digit());
    let is_time = body.len() >= 10
        && body.starts_with(|c: char| c.is_ascii_digit())
        && body.get(4..5) == Some("-")
        && body.get(10..11) == Some("T");
    match (is_id, is_time) {
        (true, _) => format!("TASK-ID{end}"),
        (_, true) => format!("TIME{end}"),
        _ => word.to_owned(),
    }
}

/// Whether a line is printed on slow machines only.
fn depends_on_time(line: &str) -> bool {
    line.contains("still waiting")
}

/// Quotes an argument as in a shell.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{arg}'")
    }
}

const TASK_ID_LETTERS: usize = 26;

/// Longer than any command takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
