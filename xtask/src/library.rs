//! `cargo xtask test library`: the library as other crates use it.
//!
//! | check | what it shows |
//! |---|---|
//! | features | documented combinations compile, and need no C compiler without `sqlite`, `tls` and `postgres` |
//! | outside | a crate outside the workspace uses only what is public, and its programs end as expected |
//! | packages | every crate that is published can be packed |

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::npm::{root, target};
use crate::part::run as run_command;

type Check = fn() -> Result<(), String>;

/// Runs all checks, or those that `only` names.
pub(crate) fn run(only: &[String]) -> Result<(), String> {
    let checks: [(&str, Check); 3] = [
        ("features", features),
        ("outside", outside),
        ("packages", packages),
    ];
    let known = |name: &String| checks.iter().any(|(known, _)| known == name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<_> = checks.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no check is named {unknown}; there are: {}",
            names.join(", ")
        ));
    }
    for (name, check) in checks {
        if only.is_empty() || only.iter().any(|wanted| wanted == name) {
            eprintln!("library: {name}");
            check().map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(())
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(args).current_dir(root());
    command
}

/// Combinations that the front page documents.
const COMBINATIONS: [&str; 3] = ["server", "client", "client,http,schemars,server"];

fn features() -> Result<(), String> {
    for features in COMBINATIONS {
        let set = ["--no-default-features", "--features", features];
        let mut check = cargo(&["check", "--quiet", "--lib", "--package", "outlast"]);
        run_command(check.args(set))?;
        let mut tree = cargo(&["tree", "--package", "outlast", "--prefix", "none"]);
        tree.args(["--edges", "normal,build", "--format", "{p}"])
            .args(set);
        let listed = tree.output().map_err(|error| error.to_string())?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        if !listed.contains("outlast-engine ") {
            return Err("`cargo tree` lists no dependencies".into());
        }
        let names = listed.lines().filter_map(|line| line.split(' ').next());
        if let Some(compiler) = names.into_iter().find(|name| C_COMPILERS.contains(name)) {
            return Err(format!("with {features}, {compiler} needs a C compiler"));
        }
    }
    Ok(())
}

/// Crates that start a C compiler in their build or for others.
const C_COMPILERS: [&str; 5] = ["aws-lc-sys", "cc", "cmake", "libsqlite3-sys", "ring"];

fn outside() -> Result<(), String> {
    let folder = root().join("crates/outlast/tests/outside");
    let copied = fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"));
    copied.map_err(|error| format!("cannot copy Cargo.lock: {error}"))?;
    let manifest = folder.join("Cargo.toml");
    let built = target().join("outside");
    let mut build = cargo(&["build", "--quiet", "--manifest-path"]);
    run_command(build.arg(&manifest).arg("--target-dir").arg(&built))?;
    let programs = built.join("debug");
    let ended = output(&programs.join("outside"))?;
    if ended != "all parts passed\n" {
        return Err(format!("unexpected output: {ended}"));
    }
    // Both programs do the same, so that their lines can be compared.
    let ours = output(&programs.join("reports"))?;
    let alone = output(&programs.join("reports_with_rmcp_alone"))?;
    if ours != alone || ours.is_empty() {
        return Err(format!("the output differs: {ours:?} and {alone:?}"));
    }
    let readme = read(&root().join("README.md"))?;
    for name in ["reports", "reports_with_rmcp_alone"] {
        let code = read(&folder.join(format!("src/bin/{name}.rs")))?;
        let stated = format!(
            "[{} lines](crates/outlast/tests/outside/src/bin/{name}.rs)",
            lines(&code)
        );
        if !readme.contains(&stated) {
            return Err(format!("README.md does not say: {stated}"));
        }
    }
    Ok(())
}

/// The lines of code without blank lines and comments.
fn lines(code: &str) -> usize {
    let lines = code.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

fn output(program: &Path) -> Result<String, String> {
    let ended = Command::new(program).output();
    let ended = ended.map_err(|error| format!("{} did not start: {error}", program.display()))?;
    if !ended.status.success() {
        let why = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(format!(
            "{} ended with {}: {why}",
            program.display(),
            ended.status
        ));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// The crates that are published, each after those that it uses.
const PUBLISHED: [&str; 6] = [
    "outlast-wire",
    "outlast-engine",
    "outlast-store",
    "outlast",
    "outlast-console",
    "outlast-cli",
];

fn packages() -> Result<(), String> {
    let mut package = cargo(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
    run_command(package.args(PUBLISHED.iter().flat_map(|name| ["--package", name])))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_not_counted() {
        assert_eq!(lines("//! a\n\nfn main() {\n    // why\n}\n"), 2);
    }
}
