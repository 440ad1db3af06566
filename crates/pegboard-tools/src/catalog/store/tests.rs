//! Stored catalogs are restored, and unreadable files do no harm.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{stored::CacheScope, *};
use crate::catalog::{Catalog, HeaderRule, ListWarning};
use pegboard_base::diagnosis::Code;

fn server() -> ServerName {
    ServerName::parse("fx").unwrap()
}

fn stored() -> Stored {
    let mut catalog = Catalog::default();
    let tools = vec![
        json!({"name": "run", "title": "Run", "description": "Runs it. ü\n\u{7f}", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "required": ["region"], "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "job": {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Job"}}},
                "size": {"type": "number", "default": 0.1, "maximum": 18446744073709551615u64},
            }}, "outputSchema": {"type": "object"}}),
        json!({"name": "bare"}),
        json!({"name": "long", "description": "x".repeat(9000)}),
        json!("not a tool"),
    ];
    catalog.read_tools(&server(), tools, HeaderRule::Enforced);
    let resources = vec![
        json!({"uri": "b:1", "name": "b", "mimeType": "text/plain"}),
        json!({"uri": "a:1"}),
    ];
    catalog.resources = catalog.read_resources(&server(), resources, "uri");
    let templates = vec![json!({"uriTemplate": "a:{x}", "description": "any"})];
    catalog.templates = catalog.read_resources(&server(), templates, "uriTemplate");
    catalog.read_prompts(
        &server(),
        vec![json!({"name": "p", "arguments": [{"name": "x", "required": true}]})],
    );
    Stored {
        catalog,
        freshness: Freshness {
            ttl: Some(Duration::from_secs(300)),
            scope: CacheScope::Public,
        },
        saved_at: Timestamp::now(),
    }
}

fn store() -> (TempDir, CatalogStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = CatalogStore::new(folder.path().join("deep/catalogs"));
    (folder, store)
}

#[test]
fn what_was_stored_comes_back_as_it_was() {
    let (_folder, store) = store();
    assert_eq!(store.load(&server(), "f1"), None);
    let stored = stored();
    assert_eq!(stored.catalog.tool("run").unwrap().mirrored.len(), 2);
    store.save(&server(), "f1", &stored).unwrap();
    assert_eq!(store.load(&server(), "f1"), Some(stored.clone()));

    let empty = Stored {
        catalog: Catalog::default(),
        freshness: Freshness::default(),
        ..stored
    };
    store.save(&server(), "f1", &empty).unwrap();
    assert_eq!(store.load(&server(), "f1"), Some(empty));
    store.remove(&server(), "f2");
    assert!(store.load(&server(), "f1").is_some());
    store.remove(&server(), "f1");
    assert_eq!(store.load(&server(), "f1"), None);
    store.remove(&server(), "f1");
}

#[test]
fn the_configs_of_one_name_are_stored_side_by_side() {
    let (folder, store) = store();
    let other = store.clone().under([(server(), "other rules".to_owned())].into());
    store.save(&server(), "f1", &stored()).unwrap();
    store.save(&server(), "f2", &stored()).unwrap();
    assert_eq!(other.load(&server(), "f1"), None);
    other.save(&server(), "f1", &stored()).unwrap();
    for (store, fingerprint) in [(&store, "f1"), (&store, "f2"), (&other, "f1")] {
        assert!(store.load(&server(), fingerprint).is_some());
    }
    let files = std::fs::read_dir(folder.path().join("deep/catalogs")).unwrap();
    assert_eq!(files.count(), 3);
}

#[test]
fn a_catalogue_is_kept_for_thirty_days() {
    let (_folder, store) = store();
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    for (age, kept) in [(days(0), true), (days(29), true), (days(30), false)] {
        let old = Stored {
            saved_at: Timestamp::now() - age,
            ..stored()
        };
        store.save(&server(), "f1", &old).unwrap();
        assert_eq!(store.load(&server(), "f1").is_some(), kept, "{age:?}");
    }
}

#[test]
fn another_fingerprint_is_another_server() {
    let (_folder, store) = store();
    store.save(&server(), "f1", &stored()).unwrap();
    assert_eq!(store.load(&server(), "f2"), None);
    assert_eq!(store.load(&ServerName::parse("other").unwrap(), "f1"), None);
}

