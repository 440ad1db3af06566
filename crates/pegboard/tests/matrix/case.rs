//! What a case is, and the cells it has.

use std::{fmt, pin::Pin, time::Duration};

use crate::{cases, known, stage::Stage};

/// How a server is reached.
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

    /// Its letter in the list of wires of a case.
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

/// Plays a fault and says in short words what came of it.
pub(crate) type Play = for<'a> fn(&'a mut Stage) -> Pin<Box<dyn Future<Output = String> + 'a>>;

/// What happens in the cells of a case.
pub(crate) enum How {
    Play(Play),
    /// It cannot be played on this machine, or by this test, for this reason.
    CannotRun(&'static str),
}

/// One fault, and how it must end.
pub(crate) struct Case {
    pub(crate) id: &'static str,
    /// What goes wrong.
    pub(crate) fault: &'static str,
    /// What must come of it, in words.
    pub(crate) must: &'static str,
    /// The wires by letter: `S`tdio, `M`emory, `H`TTP/1, HTTP/`2`, SSE (`L`), `W`ebSocket.
    pub(crate) wires: &'static str,
    /// The eras by letter: `l`egacy, `m`odern.
    pub(crate) eras: &'static str,
    /// The longest that the call under the fault may take, in milliseconds.
    pub(crate) bound: u64,
    pub(crate) how: How,
    /// What comes of it: the first line whose wires and eras name the cell. An empty list of letters names all.
    pub(crate) ends: &'static [(&'static str, &'static str, &'static str)],
}

impl Case {
    pub(crate) fn cells(&'static self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for wire in Wire::ALL {
            for era in Era::ALL {
                let is_known = !(wire == Wire::Sse && era == Era::Modern);
                if self.wires.contains(wire.letter()) && self.eras.contains(era.letter()) && is_known {
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

    pub(crate) fn bound(&self) -> Duration {
        Duration::from_millis(self.case.bound)
    }

    /// What must come of it.
    pub(crate) fn expected(&self) -> &'static str {
        let ends = self.case.ends.iter();
        let mut fitting = ends.filter(|(wires, eras, _)| self.is_among(wires, eras));
        fitting.next().map_or("", |(_, _, end)| *end)
    }

    /// Whether these letters name it.
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

/// Two cells of each case, so that together they use all wires and eras, and every cell that is known to be wrong.
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
