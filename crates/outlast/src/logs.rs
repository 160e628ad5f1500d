//! How a line of a log is written: when, how grave, in which call, from where, what.
//!
//! A server logs every step in the life of a task, so a line must cost little beside the step itself: it is put together
//! from pieces of text, and only what is none goes through the machinery of formatting. Which events are lines, and
//! where they go, is the business of whoever installs a subscriber.

use std::fmt::{self, Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use outlast_wire::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// An event as one line of text, for [`event_format`](tracing_subscriber::fmt::Layer::event_format).
///
/// Texts are in quotes. Whatever would break the line or command a terminal is escaped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        let mut line = String::with_capacity(ROOM);
        write!(line, "{}", now())?;
        line.push_str(level(*about.level()));
        if let Some(spans) = cx.event_scope() {
            for span in spans.from_root() {
                line.push_str(span.name());
                let parts = span.extensions();
                if let Some(fields) = parts.get::<FormattedFields<N>>()
                    && !fields.is_empty()
                {
                    line.push('{');
                    line.push_str(fields);
                    line.push('}');
                }
                line.push_str(": ");
            }
        }
        line.push_str(about.target());
        line.push(':');
        let mut fields = Fields {
            line,
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        fields.line.push('\n');
        out.write_str(&fields.line)
    }
}

/// The fields of an event, each after a blank: the message as it is, others with their names.
struct Fields {
    line: String,
    written: fmt::Result,
}

impl Fields {
    /// Begins a field, and says whether it is the message.
    fn begin(&mut self, field: &Field) -> bool {
        let name = field.name();
        self.line.push(' ');
        if name == "message" {
            return true;
        }
        self.line.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.line.push('=');
        false
    }

    fn text(&mut self, field: &Field, text: &str) -> fmt::Result {
        if self.begin(field) {
            return OneLine(&mut self.line).write_str(text);
        }
        if !is_plain(text) {
            return write!(self.line, "{text:?}");
        }
        self.line.push('"');
        self.line.push_str(text);
        self.line.push('"');
        Ok(())
    }

    fn value(&mut self, field: &Field, value: &dyn Debug) -> fmt::Result {
        self.begin(field);
        write!(OneLine(&mut self.line), "{value:?}")
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, text: &str) {
        self.written = self.written.and_then(|()| self.text(field, text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.written = self.written.and_then(|()| self.value(field, value));
    }
}

/// Escapes what would break the line or command a terminal.
struct OneLine<'a>(&'a mut String);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Beyond ASCII there are controls, too.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            self.0.push_str(text);
            return Ok(());
        }
        for character in text.chars() {
            match character.is_control() {
                true => self.0.extend(character.escape_debug()),
                false => self.0.push(character),
            }
        }
        Ok(())
    }
}

/// Whether a text surely stands in quotes as it is: nothing but ASCII and our own mark of what was cut off. To find out
/// what else can be shown takes longer than to write the line.
fn is_plain(text: &str) -> bool {
    let plain = |byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let text = text.strip_suffix('…').unwrap_or(text);
    text.bytes().all(plain)
}

/// The level between blanks, in one column.
fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        _ => " TRACE ",
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_millis() as u64))
}

/// For a step in the life of a task.
const ROOM: usize = 256;

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Page {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What is logged meanwhile, each line without its moment.
    fn logged(tell: impl FnOnce()) -> Vec<String> {
        let page = Page::default();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .event_format(Line)
            .with_writer(page.clone());
        tracing::subscriber::with_default(registry().with(lines), tell);
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let line = |line: &str| {
            let (moment, rest) = line.split_once(' ').unwrap();
            assert!(moment.parse::<Timestamp>().is_ok(), "{line}");
            rest.to_owned()
        };
        assert!(text.ends_with('\n'), "{text}");
        text.lines().map(line).collect()
    }

    #[test]
    fn a_line_has_level_target_message_and_fields() {
        let code = None::<i64>;
        let lines = logged(|| {
            tracing::info!(target: "outlast::audit", task = %"7f3a", owner = "session:ab…", code, millis = 3_u64, "created");
            tracing::error!(target: "x", fine = true, error = ?Some(1), "it is {}", "gone");
        });
        let expected = [
            r#" INFO outlast::audit: created task=7f3a owner="session:ab…" millis=3"#,
            r#"ERROR x: it is gone fine=true error=Some(1)"#,
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_line_names_the_spans_around_it_from_the_outermost() {
        // V2-META-9.
        let lines = logged(|| {
            let _outer = tracing::info_span!("call", trace = "0af7", caller = "b7ad").entered();
            let _inner = tracing::info_span!("step").entered();
            tracing::warn!(target: "outlast::audit", "ended");
        });
        let expected = r#" WARN call{trace="0af7" caller="b7ad"}: step: outlast::audit: ended"#;
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn nothing_that_is_told_breaks_the_line_or_reaches_a_terminal() {
        let odd = "a\n\u{1b}[2J\u{9b}\"\\ü";
        let lines = logged(|| tracing::info!(target: "x", text = odd, shown = %odd, "say {odd}"));
        let expected = r#" INFO x: say a\n\u{1b}[2J\u{9b}"\ü text="a\n\u{1b}[2J\u{9b}\"\\ü" shown=a\n\u{1b}[2J\u{9b}"\ü"#;
        assert_eq!(lines, [expected]);
    }
}
