//! A table that fits into the terminal: columns are aligned, wide columns are cut, and optional
//! columns are left out if there is no space for them. Outside a terminal nothing is cut.

use super::{StyledLine, Tone};

#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    right: bool,
    /// May be cut, to [`MIN_CUT_COLUMNS`] columns at the least.
    cuts: bool,
    /// Whether the column may be left out, and its rank: the lowest number is left out first.
    optional: Option<u8>,
}

impl Column {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            right: false,
            cuts: false,
            optional: None,
        }
    }

    /// Aligns the column to the right.
    pub(crate) const fn right(self) -> Self {
        Self {
            right: true,
            ..self
        }
    }

    /// Allows to cut the column.
    pub(crate) const fn cuts(self) -> Self {
        Self { cuts: true, ..self }
    }

    /// Allows to leave the column out, in the order of `rank`.
    pub(crate) const fn optional(self, rank: u8) -> Self {
        Self {
            optional: Some(rank),
            ..self
        }
    }
}

/// Returns the lines of a table, the heading first. Each row has a cell for each column.
pub(crate) fn table(
    columns: &[Column],
    rows: &[Vec<StyledLine>],
    width: Option<usize>,
) -> Vec<StyledLine> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().map(|row| row[at].width());
            cells.max().unwrap_or(0).max(column.name.len())
        })
        .collect();
    let widths = fit(columns, &natural, width);
    let heading: Vec<StyledLine> = columns
        .iter()
        .map(|column| StyledLine::new().tone(Tone::Strong, column.name))
        .collect();
    std::iter::once(&heading)
        .chain(rows)
        .map(|row| one_row(columns, row, &widths))
        .collect()
}

/// Returns the width of each column, or 0 for one that is left out.
fn fit(columns: &[Column], natural: &[usize], width: Option<usize>) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let Some(width) = width else {
        return widths;
    };
    let total = |widths: &[usize]| {
        let shown = widths.iter().filter(|width| **width > 0);
        shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1)
    };
    loop {
        let least = |at: usize, width: usize| {
            if columns[at].cuts {
                width.min(MIN_CUT_COLUMNS)
            } else {
                width
            }
        };
        let narrowest: Vec<_> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| least(at, *width))
            .collect();
        let droppable = (0..columns.len())
            .filter(|at| columns[*at].optional.is_some() && widths[*at] > 0)
            .min_by_key(|at| columns[*at].optional);
        match droppable {
            Some(at) if total(&narrowest) > width => widths[at] = 0,
            _ => break,
        }
    }
    while total(&widths) > width {
        let widest = (0..columns.len())
            .filter(|at| columns[*at].cuts && widths[*at] > MIN_CUT_COLUMNS)
            .max_by_key(|at| widths[*at]);
        match widest {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    widths
}

fn one_row(columns: &[Column], row: &[StyledLine], widths: &[usize]) -> StyledLine {
    let last = widths.iter().rposition(|width| *width > 0);
    let mut line = StyledLine::new();
    for (at, cell) in row.iter().enumerate().filter(|(at, _)| widths[*at] > 0) {
        if Some(at) == last && cell.width() == 0 {
            break;
        }
        if line != StyledLine::new() {
            line = line.text(GAP);
        }
        let cell = cell.clone().cut(widths[at]);
        line = if Some(at) == last && !columns[at].right {
            // No spaces at the end of a line.
            line.line(&cell)
        } else {
            line.line(&cell.pad(widths[at], columns[at].right))
        };
    }
    line
}

const GAP: &str = "  ";

/// The smallest width of a column that is cut.
const MIN_CUT_COLUMNS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::new("TASK"),
        Column::new("TOOL").cuts(),
        Column::new("AGE").right().optional(1),
        Column::new("MESSAGE").cuts().optional(2),
    ];

    fn rendered(width: Option<usize>) -> Vec<String> {
        let row = |cells: [&str; 4]| cells.map(StyledLine::from).to_vec();
        let rows = [
            row([
                "t1",
                "trigger-long-running-operation",
                "5 s",
                "reading the second page",
            ]),
            row(["t2", "echo", "12 min", ""]),
        ];
        let lines = table(&COLUMNS, &rows, width);
        lines.iter().map(|line| line.render(false)).collect()
    }

    #[test]
    fn columns_are_aligned_whatever_their_contents() {
        assert_eq!(
            rendered(None),
            [
                "TASK  TOOL                               AGE  MESSAGE",
                "t1    trigger-long-running-operation     5 s  reading the second page",
                "t2    echo                            12 min",
            ]
        );
    }

    #[test]
    fn a_table_fits_into_the_terminal() {
        assert_eq!(
            rendered(Some(50))[1],
            "t1    trigger-long-run…     5 s  reading the seco…"
        );
        assert_eq!(rendered(Some(24))[1], "t1    trigger…  reading…");
        assert_eq!(rendered(Some(20))[1], "t1    trigger-long-…");
        for width in 14..90 {
            for line in rendered(Some(width)) {
                assert!(
                    console::measure_text_width(&line) <= width,
                    "{width}: {line}"
                );
            }
        }
    }
}
