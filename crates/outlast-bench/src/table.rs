//! The table of a run: the figure, both sides, the ratio, and whether the limit is met.

use std::fmt;

pub(crate) struct Table {
    first: First,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// Which column comes first.
#[derive(Clone, Copy)]
pub(crate) enum First {
    Ours,
    Peers,
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
}

/// The maximum value, if there is a limit.
pub(crate) type Bar = Option<f64>;

impl Table {
    pub(crate) fn new(first: First) -> Self {
        Self {
            first,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, row: Row) {
        eprintln!("{}", row.line(self.first));
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
            Some(most) if *value <= most => (format!("≤ {}", unit.show(most)), "yes"),
            Some(most) => (format!("≤ {}", unit.show(most)), "**no**"),
            None => (String::new(), ""),
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

/// `1000000` as `1 M`, `100000` as `100 k`.
pub(crate) fn count(n: usize) -> String {
    match n {
        n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{} M", n / 1_000_000),
        n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{} k", n / 1_000),
        n => whole(n as f64),
    }
}
