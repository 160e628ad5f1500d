//! Installs the packages into an empty folder with an empty home directory, and uses them like a
//! host: a real client, a real server, a kill and a return.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Packages, copy, empty, registry, write};
use crate::npm::{self, root, target};
use crate::part::run;
use crate::python;

/// Installs both packages, and runs `outlast serve` and `outlast stdio` of each.
pub(super) fn installed(packages: &Packages) -> Result<(), String> {
    let folder = target().join("dist-check");
    empty(&folder)?;
    registry::check(&folder)?;
    npm_package(packages, &folder)?;
    wheel(packages, &folder)?;
    println!("the packages in {} work", packages.folder.display());
    Ok(())
}

/// The host starts the relay by `npx`, as the lines of its configuration file say.
fn npm_package(packages: &Packages, folder: &Path) -> Result<(), String> {
    let home = Home::empty(folder, "home-npm")?;
    let npm = folder.join("npm");
    std::fs::create_dir_all(&npm).map_err(|error| super::file_error(&npm, &error))?;
    write(&npm.join("package.json"), "{ \"private\": true }\n")?;
    let install = ["install", "--silent", "--no-audit", "--no-fund"];
    run(home
        .command("npm")
        .args(install)
        .arg("--offline")
        .args([&packages.npm_platform, &packages.npm_main])
        .current_dir(&npm))?;
    no_install_scripts(&npm.join("node_modules"))?;
    let npx = ["npx", "--offline", "outlast"];
    run(home
        .command(npx[0])
        .args([&npx[1..], &["--version"]].concat())
        .current_dir(&npm))?;
    println!("\nthe npm package, used by a host");
    let program = npm.join("node_modules/.bin/outlast");
    use_like_a_host(&home, &program, &npx.map(str::to_owned), &npm)
}

/// The host starts the relay by `uv tool run`, which `uvx` is short for.
fn wheel(packages: &Packages, folder: &Path) -> Result<(), String> {
    let home = Home::empty(folder, "home-wheel")?;
    let uv = python::interpreter("python")?.with_file_name("uv");
    let environment = folder.join("venv");
    run(home
        .command(python_program()?)
        .args(["-m", "venv"])
        .arg(&environment))?;
    let install = ["install", "--quiet", "--no-index"];
    run(home
        .command(environment.join("bin/pip"))
        .args(install)
        .arg("--disable-pip-version-check")
        .arg(&packages.wheel))?;
    let uvx = [
        path_text(&uv)?,
        "tool".into(),
        "run".into(),
        "--quiet".into(),
        "--offline".into(),
        "--no-config".into(),
        "--python".into(),
        path_text(&environment.join("bin/python"))?,
        "--from".into(),
        path_text(&packages.wheel)?,
        "outlast".into(),
    ];
    run(home.command(&uvx[0]).args(&uvx[1..]).arg("--version"))?;
    println!("\nthe wheel, used by a host");
    use_like_a_host(&home, &environment.join("bin/outlast"), &uvx, &home.0)
}

/// The interpreter behind `python3`, which may be a script that needs the home directory.
fn python_program() -> Result<String, String> {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .map_err(|error| format!("python3 did not start: {error}"))?;
    let program = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if program.is_empty() {
        return Err("python3 does not say where its interpreter is".into());
    }
    Ok(program)
}

fn path_text(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

/// A home directory that was empty at first. Its commands get no other variable than `PATH`.
struct Home(PathBuf);

impl Home {
    fn empty(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        empty(&home)?;
        Ok(Self(home))
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.0);
        command
    }
}

/// Runs the host script in `folder`. `program` is the installed program, `launcher` the command
/// that a configuration file has for it.
fn use_like_a_host(
    home: &Home,
    program: &Path,
    launcher: &[String],
    folder: &Path,
) -> Result<(), String> {
    let server = npm::installed("everything")?.join(EVERYTHING);
    let script = npm::installed("typescript")?.join("packaged.mjs");
    let launcher = serde_json::to_string(launcher).map_err(|error| error.to_string())?;
    run(home
        .command("node")
        .arg(script)
        .arg(program)
        .arg(launcher)
        .arg("node")
        .arg(server)
        .arg("stdio")
        .current_dir(folder))
}

/// Refuses a package that runs code when it is installed.
fn no_install_scripts(modules: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(modules).map_err(|error| super::file_error(modules, &error))?;
    for entry in entries.filter_map(Result::ok) {
        let manifest = entry.path().join("package.json");
        let Ok(text) = std::fs::read_to_string(&manifest) else {
            continue;
        };
        let package: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if package.get("scripts").is_some() {
            return Err(format!("{} has scripts", manifest.display()));
        }
    }
    Ok(())
}

/// Runs the steps of the Dockerfile that need no container: the build script with the debug
/// profile, and the health check, which must fail where nothing listens.
pub(super) fn recipes() -> Result<(), String> {
    let folder = target().join("docker-check");
    empty(&folder)?;
    let program = folder.join("outlast");
    run(Command::new("sh")
        .arg("packaging/docker/build.sh")
        .arg(&program)
        .env("PROFILE", "dev")
        .env("OUTLAST_COMMIT", EXAMPLE_COMMIT)
        .env("OUTLAST_COMMIT_DATE", "2026-01-01")
        .env("CARGO_TARGET_DIR", target())
        .current_dir(root()))?;
    let version = Command::new(&program).arg("--version").output();
    let version = version.map_err(|error| format!("the built program did not start: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.contains(EXAMPLE_COMMIT) {
        return Err(format!("the version does not name the commit: {version}"));
    }
    let script = folder.join("healthcheck.mjs");
    copy(&root().join("packaging/docker/healthcheck.mjs"), &script)?;
    let health = |url: &str| {
        Command::new("node")
            .arg(&script)
            .arg(url)
            .status()
            .map_err(|error| format!("node did not start: {error}"))
    };
    if health("http://127.0.0.1:1/healthz")?.success() {
        return Err("the health check passes where nothing listens".into());
    }
    let mut gateway = crate::gateways::gateway(&program);
    gateway.args(["--no-probe", "--", "cat"]);
    let listening = crate::peers::Listening::from(gateway)?;
    let healthz = listening.url.replace("/mcp", "/healthz");
    if health(&healthz)?.success() {
        println!("the recipe of the container works without the container");
        Ok(())
    } else {
        Err(format!("the health check fails at {healthz}"))
    }
}

/// Stands for the commit of a container, whose sources have no git folder.
const EXAMPLE_COMMIT: &str = "c0ffee123";

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
