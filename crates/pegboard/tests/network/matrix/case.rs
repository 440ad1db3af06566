//! Cases, and their cells: a case on one wire in one era.

use std::{fmt, pin::Pin, time::Duration};

use crate::matrix::{cases, known, stage::Stage};

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wire {
    Stdio,
    Memory,
    Http1,
    Http2,
    Sse,
    WebSocket,
}

impl Wire {
    pub(crate) const ALL: [Self; 6] = [
        Self::Stdio,
        Self::Memory,
        Self::Http1,
        Self::Http2,
        Self::Sse,
        Self::WebSocket,
    ];

    /// The letter for this wire in [`Case::wires`].
    fn letter(self) -> char {
        match self {
            Self::Stdio => 'S',
            Self::Memory => 'M',
            Self::Http1 => 'H',
            Self::Http2 => '2',
            Self::Sse => 'L',
            Self::WebSocket => 'W',
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Memory => "memory",
            Self::Http1 => "http/1",
            Self::Http2 => "http/2",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}

/// The protocol era that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub(crate) const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    fn letter(self) -> char {
        match self {
            Self::Legacy => 'l',
            Self::Modern => 'm',
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A scenario: produces the fault and returns a short description of the outcome.
pub(crate) type Play = for<'a> fn(&'a mut Stage) -> Pin<Box<dyn Future<Output = String> + 'a>>;

/// How the cells of a case run.
pub(crate) enum How {
    Play(Play),
    /// The case cannot run on this machine, or in this test, for this reason.
    CannotRun(&'static str),
}

/// One fault, and the outcome that it must have: a row of the matrix.
pub(crate) struct Case {
    /// The key of the row. It is defined by `fault` and nowhere else.
    pub(crate) id: &'static str,
    /// The fault, in one sentence.
    pub(crate) fault: &'static str,
    /// The required behaviour, in one sentence.
    pub(crate) must: &'static str,
    /// The wires by letter: `S`tdio, `M`emory, `H`TTP/1, HTTP/`2`, SSE (`L`), `W`ebSocket.
    pub(crate) wires: &'static str,
    /// The eras by letter: `l`egacy, `m`odern.
    pub(crate) eras: &'static str,
    /// The longest time for the call with the fault, in milliseconds.
    pub(crate) bound: u64,
    pub(crate) how: How,
    /// The required outcome, as the scenario describes it.
    pub(crate) end: &'static str,
    /// Wires and eras by letter that have another outcome. An empty string stands for all.
    pub(crate) exceptions: Vec<(&'static str, &'static str, &'static str)>,
}

impl Case {
    /// The case on these wires only.
    pub(crate) fn on(self, wires: &'static str) -> Self {
        Self { wires, ..self }
    }

    /// The case in these eras only.
    pub(crate) fn in_era(self, eras: &'static str) -> Self {
        Self { eras, ..self }
    }

    /// The case with this bound, in milliseconds.
    pub(crate) fn within(self, bound: u64) -> Self {
        Self { bound, ..self }
    }

    /// The case with another outcome on these wires and in these eras.
    pub(crate) fn except(mut self, wires: &'static str, eras: &'static str, end: &'static str) -> Self {
        self.exceptions.push((wires, eras, end));
        self
    }

    pub(crate) fn cells(&'static self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for wire in Wire::ALL {
            for era in Era::ALL {
                let exists = !(wire == Wire::Sse && era == Era::Modern);
                if self.wires.contains(wire.letter()) && self.eras.contains(era.letter()) && exists {
                    cells.push(Cell { case: self, wire, era });
                }
            }
        }
        cells
    }
}

/// A case on one wire in one era.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) case: &'static Case,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
}

impl Cell {
    pub(crate) fn label(&self) -> String {
        format!("{} {} {}", self.case.id, self.wire.name(), self.era.name())
    }

    /// How long the call may take, on a machine that has other work too.
    pub(crate) fn bound(&self) -> Duration {
        Duration::from_millis(self.case.bound) * 4
    }

    /// The required outcome.
    pub(crate) fn expected(&self) -> &'static str {
        let mut exceptions = self.case.exceptions.iter();
        let exception = exceptions.find(|(wires, eras, _)| self.is_among(wires, eras));
        exception.map_or(self.case.end, |(_, _, end)| *end)
    }

    /// Whether these letters include the cell. An empty string stands for all.
    pub(crate) fn is_among(&self, wires: &str, eras: &str) -> bool {
        (wires.is_empty() || wires.contains(self.wire.letter()))
            && (eras.is_empty() || eras.contains(self.era.letter()))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

pub(crate) fn cells() -> Vec<Cell> {
    cases::all().iter().flat_map(|case| case.cells()).collect()
}

/// Two cells of each case, chosen so that together they cover all wires and eras, and every known failure.
pub(crate) fn sample(all: &[Cell]) -> Vec<Cell> {
    let mut sample = Vec::new();
    for (number, case) in cases::all().iter().enumerate() {
        let cells: Vec<_> = all.iter().filter(|cell| cell.case.id == case.id).collect();
        let first = number * 5 % cells.len();
        let second = (first + cells.len() / 2) % cells.len();
        for (at, cell) in cells.into_iter().enumerate() {
            if at == first || at == second || known::KNOWN.iter().any(|known| known.covers(cell)) {
                sample.push(*cell);
            }
        }
    }
    sample
}
