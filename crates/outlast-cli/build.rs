//! Gives the program its commit and the date of that commit, for `outlast --version`.
//!
//! A packager without a git checkout sets `OUTLAST_COMMIT` and `OUTLAST_COMMIT_DATE`. Without
//! either, the version has no commit. Nothing here uses the network.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=OUTLAST_COMMIT");
    println!("cargo::rerun-if-env-changed=OUTLAST_COMMIT_DATE");
    println!("cargo::rerun-if-changed=build.rs");
    // A commit changes the log of HEAD, in a linked worktree too.
    if let Some(log) = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ]) && std::path::Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let commit = given("OUTLAST_COMMIT").or_else(|| git(&["rev-parse", "--short=9", "HEAD"]));
    let date = given("OUTLAST_COMMIT_DATE").or_else(|| git(&["log", "-1", "--format=%cs"]));
    let version = env!("CARGO_PKG_VERSION");
    let version = match (commit, date) {
        (Some(commit), Some(date)) => format!("{version} ({commit} {date})"),
        _ => version.to_owned(),
    };
    println!("cargo::rustc-env=OUTLAST_VERSION={version}");
}

/// What a git command prints. `None` without git or outside a checkout.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
