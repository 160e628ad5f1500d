//! `cargo xtask dist`: the packages of the program for the machine that it runs on, in
//! `target/packages`.
//!
//! | file | what it packs |
//! |---|---|
//! | `platform.rs` | the platforms, and their names in npm and PyPI |
//! | `archive.rs` | the archive with its checksum |
//! | `npm.rs` | the npm packages |
//! | `wheel.rs` | the Python wheel |
//! | `registry.rs` | `server.json` of the MCP registry |
//! | `check.rs` | installs the packages and uses them |

mod archive;
mod check;
mod npm;
mod platform;
mod registry;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateways::{Build, binary};
use crate::library;
use crate::npm::{root, target};
use crate::part::run as run_command;
use platform::Platform;

/// The packages of a program for one platform.
struct Packages {
    folder: PathBuf,
    npm_main: PathBuf,
    npm_platform: PathBuf,
    wheel: PathBuf,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => release().map(|_| ()),
        ["--check"] => {
            library::verified_packages()?;
            let packages = release()?;
            check::recipes()?;
            check::installed(&packages)
        }
        ["--main", ref targets @ ..] if !targets.is_empty() => main_packages(targets),
        _ => Err("usage: cargo xtask dist [--check | --main TARGET...]".into()),
    }
}

/// The short form of `--check`: the same packages and conversations with the debug program.
pub(crate) fn run_short() -> Result<(), String> {
    let program = binary(Build::Debug)?;
    let packages = pack(&program, &target().join("packages-debug"))?;
    check::recipes()?;
    check::installed(&packages)
}

/// Builds the program with the profile `dist` and packs it.
fn release() -> Result<Packages, String> {
    let build = ["build", "--profile", "dist", "--locked"];
    run_command(
        Command::new(env!("CARGO"))
            .args(build)
            .args(["--package", "outlast-cli"])
            .current_dir(root()),
    )?;
    let program = target().join("dist/outlast");
    let size = std::fs::metadata(&program).map_err(|error| error.to_string())?;
    if size.len() > MAX_PROGRAM_BYTES {
        return Err(format!(
            "{} has {} bytes, more than {MAX_PROGRAM_BYTES}",
            program.display(),
            size.len()
        ));
    }
    println!("the program has {} bytes", size.len());
    pack(&program, &target().join("packages"))
}

/// Packs `program` in every form into `folder`.
fn pack(program: &Path, folder: &Path) -> Result<Packages, String> {
    let platform = Platform::of_this_machine()?;
    empty(folder)?;
    archive::write(program, &platform, folder)?;
    let packages = Packages {
        npm_main: npm::main_package(&[platform], folder)?,
        npm_platform: npm::platform_package(program, &platform, folder)?,
        wheel: wheel::write(program, &platform, folder)?,
        folder: folder.to_owned(),
    };
    registry::write(folder)?;
    println!("the packages are in {}", folder.display());
    Ok(packages)
}

/// Writes the files that name several platforms, after each platform has been packed on its own
/// machine.
fn main_packages(targets: &[&str]) -> Result<(), String> {
    let platforms: Result<Vec<_>, _> = targets
        .iter()
        .map(|target| Platform::of(target).copied())
        .collect();
    let folder = target().join("packages");
    empty(&folder)?;
    npm::main_package(&platforms?, &folder)?;
    registry::write(&folder)
}

/// Creates `folder` without content.
fn empty(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    }
    std::fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))
}

/// Copies a file. The folder of `to` is created.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let parent = to.parent().ok_or("a file is in a folder")?;
    std::fs::create_dir_all(parent).map_err(|error| file_error(parent, &error))?;
    std::fs::copy(from, to).map_err(|error| file_error(from, &error))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| file_error(path, &error))
}

fn file_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The version of every package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest program that is packed.
const MAX_PROGRAM_BYTES: u64 = 30_000_000;

/// The files next to the program in an archive.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The variable with the URL of the repository, for the files that link to it.
const REPOSITORY: &str = "OUTLAST_REPOSITORY";
