//! The reference model: what a board must look like after each step, in the simplest terms.
//!
//! A board has servers; each is one instance that all views share, or a spare and a copy for each view. An instance is off, idle, ready or
//! down. That is all that is modelled, and all that an operator sees.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// How long after a loss or a failed start a server is started again.
pub(crate) const RESTART: u64 = 1_000;
/// How long a slow call takes.
pub(crate) const SLOW: u64 = 700;
/// So many losses are a crash loop.
const LOOP: usize = 5;
/// How long each step takes at least, so that all that follows from it at once has happened.
const STEP: u64 = 20;
/// How near to the end of a step no timer may ring, because it could ring before or after.
const NEAR: u64 = 15;

pub(crate) type Name = &'static str;
pub(crate) type ViewId = u32;
pub(crate) type CallId = u32;

/// Where a server is to be found: another place is another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Here,
    There,
}

/// What a config says about a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) place: Place,
    pub(crate) per_view: bool,
    pub(crate) lazy: bool,
    pub(crate) required: bool,
    pub(crate) enabled: bool,
    /// Whether the tool `secret` is denied.
    pub(crate) denies: bool,
}

impl fmt::Debug for Settings {
    /// In words, so that a sequence of steps can be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (true, if self.place == Place::Here { "here" } else { "there" }),
            (true, if self.per_view { "per view" } else { "shared" }),
            (true, if self.lazy { "lazy" } else { "eager" }),
            (self.required, "required"),
            (!self.enabled, "disabled"),
            (self.denies, "denies"),
        ];
        let words: Vec<_> = words.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word).collect();
        f.write_str(&words.join(", "))
    }
}

/// Where the life of an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Off,
    Idle,
    Ready,
    Down { next: u64, looping: bool },
    Misconfigured,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    id: u32,
    view: Option<ViewId>,
    pub(crate) life: Life,
    /// Whether a start of it, or of the one it replaces, has succeeded.
    listed: bool,
    /// Whether its tools are known.
    known: bool,
    losses: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// `None` while its config cannot be used.
    pub(crate) settings: Option<Settings>,
    /// What an operator said since the config last did.
    switch: Option<bool>,
    /// The instance that all views share, or the spare for the next view.
    main: Instance,
    copies: Vec<Instance>,
}

impl Server {
    fn is_per_view(&self) -> bool {
        self.settings.is_some_and(|settings| settings.per_view)
    }

    fn is_enabled(&self) -> bool {
        let by_config = self.settings.is_none_or(|settings| settings.enabled);
        self.switch.unwrap_or(by_config)
    }

    fn starts_unasked(&self) -> bool {
        let is_wanted = |settings: Settings| !settings.lazy || settings.required;
        self.is_enabled() && self.settings.is_some_and(is_wanted)
    }

    fn instances(&mut self) -> impl Iterator<Item = &mut Instance> {
        std::iter::once(&mut self.main).chain(&mut self.copies)
    }

    /// The copies of views, or without views the server itself.
    fn in_use(&mut self) -> Vec<&mut Instance> {
        if self.copies.is_empty() {
            vec![&mut self.main]
        } else {
            self.copies.iter_mut().collect()
        }
    }
}

/// An instance that is off the board and ends its calls.
#[derive(Debug, Clone)]
struct Draining {
    name: Name,
    place: Place,
    instance: Instance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Hello,
    Fails,
    Slow,
    /// Denied where the settings say so.
    Secret,
    Unknown,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    ToolError,
    UnknownTool,
    NotPermitted,
    /// The server is not there: nothing ran.
    Unavailable,
    /// It was under way and no answer came: it may have run.
    Lost,
    Cancelled,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) id: CallId,
    instance: u32,
    ends: u64,
}

/// One thing that an agent, an operator, a server or time does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    OpenView,
    CloseView(ViewId),
    Call(ViewId, Name, Tool),
    Cancel(CallId),
    List(ViewId),
    Apply(Name, Settings),
    ApplyWithout(Name),
    ApplyMisconfigured(Name),
    Connect(Name, Settings),
    Disconnect(Name),
    Enable(Name),
    Disable(Name),
    Reconnect(Name),
    Crash(Name, Place),
    RefuseStarts(Name, Place),
    AcceptStarts(Name, Place),
    Wait { ms: u64 },
    Drain,
    Shutdown,
}

