//! The tests that there are: asked from the test programs themselves, and read from the scripts of the peers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::npm::root;

/// The tests that run.
pub(super) struct Known {
    run: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl Known {
    /// Asks every test program of the workspace, which are those of the part `tests`.
    pub(super) fn list() -> Result<Self, String> {
        let mut known = Self {
            run: BTreeSet::new(),
            ignored: BTreeSet::new(),
        };
        for program in programs()? {
            let all = listed(&program, &[])?;
            let ignored: BTreeSet<_> = listed(&program, &["--ignored"])?.into_iter().collect();
            for test in all {
                let name = format!("{}::{test}", program.name);
                match ignored.contains(&test) {
                    true => known.ignored.insert(name),
                    false => known.run.insert(name),
                };
            }
        }
        Ok(known)
    }

    /// Whether a test of that name is there and runs.
    pub(super) fn runs(&self, name: &str) -> Result<(), String> {
        if let Some((script, title)) = name.split_once(": ") {
            return told(script, title);
        }
        if self.run.contains(name) {
            return Ok(());
        }
        if self.ignored.contains(name) {
            return Err(format!("{name} is ignored"));
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        let alike = self.run.iter().find(|known| known.ends_with(last));
        Err(match alike {
            Some(alike) => format!("there is no test {name}; is it {alike}?"),
            None => format!("there is no test {name}"),
        })
    }
}

/// A program of tests.
struct Program {
    /// Package and target.
    name: String,
    path: String,
}

/// Builds the test programs, or finds them built.
fn programs() -> Result<Vec<Program>, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--workspace", "--all-features", "--no-run"])
        .arg("--message-format=json")
        .current_dir(root())
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter_map(|message| {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let path = message["executable"].as_str()?.to_owned();
        let target = match message["target"]["kind"][0].as_str()? {
            "lib" => "lib",
            "example" => return None,
            _ => message["target"]["name"].as_str()?,
        };
        let manifest = Path::new(message["manifest_path"].as_str()?);
        // Packages lie in folders of their name.
        let package = manifest.parent()?.file_name()?.to_str()?;
        Some(Program {
            name: format!("{package}::{target}"),
            path,
        })
    });
    Ok(programs.collect())
}

fn listed(program: &Program, args: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(&program.path)
        .args(["--list", "--format", "terse"])
        .args(args)
        .output()
        .map_err(|error| format!("{}: {error}", program.path))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let names = said.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// Whether a script of a peer has a conversation of that title.
fn told(script: &str, title: &str) -> Result<(), String> {
    let file = root().join("peers").join(script);
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    match text.contains(title) {
        true => Ok(()),
        false => Err(format!("peers/{script} has no conversation {title:?}")),
    }
}
