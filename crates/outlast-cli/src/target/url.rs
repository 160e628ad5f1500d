//! Whether a word on the command line is a URL. The scheme may be missing, as in
//! `localhost:8040/mcp`.

/// Returns the URL with its scheme, or `None` if the word is a name.
pub(super) fn read(word: &str) -> Option<String> {
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(word.to_owned());
    }
    let (authority, _) = word.split_once('/').unwrap_or((word, ""));
    let (host, port) = authority.rsplit_once(':')?;
    let is_address = !host.is_empty() && port.parse::<u16>().is_ok();
    is_address.then(|| format!("http://{word}"))
}

/// Returns the URL with its scheme, or why the word is not the URL of a server.
pub(crate) fn required(word: &str) -> Result<String, String> {
    read(word).ok_or_else(|| refusal(word))
}

/// The message about a word that is not the URL of a server.
pub(super) fn refusal(word: &str) -> String {
    format!(
        "{word} is not a URL of an MCP server\n  next: write one that begins with http:// or https://"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_needs_no_scheme_if_it_has_a_port() {
        for (word, expected) in [
            ("http://a/mcp", Some("http://a/mcp")),
            ("https://a/mcp", Some("https://a/mcp")),
            ("localhost:8040/mcp", Some("http://localhost:8040/mcp")),
            ("127.0.0.1:8040", Some("http://127.0.0.1:8040")),
            ("[::1]:8040/mcp", Some("http://[::1]:8040/mcp")),
            ("files", None),
            ("team/files", None),
            ("team:files", None),
            (":80", None),
        ] {
            assert_eq!(read(word).as_deref(), expected, "{word}");
            assert_eq!(required(word).ok().as_deref(), expected, "{word}");
        }
    }
}
