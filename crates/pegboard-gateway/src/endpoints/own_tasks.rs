//! [`OwnTasks`]: which tasks each principal has started, for its lists of tasks.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use pegboard::Principal;

use super::request_state::Kept;

/// The most tasks of a principal that are listed. The oldest are forgotten first; their ids stay valid.
const MAX_TASKS: usize = 256;
/// The most principals whose tasks are remembered.
const MAX_PRINCIPALS: usize = 1024;
/// The most bytes of results that are kept for a principal's clients that wanted a task and got a result at once.
const MAX_RESULTS: usize = 8 << 20;

/// The tasks that were started at one endpoint, by principal.
#[derive(Debug, Default)]
pub(super) struct OwnTasks(Mutex<HashMap<Option<Principal>, VecDeque<OwnTask>>>);

/// A task that a client has started.
#[derive(Clone, Debug)]
pub(super) struct OwnTask {
    /// The id that the client knows.
    pub(super) id: String,
    pub(super) kept: Kept,
    /// The result and the time of a call that was answered at once.
    pub(super) result: Option<(Bytes, String)>,
}

impl OwnTasks {
    /// Remembers a task.
    pub(super) fn add(&self, principal: Option<&Principal>, task: OwnTask) {
        let mut all = self.lock();
        if all.len() >= MAX_PRINCIPALS && !all.contains_key(&principal.cloned()) {
            // Lists are a convenience; one principal's must not cost another its memory.
            return;
        }
        let tasks = all.entry(principal.cloned()).or_default();
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
    pub(super) fn of(&self, principal: Option<&Principal>) -> Vec<OwnTask> {
        let all = self.lock();
        all.get(&principal.cloned())
            .map(|tasks| tasks.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The principal's task with this id.
    pub(super) fn find(&self, principal: Option<&Principal>, id: &str) -> Option<OwnTask> {
        let all = self.lock();
        all.get(&principal.cloned())?.iter().find(|task| task.id == id).cloned()
    }

    /// The client's id of the principal's task that a server calls `text`.
    pub(super) fn id_of(&self, principal: Option<&Principal>, server: &str, text: &str) -> Option<String> {
        let all = self.lock();
        let task = all
            .get(&principal.cloned())?
            .iter()
            .find(|task| task.kept.server == server && task.kept.text == text);
        task.map(|task| task.id.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Principal>, VecDeque<OwnTask>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::request_state::KeptKind, *};

    fn task(id: usize, bytes: usize) -> OwnTask {
        OwnTask {
            id: format!("sealed-{id}"),
            kept: Kept {
                kind: KeptKind::Task,
                server: "s".into(),
                tool: "t".into(),
                text: id.to_string(),
            },
            result: Some((Bytes::from(vec![0; bytes]), String::new())),
        }
    }

    #[test]
    fn each_principal_sees_its_own_tasks_only() {
        let tasks = OwnTasks::default();
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        tasks.add(Some(&ada), task(1, 0));
        assert_eq!(tasks.of(Some(&ada)).len(), 1);
        assert!(tasks.of(Some(&bob)).is_empty() && tasks.of(None).is_empty());
        assert!(tasks.find(Some(&bob), "sealed-1").is_none() && tasks.find(Some(&ada), "sealed-1").is_some());
        assert_eq!(tasks.id_of(Some(&ada), "s", "1").as_deref(), Some("sealed-1"));
        assert_eq!(tasks.id_of(Some(&bob), "s", "1"), None);
    }

    #[test]
    fn their_number_and_their_results_are_bounded() {
        let tasks = OwnTasks::default();
        for id in 0..MAX_TASKS + 3 {
            tasks.add(None, task(id, 0));
        }
        let kept = tasks.of(None);
        assert_eq!((kept.len(), kept[0].id.as_str()), (MAX_TASKS, "sealed-3"));
        tasks.add(None, task(999, MAX_RESULTS));
        tasks.add(None, task(1000, 1));
        assert_eq!(tasks.of(None).len(), 1);
    }
}
