//! Derives the name of a server from its command.
//!
//! The name appears in URLs, logs and metrics, so nothing that may be a secret goes into it.

use std::ffi::OsStr;
use std::path::Path;

/// Returns the name of a server whose command runs in `directory`: the first word that is not an
/// option, a setting or a launcher. Of a path, the last significant part.
pub(crate) fn server_name(command: &[impl AsRef<OsStr>], directory: &Path) -> String {
    let words = command.iter().map(|word| word.as_ref().to_string_lossy());
    let named = words
        .filter(|word| !word.starts_with('-') && !word.contains(['=', ' ', '\n']))
        .map(|word| significant_part(&word, directory))
        .find(|word| !word.is_empty() && !LAUNCHERS.contains(&word.as_str()));
    named.unwrap_or_else(|| "server".into())
}

/// Returns the last part of a path that is not a generic name: many packages have the same file and
/// folder names.
fn significant_part(path: &str, directory: &Path) -> String {
    let parts: Vec<_> = path.rsplit(['/', '\\']).map(cleaned).collect();
    let says = |part: &String| !part.is_empty() && !GENERIC_NAMES.contains(&part.as_str());
    if let Some(found) = parts.iter().find(|part| says(part)) {
        return found.clone();
    }
    let above = directory.ancestors().filter_map(Path::file_name);
    let mut above = above.map(|part| cleaned(&part.to_string_lossy()));
    if parts.iter().any(|part| !part.is_empty()) {
        above.find(says).unwrap_or_default()
    } else {
        String::new()
    }
}

/// Removes the registry, the version, and characters that a name may not contain.
fn cleaned(word: &str) -> String {
    let fine = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let word = REGISTRY_PREFIXES
        .iter()
        .find_map(|from| word.strip_prefix(from))
        .unwrap_or(word);
    let base = word.split(['@', ':', '?', '#']).next().unwrap_or_default();
    let name: String = base.chars().filter(fine).collect();
    if name.trim_matches('.').is_empty() {
        String::new()
    } else {
        name
    }
}

/// Names of files and folders that many packages have.
const GENERIC_NAMES: [&str; 21] = [
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.js",
    "main.mjs",
    "main.ts",
    "main.py",
    "__main__.py",
    "app.py",
    "server.py",
    "server.js",
    "server.mjs",
    "server.ts",
    "cli.js",
    "bin",
    "dist",
    "build",
    "lib",
    "out",
    "src",
];

/// Programs that start the server given as an argument, and their subcommands.
const LAUNCHERS: [&str; 25] = [
    "npx", "bunx", "pnpm", "pnpx", "yarn", "dlx", "exec", "uvx", "uv", "tool", "run", "node",
    "bun", "deno", "tsx", "python", "python3", "pipx", "sh", "bash", "env", "docker", "podman",
    "java", "go",
];

/// Prefixes that name the registry of a package.
const REGISTRY_PREFIXES: [&str; 2] = ["npm:", "jsr:"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn name(words: &str) -> String {
        let words: Vec<_> = words.split(' ').map(OsString::from).collect();
        server_name(&words, Path::new("/home/ada/my-server/src"))
    }

    #[test]
    fn a_server_is_named_after_what_its_command_starts() {
        for (words, expected) in [
            (
                "npx -y @modelcontextprotocol/server-everything",
                "server-everything",
            ),
            ("npx -y @scope/pkg@1.2 stdio", "pkg"),
            ("npx -y some-server@1.2", "some-server"),
            ("uvx mcp-server-git --repository x", "mcp-server-git"),
            ("/usr/bin/python3 -m my_server", "my_server"),
            ("python -m my.module", "my.module"),
            ("uv run server.py", "my-server"),
            ("./target/debug/thing --stdio", "thing"),
            ("node /x/server-files/dist/index.js", "server-files"),
            ("node path/index.js", "path"),
            ("node index.js", "my-server"),
            ("deno run -A npm:@scope/pkg", "pkg"),
            ("docker run -i --rm mcp/fetch:latest", "fetch"),
            ("node", "server"),
        ] {
            assert_eq!(name(words), expected, "{words}");
        }
    }

    #[test]
    fn an_environment_setting_is_not_part_of_a_name() {
        assert_eq!(name("env KEY=secret my-server"), "my-server");
        assert_eq!(name("docker run -e KEY=secret mcp/fetch"), "fetch");
        assert_eq!(name("my-server --key=secret"), "my-server");
        let script = ["sh", "-c", "KEY=secret ./my-server"].map(OsString::from);
        assert_eq!(server_name(&script, Path::new("/")), "server");
    }
}
