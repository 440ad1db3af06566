//! Steps of agents: open and close views, call and list tools.

use super::{Board, Ending, InFlight, Instance, Life, Name, SLOW, Tool, ViewId};

impl Board {
    pub(super) fn open_view(&mut self) {
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
            if server.starts_unasked() {
                let is_due = |own: &Instance| own.view == Some(view) && own.life == Life::Idle;
                server.start(name, now, &refusing, is_due);
            }
        }
    }

    /// Gives a view the spare, and makes a new spare.
    pub(super) fn copy_for(&mut self, name: Name, view: ViewId) {
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

    pub(super) fn close_view(&mut self, view: ViewId) {
        self.views.remove(&view);
        let (now, refusing) = (self.now, self.refusing.clone());
        let is_last = self.views.is_empty() && !self.closing;
        let mut gone = Vec::new();
        for (name, server) in &mut self.servers {
            let was_ready = server
                .copies
                .iter()
                .any(|copy| copy.view == Some(view) && copy.life == Life::Ready);
            gone.extend(server.copies.extract_if(.., |copy| copy.view == Some(view)));
            let is_required = server.settings.is_some_and(|settings| settings.required);
            if is_last && server.is_per_view() && is_required && server.starts_unasked() {
                server.main.listed |= was_ready;
                server.start_idle_in_use(name, now, &refusing);
            }
        }
        for instance in gone {
            self.end_calls(Ending::Lost, |call| call.instance == instance.id);
        }
    }

    pub(super) fn call(&mut self, view: ViewId, name: Name, tool: Tool) {
        self.calls += 1;
        let id = self.calls;
        let ending = self.ending(view, name, tool);
        if let (Ending::Ok, Tool::Slow) = (ending, tool) {
            let instance = self
                .reached(view, name)
                .expect("a call that goes through has an instance")
                .id;
            self.in_flight.push(InFlight {
                id,
                instance,
                ends: self.now + SLOW,
            });
        } else {
            self.ended.insert(id, ending);
        }
    }

    pub(super) fn ending(&mut self, view: ViewId, name: Name, tool: Tool) -> Ending {
        if self.closing {
            return Ending::Unavailable;
        }
        self.wake(view, name);
        let denies = self
            .servers
            .get(name)
            .is_some_and(|server| server.settings.is_some_and(|set| set.denies));
        let instance = self.reached(view, name).cloned();
        let is_ready = instance.as_ref().is_some_and(|instance| instance.life == Life::Ready);
        match (instance, tool) {
            (Some(instance), Tool::Secret) if denies && instance.known => Ending::NotPermitted,
            (Some(_), _) if !is_ready => Ending::Unavailable,
            (Some(_), Tool::Hello | Tool::Slow | Tool::Secret) => Ending::Ok,
            (Some(_), Tool::Fails) => Ending::ToolError,
            // The server is ready and known, so no other is asked.
            (Some(_), Tool::Unknown) => Ending::UnknownTool,
            (None, _) => {
                // Any server without a known catalog may have the tool.
                let others: Vec<Name> = self.servers.keys().copied().collect();
                others.into_iter().for_each(|name| self.wake(view, name));
                Ending::UnknownTool
            }
        }
    }

    /// The instance that receives the calls of a view.
    pub(super) fn reached(&self, view: ViewId, name: Name) -> Option<&Instance> {
        let server = self.servers.get(name)?;
        if server.is_per_view() {
            server.copies.iter().find(|copy| copy.view == Some(view))
        } else {
            Some(&server.main)
        }
    }

    /// Starts the server of a view, if it is idle.
    pub(super) fn wake(&mut self, view: ViewId, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let Some(server) = self.servers.get_mut(name) else {
            return;
        };
        let is_per_view = server.is_per_view();
        let is_due = |own: &Instance| own.life == Life::Idle && (!is_per_view || own.view == Some(view));
        server.start(name, now, &refusing, is_due);
    }

    pub(super) fn list(&mut self, view: ViewId) {
        let names: Vec<Name> = self.servers.keys().copied().collect();
        let mut listed = Vec::new();
        for name in names {
            if !self.closing {
                self.wake(view, name);
            }
            let denies = self.servers[name].settings.is_some_and(|settings| settings.denies);
            if self
                .reached(view, name)
                .is_some_and(|instance| instance.life == Life::Ready)
            {
                listed.push((name, !denies));
            }
        }
        self.listed = Some(listed);
    }
}
