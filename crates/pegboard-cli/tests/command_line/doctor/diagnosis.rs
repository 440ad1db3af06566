//! Runs `doctor` and reads its document.

use std::{collections::BTreeSet, fs};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::Value;

use crate::home::{Home, Ran};

/// A setting that keeps tests short.
pub(crate) const QUICK: &str = "stop_timeout = '200ms'";

/// Settings for servers that do not answer. One that does may take longer to start on a loaded machine.
pub(crate) const SILENT: &str = "connect_timeout = '3s'\nstop_timeout = '200ms'\nera_silence = '300ms'";

/// What one run of `doctor` found.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    pub(crate) code: Option<i32>,
    pub(crate) document: Value,
}

impl Diagnosis {
    pub(crate) fn of(home: &Home, args: &[&str]) -> Self {
        let args: Vec<&str> = ["doctor", "-o", "json"].iter().chain(args).copied().collect();
        Self::from(&home.run(&args))
    }

    pub(crate) fn from(ran: &Ran) -> Self {
        Self {
            code: ran.code,
            document: ran.json(),
        }
    }

    fn steps(&self) -> Vec<&Value> {
        let servers = self.document["servers"].as_array().into_iter().flatten();
        let of_servers = servers.flat_map(|server| server["steps"].as_array().into_iter().flatten());
        of_servers
            .chain(self.document["machine"].as_array().into_iter().flatten())
            .collect()
    }

    /// The finding with an id, if there is one.
    pub(crate) fn finding(&self, id: &str) -> Option<&Value> {
        self.steps().into_iter().find(|step| step["id"] == id)
    }

    /// The ids of all findings, each once.
    fn findings(&self) -> BTreeSet<&str> {
        self.steps()
            .into_iter()
            .filter_map(|step| step["id"].as_str())
            .collect()
    }

    /// The ids of all problems.
    pub(crate) fn problems(&self) -> Vec<&str> {
        let problems = self.steps().into_iter().filter(|step| step["level"] == "problem");
        problems.map(|step| step["id"].as_str().unwrap()).collect()
    }

    /// Asserts that the finding is there with a fix, and that there is no other.
    #[track_caller]
    pub(crate) fn shows(&self, id: &str) -> &Self {
        assert_eq!(self.findings(), BTreeSet::from([id]), "{self:#?}");
        self.includes(id)
    }

    /// Asserts that the finding is there with a fix, and is the only problem if it is one. There may be warnings.
    #[track_caller]
    pub(crate) fn includes(&self, id: &str) -> &Self {
        let found = self.finding(id).unwrap_or_else(|| panic!("no `{id}` in {self:#?}"));
        assert!(found["fix"].is_string(), "{found}");
        match found["level"] == "problem" {
            true => assert_eq!((self.problems(), self.code), (vec![id], Some(1)), "{self:#?}"),
            false => assert_eq!((self.problems(), self.code), (vec![], Some(0)), "{self:#?}"),
        }
        self
    }

    /// Asserts that there is no problem, and no such finding.
    #[track_caller]
    pub(crate) fn is_well_without(&self, id: &str) -> &Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert!(self.finding(id).is_none(), "{self:#?}");
        self
    }
}

/// Asserts that a config yields a finding, and another config does not.
#[track_caller]
pub(crate) fn mended_by(home: &Home, id: &str, broken: &str, mended: &str) {
    home.config(broken);
    Diagnosis::of(home, &[]).shows(id);
    home.config(mended);
    Diagnosis::of(home, &[]).is_well_without(id);
}

/// Asserts that `--fix` fixes a config. Returns the mended one.
#[track_caller]
pub(crate) fn mends_itself(home: &Home, id: &str, broken: &str, args: &[&str]) -> String {
    let commented = format!("# A comment that stays.\n{broken}");
    let file = home.config(&commented);
    let found = Diagnosis::of(home, args);
    assert_eq!(found.finding(id).unwrap()["fixable"], true, "{found:#?}");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        commented,
        "doctor alone changed the file"
    );
    Diagnosis::of(home, &[&["--fix", "--yes"], args].concat()).is_well_without(id);
    let mended = fs::read_to_string(&file).unwrap();
    assert!(mended.starts_with("# A comment that stays.\n"), "{mended}");
    mended
}

/// A server that works.
pub(crate) fn fake() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("read").description("Reads it").answers_text("fine"))
}

/// The config of a server `fx` that works. Its files have names of their own, beside those of a broken one.
pub(crate) fn well(home: &Home) -> String {
    home.entry("well", fake(), QUICK)
        .replace("[servers.well]", "[servers.fx]")
}
