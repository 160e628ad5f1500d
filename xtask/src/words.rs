//! `cargo xtask words`: refuses the words that `CONTRIBUTING.md` lists, in comments, string
//! literals and documents.
//!
//! The list is the first column of the table under the heading `## Words to avoid`; the second
//! column is printed as the advice. Names in code are not checked here: a reviewer reads those.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::npm::root;

mod text;

use text::{TextToken, tokens_of_rust, tokens_of_text};

const LIST_FILE: &str = "CONTRIBUTING.md";
const LIST_HEADING: &str = "## Words to avoid";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let contributing = read(&root().join(LIST_FILE))?;
    let entries = entries(&contributing)?;
    let mut found = Vec::new();
    for path in checked_files(args)? {
        let source = read(&root().join(&path))?;
        found.extend(uses(&path, &source, &entries));
    }
    for one in &found {
        println!("{one}");
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} uses of words that {LIST_FILE} lists under \"Words to avoid\"; write what the list suggests",
        found.len()
    ))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A word or phrase to avoid, in lower case, and what to write instead.
struct AvoidedWords {
    words: Vec<String>,
    advice: String,
}

/// One use of [`AvoidedWords`].
struct Use {
    path: String,
    line: usize,
    words: String,
    advice: String,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: \"{}\"; write: {}",
            self.path, self.line, self.words, self.advice
        )
    }
}

/// Reads the table under [`LIST_HEADING`]: every code span of the first column is an entry.
fn entries(contributing: &str) -> Result<Vec<AvoidedWords>, String> {
    let missing = || format!("{LIST_FILE} has no table under `{LIST_HEADING}`");
    let section = section(contributing).ok_or_else(missing)?;
    let mut entries = Vec::new();
    for row in section.lines().filter(|line| line.starts_with('|')) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let words = cells.next().unwrap_or_default();
        let advice = cells.next().unwrap_or_default();
        // A split at backticks puts the code spans at the odd indices.
        for span in words.split('`').skip(1).step_by(2) {
            entries.push(AvoidedWords {
                words: span.split_whitespace().map(str::to_lowercase).collect(),
                advice: advice.to_owned(),
            });
        }
    }
    if entries.is_empty() {
        return Err(missing());
    }
    Ok(entries)
}

/// The text between [`LIST_HEADING`] and the next heading.
fn section(contributing: &str) -> Option<&str> {
    let (_, after) = contributing.split_once(&format!("{LIST_HEADING}\n"))?;
    Some(after.split("\n## ").next().unwrap_or(after))
}

/// Returns the paths of the files to check, relative to the root of the repository. If `only` is
/// not empty, returns only files under these paths.
fn checked_files(only: &[String]) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
        ])
        .args(only)
        .current_dir(root())
        .output()
        .map_err(|error| format!("git did not start: {error}"))?;
    if !listed.status.success() {
        return Err(format!(
            "git ls-files: {}",
            String::from_utf8_lossy(&listed.stderr)
        ));
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    let files: Vec<String> = listed
        .lines()
        .filter(|path| is_checked(path) && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    if files.is_empty() {
        return Err("no file to check".into());
    }
    Ok(files)
}

fn is_checked(path: &str) -> bool {
    const ENDINGS: [&str; 9] = ["rs", "md", "html", "js", "mjs", "css", "py", "sh", "toml"];
    let ending = Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) || path.ends_with("messages.txt")
}

fn uses(path: &str, source: &str, entries: &[AvoidedWords]) -> Vec<Use> {
    let tokens = if path.ends_with(".rs") {
        tokens_of_rust(source)
    } else if path == LIST_FILE {
        // The list itself is not a use of its words. Line numbers stay correct.
        let list = section(source).unwrap_or_default();
        tokens_of_text(&source.replace(list, &"\n".repeat(list.matches('\n').count())))
    } else {
        tokens_of_text(source)
    };
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        for entry in entries {
            if let Some(line) = starts_with(&tokens[at..], &entry.words) {
                found.push(Use {
                    path: path.to_owned(),
                    line,
                    words: entry.words.join(" "),
                    advice: entry.advice.clone(),
                });
            }
        }
    }
    found
}

/// The line of the first token if `tokens` begin with `words`.
fn starts_with(tokens: &[TextToken], words: &[String]) -> Option<usize> {
    let mut line = None;
    let mut tokens = tokens.iter();
    for wanted in words {
        match tokens.next()? {
            TextToken::Word(word, at) if word == wanted => line = line.or(Some(*at)),
            TextToken::Word(..) | TextToken::Break => return None,
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{entries, uses};

    const LIST: &str = "# A\n\n## Words to avoid\n\n| not | but |\n|---|---|\n| `pixie`, `on noon` | a; b |\n\n## B\n\npixie\n";

    fn lines(path: &str, source: &str) -> Vec<(usize, String)> {
        let entries = entries(LIST).unwrap();
        uses(path, source, &entries)
            .into_iter()
            .map(|found| (found.line, found.words))
            .collect()
    }

    #[test]
    fn comments_and_strings_are_checked_and_names_are_not() {
        let source = "fn pixie() {}\n/// Pixie\nlet a = \"x pixie's\";\nlet b = r#\"\"pixie\"#;\nlet c = '\"'; pixie();\n/* a\npixie */";
        let found: Vec<usize> = lines("a.rs", source)
            .into_iter()
            .map(|(at, _)| at)
            .collect();
        assert_eq!(found, [2, 3, 4, 7]);
    }

    #[test]
    fn a_phrase_is_found_across_lines_of_one_comment() {
        let source = "// it is on\n// noon\n\n// on.\n// Noon\nf(\"on\", \"noon\");";
        assert_eq!(lines("a.rs", source), [(1, "on noon".to_owned())]);
        assert_eq!(
            lines("a.md", "kept on\nnoon\n\non\n\nnoon"),
            [(1, "on noon".to_owned())]
        );
    }

    #[test]
    fn the_list_itself_is_not_a_use() {
        assert_eq!(lines("CONTRIBUTING.md", LIST), [(11, "pixie".to_owned())]);
    }

    #[test]
    fn a_missing_list_is_an_error() {
        assert!(entries("# A\n").is_err());
        assert!(entries("## Words to avoid\n\nnone\n").is_err());
    }
}
