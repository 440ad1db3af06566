//! [`OwnTasks`]: which tasks each principal has started, for its lists of tasks. Tokens with other rights do not see them.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use pegboard_base::sync::Mutex;

use super::{client_tools::PrincipalKey, request_state::KeptText};

/// The most tasks of a principal that are listed. The oldest are forgotten first; their ids stay valid.
const MAX_TASKS: usize = 256;
/// The most principals whose tasks are remembered.
const MAX_PRINCIPALS: usize = 1024;
/// The most bytes of results that are kept for a principal's clients that wanted a task and got a result at once.
const MAX_RESULTS: usize = 8 << 20;

/// The tasks that were started at one endpoint, by principal and rights.
#[derive(Debug, Default)]
pub(super) struct OwnTasks(Mutex<HashMap<PrincipalKey, VecDeque<OwnTask>>>);

/// A task that a client has started.
#[derive(Clone, Debug)]
pub(super) struct OwnTask {
    /// The id that the client knows.
    pub(super) id: String,
    pub(super) kept: KeptText,
    /// The result and the time of a call that was answered at once.
    pub(super) result: Option<(Bytes, String)>,
}

impl OwnTasks {
    /// Remembers a task.
    pub(super) fn add(&self, owner: &PrincipalKey, task: OwnTask) {
        let mut all = self.0.lock();
        if all.len() >= MAX_PRINCIPALS && !all.contains_key(owner) {
            // Lists are a convenience; one principal's must not cost another its memory.
            return;
        }
        let tasks = all.entry(owner.clone()).or_default();
        tasks.push_back(task);
        let results = |tasks: &VecDeque<OwnTask>| -> usize {
            let results = tasks.iter().filter_map(|task| task.result.as_ref());
            results.map(|(result, _)| result.len()).sum()
        };
        while tasks.len() > MAX_TASKS || results(tasks) > MAX_RESULTS {
            tasks.pop_front();
        }
    }

    /// The principal's tasks, oldest first.
    pub(super) fn list(&self, owner: &PrincipalKey) -> Vec<OwnTask> {
        let all = self.0.lock();
        all.get(owner)
            .map(|tasks| tasks.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The principal's task with this id.
    pub(super) fn find(&self, owner: &PrincipalKey, id: &str) -> Option<OwnTask> {
        let all = self.0.lock();
        all.get(owner)?.iter().find(|task| task.id == id).cloned()
    }

    /// The client's id of the principal's task that a server calls `text`.
    pub(super) fn id_of(&self, owner: &PrincipalKey, server: &str, text: &str) -> Option<String> {
        let all = self.0.lock();
        let task = all
            .get(owner)?
            .iter()
            .find(|task| task.kept.server == server && task.kept.text == text);
        task.map(|task| task.id.clone())
    }
}

#[cfg(test)]
mod tests {
    use pegboard::credential::CallerRights;

    use super::{super::request_state::KeptKind, *};

    fn task(id: usize, bytes: usize) -> OwnTask {
        OwnTask {
            id: format!("sealed-{id}"),
            kept: KeptText {
                kind: KeptKind::Task,
                server: "s".into(),
                tool: "t".into(),
                text: id.to_string(),
            },
            result: Some((Bytes::from(vec![0; bytes]), String::new())),
        }
    }

    #[test]
    fn each_principal_sees_the_tasks_of_its_own_rights_only() {
        let tasks = OwnTasks::default();
        let [reads, writes] = [1, 2].map(|digest| Some(CallerRights::new([digest; 32])));
        let ada = PrincipalKey::new(Some("ada"), reads);
        tasks.add(&ada, task(1, 0));
        assert_eq!(tasks.list(&ada).len(), 1);
        assert!(tasks.find(&ada, "sealed-1").is_some());
        assert_eq!(tasks.id_of(&ada, "s", "1").as_deref(), Some("sealed-1"));
        for other in [
            PrincipalKey::new(Some("bob"), reads),
            PrincipalKey::new(None, reads),
            PrincipalKey::new(Some("ada"), writes),
            PrincipalKey::new(Some("ada"), None),
        ] {
            assert!(tasks.list(&other).is_empty(), "{other:?}");
            assert!(tasks.find(&other, "sealed-1").is_none(), "{other:?}");
            assert_eq!(tasks.id_of(&other, "s", "1"), None, "{other:?}");
        }
    }

    #[test]
    fn their_number_and_their_results_are_bounded() {
        let (tasks, anyone) = (OwnTasks::default(), PrincipalKey::new(None, None));
        for id in 0..MAX_TASKS + 3 {
            tasks.add(&anyone, task(id, 0));
        }
        let kept = tasks.list(&anyone);
        assert_eq!((kept.len(), kept[0].id.as_str()), (MAX_TASKS, "sealed-3"));
        tasks.add(&anyone, task(999, MAX_RESULTS));
        tasks.add(&anyone, task(1000, 1));
        assert_eq!(tasks.list(&anyone).len(), 1);
    }
}
