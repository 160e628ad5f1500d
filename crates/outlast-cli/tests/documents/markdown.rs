//! Code blocks in Markdown.

/// A block between two lines of three backticks.
pub(crate) struct CodeBlock {
    /// The text after the opening backticks.
    pub(crate) language: String,
    pub(crate) text: String,
    /// The number of its first line.
    pub(crate) line: usize,
    /// The text of the comment on the line before it.
    comment: String,
}

pub(crate) fn blocks(document: &str) -> Vec<CodeBlock> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let (mut open, mut previous) = (false, "");
    for (index, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                blocks.push(CodeBlock {
                    language: language.trim().to_owned(),
                    text: String::new(),
                    line: index + 1,
                    comment: comment(previous).to_owned(),
                });
            }
            None if open => {
                let block = blocks.last_mut().expect("a block is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
        previous = line;
    }
    blocks
}

fn comment(line: &str) -> &str {
    let inner = line
        .strip_prefix("<!--")
        .and_then(|line| line.strip_suffix("-->"));
    inner.unwrap_or_default().trim()
}

impl CodeBlock {
    /// The value of the comment `<!-- name: value -->` before the block.
    pub(crate) fn directive(&self, name: &str) -> Option<&str> {
        let (found, value) = self.comment.split_once(':')?;
        (found == name).then_some(value.trim())
    }

    /// The commands of a `console` block, each with the lines that it prints.
    pub(crate) fn console(&self) -> Vec<(String, Vec<String>)> {
        let mut commands: Vec<(String, Vec<String>)> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push((command.to_owned(), Vec::new()));
            } else if !line.trim().is_empty() {
                let (_, printed) = commands.last_mut().expect("a command comes first");
                printed.push(line.to_owned());
            }
        }
        commands
    }

    /// The commands of a `sh` block, without comments.
    pub(crate) fn shell(&self) -> Vec<(String, Vec<String>)> {
        let lines = self.text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| (line.to_owned(), Vec::new())).collect()
    }
}
