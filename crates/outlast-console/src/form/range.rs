//! The smallest and the largest allowed number.

/// The smallest and the largest allowed number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
}

impl Range {
    /// The smallest allowed number.
    pub fn least(self) -> Option<f64> {
        self.least
    }

    /// The largest allowed number.
    pub fn most(self) -> Option<f64> {
        self.most
    }

    pub(super) fn check(self, number: f64, unit: &str) -> Result<(), String> {
        match (self.least, self.most) {
            (Some(least), _) if number < least => Err(format!("at least {least}{unit}")),
            (_, Some(most)) if number > most => Err(format!("at most {most}{unit}")),
            _ => Ok(()),
        }
    }

    /// Checks the text of a number.
    pub(super) fn check_text(self, number: &str, unit: &str) -> Result<(), String> {
        number
            .parse()
            .map_or(Ok(()), |number| self.check(number, unit))
    }

    pub(super) fn describe(self, unit: &str) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
            (Some(least), None) => format!(", at least {least}{}", of(least, unit)),
            (None, Some(most)) => format!(", at most {most}{}", of(most, unit)),
            (None, None) => String::new(),
        }
    }
}

/// The unit after a number: ` characters`, or ` character` after 1.
fn of(number: f64, unit: &str) -> &str {
    let singular = unit.strip_suffix('s').filter(|_| number.to_string() == "1");
    singular.unwrap_or(unit)
}
