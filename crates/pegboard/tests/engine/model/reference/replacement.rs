//! Replacing servers and starting instances.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Board, Draining, Ending, Failure, InFlight, Instance, Life, Name, Place, RESTART, Server, Settings, ViewId,
};

impl Board {
    /// Replaces a server. A ready server is replaced only by one that is ready.
    pub(super) fn replace(&mut self, name: Name, new: Settings, now: bool) -> bool {
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
            self.start(name, now);
        }
        let server = self.servers.get_mut(name).expect("it was put there");
        let is_due = now || !new.lazy || new.required;
        !server.is_enabled() || !is_due || server.in_use().iter().all(|own| own.life == Life::Ready)
    }

    /// Replaces a server by one that is not started yet.
    pub(super) fn swap(&mut self, name: Name, new: Settings) {
        let switch = self.inherited(name, new);
        let life = if switch.unwrap_or(new.enabled) {
            Life::Idle
        } else {
            Life::Off
        };
        let main = self.instance(life);
        self.put(name, new, switch, main, &BTreeMap::new());
    }

    /// Replaces a ready server: the new one is ready in every view where the old one was.
    pub(super) fn put_ready(&mut self, name: Name, new: Settings) {
        let switch = self.inherited(name, new);
        let ready = |board: &mut Self| {
            let mut ready = board.instance(Life::Ready);
            (ready.listed, ready.known) = (true, true);
            ready
        };
        let old = &self.servers[name];
        let was_ready = old
            .copies
            .iter()
            .filter(|copy| copy.life == Life::Ready && new.per_view);
        let views: Vec<ViewId> = was_ready.filter_map(|copy| copy.view).collect();
        let prepared: BTreeMap<ViewId, Instance> = views.iter().map(|view| (*view, ready(self))).collect();
        let main = if prepared.is_empty() {
            ready(self)
        } else {
            self.instance(Life::Idle)
        };
        self.put(name, new, switch, main, &prepared);
    }

    pub(super) fn inherited(&self, name: Name, new: Settings) -> Option<bool> {
        let old = self.servers.get(name)?;
        let was_enabled = old.settings.is_none_or(|settings| settings.enabled);
        old.switch.filter(|_| was_enabled == new.enabled)
    }

    pub(super) fn put(
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
            failure: None,
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

    /// Removes a server. Instances with calls in flight finish these first.
    pub(super) fn remove(&mut self, name: Name) {
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
    pub(super) fn start(&mut self, name: Name, now: bool) {
        let (time, refusing) = (self.now, self.refusing.clone());
        let server = self.servers.get_mut(name).expect("it is there");
        if server.is_enabled() && (now || server.starts_unasked()) {
            server.start_idle_in_use(name, time, &refusing);
        }
    }

    pub(super) fn instance(&mut self, life: Life) -> Instance {
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

    pub(super) fn end_calls(&mut self, ending: Ending, ends: impl Fn(&InFlight) -> bool) {
        for call in self.in_flight.extract_if(.., |call| ends(call)) {
            self.ended.insert(call.id, ending);
        }
        self.forget_drained();
    }

    pub(super) fn forget_drained(&mut self) {
        let calls = &self.in_flight;
        self.draining
            .retain(|draining| calls.iter().any(|call| call.instance == draining.instance.id));
    }
}

/// Disables an instance, which clears its history.
pub(super) fn switch_off(instance: &mut Instance) {
    instance.life = Life::Off;
    (instance.listed, instance.known, instance.losses) = (false, false, 0);
}

/// Enables a disabled instance.
pub(super) fn switch_on(instance: &mut Instance) {
    if instance.life == Life::Off {
        instance.life = Life::Idle;
    }
}

impl Server {
    /// Starts the instances that are in use and idle.
    pub(super) fn start_idle_in_use(&mut self, name: Name, now: u64, refusing: &BTreeSet<(Name, Place)>) {
        let has_copies = !self.copies.is_empty();
        let is_due = |own: &Instance| own.life == Life::Idle && (own.view.is_some() || !has_copies);
        self.start(name, now, refusing, is_due);
    }

    /// Starts the instances that are due, whatever their state. The server remembers whether they failed.
    pub(super) fn start(
        &mut self,
        name: Name,
        now: u64,
        refusing: &BTreeSet<(Name, Place)>,
        is_due: impl Fn(&Instance) -> bool,
    ) {
        let Some(Settings { place, .. }) = self.settings else {
            return;
        };
        let failure = refusing.contains(&(name, place)).then_some(Failure::Down);
        let mut due: Vec<_> = self.instances().filter(|instance| is_due(instance)).collect();
        for instance in &mut due {
            if let Some(failure) = failure {
                let next = now + RESTART;
                instance.life = Life::Down { next, failure };
            } else {
                instance.life = Life::Ready;
                (instance.listed, instance.known) = (true, true);
            }
        }
        if !due.is_empty() {
            self.failure = failure;
        }
    }
}
