//! Compares the definitions that a server lists with its pins.

use super::{
    change::{PinChange, PinState},
    pinned_server::{MAX_PINS, Pin, PinMark, PinMarks, PinnedServer},
};
use pegboard_base::name::ServerName;
use pegboard_config::Pins;
use pegboard_tools::catalog::{Catalog, DefinitionHash, Tool};

/// How much shorter the text of a definition may be than it was estimated.
const SLACK: usize = 256;

/// What a server lists: its tools, and its instructions if they are known. A server that is not running has a catalogue at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) server: &'a ServerName,
    pub(crate) catalog: &'a Catalog,
    /// The instructions of a running server; empty if it has none.
    pub(crate) instructions: Option<&'a str>,
}

/// How the definitions of a server compare with its pins.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// For each tool of the catalogue.
    pub(crate) tools: Vec<PinState>,
    pub(crate) instructions: Option<PinState>,
    /// Whether definitions are to be recorded that have no pin.
    pub(crate) records: bool,
}

impl Judged {
    /// Whether every definition is as it was pinned.
    pub(crate) fn is_unchanged(&self) -> bool {
        let mut states = self.tools.iter().chain(&self.instructions);
        states.all(|state| *state == PinState::Unchanged)
    }
}

/// Compares a listing with the pins of its server.
pub(crate) fn judge(pins: Pins, pinned: Option<&PinMarks>, listed: Listed<'_>) -> Judged {
    // The first listing of a server is recorded as it is, unless a person must accept it. Later ones add to the pins only under `warn`.
    let adds = match pins {
        Pins::Off | Pins::Approve => false,
        Pins::Warn => true,
        Pins::Block => pinned.is_none(),
    };
    let state = |pin: Option<&PinMark>, hash: DefinitionHash, is_known: bool| match pin {
        _ if pins == Pins::Off => PinState::Unchanged,
        None if adds || (!is_known && pins != Pins::Approve) => PinState::Unchanged,
        None if pinned.is_none() => PinState::NewServer,
        None => PinState::New,
        Some(pin) if pin.hash != hash => PinState::Changed,
        Some(pin) if pins == Pins::Approve && !pin.accepted => PinState::NotAccepted,
        Some(_) => PinState::Unchanged,
    };
    let pin_of = |tool: &Tool| pinned.and_then(|pinned| pinned.tools.get(&tool.name));
    let tools = listed.catalog.tools.iter();
    let tools = tools.map(|tool| state(pin_of(tool), tool.definition_hash(), true));
    // Instructions that were never seen have no pin, even if the tools were recorded from a stored catalogue.
    let of_instructions = pinned.and_then(|pinned| pinned.instructions.as_ref());
    let instructions = listed.instructions.map(|text| match text {
        "" if of_instructions.is_none() => PinState::Unchanged,
        text => state(of_instructions, DefinitionHash::compute(text), false),
    });
    let is_missing = |tool: &Tool| pin_of(tool).is_none();
    let has_new = listed.catalog.tools.iter().any(|tool| is_missing(tool))
        || (listed.instructions.is_some() && of_instructions.is_none());
    let records_instructions = listed.instructions.is_some() && of_instructions.is_none();
    Judged {
        tools: tools.collect(),
        instructions,
        records: has_new && (adds || (records_instructions && pins == Pins::Block)),
    }
}

/// Records the definitions that have no pin. Under `block`, tools are recorded only with the first listing of their server.
pub(crate) fn record(pins: Pins, pinned: &mut PinnedServer, listed: Listed<'_>) {
    let is_first = pinned.server.is_empty();
    let records_tools = pins == Pins::Warn || is_first;
    pinned.server = listed.server.to_string();
    let mut room = pinned.room();
    for tool in listed.catalog.tools.iter().filter(|_| records_tools) {
        if !pinned.tools.contains_key(&tool.name) {
            let text = (tool.definition_length_hint() <= room + SLACK).then(|| tool.definition_text());
            let pin = Pin::new(tool.definition_hash(), text, false, &mut room);
            pinned.tools.insert(tool.name.clone(), pin);
        }
    }
    if let (Some(text), None) = (listed.instructions, &pinned.instructions) {
        pinned.instructions = Some(Pin::new(
            DefinitionHash::compute(text),
            Some(text.to_owned()),
            false,
            &mut room,
        ));
    }
    forget_surplus(pinned, listed.catalog);
}

/// Pins definitions as a person has seen and accepted them. What the server lists by now does not matter.
pub(crate) fn accept(pinned: &mut PinnedServer, server: &ServerName, changes: &[&PinChange]) {
    pinned.server = server.to_string();
    let mut room = pinned.room();
    for change in changes {
        let pin = Pin::new(change.hash, Some(change.new.clone()), true, &mut room);
        match &change.tool {
            Some(tool) => drop(pinned.tools.insert(tool.clone(), pin)),
            None => pinned.instructions = Some(pin),
        }
    }
}

/// Removes pins of tools that the server no longer lists, if there are too many pins. A server could otherwise grow its file for ever.
fn forget_surplus(pinned: &mut PinnedServer, catalog: &Catalog) {
    if pinned.tools.len() > MAX_PINS {
        pinned.tools.retain(|name, _| catalog.tool(name).is_some());
    }
}