/// A row of the status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) view: Option<String>,
    pub(crate) draining: bool,
    pub(crate) state: &'static str,
    pub(crate) in_flight: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    pub(crate) now: u64,
    pub(crate) servers: BTreeMap<Name, Server>,
    pub(crate) views: BTreeSet<ViewId>,
    draining: Vec<Draining>,
    pub(crate) in_flight: Vec<InFlight>,
    /// All calls that have ended, in order of their ids.
    pub(crate) ended: BTreeMap<CallId, Ending>,
    pub(crate) refusing: BTreeSet<(Name, Place)>,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    /// What the last step returned, where it returns whether it did something.
    pub(crate) returned: Option<bool>,
    /// What the last listing showed: servers, and whether their tool `secret` is among the tools.
    pub(crate) listed: Option<Vec<(Name, bool)>>,
    made: u32,
    opened: u32,
    calls: u32,
}

impl Board {
    /// The next call and the next view.
    pub(crate) fn last_call(&self) -> CallId {
        self.calls
    }

    pub(crate) fn last_view(&self) -> ViewId {
        self.opened
    }

    pub(crate) fn take(&mut self, step: Step) {
        (self.returned, self.listed) = (None, None);
        match step {
            Step::OpenView => self.open_view(),
            Step::CloseView(view) => self.close_view(view),
            Step::Call(view, name, tool) => self.call(view, name, tool),
            Step::Cancel(id) => self.end_calls(Ending::Cancelled, |call| call.id == id),
            Step::List(view) => self.list(view),
            Step::Apply(name, settings) => self.apply(name, settings),
            Step::ApplyWithout(name) => {
                if !self.closing {
                    self.remove(name);
                }
            }
            Step::ApplyMisconfigured(name) => self.misconfigure(name),
            Step::Connect(name, settings) => self.connect(name, settings),
            Step::Disconnect(name) => {
                self.returned = Some(self.servers.contains_key(name));
                self.remove(name);
            }
            Step::Enable(name) => self.enable(name),
            Step::Disable(name) => self.disable(name),
            Step::Reconnect(name) => self.reconnect(name),
            Step::Crash(name, place) => self.crash(name, place),
            Step::RefuseStarts(name, place) => drop(self.refusing.insert((name, place))),
            Step::AcceptStarts(name, place) => drop(self.refusing.remove(&(name, place))),
            Step::Wait { ms } => self.pass(ms),
            Step::Drain => {
                self.closing = true;
                self.returned = Some(self.in_flight.is_empty());
            }
            Step::Shutdown => self.shut_down(),
        }
        self.pass(STEP);
    }

    // Time.

    /// Lets time pass, and a little more where a timer would ring too near to the end.
    fn pass(&mut self, ms: u64) {
        let mut end = self.now + ms;
        loop {
            let next = self.next_timer();
            match next {
                Some(at) if at <= end + NEAR => {
                    self.now = at;
                    self.ring(at);
                    end = end.max(at + NEAR + 1);
                }
                _ => break,
            }
        }
        self.now = end;
        self.forget_drained();
    }

    fn next_timer(&self) -> Option<u64> {
        let calls = self.in_flight.iter().map(|call| call.ends);
        let instances = self.servers.values().flat_map(|server| std::iter::once(&server.main).chain(&server.copies));
        let starts = instances.filter_map(|instance| match instance.life {
            Life::Down { next, .. } if !self.closed => Some(next),
            _ => None,
        });
        calls.chain(starts).min()
    }

    fn ring(&mut self, at: u64) {
        self.end_calls(Ending::Ok, |call| call.ends == at);
        let (now, refusing) = (self.now, self.refusing.clone());
        for (name, server) in &mut self.servers {
            let settings = server.settings;
            for instance in server.instances() {
                if matches!(instance.life, Life::Down { next, .. } if next == at) {
                    start(instance, settings, now, name, &refusing);
                }
            }
        }
    }

    // Views and calls.

