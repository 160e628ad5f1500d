//! A line of output: cleaned text with colours.

use std::fmt::Display;

use console::Style;

use super::clean::clean;

/// One line. Text is cleaned when it is added, so the only escape sequences are the colours added
/// here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledLine(String);

/// The meaning of a piece of text, which selects its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Headings and names.
    Strong,
    /// Details that a reader can skip.
    Muted,
    Success,
    Failure,
    /// Something that needs the user's attention.
    Warning,
    /// Something that is in progress.
    Active,
}

impl StyledLine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds text in the default colour.
    pub(crate) fn text(self, text: impl Display) -> Self {
        self.tone(Tone::Plain, text)
    }

    /// Adds text in the colour of `tone`.
    pub(crate) fn tone(mut self, tone: Tone, text: impl Display) -> Self {
        let text = clean(&text.to_string());
        match tone {
            _ if text.is_empty() => {}
            Tone::Plain => self.0 += &text,
            tone => self.0 += &tone.style().apply_to(text).to_string(),
        }
        self
    }

    /// Appends the text of `other` to this line.
    pub(crate) fn line(mut self, other: &Self) -> Self {
        self.0 += &other.0;
        self
    }

    /// Fills the line with spaces up to `width` columns. If `right`, the text is right-aligned: the
    /// spaces come before it.
    pub(crate) fn pad(self, width: usize, right: bool) -> Self {
        let spaces = " ".repeat(width.saturating_sub(self.width()));
        if right {
            Self(spaces + &self.0)
        } else {
            Self(self.0 + &spaces)
        }
    }

    /// Cuts the line to `width` columns. A line that was cut ends with "…".
    pub(crate) fn cut(self, width: usize) -> Self {
        Self(console::truncate_str(&self.0, width, "…").into_owned())
    }

    /// How many columns the line takes.
    pub(crate) fn width(&self) -> usize {
        console::measure_text_width(&self.0)
    }

    /// The text for a stream with or without colours.
    pub(crate) fn render(&self, colours: bool) -> String {
        if colours {
            self.0.clone()
        } else {
            console::strip_ansi_codes(&self.0).into_owned()
        }
    }
}

impl From<String> for StyledLine {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

impl From<&str> for StyledLine {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl Tone {
    fn style(self) -> Style {
        let style = match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Muted => Style::new().dim(),
            Self::Success => Style::new().green(),
            Self::Failure => Style::new().red(),
            Self::Warning => Style::new().yellow(),
            Self::Active => Style::new().cyan(),
        };
        style.force_styling(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_our_colours_and_no_other_escape_sequence() {
        let line = StyledLine::new()
            .text("a\x1b[31m\nb")
            .tone(Tone::Failure, "\x1b]0;t\x07");
        assert_eq!(
            line.render(true),
            "a\u{fffd}[31m b\x1b[31m\u{fffd}]0;t\u{fffd}\x1b[0m"
        );
        assert_eq!(line.render(false), "a\u{fffd}[31m b\u{fffd}]0;t\u{fffd}");
    }

    #[test]
    fn a_line_is_cut_and_padded_by_columns() {
        let line = StyledLine::new()
            .tone(Tone::Success, "漢字")
            .text(" and more");
        assert_eq!(line.width(), 13);
        assert_eq!(line.clone().cut(7).render(false), "漢字 a…");
        assert_eq!(line.clone().cut(13), line);
        assert_eq!(StyledLine::from("ab").pad(4, true).render(false), "  ab");
        assert_eq!(StyledLine::from("ab").pad(4, false).render(false), "ab  ");
    }
}
