//! A writer that cleans log lines, because fields can contain text of clients and servers.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

use crate::args::Format;
use crate::terminal::{clean, clean_json};

/// Creates the writers.
pub(super) struct CleanMakeWriter<M> {
    pub(super) writers: M,
    pub(super) format: Format,
}

/// A writer that receives one whole event per call.
pub(super) struct CleanWriter<W> {
    writer: W,
    format: Format,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for CleanMakeWriter<M> {
    type Writer = CleanWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        CleanWriter {
            writer: self.writers.make_writer(),
            format: self.format,
        }
    }
}

impl<W: Write> Write for CleanWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let line = match self.format {
            Format::Text => clean(text),
            Format::Json => clean_json(text),
        };
        self.writer.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, event: &str) -> String {
        let mut bytes = Vec::new();
        let mut writer = CleanWriter {
            writer: &mut bytes,
            format,
        };
        writer.write_all(event.as_bytes()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_one_line_without_escape_sequences() {
        assert_eq!(
            written(Format::Text, "WARN a\x1b[2J\nforged\u{202e}\n"),
            "WARN a\u{fffd}[2J forged\u{fffd}\n"
        );
        assert_eq!(
            written(Format::Json, "{\"a\":\"\u{9b}2J\u{202e}\"}\n"),
            "{\"a\":\"\\u009b2J\\u202e\"}\n"
        );
    }
}