    fn open_view(&mut self) {
        self.opened += 1;
        let view = self.opened;
        self.views.insert(view);
        if self.closing {
            return;
        }
        let names: Vec<Name> = self.servers.keys().copied().collect();
        for name in names {
            self.copy_for(name, view);
            let (now, refusing) = (self.now, self.refusing.clone());
            let server = self.servers.get_mut(name).expect("it is there");
            let (settings, is_wanted) = (server.settings, server.starts_unasked());
            for copy in server.copies.iter_mut().filter(|copy| copy.view == Some(view) && is_wanted) {
                start_idle(copy, settings, now, name, &refusing);
            }
        }
    }

    /// Gives a view the spare, and puts a new spare in its place.
    fn copy_for(&mut self, name: Name, view: ViewId) {
        let fresh = |board: &mut Self, like: &Instance| {
            let life = if like.life == Life::Off { Life::Off } else { Life::Idle };
            board.instance(life)
        };
        let server = self.servers[name].clone();
        if !server.is_per_view() {
            return;
        }
        let is_down = matches!(server.main.life, Life::Down { .. });
        let mut copy = if is_down {
            fresh(self, &server.main)
        } else {
            server.main.clone()
        };
        copy.view = Some(view);
        let mut spare = fresh(self, &server.main);
        spare.listed = server.main.listed && !is_down && spare.life == Life::Idle;
        let server = self.servers.get_mut(name).expect("it is there");
        server.main = spare;
        server.copies.push(copy);
    }

    fn close_view(&mut self, view: ViewId) {
        self.views.remove(&view);
        let (now, refusing) = (self.now, self.refusing.clone());
        let is_last = self.views.is_empty() && !self.closing;
        let mut gone = Vec::new();
        for (name, server) in &mut self.servers {
            let was_ready = server.copies.iter().any(|copy| copy.view == Some(view) && copy.life == Life::Ready);
            gone.extend(server.copies.extract_if(.., |copy| copy.view == Some(view)));
            let is_required = server.settings.is_some_and(|settings| settings.required);
            if is_last && server.is_per_view() && is_required && server.starts_unasked() {
                server.main.listed |= was_ready;
                start_idle(&mut server.main, server.settings, now, name, &refusing);
            }
        }
        for instance in gone {
            self.end_calls(Ending::Lost, |call| call.instance == instance.id);
        }
    }

    fn call(&mut self, view: ViewId, name: Name, tool: Tool) {
        self.calls += 1;
        let id = self.calls;
        let ending = self.ending(view, name, tool);
        if let (Ending::Ok, Tool::Slow) = (ending, tool) {
            let instance = self.reached(view, name).expect("a call that goes through has an instance").id;
            self.in_flight.push(InFlight {
                id,
                instance,
                ends: self.now + SLOW,
            });
        } else {
            self.ended.insert(id, ending);
        }
    }

    fn ending(&mut self, view: ViewId, name: Name, tool: Tool) -> Ending {
        if self.closing {
            return Ending::Unavailable;
        }
        self.wake(view, name);
        let denies = self.servers.get(name).is_some_and(|server| server.settings.is_some_and(|set| set.denies));
        let instance = self.reached(view, name).cloned();
        let is_ready = instance.as_ref().is_some_and(|instance| instance.life == Life::Ready);
        match (instance, tool) {
            (Some(instance), Tool::Secret) if denies && instance.known => Ending::NotPermitted,
            (Some(_), _) if !is_ready => Ending::Unavailable,
            (Some(_), Tool::Hello | Tool::Slow | Tool::Secret) => Ending::Ok,
            (Some(_), Tool::Fails) => Ending::ToolError,
            // Any server that is not known yet may have it.
            (Some(_), Tool::Unknown) | (None, _) => {
                let names: Vec<Name> = self.servers.keys().copied().collect();
                names.into_iter().for_each(|name| self.wake(view, name));
                Ending::UnknownTool
            }
        }
    }

    /// The instance that calls of a view go to.
    fn reached(&self, view: ViewId, name: Name) -> Option<&Instance> {
        let server = self.servers.get(name)?;
        if server.is_per_view() {
            server.copies.iter().find(|copy| copy.view == Some(view))
        } else {
            Some(&server.main)
        }
    }

