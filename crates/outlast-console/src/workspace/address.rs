//! How a server is reached, and how its tasks are used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use outlast::client::{ConnectionName, Era, Target};
use outlast::transport::child::{ChildOptions, OnLine};
use outlast::transport::http_client::HttpClientOptions;

/// A connection to add.
#[derive(Clone, Debug)]
pub struct ConnectionSpec {
    /// Its server and its source.
    pub name: ConnectionName,
    /// How the server is reached.
    pub address: Address,
    /// How its tasks are used.
    pub mode: Mode,
    /// Whether it can be removed.
    pub is_removable: bool,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Address {
    /// By a command that starts it.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Additional environment variables, which may be secret.
        env: BTreeMap<String, String>,
        /// Its working directory.
        directory: Option<PathBuf>,
    },
    /// At a URL.
    Url {
        /// The URL.
        url: String,
        /// Headers of every request, which may be secret.
        headers: Vec<(String, String)>,
    },
    /// In another way. The text names the server.
    Other(String, Target),
}

/// How the tasks of a server are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the newest way that the server supports.
    #[default]
    Auto,
    /// With the tasks of MCP 2025-11-25.
    V1,
    /// With the tasks of MCP 2026-07-28.
    V2,
    /// Not at all.
    Plain,
}

impl ConnectionSpec {
    /// A connection that can be removed, in the mode [`Mode::Auto`].
    pub fn new(name: ConnectionName, address: Address) -> Self {
        Self {
            name,
            address,
            mode: Mode::Auto,
            is_removable: true,
        }
    }
}

impl Address {
    /// Reads a command line: words, which may be in quotation marks. No shell runs.
    pub fn command(line: &str) -> Result<Self, String> {
        let mut words = words(line)?.into_iter();
        let program = words.next().ok_or("the command is empty")?;
        Ok(Self::Command {
            program,
            args: words.collect(),
            env: BTreeMap::new(),
            directory: None,
        })
    }

    /// Reads a URL and headers, one `Name: value` on each line.
    pub fn url(url: &str, headers: &str) -> Result<Self, String> {
        let url = url.trim();
        let parsed = url::Url::parse(url).map_err(|error| format!("this is not a URL: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err("the URL must begin with http:// or https://".into());
        }
        let mut read = Vec::new();
        for line in headers.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("`{}` is not a header: write `Name: value`", line.trim()))?;
            read.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self::Url {
            url: url.to_owned(),
            headers: read,
        })
    }

    /// Whether connecting starts a process on this machine.
    pub fn starts_process(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// The URL, or the command with its arguments. Without environment and headers.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Command { program, args, .. } => {
                std::iter::once(program).chain(args).cloned().collect()
            }
            Self::Url { url, .. } => vec![url.clone()],
            Self::Other(name, _) => vec![name.clone()],
        }
    }

    /// The address as one text.
    pub fn text(&self) -> String {
        self.words().join(" ")
    }

    /// The names of its headers or environment variables. Their values are not shown.
    pub fn secret_names(&self) -> Vec<String> {
        match self {
            Self::Command { env, .. } => env.keys().cloned().collect(),
            Self::Url { headers, .. } => headers.iter().map(|(name, _)| name.clone()).collect(),
            Self::Other(..) => Vec::new(),
        }
    }

    /// The target for a client. Output of a command that is not a message goes to `printed`.
    pub(super) fn target(&self, printed: OnLine) -> Target {
        match self {
            Self::Command {
                program,
                args,
                env,
                directory,
            } => {
                let mut options = ChildOptions::new(program).args(args);
                let env = env.iter();
                options.env = env
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect();
                options.directory.clone_from(directory);
                options.on_output = Some(printed);
                Target::child(options)
            }
            Self::Url { url, headers } => {
                let mut options = HttpClientOptions::new(url);
                options.headers.clone_from(headers);
                Target::http(options)
            }
            Self::Other(_, target) => target.clone(),
        }
    }
}

/// Omits environment and headers, which can contain secrets.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.text())
    }
}

impl Mode {
    /// All modes, in the order of a list.
    pub const ALL: [Self; 4] = [Self::Auto, Self::V1, Self::V2, Self::Plain];

    /// The name in URLs and forms.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Plain => "plain",
        }
    }

    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::V1 => "V1 (2025-11-25)",
            Self::V2 => "V2 (2026-07-28)",
            Self::Plain => "Without tasks",
        }
    }

    /// Reads [`Mode::word`].
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.word() == word)
    }

    pub(super) fn era(self) -> Era {
        match self {
            Self::Auto | Self::Plain => Era::Auto,
            Self::V1 => Era::Legacy,
            Self::V2 => Era::Modern,
        }
    }
}

/// Splits a command line. Single and double quotation marks group, a backslash keeps the next
/// character.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => {
                let next = letters.next().ok_or("a backslash has nothing after it")?;
                word.get_or_insert_default().push(next);
            }
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

/// Collects lines.
pub(super) fn output_to(collect: impl Fn(&str) + Send + Sync + 'static) -> OnLine {
    Arc::new(collect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_by_a_shell() {
        for (line, expected) in [
            ("npx -y server", &["npx", "-y", "server"][..]),
            (
                r#"a "b c" 'd "e' f\ g ''"#,
                &["a", "b c", "d \"e", "f g", ""][..],
            ),
            ("x $(rm) ; y", &["x", "$(rm)", ";", "y"][..]),
        ] {
            assert_eq!(Address::command(line).unwrap().words(), expected, "{line}");
        }
        for line in ["", "  ", "a 'b", "a \\"] {
            assert!(Address::command(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_url_has_headers_whose_values_are_not_shown() {
        let address =
            Address::url(" http://h:1/mcp ", "Authorization: Bearer x\n\nX-Key: y:z").unwrap();
        assert_eq!(address.text(), "http://h:1/mcp");
        assert_eq!(address.secret_names(), ["Authorization", "X-Key"]);
        assert!(!format!("{address:?}").contains("Bearer"));
        for (url, headers) in [
            ("h:1", ""),
            ("file:///etc/passwd", ""),
            ("javascript:alert(1)", ""),
            ("http://h", "no header"),
        ] {
            assert!(Address::url(url, headers).is_err(), "{url} {headers}");
        }
    }
}
