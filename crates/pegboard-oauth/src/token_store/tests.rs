//! What is kept, who may read it, and that processes take turns.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{
    client_auth::ClientAuth,
    stored::{Session, StoredClient},
};
use pegboard_base::secret::Secret;

/// A keyring with one key.
#[derive(Debug)]
struct Keyring(u8);

impl StoreKey for Keyring {
    fn key(&self) -> Result<Option<[u8; 32]>, String> {
        Ok(Some([self.0; 32]))
    }
}

fn signed_in(token: &str) -> StoredAccount {
    StoredAccount {
        server: "https://mcp.example/mcp".to_owned(),
        principal: Some("alice".to_owned()),
        session: Some(Session {
            issuer: "https://as.example".to_owned(),
            token_endpoint: "https://as.example/token".to_owned(),
            revocation_endpoint: None,
            client: StoredClient {
                id: "client".to_owned(),
                secret: None,
                auth: ClientAuth::None,
            },
            resource: "https://mcp.example/mcp".to_owned(),
            access_token: Secret::new(token),
            refresh_token: Some(Secret::new("c4nary-refresh")),
            proof_key: Some(Secret::new("c4nary-key")),
            is_bound: true,
            began_at: 1,
            issued_at: 1,
            lifetime: 2,
            scopes: vec!["a".to_owned()],
            granted: None,
            ended: None,
            refreshing: false,
            refused_at_once: 0,
            step_ups: 0,
            futile_step_ups: 0,
            stepped_up_at: 0,
        }),
        challenge: None,
        unknown_client: None,
    }
}

fn key(name: &str) -> AccountKey {
    AccountKey::new(&[name])
}

