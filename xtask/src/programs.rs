//! The part `tests` of `cargo xtask test`: all test programs, with a record of every test that
//! passed.
//!
//! Cargo starts each test program through `xtask observe`, which forwards its output and records
//! the tests in it. So a test counts only if it ran. A test is named `package::target::path`; the
//! target is `lib`, a binary or a file under `tests`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::npm::root;
use crate::{debian, part, record};

/// The record of the test programs, before the tests have their full names.
const RAW_RECORD: &str = "programs";

/// The tests of the workspace.
const TESTS: [&str; 3] = ["test", "--workspace", "--all-features"];

/// Runs all tests and records those that pass.
pub(crate) fn run() -> Result<(), String> {
    installed()?;
    record::begin(RAW_RECORD)?;
    // Read before the build, which can replace this program at its path.
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let names = build_tests()?;
    let runner = serde_json::json!([own, "observe"]);
    let mut command = Command::new(env!("CARGO"));
    command
        .args(TESTS)
        .arg("--no-fail-fast")
        .arg("--config")
        .arg(format!("target.'cfg(all())'.runner = {runner}"))
        .current_dir(root());
    let done = part::run(&mut command);
    record::add("tests", &full_names(&names, &record::raw(RAW_RECORD)?))?;
    done
}

/// Installs the programs that the tests start, if this machine does not have them.
fn installed() -> Result<(), String> {
    postgres()?;
    debian::program("pgbouncer", "pgbouncer")?;
    debian::program("nginx", "nginx-light")?;
    debian::program("haproxy", "haproxy").map(drop)
}

/// Installs PostgreSQL, if this machine does not have it.
pub(crate) fn postgres() -> Result<(), String> {
    let is_named = std::env::var_os("OUTLAST_POSTGRES_BIN").is_some();
    // Debian keeps the programs of each version in a folder that is not on PATH.
    let installed = Path::new("/usr/lib/postgresql").is_dir();
    if !is_named && !installed {
        debian::program("pg_ctlcluster", "postgresql")?;
    }
    Ok(())
}

/// Builds the test programs and returns their names by path.
fn build_tests() -> Result<BTreeMap<String, String>, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(TESTS)
        .args(["--no-run", "--message-format=json"])
        .current_dir(root())
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| program(&message)).collect())
}

/// The path and the name of a test program in a message of cargo.
fn program(message: &Value) -> Option<(String, String)> {
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
    // The folder of a package has its name.
    let package = manifest.parent()?.file_name()?.to_str()?;
    Some((path, format!("{package}::{target}")))
}

/// The full names of tests that were recorded as `path<TAB>test`.
fn full_names(programs: &BTreeMap<String, String>, raw: &[String]) -> Vec<String> {
    raw.iter()
        .filter_map(|line| line.split_once('\t'))
        // Tests in documentation have their own programs.
        .filter_map(|(path, test)| Some(format!("{}::{test}", programs.get(path)?)))
        .collect()
}

/// `xtask observe PROGRAM ARGS...`: runs a test program and records which of its tests pass.
pub(crate) fn observe(args: &[String]) -> Result<ExitCode, String> {
    let (program, args) = args.split_first().ok_or("observe needs a program")?;
    let mut passed = Vec::new();
    let status = part::run_reading(Command::new(program).args(args), &mut |line| {
        passed.extend(passed_test(line).map(|test| format!("{program}\t{test}")));
    })?;
    record::add(RAW_RECORD, &passed)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(101)))
}

/// The test that a line of a test program reports as passed.
fn passed_test(line: &str) -> Option<&str> {
    let (name, "ok") = line.strip_prefix("test ")?.rsplit_once(" ... ")? else {
        return None;
    };
    Some(name.trim_end_matches(" - should panic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_passed_are_recorded() {
        for (line, test) in [
            ("test a::b ... ok", Some("a::b")),
            ("test a::b - should panic ... ok", Some("a::b")),
            ("test a::b ... FAILED", None),
            ("test a::b ... ignored, it takes an hour", None),
            ("test result: ok. 4 passed; 0 failed", None),
            ("a::b ... ok", None),
        ] {
            assert_eq!(passed_test(line), test, "{line}");
        }
    }

    #[test]
    fn tests_are_named_by_package_and_target() {
        let message = serde_json::json!({
            "reason": "compiler-artifact", "profile": { "test": true }, "executable": "/t/gateway-1",
            "target": { "kind": ["test"], "name": "gateway" }, "manifest_path": "/p/outlast/Cargo.toml",
        });
        let programs = BTreeMap::from_iter(program(&message));
        let raw = ["/t/gateway-1\tcells::all", "/t/other\tcells::all"].map(str::to_owned);
        assert_eq!(
            full_names(&programs, &raw),
            ["outlast::gateway::cells::all"]
        );
    }
}