    /// Starts the server of a view, if it rests.
    fn wake(&mut self, view: ViewId, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let (settings, is_per_view) = (server.settings, server.is_per_view());
        for instance in server.instances() {
            if !is_per_view || instance.view == Some(view) {
                start_idle(instance, settings, now, name, &refusing);
            }
        }
    }

    fn list(&mut self, view: ViewId) {
        let names: Vec<Name> = self.servers.keys().copied().collect();
        let mut listed = Vec::new();
        for name in names {
            if !self.closing {
                self.wake(view, name);
            }
            let denies = self.servers[name].settings.is_some_and(|settings| settings.denies);
            if self.reached(view, name).is_some_and(|instance| instance.life == Life::Ready) {
                listed.push((name, !denies));
            }
        }
        self.listed = Some(listed);
    }

    // What an operator does.

    fn apply(&mut self, name: Name, new: Settings) {
        if self.closing {
            return;
        }
        let Some(server) = self.servers.get_mut(name) else {
            self.swap(name, new);
            return self.start(name, false);
        };
        match server.settings {
            Some(old) if old == new => {}
            Some(old) if old.enabled == new.enabled && (old.place, old.per_view) == (new.place, new.per_view) => {
                server.settings = Some(new);
            }
            _ => drop(self.replace(name, new, false)),
        }
    }

    fn misconfigure(&mut self, name: Name) {
        if self.closing || self.servers.contains_key(name) {
            return;
        }
        let main = self.instance(Life::Misconfigured);
        self.servers.insert(
            name,
            Server {
                settings: None,
                switch: None,
                main,
                copies: Vec::new(),
            },
        );
    }

    fn connect(&mut self, name: Name, settings: Settings) {
        if self.closing {
            self.returned = Some(false);
            return;
        }
        let is_same = self.servers.get(name).is_some_and(|server| server.settings == Some(settings));
        if !is_same {
            self.returned = Some(self.replace(name, settings, true));
            return;
        }
        let (now, refusing) = (self.now, self.refusing.clone());
        let server = self.servers.get_mut(name).expect("it is there");
        let is_per_view = server.is_per_view();
        if server.instances().any(|instance| instance.life != Life::Ready) {
            server.switch = None;
        }
        for instance in server.instances().filter(|instance| instance.life != Life::Ready) {
            switch_on(instance);
            if !is_per_view || instance.view.is_some() {
                start_anew(instance, Some(settings), now, name, &refusing);
            }
        }
        self.start(name, true);
        let server = self.servers.get_mut(name).expect("it is there");
        self.returned = Some(server.in_use().iter().all(|instance| instance.life == Life::Ready));
    }

    fn enable(&mut self, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let server = self.servers.get_mut(name).filter(|server| server.settings.is_some() && !self.closing);
        self.returned = Some(server.is_some());
        let Some(server) = server else { return };
        server.switch = Some(true);
        server.instances().for_each(switch_on);
        let settings = server.settings;
        for instance in server.in_use() {
            start_idle(instance, settings, now, name, &refusing);
        }
    }

    fn disable(&mut self, name: Name) {
        let mut stopped = Vec::new();
        self.returned = Some(self.servers.contains_key(name));
        if let Some(server) = self.servers.get_mut(name) {
            server.switch = Some(false);
            for instance in server.instances().filter(|instance| instance.life != Life::Misconfigured) {
                instance.life = Life::Off;
                (instance.listed, instance.known, instance.losses) = (false, false, 0);
                stopped.push(instance.id);
            }
        }
        stopped.extend(self.draining.iter().filter(|draining| draining.name == name).map(|draining| draining.instance.id));
        self.end_calls(Ending::Lost, |call| stopped.contains(&call.instance));
    }

    fn reconnect(&mut self, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let mut left = Vec::new();
        self.returned = Some(self.servers.contains_key(name));
        if let Some(server) = self.servers.get_mut(name) {
            let settings = server.settings;
            for instance in server.in_use() {
                if !matches!(instance.life, Life::Off | Life::Misconfigured) {
                    left.push(instance.id);
                    start_anew(instance, settings, now, name, &refusing);
                }
            }
        }
        self.end_calls(Ending::Lost, |call| left.contains(&call.instance));
    }

