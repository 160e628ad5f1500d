//! Installs the packages into an empty folder with an empty home directory, and uses them like a
//! host: a real client, a real server, a kill and a return.

use std::path::Path;
use std::process::Command;

use super::{Packages, copy, empty, write};
use crate::npm::{self, root, target};
use crate::part::run;
use crate::python;

/// Installs both packages, and runs `outlast serve` and `outlast stdio` of each.
pub(super) fn installed(packages: &Packages) -> Result<(), String> {
    let folder = target().join("dist-check");
    empty(&folder)?;
    let npm = folder.join("npm");
    std::fs::create_dir_all(&npm).map_err(|error| super::at(&npm, &error))?;
    write(&npm.join("package.json"), "{ \"private\": true }\n")?;
    run(Command::new("npm")
        .args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--offline",
        ])
        .args([&packages.npm_platform, &packages.npm_main])
        .env("HOME", &folder)
        .current_dir(&npm))?;
    no_install_scripts(&npm.join("node_modules"))?;
    run(Command::new("npx")
        .args(["--offline", "outlast", "--version"])
        .env("HOME", &folder)
        .current_dir(&npm))?;
    use_like_a_host("npm", &npm.join("node_modules/.bin/outlast"), &folder)?;

    let uv = python::interpreter("python")?.with_file_name("uv");
    let environment = folder.join("venv");
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment))?;
    run(Command::new(environment.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--no-index",
            "--disable-pip-version-check",
        ])
        .arg(&packages.wheel))?;
    run(Command::new(uv)
        .args([
            "tool",
            "run",
            "--quiet",
            "--offline",
            "--no-config",
            "--python",
        ])
        .arg(environment.join("bin/python"))
        .arg("--from")
        .arg(&packages.wheel)
        .args(["outlast", "--version"])
        .env("UV_CACHE_DIR", folder.join("uv")))?;
    use_like_a_host("wheel", &environment.join("bin/outlast"), &folder)?;
    println!("the packages in {} work", packages.folder.display());
    Ok(())
}

/// Runs the host script with `outlast` and a new home directory.
fn use_like_a_host(name: &str, outlast: &Path, folder: &Path) -> Result<(), String> {
    println!("\nthe program of the {name} package, used by a host");
    let home = folder.join(format!("home-{name}"));
    empty(&home)?;
    let server = npm::installed("everything")?.join(EVERYTHING);
    let script = npm::installed("typescript")?.join("packaged.mjs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    run(Command::new("node")
        .arg(script)
        .arg(outlast)
        .arg("node")
        .arg(server)
        .arg("stdio")
        .env_clear()
        .env("PATH", path)
        .env("HOME", &home)
        .current_dir(&home))
}

/// Refuses a package that runs code when it is installed.
fn no_install_scripts(modules: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(modules).map_err(|error| super::at(modules, &error))?;
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
        .env("CARGO_TARGET_DIR", target())
        .current_dir(root()))?;
    run(Command::new(&program).arg("--version"))?;
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

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
