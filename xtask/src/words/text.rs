//! Splits a file into words: the comments and string literals of Rust source, or the whole of any
//! other file.

/// A word with its line, or a boundary that no phrase spans: punctuation, a blank line, the end of
/// a comment.
#[derive(Debug, PartialEq)]
pub(super) enum TextToken {
    /// In lower case; lines count from 1.
    Word(String, usize),
    Break,
}

/// The words of a document.
pub(super) fn tokens_of_text(source: &str) -> Vec<TextToken> {
    let mut tokens = Tokens::default();
    for (index, line) in source.lines().enumerate() {
        if line.trim().is_empty() {
            tokens.end_phrase();
        }
        tokens.add(line, index + 1);
    }
    tokens.list
}

/// The words of the comments and string literals of Rust source.
pub(super) fn tokens_of_rust(source: &str) -> Vec<TextToken> {
    let mut scanner = Scanner {
        rest: source,
        line: 1,
        tokens: Tokens::default(),
    };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.tokens.list
}

#[derive(Default)]
struct Tokens {
    list: Vec<TextToken>,
}

impl Tokens {
    fn add(&mut self, text: &str, line: usize) {
        let mut word = String::new();
        for c in text.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '_' {
                word.extend(c.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                self.list
                    .push(TextToken::Word(std::mem::take(&mut word), line));
            }
            if !c.is_whitespace() {
                self.end_phrase();
            }
        }
    }

    fn end_phrase(&mut self) {
        if self
            .list
            .last()
            .is_some_and(|last| *last != TextToken::Break)
        {
            self.list.push(TextToken::Break);
        }
    }
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    tokens: Tokens,
}

impl Scanner<'_> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            self.line_comment();
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(hashes) = raw_string_hashes(self.rest) {
            self.raw_string(hashes);
        } else if self.rest.starts_with('"') {
            self.string();
        } else if let Some(length) = char_literal(self.rest) {
            self.skip(length);
        } else {
            self.skip(identifier_or_char(self.rest));
        }
    }

    /// Skips `length` bytes of code. Consecutive line comments are one text, so white space does
    /// not end a phrase.
    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        if !skipped.trim().is_empty() {
            self.tokens.end_phrase();
        }
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    /// Reads `length` bytes as text and skips the `closing` bytes after it.
    fn text(&mut self, length: usize, closing: usize) {
        let (text, rest) = self.rest.split_at(length);
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.line += 1;
            }
            self.tokens.add(line, self.line);
        }
        self.rest = &rest[closing.min(rest.len())..];
    }

    fn line_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let marker = ["///", "//!", "//"]
            .into_iter()
            .find(|marker| self.rest.starts_with(marker))
            .map_or(0, str::len);
        self.rest = &self.rest[marker..];
        if self.rest[..end - marker].trim().is_empty() {
            self.tokens.end_phrase();
        }
        self.text(end - marker, 0);
    }

    fn block_comment(&mut self) {
        self.tokens.end_phrase();
        let mut depth = 0_usize;
        let mut end = self.rest.len();
        let mut at = 0;
        while at < self.rest.len() {
            let here = &self.rest.as_bytes()[at..];
            if here.starts_with(b"/*") {
                depth += 1;
                at += 2;
            } else if here.starts_with(b"*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    end = at;
                    break;
                }
            } else {
                at += 1;
            }
        }
        self.text(end, 0);
        self.tokens.end_phrase();
    }

    fn raw_string(&mut self, hashes: usize) {
        self.tokens.end_phrase();
        let open = self.rest.find('"').unwrap_or(0) + 1;
        self.rest = &self.rest[open..];
        let close = format!("\"{}", "#".repeat(hashes));
        let end = self.rest.find(&close).unwrap_or(self.rest.len());
        self.text(end, close.len());
        self.tokens.end_phrase();
    }

    fn string(&mut self) {
        self.tokens.end_phrase();
        self.rest = &self.rest[1..];
        loop {
            let end = self.rest.find(['"', '\\']).unwrap_or(self.rest.len());
            let escape = self.rest[end..].starts_with('\\');
            self.text(end, 1);
            if !escape {
                break;
            }
            // `\` at the end of a line joins two lines of one text; any other escape ends a phrase.
            let Some(escaped) = self.rest.chars().next() else {
                break;
            };
            if escaped != '\n' {
                self.tokens.end_phrase();
                self.rest = &self.rest[escaped.len_utf8()..];
            }
        }
        self.tokens.end_phrase();
    }
}

/// How many `#` the raw string has that `rest` begins with.
fn raw_string_hashes(rest: &str) -> Option<usize> {
    let after = ["br", "cr", "r"]
        .into_iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The length of the char literal that `rest` begins with; a lifetime is not one.
fn char_literal(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let first = escaped.chars().next()?.len_utf8();
        return Some(2 + first + escaped[first..].find('\'')? + 1);
    }
    let first = inner.chars().next()?.len_utf8();
    inner[first..].starts_with('\'').then_some(first + 2)
}

/// The length of the identifier at the start of `rest`, or of its first character. An identifier is
/// taken whole, so that its last letter is not read as the prefix of a raw string.
fn identifier_or_char(rest: &str) -> usize {
    let identifier = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    identifier.max(rest.chars().next().map_or(0, char::len_utf8))
}
