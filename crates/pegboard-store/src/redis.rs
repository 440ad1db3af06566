//! [`RedisStore`]: state in Redis or Valkey.

mod connection;
mod dialer;
mod failure;
mod link;
mod marker;
mod request;
mod server_name;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use redis::Value as Reply;

use self::{
    dialer::Dialer,
    failure::unexpected,
    link::Link,
    request::{
        APPEND, DRAW, LEASE, LIST, PUT, PUT_FENCED, PUT_NEW, READ_AFTER, REMOVE, RENEW, REPLACE, Request, Script, TAKE,
    },
    server_name::ServerName,
};
use crate::{
    address::{Place, StoreAddress, Topology},
    error::StoreError,
    key::Key,
    lease::{FENCE_MEMORY, Lease, LeaseAttempt},
    limits::{LISTING_VALUES, Limits, MAX_HOLDER, MAX_LISTED, MAX_TTL, check_size, ttl_micros},
    log::{LogBounds, LogEntry, LogRead},
    rate::{Draw, Rate, wait_from_micros},
    store::{Answer, Store},
    value::{Listing, PutFenced, PutNew, Replaced, Value, Version},
};

/// What a value begins with, so that an empty one is not taken for none.
const MARK: u8 = b'=';

/// State in Redis 6.2 or newer, or in Valkey: one server, the primary that sentinels name, or a cluster. In a cluster all keys have the same hash tag,
/// so that they are on one node and a script can touch any of them.
///
/// An operation fails within the limit on its time while the servers are away, and the first one after they are back connects again.
#[derive(Debug)]
pub struct RedisStore {
    link: Link,
    name: ServerName,
    /// What all keys begin with.
    root: String,
    limits: Limits,
}

impl RedisStore {
    /// Connects to the servers of an address, and checks that they work and that the keys there are those of a store.
    pub async fn connect(address: &StoreAddress, limits: Limits) -> Result<Self, StoreError> {
        let Place::Redis(servers) = address.place() else {
            return Err(StoreError::BadAddress {
                reason: "it is none of Redis or Valkey".into(),
            });
        };
        let name = ServerName::new(&address.to_string(), limits.time);
        let root = match servers.topology {
            Topology::Cluster => format!("{{{}}}", servers.prefix),
            Topology::Single | Topology::Sentinel { .. } => servers.prefix.clone(),
        };
        let dialer = Dialer::new((**servers).clone(), root.clone(), name.clone())?;
        let store = Self {
            link: Link::new(dialer, name.clone()),
            name,
            root,
            limits,
        };
        store.ping().await?;
        Ok(store)
    }

    fn key(&self, sort: char, name: &str) -> String {
        format!("{}:{sort}:{name}", self.root)
    }

    fn value_key(&self, key: &Key) -> String {
        self.key('v', key.as_str())
    }

    fn log_keys(&self, key: &Key) -> [String; 2] {
        ['l', 'e'].map(|sort| self.key(sort, key.as_str()))
    }

    fn lease_key(&self, key: &Key) -> String {
        self.key('n', key.as_str())
    }

    /// The index in which the name of a value is.
    fn index_key(&self, key: &Key) -> Option<String> {
        key.parent().map(|parent| self.key('i', parent))
    }

    /// A script about a value and its index.
    fn about_value(&self, script: &'static Script, key: &Key) -> Request {
        let request = Request::script(script).key(self.value_key(key));
        request.key(self.index_key(key)).arg(key.as_str())
    }

    /// The size of the largest value as it is stored.
    fn max_stored(&self) -> usize {
        self.limits.value_bytes + 1
    }

    async fn send(&self, key: &Key, request: Request) -> Result<Reply, StoreError> {
        self.link.send(key.as_str(), &request).await
    }

    /// Sends a request whose reply is a number.
    async fn send_for_number(&self, key: &Key, request: Request) -> Result<u64, StoreError> {
        let reply = self.send(key, request).await?;
        self.number(&reply)
    }

    fn number(&self, reply: &Reply) -> Result<u64, StoreError> {
        match reply {
            Reply::Int(number) => u64::try_from(*number).map_err(|_| unexpected(&self.name)),
            _ => Err(unexpected(&self.name)),
        }
    }

    fn bytes(&self, reply: Reply) -> Result<Bytes, StoreError> {
        match reply {
            Reply::BulkString(bytes) => Ok(bytes.into()),
            _ => Err(unexpected(&self.name)),
        }
    }

    fn text(&self, reply: Reply) -> Result<String, StoreError> {
        String::from_utf8(self.bytes(reply)?.to_vec()).map_err(|_| unexpected(&self.name))
    }

