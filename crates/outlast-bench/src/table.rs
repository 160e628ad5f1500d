//! The table that a run ends with: what, how much, beside what, the quotient, and whether it is enough.

use std::fmt;

#[derive(Default)]
pub(crate) struct Table {
    first: First,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// Who is named first.
#[derive(Clone, Copy, Default)]
pub(crate) enum First {
    #[default]
    Ours,
    Peers,
}

pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) ours: String,
    /// The limit of the machine, the peer, or ourselves with fewer tasks.
    pub(crate) other: String,
    /// What is judged.
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    pub(crate) bar: Bar,
}

/// What the judged value is.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Ratio,
    Bytes,
    Seconds,
    Milliseconds,
    Commits,
}

#[derive(Clone, Copy)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
    /// For information.
    None,
}

impl Table {
    /// A table that names the peers first.
    pub(crate) fn of_peers() -> Self {
        Self {
            first: First::Peers,
            ..Self::default()
        }
    }

    pub(crate) fn row(&mut self, row: Row) {
        eprintln!("{}", row.line(self.first));
        self.rows.push(row);
    }

    /// Something to say below the table.
    pub(crate) fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = self.first.order("ours", "limit or peer");
        writeln!(f, "| figure | {one} | {other} | ratio | bar | met? |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(f, "{}", row.line(self.first))?;
        }
        writeln!(f)?;
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        Ok(())
    }
}

impl First {
    fn order<T>(self, ours: T, other: T) -> (T, T) {
        match self {
            Self::Ours => (ours, other),
            Self::Peers => (other, ours),
        }
    }
}

impl Row {
    fn line(&self, first: First) -> String {
        let Self {
            figure,
            ours,
            other,
            value,
            unit,
            bar,
        } = self;
        let (bar, met) = match *bar {
            Bar::AtLeast(least) => (format!("≥ {}", unit.show(least)), Some(*value >= least)),
            Bar::AtMost(most) => (format!("≤ {}", unit.show(most)), Some(*value <= most)),
            Bar::None => (String::new(), None),
        };
        let met = match met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let value = unit.show(*value);
        let (one, another) = first.order(ours, other);
        format!("| {figure} | {one} | {another} | {value} | {bar} | {met} |")
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Ratio if value >= 100.0 => format!("{value:.0} ×"),
            Self::Ratio => format!("{value:.2} ×"),
            Self::Bytes => format!("{value:.0} B"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Commits => format!("{value:.0}"),
        }
    }
}

/// `12345.6` as `12,346`.
pub(crate) fn whole(value: f64) -> String {
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

/// A length of time, given in nanoseconds.
pub(crate) fn nanos(value: f64) -> String {
    match value {
        v if v < 10_000.0 => format!("{} ns", whole(v)),
        v => format!("{:.1} µs", v / 1_000.0),
    }
}