    fn crash(&mut self, name: Name, place: Place) {
        let now = self.now;
        let mut lost = Vec::new();
        for server in self.servers.get_mut(name).into_iter().filter(|server| is_at(server, place)) {
            for instance in server.instances().filter(|instance| instance.life == Life::Ready) {
                instance.losses += 1;
                let looping = instance.losses >= LOOP;
                let next = now + if looping { 60_000 } else { RESTART };
                instance.life = Life::Down { next, looping };
                lost.push(instance.id);
            }
        }
        let draining = self.draining.iter().filter(|draining| draining.name == name && draining.place == place);
        lost.extend(draining.map(|draining| draining.instance.id));
        self.end_calls(Ending::Lost, |call| lost.contains(&call.instance));
    }

    fn shut_down(&mut self) {
        (self.closing, self.closed) = (true, true);
        self.end_calls(Ending::Lost, |_| true);
    }

    // How servers change places.

    /// Puts a server in the place of another. A server that works is displaced only by one that works.
    fn replace(&mut self, name: Name, new: Settings, now: bool) -> bool {
        let works = self.servers.get_mut(name).is_some_and(|server| {
            let is_enabled = server.is_enabled();
            let mut instances = server.instances();
            instances.any(|own| own.life == Life::Ready || (is_enabled && own.life == Life::Idle && own.listed))
        });
        if !works || !new.enabled {
            self.swap(name, new);
            self.start(name, now);
        } else if self.refusing.contains(&(name, new.place)) {
            return false;
        } else {
            self.put_ready(name, new);
            self.start(name, false);
        }
        let server = self.servers.get_mut(name).expect("it was put there");
        let is_due = now || !new.lazy || new.required;
        let is_well = !server.is_enabled() || !is_due || server.in_use().iter().all(|own| own.life == Life::Ready);
        is_well
    }

    /// Puts a server that is not started yet in the place of another.
    fn swap(&mut self, name: Name, new: Settings) {
        let switch = self.inherited(name, new);
        let life = if switch.unwrap_or(new.enabled) { Life::Idle } else { Life::Off };
        let main = self.instance(life);
        self.put(name, new, switch, main, &BTreeMap::new());
    }

    /// Puts a server in the place of one that works: it is ready in every view where that was.
    fn put_ready(&mut self, name: Name, new: Settings) {
        let switch = self.inherited(name, new);
        let ready = |board: &mut Self| {
            let mut ready = board.instance(Life::Ready);
            (ready.listed, ready.known) = (true, true);
            ready
        };
        let old = &self.servers[name];
        let was_ready = old.copies.iter().filter(|copy| copy.life == Life::Ready && new.per_view);
        let views: Vec<ViewId> = was_ready.filter_map(|copy| copy.view).collect();
        let prepared: BTreeMap<ViewId, Instance> = views.iter().map(|view| (*view, ready(self))).collect();
        let main = if prepared.is_empty() { ready(self) } else { self.instance(Life::Idle) };
        self.put(name, new, switch, main, &prepared);
    }

    fn inherited(&self, name: Name, new: Settings) -> Option<bool> {
        let old = self.servers.get(name)?;
        let was_enabled = old.settings.is_none_or(|settings| settings.enabled);
        old.switch.filter(|_| was_enabled == new.enabled)
    }

    fn put(
        &mut self,
        name: Name,
        new: Settings,
        switch: Option<bool>,
        main: Instance,
        prepared: &BTreeMap<ViewId, Instance>,
    ) {
        self.remove(name);
        let server = Server {
            settings: Some(new),
            switch,
            main,
            copies: Vec::new(),
        };
        self.servers.insert(name, server);
        for view in self.views.clone() {
            if let Some(ready) = prepared.get(&view) {
                let mut ready = ready.clone();
                ready.view = Some(view);
                self.servers.get_mut(name).expect("it is there").copies.push(ready);
            } else {
                self.copy_for(name, view);
            }
        }
    }

