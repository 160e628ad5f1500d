//! The variables that hosts allow in their configuration files: `${NAME}`, `${env:NAME}`,
//! `${NAME:-default}` (Claude Code), `${workspaceFolder}` and related ones (VS Code). An unknown
//! variable is refused by name.

use std::path::{Path, PathBuf};

/// Values of variables for one configuration file.
pub(super) struct Variables {
    /// The folder of the project that the file belongs to.
    workspace: PathBuf,
}

impl Variables {
    /// Variables for the file at `path`. A file in `.vscode` belongs to the folder above it.
    pub(super) fn for_file(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/"));
        let workspace = match folder.file_name() {
            Some(name) if name == ".vscode" => folder.parent().unwrap_or(folder),
            _ => folder,
        };
        Self {
            workspace: workspace.to_owned(),
        }
    }

    /// Replaces every variable in `text` with its value. An error names the variable.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (variable, left) = after
                .split_once('}')
                .ok_or_else(|| format!("`{text}` has a `${{` without a `}}`"))?;
            filled.push_str(before);
            filled.push_str(&self.value(variable)?);
            rest = left;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, variable: &str) -> Result<String, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match variable {
            "workspaceFolder" => return Ok(text(&self.workspace)),
            "workspaceFolderBasename" => {
                let name = self.workspace.file_name().unwrap_or_default();
                return Ok(name.to_string_lossy().into_owned());
            }
            "userHome" => return from_environment("HOME", None),
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.into()),
            _ => {}
        }
        let name = variable.strip_prefix("env:").unwrap_or(variable);
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        match name.split_once(':') {
            Some(("input", _)) => Err(format!(
                "`${{{variable}}}` is a value that VS Code asks its user for\n  next: write `${{env:NAME}}` in its place and set \
                 that variable"
            )),
            Some(_) => Err(format!(
                "`${{{variable}}}` is not a variable that outlast knows\n  next: write the value, or `${{env:NAME}}`"
            )),
            None => from_environment(name, default),
        }
    }
}

/// Reads an environment variable. As in a shell, `default` also replaces an empty value.
fn from_environment(name: &str, default: Option<&str>) -> Result<String, String> {
    match (std::env::var(name), default) {
        (Ok(value), default) if default.is_none() || !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        _ => Err(format!(
            "the environment variable {name} is not set\n  next: set it, or write `${{{name}:-default}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        Variables::for_file(Path::new("/project/.vscode/mcp.json"))
    }

    #[test]
    fn variables_of_hosts_are_replaced() {
        for (text, expected) in [
            ("plain", "plain"),
            ("<${env:CARGO_PKG_NAME}>", "<outlast-cli>"),
            (
                "${CARGO_PKG_NAME}/${CARGO_PKG_NAME}",
                "outlast-cli/outlast-cli",
            ),
            ("${CARGO_PKG_NAME:-x}", "outlast-cli"),
            (
                "${OUTLAST_NO_SUCH:-http://127.0.0.1:1}",
                "http://127.0.0.1:1",
            ),
            ("${OUTLAST_NO_SUCH:-}", ""),
            ("${workspaceFolder}/src", "/project/src"),
            ("${workspaceFolderBasename}", "project"),
        ] {
            assert_eq!(variables().fill(text).as_deref(), Ok(expected), "{text}");
        }
        let elsewhere = Variables::for_file(Path::new("/project/.mcp.json"));
        assert_eq!(
            elsewhere.fill("${workspaceFolder}").as_deref(),
            Ok("/project")
        );
    }

    #[test]
    fn a_variable_without_a_value_is_refused_by_its_name() {
        for (text, expected) in [
            ("${OUTLAST_NO_SUCH}", "OUTLAST_NO_SUCH is not set"),
            (
                "${input:key}",
                "`${input:key}` is a value that VS Code asks",
            ),
            ("${command:pick}", "`${command:pick}` is not a variable"),
            ("${HOME", "without a `}`"),
        ] {
            let error = variables().fill(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
