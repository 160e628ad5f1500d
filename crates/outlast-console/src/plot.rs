//! Small plots: the coordinates of their bars, and the same numbers as a table.

use serde::Serialize;

use crate::format;
use crate::statistics::{CLASSES, PLOT_MINUTES};

/// Created and ended tasks per minute.
#[derive(Debug, Serialize)]
pub(crate) struct MinutePlot {
    #[serde(skip)]
    pub(crate) bars: Vec<MinuteBar>,
    pub(crate) rows: Vec<MinuteRow>,
    pub(crate) max: u32,
    pub(crate) created: u32,
    pub(crate) ended: u32,
}

/// The two bars of one minute, in a plot of 420 × 120.
#[derive(Debug)]
pub(crate) struct MinuteBar {
    pub(crate) x: String,
    pub(crate) created_y: String,
    pub(crate) created_height: String,
    pub(crate) ended_x: String,
    pub(crate) ended_y: String,
    pub(crate) ended_height: String,
}

/// One minute with tasks, in the table.
#[derive(Debug, Serialize)]
pub(crate) struct MinuteRow {
    pub(crate) ago: usize,
    pub(crate) created: u32,
    pub(crate) ended: u32,
}

/// Tasks per class of duration.
#[derive(Debug, Serialize)]
pub(crate) struct BarPlot {
    pub(crate) bars: Vec<Bar>,
    /// The top of the axis.
    #[serde(skip)]
    pub(crate) max: u32,
    pub(crate) total: u32,
}

/// A bar with its label, in a plot of 420 × 120.
#[derive(Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) label: &'static str,
    pub(crate) number: u32,
    #[serde(skip)]
    pub(crate) x: String,
    #[serde(skip)]
    pub(crate) middle: String,
    #[serde(skip)]
    pub(crate) y: String,
    #[serde(skip)]
    pub(crate) height: String,
    #[serde(skip)]
    pub(crate) text_y: String,
}

impl Bar {
    pub(crate) fn number_text(&self) -> String {
        format::count(self.number.into())
    }
}

impl MinutePlot {
    /// The label at the top of the axis.
    pub(crate) fn max_text(&self) -> String {
        format::count(self.max.into())
    }

    pub(crate) fn new(created: &[u32], ended: &[u32]) -> Self {
        let most = created.iter().chain(ended).copied().max().unwrap_or(0);
        let max = round_up(most);
        let step = PLOT_WIDTH / PLOT_MINUTES as f64;
        let pairs = || {
            created
                .iter()
                .copied()
                .zip(ended.iter().copied())
                .enumerate()
        };
        let bars = pairs().map(|(at, (created, ended))| {
            let x = at as f64 * step;
            let (created_y, created_height) = bar(created, max);
            let (ended_y, ended_height) = bar(ended, max);
            MinuteBar {
                x: number(x + 0.5),
                created_y,
                created_height,
                ended_x: number(x + step / 2.0),
                ended_y,
                ended_height,
            }
        });
        let rows = pairs().filter(|(_, (created, ended))| created + ended > 0);
        let rows = rows.map(|(at, (created, ended))| MinuteRow {
            ago: PLOT_MINUTES - 1 - at,
            created,
            ended,
        });
        Self {
            bars: bars.collect(),
            rows: rows.collect(),
            max,
            created: created.iter().sum(),
            ended: ended.iter().sum(),
        }
    }
}

impl BarPlot {
    /// The label at the top of the axis.
    pub(crate) fn max_text(&self) -> String {
        format::count(self.max.into())
    }

    pub(crate) fn new(numbers: &[u32; CLASSES.len()]) -> Self {
        let max = round_up(numbers.iter().copied().max().unwrap_or(0));
        let step = PLOT_WIDTH / CLASSES.len() as f64;
        let bars = CLASSES
            .iter()
            .zip(numbers)
            .enumerate()
            .map(|(at, ((_, label), count))| {
                let x = at as f64 * step;
                let (y, height) = bar(*count, max);
                Bar {
                    label,
                    number: *count,
                    x: number(x + step * 0.15),
                    middle: number(x + step / 2.0),
                    text_y: number(
                        PLOT_HEIGHT - PLOT_HEIGHT * f64::from(*count) / f64::from(max) - 4.0,
                    ),
                    y,
                    height,
                }
            });
        Self {
            bars: bars.collect(),
            max,
            total: numbers.iter().sum(),
        }
    }
}

/// The top and the height of a bar. A task is visible even beside thousands.
fn bar(count: u32, max: u32) -> (String, String) {
    let height = PLOT_HEIGHT * f64::from(count) / f64::from(max);
    let height = if count > 0 { height.max(1.5) } else { 0.0 };
    (number(PLOT_HEIGHT - height), number(height))
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// The next of 1, 2, 5, 10, 20, …, for the label of the axis.
fn round_up(most: u32) -> u32 {
    let mut bound = 1_u32;
    loop {
        for factor in [1, 2, 5] {
            let bound = bound.saturating_mul(factor);
            if bound >= most {
                return bound;
            }
        }
        bound = bound.saturating_mul(10);
    }
}

const PLOT_HEIGHT: f64 = 120.0;

const PLOT_WIDTH: f64 = 420.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0, 1, 2, 3, 9, 11, 4_999].map(round_up),
            [1, 1, 2, 5, 10, 20, 5_000]
        );
        assert_eq!(round_up(u32::MAX), u32::MAX);
    }

    #[test]
    fn bars_fit_the_plot() {
        let plot = BarPlot::new(&[0, 1, 5_000, 3, 0, 0]);
        assert_eq!(
            (plot.bars[0].height.as_str(), plot.bars[1].height.as_str()),
            ("0.0", "1.5")
        );
        assert_eq!(
            (plot.bars[2].y.as_str(), plot.bars[2].height.as_str()),
            ("0.0", "120.0")
        );
        assert_eq!(plot.total, 5_004);
    }
}