    /// The value in a reply, if there is one.
    fn value(&self, key: &Key, reply: Reply) -> Result<Option<Value>, StoreError> {
        if reply == Reply::Nil {
            return Ok(None);
        }
        let stored = self.bytes(reply)?;
        if stored.first() != Some(&MARK) || stored.len() > self.max_stored() {
            return Err(StoreError::Damaged {
                address: self.name.shown(),
                key: key.as_str().into(),
                reason: "it is not what this program stores there",
            });
        }
        Ok(Some(Value::plain(stored.slice(1..))))
    }

    /// Renews a lease, or releases it if `ttl` is 0.
    async fn hold(&self, lease: &Lease, ttl_micros: u64, kept: Duration) -> Result<bool, StoreError> {
        let request = Request::script(&RENEW)
            .key(self.lease_key(&lease.key))
            .arg(&*lease.holder);
        let request = request.number(ttl_micros).number(millis(kept)).number(lease.fence);
        Ok(self.send_for_number(&lease.key, request).await? == 1)
    }
}

/// A value as it is stored.
fn marked(value: &[u8]) -> Vec<u8> {
    [&[MARK], value].concat()
}

/// A time to live as the server counts it.
fn millis(ttl: Duration) -> u64 {
    ttl_micros(ttl).div_ceil(1000)
}

