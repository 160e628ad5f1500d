//! `cargo xtask conformance`: runs the official suite with our fixtures and compares the results
//! with a strict list.
//!
//! The exit code of the suite is not used: it hides failures of scenarios that are not scored, and
//! some flags end with success without running anything. Only the files that it writes are used.
//! For each run, `peers/conformance/NAME.txt` lists the checks that fail, each with a reason. A
//! check that fails and is not listed is an error, and so is a listed check that does not fail.
//! Every scenario that the revision requires must have a check that succeeds, unless the list
//! excludes the scenario with a reason.

mod known_failures;
mod results;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateways::{Build, binary, gateway};
use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::peers::{self, Listening};
use known_failures::KnownFailures;
use results::Results;

/// One run of the suite.
struct SuiteRun {
    /// The name of its list and its results.
    name: &'static str,
    /// The revision whose requirements are run.
    revision: &'static str,
    side: Side,
    /// The minimum number of checks that succeed, so that a missing check or an empty run is an
    /// error.
    successes: usize,
}

/// Which side of the connection is ours.
#[derive(Clone, Copy)]
enum Side {
    /// An example serves the fixtures.
    Server { example: &'static str },
    /// An example serves the fixtures behind the gateway, which has default settings.
    Gateway { example: &'static str },
    /// An example without our code serves the fixtures on a pipe, behind the gateway with default
    /// settings.
    GatewayToChild { example: &'static str },
    /// An example is started for each scenario: the required ones and those in `also`.
    Client {
        example: &'static str,
        also: &'static [&'static str],
    },
}

const SUITE_RUNS: &[SuiteRun] = &[
    SuiteRun {
        name: "server-2025-11-25",
        revision: "2025-11-25",
        side: Side::Server {
            example: "conformance",
        },
        successes: 83,
    },
    SuiteRun {
        name: "server-2026-07-28",
        revision: "2026-07-28",
        side: Side::Server {
            example: "conformance",
        },
        successes: 195,
    },
    SuiteRun {
        name: "gateway-2025-11-25",
        revision: "2025-11-25",
        side: Side::Gateway {
            example: "conformance",
        },
        successes: 82,
    },
    SuiteRun {
        name: "gateway-2026-07-28",
        revision: "2026-07-28",
        side: Side::Gateway {
            example: "conformance",
        },
        successes: 194,
    },
    SuiteRun {
        name: "rmcp-2025-11-25",
        revision: "2025-11-25",
        side: Side::GatewayToChild {
            example: "rmcp_conformance",
        },
        successes: 82,
    },
    SuiteRun {
        name: "rmcp-2026-07-28",
        revision: "2026-07-28",
        side: Side::GatewayToChild {
            example: "rmcp_conformance",
        },
        successes: 194,
    },
    SuiteRun {
        name: "client-2025-11-25",
        revision: "2025-11-25",
        side: Side::Client {
            example: "conformance_client",
            also: &["json-schema-2020-12-preservation"],
        },
        successes: 20,
    },
    SuiteRun {
        name: "client-2026-07-28",
        revision: "2026-07-28",
        side: Side::Client {
            example: "conformance_client",
            also: &["json-schema-2020-12-preservation"],
        },
        successes: 62,
    },
];

impl Side {
    /// Its section in the suite's list of requirements.
    fn section(self) -> &'static str {
        match self {
            Self::Server { .. } | Self::Gateway { .. } | Self::GatewayToChild { .. } => "server",
            Self::Client { .. } => "client",
        }
    }

    /// The prefix of the suite's folder names before the name of a scenario.
    fn prefix(self) -> &'static str {
        match self {
            Self::Server { .. } | Self::Gateway { .. } | Self::GatewayToChild { .. } => "server-",
            Self::Client { .. } => "",
        }
    }
}

