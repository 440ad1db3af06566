//! Steps of operators, failures of servers, and the shutdown of the board.

use super::{
    Board, Ending, Failure, Instance, LOOP, Life, Name, Place, RESTART, Server, Settings,
    replacement::{switch_off, switch_on},
};

impl Board {
    pub(super) fn apply(&mut self, name: Name, new: Settings) {
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

    pub(super) fn misconfigure(&mut self, name: Name) {
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
                failure: None,
            },
        );
    }

    pub(super) fn connect(&mut self, name: Name, settings: Settings) {
        if self.closing {
            self.returned = Some(false);
            return;
        }
        let is_same = self
            .servers
            .get(name)
            .is_some_and(|server| server.settings == Some(settings));
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
        let is_enabled = server.is_enabled();
        let is_restarted = |own: &Instance| own.life != Life::Ready && (!is_per_view || own.view.is_some());
        for instance in server.instances().filter(|instance| instance.life != Life::Ready) {
            if !is_enabled {
                switch_off(instance);
                continue;
            }
            switch_on(instance);
            if is_restarted(instance) {
                instance.losses = 0;
            }
        }
        if is_enabled {
            server.start(name, now, &refusing, is_restarted);
        }
        self.start(name, true);
        let server = self.servers.get_mut(name).expect("it is there");
        let is_enabled = server.is_enabled();
        self.returned = Some(!is_enabled || server.in_use().iter().all(|instance| instance.life == Life::Ready));
    }

    pub(super) fn enable(&mut self, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let server = self
            .servers
            .get_mut(name)
            .filter(|server| server.settings.is_some() && !self.closing);
        self.returned = Some(server.is_some());
        let Some(server) = server else { return };
        server.switch = Some(true);
        server.instances().for_each(switch_on);
        server.start_idle_in_use(name, now, &refusing);
    }

    pub(super) fn disable(&mut self, name: Name) {
        let mut stopped = Vec::new();
        self.returned = Some(self.servers.contains_key(name));
        if let Some(server) = self.servers.get_mut(name) {
            server.switch = Some(false);
            for instance in server
                .instances()
                .filter(|instance| instance.life != Life::Misconfigured)
            {
                switch_off(instance);
                stopped.push(instance.id);
            }
        }
        stopped.extend(
            self.draining
                .iter()
                .filter(|draining| draining.name == name)
                .map(|draining| draining.instance.id),
        );
        self.end_calls(Ending::Lost, |call| stopped.contains(&call.instance));
    }

    pub(super) fn reconnect(&mut self, name: Name) {
        let (now, refusing) = (self.now, self.refusing.clone());
        let mut left = Vec::new();
        self.returned = Some(self.servers.contains_key(name));
        if let Some(server) = self.servers.get_mut(name) {
            for instance in server.in_use() {
                if !matches!(instance.life, Life::Off | Life::Misconfigured) {
                    left.push(instance.id);
                    instance.losses = 0;
                }
            }
            server.start(name, now, &refusing, |own| left.contains(&own.id));
        }
        self.end_calls(Ending::Lost, |call| left.contains(&call.instance));
    }

    pub(super) fn crash(&mut self, name: Name, place: Place) {
        let now = self.now;
        let mut lost = Vec::new();
        for server in self
            .servers
            .get_mut(name)
            .into_iter()
            .filter(|server| is_at(server, place))
        {
            let mut last = server.failure;
            for instance in server.instances().filter(|instance| instance.life == Life::Ready) {
                instance.losses += 1;
                let (failure, wait) = match instance.losses {
                    LOOP.. => (Failure::CrashLooping, 60_000),
                    _ => (Failure::Down, RESTART),
                };
                let next = now + wait;
                instance.life = Life::Down { next, failure };
                last = Some(failure);
                lost.push(instance.id);
            }
            server.failure = last;
        }
        let draining = self
            .draining
            .iter()
            .filter(|draining| draining.name == name && draining.place == place);
        lost.extend(draining.map(|draining| draining.instance.id));
        self.end_calls(Ending::Lost, |call| lost.contains(&call.instance));
    }

    pub(super) fn shut_down(&mut self) {
        (self.closing, self.closed) = (true, true);
        self.end_calls(Ending::Lost, |_| true);
    }
}

fn is_at(server: &Server, place: Place) -> bool {
    server.settings.is_some_and(|settings| settings.place == place)
}
