//! The observable state of a board: its rows, its health and whether it is ready.

use super::{Board, Failure, Instance, Life, Name, Row};

impl Board {
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, server) in &self.servers {
            let rests = matches!(server.main.life, Life::Idle | Life::Off) || self.closed;
            if !(rests && server.is_per_view() && !server.copies.is_empty()) {
                rows.push(self.row(name, &server.main, server.failure, false));
            }
            let copies = server.copies.iter();
            rows.extend(copies.map(|copy| self.row(name, copy, server.failure, false)));
        }
        rows.extend(
            self.draining
                .iter()
                .map(|draining| self.row(draining.name, &draining.instance, None, true)),
        );
        rows.sort();
        rows
    }

    /// The row of an instance. An idle one shows the last `failure` of its server.
    fn row(&self, name: Name, instance: &Instance, failure: Option<Failure>, draining: bool) -> Row {
        Row {
            name: name.to_owned(),
            view: instance.view.map(|view| format!("view-{view}")),
            draining,
            state: match (instance.life, failure) {
                _ if self.closed => "closed",
                (Life::Off, _) => "disabled",
                (Life::Ready, _) => "ready",
                (Life::Misconfigured, _) => "misconfigured",
                (Life::Down { failure, .. }, _) | (Life::Idle, Some(failure)) => match failure {
                    Failure::Down => "down",
                    Failure::CrashLooping => "crash_looping",
                },
                (Life::Idle, None) => "idle",
            },
            in_flight: self
                .in_flight
                .iter()
                .filter(|call| call.instance == instance.id)
                .count(),
        }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        let rows = self.rows();
        let mut counted = rows.iter().filter(|row| !row.draining);
        counted.all(|row| matches!(row.state, "ready" | "idle" | "disabled"))
    }

    /// Whether every required server is available.
    pub(crate) fn is_ready(&self) -> bool {
        let rows = self.rows();
        let mut required = self
            .servers
            .iter()
            .filter(|(_, server)| server.settings.is_some_and(|set| set.required));
        required.all(|(name, server)| {
            let of_server = || rows.iter().filter(|row| row.name == *name && !row.draining);
            let rests = server.is_per_view() && server.main.listed && of_server().all(|row| row.state == "idle");
            of_server().any(|row| row.state == "ready") || rests
        })
    }
}
