//! [`Request`]: a command or a script, with its keys and arguments.

use std::{fmt::Display, sync::LazyLock};

use redis::Cmd;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::key::hex;

/// A script in Lua, which the server runs at once.
#[derive(Debug)]
pub(super) struct Script {
    source: String,
    /// What the server calls it.
    hash: String,
}

impl Script {
    fn new(source: &str) -> Self {
        let source = [include_str!("scripts/shared.lua"), source].concat();
        let hash = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, source.as_bytes()).as_ref());
        Self { source, hash }
    }
}

macro_rules! scripts {
    ($($name:ident $file:literal)*) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!($file)));)*
    };
}

scripts! {
    PUT "scripts/put.lua"
    PUT_NEW "scripts/put_new.lua"
    REPLACE "scripts/replace.lua"
    TAKE "scripts/take.lua"
    REMOVE "scripts/remove.lua"
    LIST "scripts/list.lua"
    APPEND "scripts/append.lua"
    READ_AFTER "scripts/read_after.lua"
    DRAW "scripts/draw.lua"
    LEASE "scripts/lease.lua"
    RENEW "scripts/renew.lua"
    PUT_FENCED "scripts/put_fenced.lua"
}

/// What is sent to a server, more than once if need be. It may contain a password, and is never printed.
pub(super) struct Request {
    action: Action,
    /// Whether it changes nothing, so that it may be sent again when nobody knows whether it was done.
    pub(super) is_read: bool,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

enum Action {
    Command(&'static str),
    Script(&'static Script),
}

impl Request {
    pub(super) fn command(name: &'static str) -> Self {
        Self::new(Action::Command(name))
    }

    pub(super) fn script(script: &'static Script) -> Self {
        Self::new(Action::Script(script))
    }

    fn new(action: Action) -> Self {
        Self {
            action,
            is_read: false,
            keys: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Says that it changes nothing.
    pub(super) fn reading(mut self) -> Self {
        self.is_read = true;
        self
    }

    pub(super) fn key(mut self, key: impl Into<Option<String>>) -> Self {
        self.keys.extend(key.into());
        self
    }

    pub(super) fn arg(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(super) fn number(self, number: impl Display + Copy) -> Self {
        self.arg(number.to_string())
    }

    /// The command for the server. A script is named by its hash, or sent as a whole to a server that does not know it yet.
    pub(super) fn encode(&self, with_source: bool) -> Cmd {
        let mut cmd = match self.action {
            Action::Command(name) => redis::cmd(name),
            Action::Script(script) if with_source => redis::cmd("EVAL").arg(&script.source).take(),
            Action::Script(script) => redis::cmd("EVALSHA").arg(&script.hash).take(),
        };
        if matches!(self.action, Action::Script(_)) {
            cmd.arg(self.keys.len());
        }
        for key in &self.keys {
            cmd.arg(key);
        }
        for arg in &self.args {
            cmd.arg(&arg[..]);
        }
        cmd
    }
}
