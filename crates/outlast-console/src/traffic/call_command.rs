//! A tool call as a command line.

use outlast::wire::RawRef;
use outlast_wire::object;

use super::entry::{TrafficEntry, TrafficKind};

/// The command `outlast call …` that makes the same call. `server` is the URL or the command of the
/// server. `None` if the message is not a tool call.
pub fn call_command(entry: &TrafficEntry, server: &[String]) -> Option<String> {
    let text = entry
        .text
        .as_deref()
        .filter(|_| entry.kind == TrafficKind::Request)?;
    let message = RawRef::parse(text).ok()?;
    let tool = entry.tool.as_deref()?;
    let mut words = vec!["outlast".to_owned(), "call".to_owned()];
    let is_url = matches!(server, [url] if url.contains("://"));
    if is_url {
        words.extend(server.iter().map(|word| quoted(word)));
    }
    words.push(quoted(tool));
    if let Some(arguments) = object::find(message, &["params", "arguments"])
        && arguments.as_str() != "{}"
    {
        words.push("--args".to_owned());
        words.push(quoted(arguments.as_str()));
    }
    if let Some(ttl) = object::find(message, &["params", "task", "ttl"]).and_then(RawRef::integer) {
        words.push(format!("--ttl {ttl}"));
    }
    if !is_url && !server.is_empty() {
        words.push("--".to_owned());
        words.extend(server.iter().map(|word| quoted(word)));
    }
    Some(words.join(" "))
}

/// The word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('-') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use outlast::client::{
        ConnectionName, MessageDirection, MessageObserver as _, ObservedMessage,
    };

    use super::super::{TrafficFilter, TrafficLimits, TrafficLog};
    use super::*;

    fn command(message: &str, server: &[&str]) -> Option<String> {
        let log = TrafficLog::new(TrafficLimits::default(), || ());
        let observer = log.observer(ConnectionName::new("s", "test"));
        let direction = MessageDirection::ToServer;
        observer.message(ObservedMessage::new(direction, message.as_bytes(), None));
        let entry = log.page(&TrafficFilter::default(), None, 1).remove(0);
        let server: Vec<_> = server.iter().map(|word| (*word).to_owned()).collect();
        call_command(&entry, &server)
    }

    #[test]
    fn a_call_becomes_a_command_that_a_shell_reads() {
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"my tool","arguments":{"a":"it's"},"task":{"ttl":60000}}}"#;
        assert_eq!(
            command(call, &["http://127.0.0.1:8040/mcp"]).unwrap(),
            r#"outlast call http://127.0.0.1:8040/mcp 'my tool' --args '{"a":"it'\''s"}' --ttl 60000"#
        );
        assert_eq!(
            command(call, &["npx", "$(rm -rf)"]).unwrap(),
            r#"outlast call 'my tool' --args '{"a":"it'\''s"}' --ttl 60000 -- npx '$(rm -rf)'"#
        );
        assert_eq!(command(r#"{"id":1,"method":"ping"}"#, &["x"]), None);
    }
}
