//! Copies of servers that only one view or principal uses: with its credentials, and its values in header templates.

use super::{
    availability::Availability,
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
    /// Creates an idle server with the same settings, whose connections only `owner` uses.
    pub(super) fn private(&self, owner: &ViewInstances) -> Self {
        let credentials = match &owner.provider {
            Some(provider) => Some(provider.source(self, &owner.tag)),
            None => self.credentials().cloned(),
        };
        let (target, bad_header) = match self.target_for(owner) {
            Ok(target) => (target, None),
            Err(bad) => (self.0.spec.target.clone(), Some(bad)),
        };
        let host = owner.host.as_ref().map_or(&self.0.spec.host, HostHandle::host).clone();
        let spec = Spec {
            credentials,
            host,
            owner: Some(owner.tag.number),
            target,
            masker: self.0.spec.masker.of_user(owner.tag.number),
            ..self.0.spec.clone()
        };
        let history = match self.is_same_for(owner) {
            true => self.0.history.clone(),
            false => history(&self.config(), &self.0.shared),
        };
        let copy = self.copy_with(spec, history);
        if let Some(bad) = bad_header {
            let outage = Outage::bad_variables(&bad.to_string());
            drop(copy.set_availability(Availability::Refused(outage.into())));
        }
        copy
    }

    /// Whether the owner's instance is the same program with the same settings as the board's: a process that gets no credentials. What one
    /// instance learns about it then holds for the others.
    fn is_same_for(&self, owner: &ViewInstances) -> bool {
        let provider = owner.provider.as_ref().and_then(CurrentProvider::get);
        let has_credentials = provider.is_some() || self.configured_credentials().is_some();
        self.config().transport.endpoint().is_none() && !has_credentials
    }

    /// The target with the owner's values in its header templates.
    fn target_for(&self, owner: &ViewInstances) -> Result<Target, BadHeader> {
        match &self.0.spec.target {
            Target::Configured(_) => {
                let transport = self.config().transport.filled(&|name| owner.variable(name))?;
                Ok(Target::Configured(Box::new(transport)))
            }
            other @ (Target::InProcess(_) | Target::StandIn(_)) => Ok(other.clone()),
        }
    }
}
