//! Everything that this program prints for users, with its colours and its width.
//!
//! Nothing else writes to standard output or standard error, and everything is cleaned here
//! ([`clean`]).

mod clean;
mod colour;
mod line;
mod table;

use std::io::{IsTerminal, Write};
use std::net::IpAddr;

pub(crate) use clean::{clean, clean_json};
pub(crate) use colour::ColorChoice;
pub(crate) use line::{StyledLine, Tone};
pub(crate) use table::{Column, table};

/// Prints a line to standard error, from a format string.
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::err(format!($($text)*)) };
}

/// Prints a line to standard output, from a format string.
macro_rules! show {
    ($($text:tt)*) => { $crate::terminal::out(format!($($text)*)) };
}

pub(crate) use {say, show};

/// Decides once whether each of the two streams has colours.
pub(crate) fn start(choice: ColorChoice) {
    let read = |name: &str| std::env::var_os(name);
    console::set_colors_enabled(choice.applies(std::io::stdout().is_terminal(), read));
    console::set_colors_enabled_stderr(choice.applies(std::io::stderr().is_terminal(), read));
}

/// Prints a line to standard output.
pub(crate) fn out(line: impl Into<StyledLine>) {
    let text = line.into().render(console::colors_enabled());
    // A closed reader, such as `head`, is not an error.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a line to standard output, cut to the width of the terminal.
pub(crate) fn out_cut(line: impl Into<StyledLine>) {
    let line = line.into();
    out(match out_width() {
        Some(width) => line.cut(width),
        None => line,
    });
}

/// Prints a line to standard error.
pub(crate) fn err(line: impl Into<StyledLine>) {
    let text = err_text(&line.into());
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Renders a line for standard error.
pub(crate) fn err_text(line: &StyledLine) -> String {
    line.render(console::colors_enabled_stderr())
}

/// Warns on standard error if a server at this address accepts connections of other machines.
pub(crate) fn warn_of_other_machines(address: IpAddr) {
    if is_reachable_by_others(address) {
        say!(
            "warning: on {address} other machines can connect; 127.0.0.1 accepts connections of this machine only"
        );
    }
}

/// Whether packets of other machines can arrive at an address of this machine.
fn is_reachable_by_others(address: IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

/// Prints text of several lines to standard error, each after `mark`, so that none of them looks
/// like our output.
pub(crate) fn quote(mark: &str, text: &str) {
    for line in text.lines() {
        err(StyledLine::new().tone(Tone::Muted, mark).text(line));
    }
}

/// Prints text of a server to standard output: unchanged into a file or a pipe, cleaned on a
/// terminal.
pub(crate) fn out_text(text: &str) {
    if std::io::stdout().is_terminal() {
        text.lines().for_each(out);
    } else {
        let _ = writeln!(std::io::stdout(), "{text}");
    }
}

/// Prints JSON to standard output: unchanged into a file or a pipe, indented and cleaned on a
/// terminal.
pub(crate) fn out_json(json: &str) {
    if std::io::stdout().is_terminal() {
        let text = indented(json);
        let text = text.as_deref().unwrap_or(json);
        text.lines().map(clean_json).for_each(out);
    } else {
        let _ = writeln!(std::io::stdout(), "{json}");
    }
}

/// Returns JSON on several lines, or `None` if `json` is not JSON.
pub(crate) fn indented(json: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

/// The width of standard output in columns, if it is a terminal.
pub(crate) fn out_width() -> Option<usize> {
    width(&console::Term::stdout())
}

/// The width of standard error in columns, if it is a terminal.
pub(crate) fn err_width() -> Option<usize> {
    width(&console::Term::stderr())
}

fn width(terminal: &console::Term) -> Option<usize> {
    let is_terminal = terminal.is_term();
    is_terminal.then(|| usize::from(terminal.size().1))
}

#[cfg(test)]
mod tests {
    use super::is_reachable_by_others;

    #[test]
    fn every_address_but_loopback_is_reachable_by_others() {
        for (address, expected) in [
            ("127.0.0.1", false),
            ("127.8.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", true),
            ("::", true),
            ("192.168.1.5", true),
            ("fe80::1", true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(is_reachable_by_others(address), expected, "{address}");
        }
    }
}
