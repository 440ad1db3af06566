//! Further instances of a server: for the next view, or for one view or principal alone, with its credentials and its values in header templates.

use std::sync::Arc;

use super::{
    availability::Availability,
    instance_history::InstanceHistory,
    outage::Outage,
    server_handle::{Server, history},
    view_identity::CurrentProvider,
    view_instances::ViewInstances,
};
use pegboard_client::{
    session::{HostHandle, Spec},
    transport::Target,
};
use pegboard_config::BadHeader;

impl Server {
    /// Creates an idle server with the same settings, its own connection and no owner. If the view that will own it has a host, that answers its
    /// requests, in place of the board's host.
    pub(crate) fn new_instance(&self, host: Option<&HostHandle>) -> Self {
        let mut spec = self.spec().clone();
        if let Some(host) = host {
            spec.host = host.host().clone();
        }
        copy(self, spec, self.0.history.clone())
    }

    /// Creates an idle server with the same settings, whose connections only `owner` uses.
    pub(super) fn new_private_instance(&self, owner: &ViewInstances) -> Self {
        let ours = self.spec();
        let credentials = match &owner.provider {
            Some(provider) => Some(provider.source(self, &owner.tag)),
            None => ours.credentials.clone(),
        };
        let (target, bad_header) = match fill_target(self, owner) {
            Ok(target) => (target, None),
            Err(bad) => (ours.target.clone(), Some(bad)),
        };
        let host = owner.host.as_ref().map_or(&ours.host, HostHandle::host).clone();
        let spec = Spec {
            credentials,
            host,
            owner: Some(owner.tag.number),
            target,
            masker: ours.masker.for_user(owner.tag.number),
            ..ours.clone()
        };
        let history = match is_same_program(self, owner) {
            true => self.0.history.clone(),
            false => history(&self.config(), &self.0.shared),
        };
        let instance = copy(self, spec, history);
        if let Some(bad) = bad_header {
            let outage = Outage::bad_variables(&bad.to_string());
            drop(instance.connections().set(Availability::Refused(outage.into())));
        }
        instance
    }
}

/// Creates an idle server with the same settings and another way to connect.
fn copy(server: &Server, spec: Spec, history: Arc<InstanceHistory>) -> Server {
    let connections = server.connections();
    let config = server.config().as_ref().clone();
    let activation = Some(connections.activation().clone());
    let copy = Server::build(config, spec, history, activation, &server.0.shared);
    match connections.load().as_ref() {
        Availability::On(pool) => {
            copy.switch_on();
            let desired_state = &pool.first().plan().spec.desired_state;
            copy.connections().set_roots(&desired_state.roots());
        }
        Availability::Refused(outage) => drop(copy.connections().set(Availability::Refused(outage.clone()))),
        Availability::Off | Availability::Closed => {}
    }
    copy
}

/// Whether the owner's instance is the same program with the same settings as the board's: a process that gets no credentials. What one
/// instance learns about it then holds for the others.
fn is_same_program(server: &Server, owner: &ViewInstances) -> bool {
    let provider = owner.provider.as_ref().and_then(CurrentProvider::get);
    let has_credentials = provider.is_some() || server.spec().configured_credentials.is_some();
    server.config().transport.endpoint().is_none() && !has_credentials
}

/// The target with the owner's values in its header templates.
fn fill_target(server: &Server, owner: &ViewInstances) -> Result<Target, BadHeader> {
    match &server.spec().target {
        Target::Configured(_) => {
            let transport = server.config().transport.fill_variables(&|name| owner.variable(name))?;
            Ok(Target::Configured(Box::new(transport)))
        }
        other @ (Target::InProcess(_) | Target::StandIn(_)) => Ok(other.clone()),
    }
}