#[tokio::test]
async fn an_account_is_read_back_with_its_secrets_and_other_accounts_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tokens");
    for store in [
        TokenStore::in_memory(),
        TokenStore::open(place.clone(), Arc::new(PlainText)),
        TokenStore::open(place.clone(), Arc::new(Keyring(7))),
    ] {
        let mut changes = store.changes();
        store.put_account(&key("a"), &signed_in("c4nary-access")).await.unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(
            store.account(&key("a")).await.unwrap(),
            Some(signed_in("c4nary-access"))
        );
        assert_eq!(store.account(&key("b")).await.unwrap(), None);
        assert!(store.remove_account(&key("a")).await.unwrap());
        assert!(changes.has_changed().unwrap());
        assert!(!store.remove_account(&key("a")).await.unwrap());
        assert_eq!(store.account(&key("a")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_file_is_private_and_with_a_key_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::open(folder.path().to_owned(), Arc::new(Keyring(7)));
    store.put_account(&key("a"), &signed_in("c4nary-access")).await.unwrap();
    let path = file(folder.path(), &key("a"));
    let content = std::fs::read_to_string(&path).unwrap();
    for hidden in ["c4nary", "alice", "as.example"] {
        assert!(!content.contains(hidden), "{hidden}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Another key, no key, and the file under another name.
    for other in [Arc::new(Keyring(8)) as Arc<dyn StoreKey>, Arc::new(PlainText)] {
        let store = TokenStore::open(folder.path().to_owned(), other);
        assert!(matches!(store.account(&key("a")).await, Err(StoreError::Read { .. })));
    }
    std::fs::copy(&path, file(folder.path(), &key("b"))).unwrap();
    assert!(matches!(store.account(&key("b")).await, Err(StoreError::Read { .. })));
}

#[tokio::test]
async fn a_plain_file_is_not_taken_where_there_is_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let plain = TokenStore::open(folder.path().to_owned(), Arc::new(PlainText));
    plain.put_account(&key("a"), &signed_in("c4nary-access")).await.unwrap();
    // Another program could have written it. It is kept, and the user signs in again.
    let store = TokenStore::open(folder.path().to_owned(), Arc::new(Keyring(7)));
    assert_eq!(store.account(&key("a")).await, Ok(None));
    assert!(store.damaged_file(&key("a")).await.is_some());
    store.put_account(&key("a"), &signed_in("c4nary-access")).await.unwrap();
    let content = std::fs::read_to_string(file(folder.path(), &key("a"))).unwrap();
    assert!(!content.contains("c4nary"), "{content}");
    assert!(store.account(&key("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_until_the_next_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::open(folder.path().to_owned(), Arc::new(PlainText));
    assert_eq!(store.damaged_file(&key("a")).await, None);
    for bad in [
        "",
        "{}",
        "[]",
        r#"{"version":1}"#,
        r#"{"version":1,"plain":{"session":7}}"#,
    ] {
        private_file::replace(&file(folder.path(), &key("a")), bad.as_bytes()).unwrap();
        assert_eq!(store.account(&key("a")).await, Ok(None), "{bad}");
        let kept = store.damaged_file(&key("a")).await.unwrap();
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), bad);
        assert!(!file(folder.path(), &key("a")).exists());
    }
    assert_eq!(store.account(&key("a")).await, Ok(None));
    assert!(store.damaged_file(&key("a")).await.is_some());
    store.remove_account(&key("a")).await.unwrap();
    assert_eq!(store.damaged_file(&key("a")).await, None);
}

#[tokio::test]
async fn a_file_that_is_not_readable_now_is_an_error_and_not_a_signed_out_account() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::open(folder.path().to_owned(), Arc::new(PlainText));
    for bad in [r#"{"version":99,"plain":{}}"#, r#"{"version":1,"sealed":"AAAA"}"#] {
        private_file::replace(&file(folder.path(), &key("a")), bad.as_bytes()).unwrap();
        let error = store.account(&key("a")).await.unwrap_err();
        assert!(matches!(error, StoreError::Read { .. }), "{bad}: {error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_may_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::open(folder.path().to_owned(), Arc::new(PlainText));
    store.put_account(&key("a"), &signed_in("t")).await.unwrap();
    let path = file(folder.path(), &key("a"));
    std::os::unix::fs::symlink(&path, file(folder.path(), &key("b"))).unwrap();
    assert!(store.account(&key("b")).await.is_err());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(store.account(&key("a")).await.is_err());
}

/// Two stores on one folder are two processes.
#[tokio::test]
async fn an_account_is_changed_by_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = TokenStore::open(folder.path().to_owned(), Arc::new(PlainText));
        let inside = inside.clone();
        tasks.push(tokio::spawn(async move {
            let _lock = store.lock(&key("a")).await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn another_account_is_not_locked_and_a_lock_that_never_ends_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (
        TokenStore::open(folder.path().to_owned(), Arc::new(PlainText)),
        TokenStore::open(folder.path().to_owned(), Arc::new(PlainText)),
    );
    let _held = first.lock(&key("a")).await.unwrap();
    drop(second.lock(&key("b")).await.unwrap());
    tokio::time::pause();
    for store in [&first, &second] {
        assert!(matches!(store.lock(&key("a")).await, Err(StoreError::Lock(_))));
    }
}

#[tokio::test]
async fn a_change_by_another_process_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (
        TokenStore::open(folder.path().join("t"), Arc::new(PlainText)),
        TokenStore::open(folder.path().join("t"), Arc::new(PlainText)),
    );
    let mut changes = ours.changes();
    tokio::select! {
        () = ours.watch_folder() => unreachable!(),
        () = async {
            // The first look at the folder comes before the change.
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            other.put_account(&key("a"), &signed_in("t")).await.unwrap();
            tokio::time::timeout(Duration::from_secs(20), changes.changed()).await.unwrap().unwrap();
            let first = ours.last_change();
            assert!(!ours.has_changed_since(&key("a"), first));
            other.put_account(&key("b"), &signed_in("u")).await.unwrap();
            tokio::time::timeout(Duration::from_secs(20), changes.changed()).await.unwrap().unwrap();
            assert!(ours.has_changed_since(&key("b"), first));
            assert!(!ours.has_changed_since(&key("a"), first), "only accounts that changed are read again");
        } => {}
    }
}
