//! `cargo xtask test library`: the library as other crates use it.
//!
//! | check | what it shows |
//! |---|---|
//! | features | documented combinations compile, some of them without a C compiler |
//! | outside | a crate outside the workspace uses the public items, and its programs succeed |
//! | packages | every crate that is published can be packed |
//! | api | the public API is the one in `docs/public-api` |
//! | verify | the packed crates build; only on request, and in `cargo xtask dist --check` |

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::npm::{root, target};
use crate::part::run as run_command;

type Check = fn() -> Result<(), String>;

/// Runs all checks but `verify`, or those that `only` names. `--update-api` writes the public API.
pub(crate) fn run(only: &[String]) -> Result<(), String> {
    if let [update] = only
        && update == "--update-api"
    {
        return public_api(Snapshot::Write);
    }
    let checks: [(&str, Check); 5] = [
        ("features", features),
        ("outside", outside),
        ("packages", packages),
        ("api", || public_api(Snapshot::Compare)),
        ("verify", verified_packages),
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
        let is_usual = only.is_empty() && name != "verify";
        if is_usual || only.iter().any(|wanted| wanted == name) {
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

/// Combinations that the front page documents, and each feature alone.
const COMBINATIONS: [&str; 6] = [
    "server",
    "client",
    "http",
    "rmcp",
    "gateway",
    "client,http,schemars,server",
];

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
    let program = read(&folder.join("src/main.rs"))?;
    let stated = format!(
        "[One program](crates/outlast/tests/outside/src/main.rs) of {} lines",
        lines(&program)
    );
    if !readme.contains(&stated) {
        return Err(format!("README.md does not say: {stated}"));
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
    output_of(&mut Command::new(program))
}

fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ended = command.output();
    let ended = ended.map_err(|error| format!("{program} did not start: {error}"))?;
    if !ended.status.success() {
        let why = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(format!("{program} ended with {}: {why}", ended.status));
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

/// Builds each packed crate from its package.
pub(crate) fn verified_packages() -> Result<(), String> {
    let mut package = cargo(&["package", "--quiet", "--allow-dirty"]);
    run_command(package.args(PUBLISHED.iter().flat_map(|name| ["--package", name])))
}

/// What happens with the stored API.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Snapshot {
    Compare,
    Write,
}

/// The libraries whose public API is stored.
const LIBRARIES: [&str; 5] = [
    "outlast-wire",
    "outlast-engine",
    "outlast-store",
    "outlast",
    "outlast-console",
];

/// Compares the public API of each library with its file in `docs/public-api`, or writes the files.
/// The list depends on the compiler, so a file is compared only with a list of the same compiler.
fn public_api(snapshot: Snapshot) -> Result<(), String> {
    let folder = root().join("docs/public-api");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let compiler_file = folder.join("compiler.txt");
    let compiler = output_of(Command::new("rustc").arg("--version").current_dir(root()))?;
    match snapshot {
        Snapshot::Write => fs::write(&compiler_file, &compiler)
            .map_err(|error| format!("cannot write {}: {error}", compiler_file.display()))?,
        Snapshot::Compare => {
            let stored = fs::read_to_string(&compiler_file).unwrap_or_default();
            if !stored.is_empty() && stored != compiler {
                eprintln!(
                    "library: api: not compared: the stored list is of {} and this is {}",
                    stored.trim(),
                    compiler.trim()
                );
                return Ok(());
            }
        }
    }
    let built = target().join("public-api");
    let manifest = root().join("xtask/public-api/Cargo.toml");
    let mut build = cargo(&["build", "--quiet", "--locked", "--manifest-path"]);
    run_command(build.arg(manifest).arg("--target-dir").arg(&built))?;
    let rustdoc = rustdoc_with_json(&built)?;
    let mut changed = Vec::new();
    for name in LIBRARIES {
        let mut document = cargo(&["rustdoc", "--quiet", "--lib", "--all-features"]);
        document
            .args(["--package", name, "--target-dir"])
            .arg(target());
        document.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
        run_command(document.env("RUSTDOC", &rustdoc))?;
        let json = target().join(format!("doc/{}.json", name.replace('-', "_")));
        let listed = Command::new(built.join("debug/outlast-public-api"))
            .arg(&json)
            .output()
            .map_err(|error| format!("the list of the public API: {error}"))?;
        if !listed.status.success() {
            let why = String::from_utf8_lossy(&listed.stderr).into_owned();
            return Err(format!("{}: {why}", json.display()));
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let file = folder.join(format!("{name}.txt"));
        match snapshot {
            Snapshot::Write => fs::write(&file, listed)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?,
            Snapshot::Compare => {
                let stored = fs::read_to_string(&file).unwrap_or_default();
                if let Some(difference) = difference(&stored, &listed) {
                    changed.push(format!("{}:\n{difference}", file.display()));
                }
            }
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the public API differs from the stored one\n{}\n  next: if that is intended, run `cargo xtask library \
         --update-api`, commit the files, and tell users in CHANGELOG.md",
        changed.join("\n")
    ))
}

/// A program that runs rustdoc with unstable options. Only rustdoc gets the variable for that, so
/// that nothing else is built again.
fn rustdoc_with_json(folder: &Path) -> Result<PathBuf, String> {
    let script = folder.join("rustdoc");
    let text = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    let written = fs::write(&script, text).and_then(|()| {
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&script, executable)
    });
    written.map_err(|error| format!("cannot write {}: {error}", script.display()))?;
    Ok(script)
}

/// The lines that were removed and added, up to [`MAX_LINES`].
fn difference(stored: &str, listed: &str) -> Option<String> {
    let only_in = |one: &str, other: &str, sign: char| -> Vec<String> {
        let known: BTreeSet<&str> = other.lines().collect();
        let lines = one.lines().filter(|line| !known.contains(line));
        lines.map(|line| format!("{sign}{line}")).collect()
    };
    let mut lines = only_in(stored, listed, '-');
    lines.extend(only_in(listed, stored, '+'));
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push(format!("… and {more} more lines"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

const MAX_LINES: usize = 60;

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_removed_and_the_added_lines() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "b\nc\n").as_deref(), Some("-a\n+c"));
        let many = "x\n".to_owned() + &(0..100).map(|n| format!("{n}\n")).collect::<String>();
        assert!(difference("x\n", &many).is_some_and(|text| text.ends_with("40 more lines")));
    }

    #[test]
    fn comments_and_blank_lines_are_not_counted() {
        assert_eq!(lines("//! a\n\nfn main() {\n    // why\n}\n"), 2);
    }
}