pub(crate) fn run(only: &[String]) -> Result<(), String> {
    if let Some(unknown) = only
        .iter()
        .find(|name| SUITE_RUNS.iter().all(|suite_run| suite_run.name != *name))
    {
        let known: Vec<_> = SUITE_RUNS.iter().map(|suite_run| suite_run.name).collect();
        let known = known.join(", ");
        return Err(format!(
            "there is no run named {unknown}; the runs are: {known}"
        ));
    }
    let suite = Suite::installed()?;
    let wanted =
        |suite_run: &&SuiteRun| only.is_empty() || only.iter().any(|name| name == suite_run.name);
    let mut failed = Vec::new();
    for suite_run in SUITE_RUNS.iter().filter(wanted) {
        println!("\nofficial suite, {}", suite_run.name);
        if let Err(why) = repeated(|| suite.run(suite_run)) {
            failed.push(format!("{}:\n{why}", suite_run.name));
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n"))
    }
}

/// Runs the suites of the gateway at endpoints that several nodes serve: one for the fixtures at a
/// URL and one for those of a child process.
pub(crate) fn run_at(url: &str, child: &str) -> Result<(), String> {
    let suite = Suite::installed()?;
    for suite_run in SUITE_RUNS {
        let endpoint = match suite_run.side {
            Side::Gateway { .. } => url,
            Side::GatewayToChild { .. } => child,
            Side::Server { .. } | Side::Client { .. } => continue,
        };
        println!("\nofficial suite, {} at {endpoint}", suite_run.name);
        repeated(|| {
            let plan = suite.plan(suite_run)?;
            let out = suite.folder_for(&format!("cluster-{}", suite_run.name))?;
            suite.run_server_suite(endpoint, suite_run, &out);
            plan.check(suite_run, &out)
        })?;
    }
    Ok(())
}

/// Repeats a run that fails, up to [`MAX_REPETITIONS`] times: the suite waits 600 ms for some
/// responses, and a gateway that connects to its server again may need longer.
fn repeated(run: impl Fn() -> Result<(), String>) -> Result<(), String> {
    for _ in 0..MAX_REPETITIONS {
        match run() {
            Ok(()) => return Ok(()),
            Err(why) => println!("\nthis run failed and is repeated:\n{why}\n"),
        }
    }
    run()
}

const MAX_REPETITIONS: usize = 3;

/// The suite and a Node that can run it.
struct Suite {
    node: PathBuf,
    folder: PathBuf,
}

impl Suite {
    fn installed() -> Result<Self, String> {
        let modules = npm::installed("conformance")?.join("node_modules");
        Ok(Self {
            node: npm::node_22(&modules)?,
            folder: modules.join("@modelcontextprotocol/conformance"),
        })
    }

    fn run(&self, suite_run: &SuiteRun) -> Result<(), String> {
        let out = self.folder_for(suite_run.name)?;
        let mut plan = self.plan(suite_run)?;
        match suite_run.side {
            Side::Server { example } => {
                let listening = Listening::start(&peers::example(example)?)?;
                self.run_server_suite(&listening.url, suite_run, &out);
            }
            Side::Gateway { example } => {
                let behind = Listening::start(&peers::example(example)?)?;
                let mut command = gateway(&binary(Build::Debug)?);
                command.args(["--log", "warn"]);
                command.args(["--url", &behind.url]);
                let listening = Listening::from(command)?;
                self.run_server_suite(&listening.url, suite_run, &out);
            }
            Side::GatewayToChild { example } => {
                let mut command = gateway(&binary(Build::Debug)?);
                command.args(["--log", "warn", "--"]);
                command.arg(peers::example(example)?);
                let listening = Listening::from(command)?;
                self.run_server_suite(&listening.url, suite_run, &out);
            }
            Side::Client { example, also } => {
                let command = peers::example(example)?.display().to_string();
                let also = also.iter().map(|scenario| (*scenario).to_owned());
                plan.required.extend(also);
                for scenario in &plan.required {
                    let args = ["client", "--command", &command, "--scenario", scenario];
                    self.run_suite(&args, &["--spec-version", suite_run.revision], &out);
                }
            }
        }
        plan.check(suite_run, &out)
    }

    /// An empty folder for the results of a run.
    fn folder_for(&self, name: &str) -> Result<PathBuf, String> {
        let out = root().join("target/conformance").join(name);
        if out.exists() {
            std::fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        }
        Ok(out)
    }

    /// What a run must show.
    fn plan(&self, suite_run: &SuiteRun) -> Result<Plan, String> {
        let known =
            KnownFailures::read(&root().join(format!("peers/conformance/{}.txt", suite_run.name)))?;
        let mut required = self.required(suite_run)?;
        let stale = known.excluded().filter(|left| !required.contains(*left));
        let stale = stale
            .map(|left| format!("{left} is excluded and not required; remove it from the list"))
            .collect();
        required.retain(|scenario| known.excluded().all(|left| left != scenario));
        Ok(Plan {
            known,
            required,
            stale,
        })
    }

    /// Runs the suite, which writes its results. Its exit code is not used.
    fn run_suite(&self, what: &[&str], scope: &[&str], out: &Path) {
        let mut command = Command::new(&self.node);
        command
            .arg(self.folder.join("dist/index.js"))
            .args(what)
            .args(scope)
            .arg("-o")
            .arg(out);
        if let Err(why) = run_command(&mut command) {
            println!("{why}");
        }
    }

    /// Runs all scenarios of the suite that the revision requires of a server.
    fn run_server_suite(&self, url: &str, suite_run: &SuiteRun, out: &Path) {
        let what = ["server", "--url", url];
        self.run_suite(&what, &["--requirements", suite_run.revision], out);
    }

    /// The scenarios that the revision requires of our side, from the suite's own list.
    fn required(&self, suite_run: &SuiteRun) -> Result<BTreeSet<String>, String> {
        let file = self
            .folder
            .join(format!("requirements/{}.yaml", suite_run.revision));
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let side = suite_run.side.section();
        let required = section(&text, side);
        if required.is_empty() {
            Err(format!("{} requires nothing of a {side}", file.display()))
        } else {
            Ok(required)
        }
    }
}

/// What a run must show.
struct Plan {
    known: KnownFailures,
    /// The scenarios that must run.
    required: BTreeSet<String>,
    /// Errors in the list.
    stale: Vec<String>,
}

impl Plan {
    /// Compares the results in `out` with the plan.
    fn check(self, suite_run: &SuiteRun, out: &Path) -> Result<(), String> {
        let known = self.known;
        let mut wrong = self.stale;
        let results = Results::read(out, suite_run.side.prefix())?;
        wrong.extend(errors_of(suite_run, &self.required, &results, &known));
        if wrong.is_empty() {
            let (scenarios, checks) = (results.scenarios(), results.successes());
            println!(
                "{scenarios} scenarios ran, {checks} checks succeeded, {} failed as listed, {} scenarios excluded",
                known.len(),
                known.excluded().count()
            );
            Ok(())
        } else {
            Err(wrong.join("\n"))
        }
    }
}

/// Returns the errors of a run, one line each.
fn errors_of(
    suite_run: &SuiteRun,
    required: &BTreeSet<String>,
    results: &Results,
    known: &KnownFailures,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let (some, minimum) = (results.successes(), suite_run.successes);
    if some < minimum {
        wrong.push(format!("only {some} checks succeeded, {minimum} should"));
    }
    for scenario in required {
        if !results.succeeded_at_all(scenario) {
            wrong.push(format!("{scenario} is required and did not run"));
        }
    }
    for failure in results.failures() {
        if !known.contains(&failure.check) {
            wrong.push(format!("{}: {}", failure.check, failure.message));
        }
    }
    for check in known.checks() {
        if !results.failures().any(|failure| failure.check == check) {
            wrong.push(format!(
                "{check} is listed as a failure and did not fail; remove it from the list"
            ));
        }
    }
    wrong
}

/// The items of a top-level list in a plain YAML file.
fn section(yaml: &str, name: &str) -> BTreeSet<String> {
    let heading = format!("{name}:");
    yaml.lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .filter_map(|line| line.trim().strip_prefix("- "))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE_RUN: SuiteRun = SuiteRun {
        name: "test",
        revision: "2025-11-25",
        side: Side::Server {
            example: "conformance",
        },
        successes: 1,
    };

    fn wrong(results: &[(&str, &str, &str)], known: &str) -> Vec<String> {
        let required = ["ping".to_owned()].into();
        errors_of(
            &SUITE_RUN,
            &required,
            &Results::of(results),
            &KnownFailures::parse(known).unwrap(),
        )
    }

    #[test]
    fn a_run_without_failures_passes() {
        let results = [("ping", "ping", "SUCCESS"), ("ping", "note", "INFO")];
        assert_eq!(wrong(&results, "# nothing\n"), [""; 0]);
    }

    #[test]
    fn a_failure_that_is_not_listed_is_wrong_and_so_is_a_warning() {
        for status in ["FAILURE", "WARNING", "WHATEVER"] {
            let results = [("ping", "ping", "SUCCESS"), ("ping", "other", status)];
            assert_eq!(wrong(&results, "").len(), 1, "{status}");
            assert_eq!(wrong(&results, "ping:other  the reason\n"), [""; 0]);
        }
    }

    #[test]
    fn a_listed_failure_that_succeeds_is_wrong() {
        let results = [("ping", "ping", "SUCCESS"), ("ping", "other", "SUCCESS")];
        assert_eq!(wrong(&results, "ping:other  the reason\n").len(), 1);
    }

    #[test]
    fn a_required_scenario_that_did_not_run_is_wrong_and_so_is_an_empty_run() {
        let results = [("tools-list", "a", "SUCCESS"), ("ping", "ping", "SKIPPED")];
        assert_eq!(wrong(&results, ""), ["ping is required and did not run"]);
        assert_eq!(wrong(&[], "").len(), 2);
    }

    #[test]
    fn the_required_scenarios_are_those_of_the_section() {
        let yaml =
            "# words\nserver:\n  - a\n  - b/c\n\nclient:\n  - d\nnot_scored:\n  - scenario: e\n";
        let of = |name| section(yaml, name).into_iter().collect::<Vec<_>>();
        assert_eq!(of("server"), ["a", "b/c"]);
        assert_eq!(of("client"), ["d"]);
    }
}