impl Store for RedisStore {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let request = Request::command("GETRANGE").key(self.value_key(key)).number(0);
            let reply = self.send(key, request.number(self.max_stored()).reading()).await?;
            match reply {
                Reply::BulkString(bytes) if bytes.is_empty() => Ok(None),
                reply => self.value(key, reply),
            }
        })
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            self.limits.check("the value", value.len())?;
            let request = self.about_value(&PUT, key).arg(marked(&value)).number(millis(ttl));
            self.send(key, request).await?;
            Ok(())
        })
    }

    fn put_new<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration) -> Answer<'a, PutNew> {
        Box::pin(async move {
            self.limits.check("the value", value.len())?;
            let request = self.about_value(&PUT_NEW, key).arg(marked(&value)).number(millis(ttl));
            let reply = self.send(key, request.number(self.max_stored())).await?;
            Ok(match self.value(key, reply)? {
                Some(there) => PutNew::Exists(there),
                None => PutNew::Stored(Version(value)),
            })
        })
    }

    fn replace<'a>(&'a self, key: &'a Key, expected: &'a Version, new: Bytes, ttl: Duration) -> Answer<'a, Replaced> {
        Box::pin(async move {
            self.limits.check("the value", new.len())?;
            let request = self.about_value(&REPLACE, key).arg(marked(&new)).number(millis(ttl));
            let request = request.number(self.max_stored()).arg(marked(&expected.0));
            match self.send(key, request).await? {
                Reply::Int(1) => Ok(Replaced::Stored(Version(new))),
                reply => Ok(Replaced::Lost(self.value(key, reply)?)),
            }
        })
    }

    fn take<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let request = self.about_value(&TAKE, key).number(self.max_stored());
            let reply = self.send(key, request).await?;
            self.value(key, reply)
        })
    }

    fn remove<'a>(&'a self, key: &'a Key) -> Answer<'a, bool> {
        Box::pin(async move { Ok(self.send_for_number(key, self.about_value(&REMOVE, key)).await? > 0) })
    }

    fn list<'a>(&'a self, parent: &'a Key, max: usize) -> Answer<'a, Listing> {
        Box::pin(async move {
            let request = Request::script(&LIST).key(self.key('i', parent.as_str()));
            let request = request.arg(self.key('v', "")).number(max.min(MAX_LISTED));
            let request = request.number(self.limits.value_bytes * LISTING_VALUES);
            let Reply::Array(found) = self.send(parent, request.reading()).await? else {
                return Err(unexpected(&self.name));
            };
            let mut found = found.into_iter();
            let mut listing = Listing {
                more: found.next() == Some(Reply::Int(1)),
                ..Listing::default()
            };
            while let (Some(name), Some(value)) = (found.next(), found.next()) {
                let Some(key) = Key::parse(&self.text(name)?) else {
                    listing.damaged += 1;
                    continue;
                };
                match self.value(&key, value) {
                    Ok(Some(value)) => listing.values.push((key, value)),
                    Ok(None) => {}
                    Err(_) => listing.damaged += 1,
                }
            }
            listing.values.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(listing)
        })
    }

    fn append<'a>(&'a self, key: &'a Key, entries: Vec<Bytes>, bounds: LogBounds, ttl: Duration) -> Answer<'a, u64> {
        Box::pin(async move {
            self.limits.check_entries(&entries)?;
            let bounds = bounds.capped();
            let [log, list] = self.log_keys(key);
            let request = Request::script(&APPEND).key(log).key(list);
            let mut request = request.number(bounds.entries).number(bounds.bytes).number(millis(ttl));
            for entry in entries {
                request = request.arg(entry);
            }
            self.send_for_number(key, request).await
        })
    }

    fn read_after<'a>(&'a self, key: &'a Key, position: u64, max: usize) -> Answer<'a, LogRead> {
        Box::pin(async move {
            let [log, list] = self.log_keys(key);
            let request = Request::script(&READ_AFTER).key(log).key(list).number(position);
            let request = request.number(max.min(MAX_LISTED)).number(self.limits.value_bytes);
            let Reply::Array(found) = self.send(key, request.reading()).await? else {
                return Err(unexpected(&self.name));
            };
            let mut found = found.into_iter();
            let mut next = || self.number(&found.next().unwrap_or(Reply::Nil));
            let (end, missed, from) = (next()?, next()? == 1, next()?);
            let entries = found.zip(from + 1..).map(|(entry, position)| {
                let bytes = self.bytes(entry)?;
                Ok(LogEntry { position, bytes })
            });
            Ok(LogRead {
                entries: entries.collect::<Result<_, StoreError>>()?,
                missed,
                end,
            })
        })
    }

    fn draw<'a>(&'a self, key: &'a Key, rate: Rate, amount: u32) -> Answer<'a, Draw> {
        Box::pin(async move {
            let request = Request::script(&DRAW).key(self.key('b', key.as_str()));
            let request = request.number(rate.burst()).number(rate.per_second());
            let request = request.number(rate.amount(amount)).number(millis(MAX_TTL));
            let wait = self.send_for_number(key, request).await?;
            Ok(match wait {
                0 => Draw::Drawn,
                wait => Draw::Wait(wait_from_micros(wait as f64)),
            })
        })
    }

    fn lease<'a>(&'a self, key: &'a Key, holder: &'a str, ttl: Duration) -> Answer<'a, LeaseAttempt> {
        Box::pin(async move {
            check_size("the holder's name", holder.len(), MAX_HOLDER)?;
            let request = Request::script(&LEASE).key(self.lease_key(key)).arg(holder);
            let request = request
                .number(ttl_micros(ttl))
                .number(millis(ttl.saturating_add(FENCE_MEMORY)));
            let Reply::Array(found) = self.send(key, request).await? else {
                return Err(unexpected(&self.name));
            };
            match <[Reply; 2]>::try_from(found) {
                Ok([_, fence]) => Ok(LeaseAttempt::Leased(Lease {
                    key: key.clone(),
                    holder: holder.into(),
                    fence: self.number(&fence)?,
                })),
                Err(found) => {
                    let Ok([_, by, left]) = <[Reply; 3]>::try_from(found) else {
                        return Err(unexpected(&self.name));
                    };
                    Ok(LeaseAttempt::Held {
                        by: self.text(by)?,
                        expires_in: Duration::from_micros(self.number(&left)?),
                    })
                }
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Answer<'a, bool> {
        Box::pin(self.hold(lease, ttl_micros(ttl), ttl.saturating_add(FENCE_MEMORY)))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        Box::pin(self.hold(lease, 0, FENCE_MEMORY))
    }

    fn put_fenced<'a>(&'a self, key: &'a Key, value: Bytes, ttl: Duration, lease: &'a Lease) -> Answer<'a, PutFenced> {
        Box::pin(async move {
            self.limits.check("the value", value.len())?;
            let request = Request::script(&PUT_FENCED)
                .key(self.value_key(key))
                .key(self.lease_key(&lease.key));
            let request = request.key(self.index_key(key)).arg(key.as_str()).arg(marked(&value));
            let request = request.number(millis(ttl)).number(lease.fence);
            Ok(match self.send_for_number(key, request).await? {
                1 => PutFenced::Stored,
                _ => PutFenced::Refused,
            })
        })
    }

    fn ping(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            // A node of a cluster answers this only if it has the keys.
            let request = Request::command("EXISTS").key(format!("{}:{}", self.root, marker::KEY));
            self.link.send(marker::KEY, &request.reading()).await?;
            Ok(())
        })
    }

    fn max_value_bytes(&self) -> usize {
        self.limits.value_bytes
    }
}