#[test]
fn a_file_that_cannot_be_read_is_as_good_as_none() {
    let (_folder, store) = store();
    store.save(&server(), "f1", &stored()).unwrap();
    let file = store.file(&server(), &store.digest(&server(), "f1"));
    let good = std::fs::read_to_string(&file).unwrap();
    for bad in [
        "",
        "not json",
        "{}",
        "[]",
        &good[..good.len() / 2],
        &good.replacen("\"version\":4", "\"version\":1", 1),
        &good.replacen("\"public\"", "\"everybody\"", 1),
        &format!("{good}{}", " ".repeat(MAX_BYTES)),
        &"[".repeat(100_000),
    ] {
        std::fs::write(&file, bad).unwrap();
        assert_eq!(store.load(&server(), "f1"), None, "{}", &bad[..bad.len().min(80)]);
    }
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(store.load(&server(), "f1"), None);
    store.save(&server(), "f1", &stored()).unwrap();
    assert!(
        store.load(&server(), "f1").is_some(),
        "and the next one takes its place"
    );
}

#[test]
fn a_catalogue_that_is_too_large_leaves_the_last_one() {
    let (folder, store) = store();
    let last = stored();
    store.save(&server(), "f1", &last).unwrap();
    let mut large = stored();
    large
        .catalog
        .warnings
        .push(ListWarning::new(Code::ListWarning, "x".repeat(MAX_BYTES)));
    let error = store.save(&server(), "f1", &large).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert_eq!(store.load(&server(), "f1"), Some(last));
    let files = std::fs::read_dir(folder.path().join("deep/catalogs")).unwrap();
    assert_eq!(files.count(), 1, "no draft stays behind");
}

#[test]
fn a_folder_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let error = CatalogStore::new(in_the_way.join("sub"))
        .save(&server(), "f1", &stored())
        .unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("fx."), "{error}");
}

#[cfg(unix)]
#[test]
fn only_we_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store) = store();
    store.save(&server(), "f1", &stored()).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (
            mode(&store.file(&server(), &store.digest(&server(), "f1"))),
            mode(&store.folder)
        ),
        (0o600, 0o700)
    );
}

#[cfg(unix)]
#[test]
fn a_catalogue_that_another_user_could_have_written_is_not_loaded() {
    let (folder, store) = store();
    store.save(&server(), "f", &stored()).unwrap();
    let file = store.file(&server(), &store.digest(&server(), "f"));
    private_file::attacks::assert_refused(&file, || store.load(&server(), "f").is_some());
    drop(folder);
}

#[test]
fn a_servers_word_about_freshness_is_taken_for_a_day_at_most() {
    let check = |page: Value, ttl: Option<u64>, scope| {
        let expected = Freshness {
            ttl: ttl.map(Duration::from_secs),
            scope,
        };
        assert_eq!(Freshness::read(&page), expected, "{page}");
    };
    check(
        json!({"ttlMs": 5000, "cacheScope": "public"}),
        Some(5),
        CacheScope::Public,
    );
    check(
        json!({"ttlMs": 0, "cacheScope": "private"}),
        Some(0),
        CacheScope::Private,
    );
    check(json!({"ttlMs": u64::MAX}), Some(24 * 3600), CacheScope::Private);
    check(json!({"ttlMs": -1, "cacheScope": "galaxy"}), None, CacheScope::Private);
    check(json!({"ttlMs": "5"}), None, CacheScope::Private);
    check(json!([]), None, CacheScope::Private);
}

#[test]
fn two_listings_are_as_fresh_as_the_staler_and_as_private_as_the_more_private() {
    let of = |ttl: Option<u64>, scope| Freshness {
        ttl: ttl.map(Duration::from_secs),
        scope,
    };
    let (public, private) = (CacheScope::Public, CacheScope::Private);
    for (one, two, both) in [
        (of(Some(5), public), of(Some(9), public), of(Some(5), public)),
        (of(Some(5), public), of(Some(2), private), of(Some(2), private)),
        (of(None, private), of(Some(2), public), of(None, private)),
    ] {
        assert_eq!((one.and(two), two.and(one)), (both, both));
    }
}

#[test]
fn a_catalogue_is_fresh_until_its_time_is_up() {
    let stored = stored();
    let after = |seconds: i64| match u64::try_from(seconds) {
        Ok(seconds) => stored.saved_at + Duration::from_secs(seconds),
        Err(_) => stored.saved_at - Duration::from_secs(seconds.unsigned_abs()),
    };
    for (seconds, fresh) in [(0, true), (299, true), (300, false), (-1, false)] {
        assert_eq!(stored.is_fresh(after(seconds)), fresh, "{seconds}");
    }
    let unsaid = Stored {
        freshness: Freshness::default(),
        ..stored.clone()
    };
    assert!(!unsaid.is_fresh(after(0)));
}