    /// Takes a server off the board. Instances with calls end these first.
    fn remove(&mut self, name: Name) {
        let Some(mut server) = self.servers.remove(name) else {
            return;
        };
        let Some(Settings { place, .. }) = server.settings else {
            return;
        };
        let calls = self.in_flight.clone();
        let is_busy = |instance: &Instance| calls.iter().any(|call| call.instance == instance.id);
        let busy = server.instances().filter(|instance| is_busy(instance));
        self.draining.extend(busy.map(|instance| Draining {
            name,
            place,
            instance: instance.clone(),
        }));
    }

    /// Starts the instances of a server that are in use, as its config says or `now`.
    fn start(&mut self, name: Name, now: bool) {
        let (time, refusing) = (self.now, self.refusing.clone());
        let server = self.servers.get_mut(name).expect("it is there");
        let settings = server.settings;
        let is_due = now || settings.is_some_and(|settings| !settings.lazy || settings.required);
        if server.is_enabled() && is_due {
            for instance in server.in_use() {
                start_idle(instance, settings, time, name, &refusing);
            }
        }
    }

    fn instance(&mut self, life: Life) -> Instance {
        self.made += 1;
        Instance {
            id: self.made,
            view: None,
            life,
            listed: false,
            known: false,
            losses: 0,
        }
    }

    fn end_calls(&mut self, ending: Ending, ends: impl Fn(&InFlight) -> bool) {
        for call in self.in_flight.extract_if(.., |call| ends(call)) {
            self.ended.insert(call.id, ending);
        }
        self.forget_drained();
    }

    fn forget_drained(&mut self) {
        let calls = &self.in_flight;
        self.draining.retain(|draining| calls.iter().any(|call| call.instance == draining.instance.id));
    }

    // What can be seen.

    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, server) in &self.servers {
            let rests = matches!(server.main.life, Life::Idle | Life::Off) || self.closed;
            if !(rests && server.is_per_view() && !server.copies.is_empty()) {
                rows.push(self.row(name, &server.main, false));
            }
            rows.extend(server.copies.iter().map(|copy| self.row(name, copy, false)));
        }
        rows.extend(self.draining.iter().map(|draining| self.row(draining.name, &draining.instance, true)));
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
            in_flight: self.in_flight.iter().filter(|call| call.instance == instance.id).count(),
        }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        let rows = self.rows();
        let mut counted = rows.iter().filter(|row| !row.draining);
        counted.all(|row| matches!(row.state, "ready" | "idle" | "disabled"))
    }

    /// Whether every required server can serve.
    pub(crate) fn is_ready(&self) -> bool {
        let rows = self.rows();
        let mut required = self.servers.iter().filter(|(_, server)| server.settings.is_some_and(|set| set.required));
        required.all(|(name, server)| {
            let of_server = || rows.iter().filter(|row| row.name == *name && !row.draining);
            let rests = server.is_per_view() && server.main.listed && of_server().all(|row| row.state == "idle");
            of_server().any(|row| row.state == "ready") || rests
        })
    }
}

fn is_at(server: &Server, place: Place) -> bool {
    server.settings.is_some_and(|settings| settings.place == place)
}

/// Switches an instance on that was off. It remembers nothing.
fn switch_on(instance: &mut Instance) {
    if instance.life == Life::Off {
        instance.life = Life::Idle;
    }
}

fn start_idle(
    instance: &mut Instance,
    settings: Option<Settings>,
    now: u64,
    name: Name,
    refusing: &BTreeSet<(Name, Place)>,
) {
    if instance.life == Life::Idle {
        start(instance, settings, now, name, refusing);
    }
}

/// Starts an instance whatever its state, as if nothing had happened before.
fn start_anew(
    instance: &mut Instance,
    settings: Option<Settings>,
    now: u64,
    name: Name,
    refusing: &BTreeSet<(Name, Place)>,
) {
    instance.losses = 0;
    start(instance, settings, now, name, refusing);
}

fn start(
    instance: &mut Instance,
    settings: Option<Settings>,
    now: u64,
    name: Name,
    refusing: &BTreeSet<(Name, Place)>,
) {
    let Some(Settings { place, .. }) = settings else {
        return;
    };
    if refusing.contains(&(name, place)) {
        let next = now + RESTART;
        instance.life = Life::Down { next, looping: false };
    } else {
        instance.life = Life::Ready;
        (instance.listed, instance.known) = (true, true);
    }
}
