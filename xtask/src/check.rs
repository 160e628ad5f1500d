//! A check with a real peer. Its name is the peer's script and the transport, such as
//! `python/v1_client.py over stdio`.
//!
//! A script prints `ok TITLE` for each conversation that passed. `docs/coverage.md` names such a
//! conversation as `python/v1_client.py: TITLE`, and `docs/interop.md` lists the checks.

use std::process::Command;

use crate::part::run_reading;
use crate::record;

/// Runs the check and records what passed in the part `peers`.
pub(crate) fn run(script: &str, way: &str, command: &mut Command) -> Result<(), String> {
    run_in("peers", script, way, command)
}

/// Runs the check and records what passed in `part`.
pub(crate) fn run_in(
    part: &str,
    script: &str,
    way: &str,
    command: &mut Command,
) -> Result<(), String> {
    println!("\n{script} {way}");
    let mut passed = Vec::new();
    let status = run_reading(command, &mut |line| {
        passed.extend(title(line).map(|title| format!("{script}: {title}")));
    })?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}"));
    }
    passed.push(format!("{script} {way}"));
    record::add(part, &passed)
}

/// Records a check whose parts were run one by one.
pub(crate) fn passed(script: &str, way: &str) -> Result<(), String> {
    println!("{script} {way} passed");
    record::add("peers", &[format!("{script} {way}")])
}

/// The conversation that a line reports as passed.
fn title(line: &str) -> Option<&str> {
    Some(line.strip_prefix("ok ")?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conversations_that_passed_have_a_title() {
        assert_eq!(title("ok      a_quick_call"), Some("a_quick_call"));
        assert_eq!(title("ok a quick call"), Some("a quick call"));
        assert_eq!(title("FAILED  a_quick_call"), None);
        assert_eq!(title("okay"), None);
    }
}
