//! The key that says that the keys beside it are those of a store, and in which format.

use redis::{RedisError, Value};

use super::{connection::Connection, request::Request};
use crate::error::Refusal;

/// Its name, after what all keys begin with.
pub(super) const KEY: &str = "format";

/// What it says.
const FORMAT: &str = "pegboard-store 1";

/// How many keys one step of the search for foreign data looks at, and how many steps there are at most.
const STEP: u32 = 1000;
const STEPS: u32 = 100;

/// How much of a foreign key an error shows.
const SHOWN: usize = 80;

/// What the keys of the store are.
pub(super) enum Marker {
    Ours,
    Refused(Refusal),
}

/// Checks the marker, and writes it where there are no keys of others.
pub(super) async fn check(connection: &Connection, root: &str) -> Result<Marker, RedisError> {
    if let Some(found) = read(connection, root).await? {
        return Ok(judge(&found));
    }
    let foreign = find_key(connection, root).await?;
    // Another process may have begun in between.
    if let Some(found) = read(connection, root).await? {
        return Ok(judge(&found));
    }
    if let Some(key) = foreign {
        return Ok(Marker::Refused(Refusal::ForeignData(key)));
    }
    let write = Request::command("SET")
        .key(format!("{root}:{KEY}"))
        .arg(FORMAT)
        .arg("NX");
    connection.send(&write).await?;
    Ok(read(connection, root)
        .await?
        .map_or(Marker::Ours, |found| judge(&found)))
}

fn judge(found: &[u8]) -> Marker {
    if found == FORMAT.as_bytes() {
        return Marker::Ours;
    }
    let found = String::from_utf8_lossy(found)
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect();
    Marker::Refused(Refusal::OtherFormat { found, known: FORMAT })
}

async fn read(connection: &Connection, root: &str) -> Result<Option<Vec<u8>>, RedisError> {
    let read = Request::command("GETRANGE")
        .key(format!("{root}:{KEY}"))
        .number(0)
        .number(SHOWN);
    Ok(match connection.send(&read).await? {
        Value::BulkString(bytes) if !bytes.is_empty() => Some(bytes),
        _ => None,
    })
}

/// Whether a key has the form of one of the store. The marker can be lost without the others: a person removes it, or a server that is full drops it.
fn is_ours(root: &str, key: &[u8]) -> bool {
    let rest = key
        .strip_prefix(root.as_bytes())
        .and_then(|rest| rest.strip_prefix(b":"));
    rest.is_some_and(|rest| matches!(rest, [sort, b':', ..] if sort.is_ascii_lowercase()))
}

/// A key that begins like ours, and is none of ours.
async fn find_key(connection: &Connection, root: &str) -> Result<Option<String>, RedisError> {
    let mut cursor = "0".to_owned();
    for _ in 0..STEPS {
        let scan = Request::command("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(format!("{root}:*"));
        let scan = scan.arg("COUNT").number(STEP);
        let (next, keys): (String, Vec<Vec<u8>>) = redis::from_redis_value(connection.send(&scan).await?)?;
        if let Some(key) = keys.iter().find(|key| !is_ours(root, key)) {
            return Ok(Some(String::from_utf8_lossy(key).chars().take(SHOWN).collect()));
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    Ok(None)
}
