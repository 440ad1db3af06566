//! The messages between a program and its guard, each one packet on a Unix socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The files that go with [`Request::Start`]: the spawn request, and the server's stdin, stdout and stderr.
pub(super) const FILES: usize = 4;
/// How many numbers a packet has. Longer data is passed in a file.
const WORDS: usize = 5;
const BYTES: usize = WORDS * 8;

/// A request from the program to its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// Spawn a server. [`FILES`] files go with it.
    Start { id: u64, tag: u64 },
    /// Send SIGTERM to a server and its descendants, and kill those that are left after its grace period.
    Stop { id: u64 },
    /// Kill a server and its descendants.
    Kill { id: u64 },
}

/// A report from the guard to its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Started {
        id: u64,
        pid: u32,
        /// The start time, in clock ticks since boot.
        start: u64,
        /// Whether its processes carry a tag.
        is_tagged: bool,
    },
    /// Spawning failed with this error number.
    Failed { id: u64, errno: i32 },
    /// Tags do not work on this system, so this guard accepts no second server.
    Refused { id: u64 },
    /// The server's own process exited with this wait status.
    Exited { id: u64, status: i32 },
    /// The server and all its descendants are gone, or could not be killed in time.
    Cleared { id: u64 },
}

/// A value that fits into a packet.
pub(super) trait Message: Sized {
    fn words(&self) -> [u64; WORDS];
    fn from_words(words: [u64; WORDS]) -> Option<Self>;
}

impl Message for Request {
    fn words(&self) -> [u64; WORDS] {
        match *self {
            Self::Start { id, tag } => [1, id, tag, 0, 0],
            Self::Stop { id } => [2, id, 0, 0, 0],
            Self::Kill { id } => [3, id, 0, 0, 0],
        }
    }

    fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let [kind, id, tag, ..] = words;
        Some(match kind {
            1 => Self::Start { id, tag },
            2 => Self::Stop { id },
            3 => Self::Kill { id },
            _ => return None,
        })
    }
}

impl Message for Report {
    fn words(&self) -> [u64; WORDS] {
        match *self {
            Self::Started {
                id,
                pid,
                start,
                is_tagged,
            } => [1, id, u64::from(pid), start, u64::from(is_tagged)],
            Self::Failed { id, errno } => [2, id, u64::from(errno.cast_unsigned()), 0, 0],
            Self::Refused { id } => [3, id, 0, 0, 0],
            Self::Exited { id, status } => [4, id, u64::from(status.cast_unsigned()), 0, 0],
            Self::Cleared { id } => [5, id, 0, 0, 0],
        }
    }

    fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let [kind, id, number, start, is_tagged] = words;
        let small = u32::try_from(number).ok()?;
        Some(match kind {
            1 => Self::Started {
                id,
                pid: small,
                start,
                is_tagged: is_tagged == 1,
            },
            2 => Self::Failed {
                id,
                errno: small.cast_signed(),
            },
            3 => Self::Refused { id },
            4 => Self::Exited {
                id,
                status: small.cast_signed(),
            },
            5 => Self::Cleared { id },
            _ => return None,
        })
    }
}

/// Sends a packet as a whole or not at all. Fails with `WouldBlock` if the peer does not read.
pub(super) fn send(socket: impl AsFd, message: &impl Message, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes: Vec<u8> = message.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            sent => return sent.map(drop).map_err(io::Error::from),
        }
    }
}

/// Receives a packet with its files. Returns `None` when the peer is gone.
pub(super) fn receive<M: Message>(socket: impl AsFd, flags: RecvFlags) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut bytes = [0; BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let read = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            read => break read?.bytes,
        }
    };
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    if read == 0 {
        return Ok(None);
    }
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    match M::from_words(words) {
        Some(message) if read == BYTES => Ok(Some((message, files))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn check<M: Message + PartialEq + std::fmt::Debug>(messages: &[M]) {
        let (one, other) = pair();
        for message in messages {
            send(&one, message, &[]).unwrap();
        }
        for message in messages {
            let (received, files) = receive::<M>(&other, RecvFlags::DONTWAIT).unwrap().unwrap();
            assert_eq!((&received, files.len()), (message, 0));
        }
        drop(one);
        assert!(receive::<M>(&other, RecvFlags::DONTWAIT).unwrap().is_none());
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (id, tag) = (u64::MAX, 1 << 61);
        check(&[
            Request::Start { id, tag },
            Request::Stop { id },
            Request::Kill { id: 0 },
        ]);
        check(&[
            Report::Started {
                id,
                pid: 4711,
                start: 1 << 40,
                is_tagged: true,
            },
            Report::Failed { id, errno: 2 },
            Report::Refused { id },
            Report::Exited { id, status: 0x7f00 },
            Report::Exited { id, status: -1 },
            Report::Cleared { id },
        ]);
    }

    #[test]
    fn files_go_with_a_message_and_invalid_packets_are_rejected() {
        let (one, other) = pair();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        let files = [file.as_fd(); FILES];
        send(&one, &Request::Start { id: 1, tag: 2 }, &files).unwrap();
        let (_, files) = receive::<Request>(&other, RecvFlags::DONTWAIT).unwrap().unwrap();
        assert_eq!(files.len(), FILES);
        let mut received: std::fs::File = files.into_iter().next().unwrap().into();
        received.rewind().unwrap();
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for invalid in [&b"x"[..], &[9; BYTES]] {
            rustix::net::send(&one, invalid, SendFlags::empty()).unwrap();
            let error = receive::<Request>(&other, RecvFlags::DONTWAIT).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_peer_that_does_not_read_does_not_block_the_sender() {
        let (one, _other) = pair();
        let error = loop {
            if let Err(error) = send(&one, &Request::Stop { id: 1 }, &[]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
