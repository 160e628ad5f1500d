//! The results that the suite writes: a folder for each scenario, with `checks.json` in it.

use std::path::Path;

use serde_json::Value;

/// The checks of a run.
pub(super) struct Results(Vec<Check>);

struct Check {
    scenario: String,
    id: String,
    status: String,
    message: String,
}

/// A check that did not succeed.
pub(super) struct Failure {
    /// `scenario:check-id`.
    pub(super) check: String,
    pub(super) message: String,
}

impl Results {
    /// Reads the folders whose names begin with `prefix`, followed by the scenario and the time.
    pub(super) fn read(folder: &Path, prefix: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut checks = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(scenario) = name.and_then(|name| scenario(name, prefix)) else {
                continue;
            };
            let file = path.join("checks.json");
            let text = std::fs::read_to_string(&file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            let all: Vec<Value> = serde_json::from_str(&text)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            checks.extend(all.iter().map(|check| Check::read(scenario, check)));
        }
        Ok(Self(checks))
    }

    #[cfg(test)]
    pub(super) fn of(checks: &[(&str, &str, &str)]) -> Self {
        let checks = checks.iter().map(|(scenario, id, status)| {
            Check::read(scenario, &serde_json::json!({ "id": id, "status": status }))
        });
        Self(checks.collect())
    }

    pub(super) fn successes(&self) -> usize {
        let right = self.0.iter().filter(|check| check.status == SUCCESS);
        right.count()
    }

    pub(super) fn scenarios(&self) -> usize {
        let mut names: Vec<_> = self.0.iter().map(|check| &check.scenario).collect();
        names.sort();
        names.dedup();
        names.len()
    }

    /// Whether a scenario ran and anything in it succeeded.
    pub(super) fn succeeded_at_all(&self, scenario: &str) -> bool {
        let mut checks = self.0.iter();
        checks.any(|check| check.scenario == scenario && check.status == SUCCESS)
    }

    /// Checks that neither succeeded nor were reported as not applicable.
    pub(super) fn failures(&self) -> impl Iterator<Item = Failure> {
        let right = [SUCCESS, "INFO", "SKIPPED"];
        let failed = self
            .0
            .iter()
            .filter(move |check| !right.contains(&&*check.status));
        failed.map(|check| Failure {
            check: format!("{}:{}", check.scenario, check.id),
            message: format!("{} {}", check.status, check.message),
        })
    }
}

impl Check {
    fn read(scenario: &str, check: &Value) -> Self {
        let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
        Self {
            scenario: scenario.to_owned(),
            id: text("id"),
            status: text("status"),
            message: text("errorMessage"),
        }
    }
}

/// The scenario in the name of a folder such as `server-ping-2026-01-02T03-04-05-678Z`.
fn scenario<'a>(folder: &'a str, prefix: &str) -> Option<&'a str> {
    let name = folder.strip_prefix(prefix)?;
    let stamp = name.len().checked_sub("-2026-01-02T03-04-05-678Z".len())?;
    name.is_char_boundary(stamp).then(|| &name[..stamp])
}

const SUCCESS: &str = "SUCCESS";
