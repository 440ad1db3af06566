//! The observable state of a board: its rows, its health and whether it is ready.

use super::{Board, Instance, Life, Name, Row};

impl Board {
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, server) in &self.servers {
            let rests = matches!(server.main.life, Life::Idle | Life::Off) || self.closed;
            if !(rests && server.is_per_view() && !server.copies.is_empty()) {
                rows.push(self.row(name, &server.main, false));
            }
            rows.extend(server.copies.iter().map(|copy| self.row(name, copy, false)));
        }
        rows.extend(
            self.draining
                .iter()
                .map(|draining| self.row(draining.name, &draining.instance, true)),
        );
        rows.sort();
        rows
    }

    fn row(&self, name: Name, instance: &Instance, draining: bool) -> Row {
        Row {
            name: name.to_owned(),
            view: instance.view.map(|view| format!("view-{view}")),
            draining,
            state: match instance.life {
                _ if self.closed => "closed",
                Life::Off => "disabled",
                Life::Idle => "idle",
                Life::Ready => "ready",
                Life::Down { looping: true, .. } => "crash_looping",
                Life::Down { looping: false, .. } => "down",
                Life::Misconfigured => "misconfigured",
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
