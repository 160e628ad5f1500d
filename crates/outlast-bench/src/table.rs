//! The table of a run: the figure, both sides, the ratio, and whether the limit is met.

use std::fmt;

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) ours: String,
    /// The limit of the machine, the peer, or our own server with fewer tasks.
    pub(crate) other: String,
    /// The value that the limit applies to.
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    pub(crate) bar: Bar,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Ratio,
    Bytes,
    Seconds,
    Micros,
}

/// The maximum value, if there is a limit.
pub(crate) type Bar = Option<f64>;

impl Table {
    pub(crate) fn row(&mut self, row: Row) {
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    /// A line below the table.
    pub(crate) fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| figure | ours | limit or peer | ratio | bar | met? |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(f, "{}", row.line())?;
        }
        writeln!(f)?;
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        Ok(())
    }
}

impl Row {
    fn line(&self) -> String {
        let Self {
            figure,
            ours,
            other,
            value,
            unit,
            bar,
        } = self;
        let (bar, met) = match *bar {
            Some(most) if *value <= most => (format!("≤ {}", unit.show(most)), "yes"),
            Some(most) => (format!("≤ {}", unit.show(most)), "**no**"),
            None => (String::new(), ""),
        };
        let value = unit.show(*value);
        format!("| {figure} | {ours} | {other} | {value} | {bar} | {met} |")
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Ratio if value >= 100.0 => format!("{value:.0} ×"),
            Self::Ratio => format!("{value:.2} ×"),
            Self::Bytes => format!("{value:.0} B"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Micros => micros(value),
        }
    }
}

/// `12345.6` as `12,346`.
pub(crate) fn with_thousands_separators(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1234.5` as `1,235 µs`.
pub(crate) fn micros(value: f64) -> String {
    format!("{} µs", with_thousands_separators(value))
}

/// `1000000` as `1 M`, `100000` as `100 k`.
pub(crate) fn count(n: usize) -> String {
    match n {
        n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{} M", n / 1_000_000),
        n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{} k", n / 1_000),
        n => with_thousands_separators(n as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_row_follow_the_order_of_the_headings() {
        let mut table = Table::default();
        table.row(Row {
            figure: "a call".into(),
            ours: "of ours".into(),
            other: "of a peer".into(),
            value: 170.4,
            unit: Unit::Micros,
            bar: Some(170.0),
        });
        let text = table.to_string();
        let mut lines = text.lines();
        let heading = "| figure | ours | limit or peer | ratio | bar | met? |";
        assert_eq!(lines.next(), Some(heading));
        let row = "| a call | of ours | of a peer | 170 µs | ≤ 170 µs | **no** |";
        assert_eq!(lines.nth(1), Some(row));
    }
}
