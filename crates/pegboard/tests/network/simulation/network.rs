//! A network between a client and one server: a loopback proxy that treats each connection by its plan.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    simulation::script::{Direction, Fate, Faults, How, Plan},
    support::{rng::Rng, secs},
};

/// The error of a direction that was cut with an orderly end.
const CUT_IN_ORDER: io::ErrorKind = io::ErrorKind::Interrupted;

/// The state of the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkState {
    /// Each connection follows its plan.
    Open,
    Partitioned,
    Refusing,
    /// All faults are over, and connections that were cut off are reset.
    Healed,
}

/// A simulated network. It stops when it is dropped.
pub(crate) struct Network {
    address: SocketAddr,
    shared: Arc<Shared>,
    _ended: DropGuard,
}

struct Shared {
    server: SocketAddr,
    faults: Faults,
    state: watch::Sender<NetworkState>,
    /// Incremented to reset all connections.
    resets: watch::Sender<u64>,
    made: AtomicU64,
    open: AtomicUsize,
    /// Connections that the network has reset or cut.
    broken: AtomicU64,
}

impl Network {
    /// A network in front of this server.
    pub(crate) async fn open(server: SocketAddr, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server,
            faults,
            state: watch::Sender::new(NetworkState::Open),
            resets: watch::Sender::new(0),
            made: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            broken: AtomicU64::new(0),
        });
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        tokio::spawn(listen(listener, address, shared.clone(), ended));
        Ok(Self {
            address,
            shared,
            _ended: guard,
        })
    }

    /// The address for clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, state: NetworkState) {
        self.shared.state.send_replace(state);
    }

    pub(crate) fn reset_all(&self) {
        self.shared.resets.send_modify(|resets| *resets += 1);
    }

    /// The number of open client connections.
    pub(crate) fn connections(&self) -> usize {
        self.shared.open.load(Ordering::Acquire)
    }

    /// The number of connections that the network has broken.
    pub(crate) fn broken(&self) -> u64 {
        self.shared.broken.load(Ordering::Relaxed)
    }
}

async fn listen(listener: TcpListener, address: SocketAddr, shared: Arc<Shared>, ended: CancellationToken) {
    let mut listener = Some(listener);
    let mut state = shared.state.subscribe();
    let accepting = async {
        loop {
            if *state.borrow_and_update() == NetworkState::Refusing {
                listener = None;
                let _ = state.wait_for(|state| *state != NetworkState::Refusing).await;
            }
            let open = match listener.take() {
                Some(open) => open,
                None => bound(address).await,
            };
            tokio::select! {
                _ = state.changed() => {}
                accepted = open.accept() => if let Ok((client, _)) = accepted {
                    let number = shared.made.fetch_add(1, Ordering::Relaxed);
                    shared.open.fetch_add(1, Ordering::AcqRel);
                    let (shared, ended) = (shared.clone(), ended.clone());
                    tokio::spawn(async move {
                        ended.run_until_cancelled(carry(client, number, &shared)).await;
                        shared.open.fetch_sub(1, Ordering::AcqRel);
                    });
                }
            }
            listener = Some(open);
        }
    };
    ended.run_until_cancelled(accepting).await;
}

/// Binds the same port again. An outgoing connection may hold it for a moment.
async fn bound(address: SocketAddr) -> TcpListener {
    let binding = async {
        loop {
            match TcpListener::bind(address).await {
                Ok(listener) => return listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(secs(20), binding)
        .await
        .expect("the port is free again")
}

/// Proxies one connection until it ends.
async fn carry(client: TcpStream, number: u64, shared: &Shared) {
    let plan = match *shared.state.borrow() {
        NetworkState::Healed => Faults::new(0, 0, 0).of_connection(number),
        NetworkState::Open | NetworkState::Partitioned | NetworkState::Refusing => shared.faults.of_connection(number),
    };
    let _ = client.set_nodelay(true);
    let mut resets = shared.resets.subscribe();
    let mut client = client;
    let (is_broken, server) = {
        let mut server = None;
        let passing = pass(&mut client, &mut server, plan, number, shared);
        let is_broken = tokio::select! {
            end = passing => !matches!(end, Ok(End::Orderly)),
            _ = resets.changed() => true,
        };
        (is_broken, server)
    };
    if is_broken {
        shared.broken.fetch_add(1, Ordering::Relaxed);
        let _ = client.set_zero_linger();
        if let Some(server) = server {
            let _ = server.set_zero_linger();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Orderly,
    Broken,
}

async fn pass(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    plan: Plan,
    number: u64,
    shared: &Shared,
) -> io::Result<End> {
    tokio::time::sleep(plan.wait).await;
    if plan.fate == Fate::Rejected {
        return Ok(End::Broken);
    }
    if plan.fate == Fate::BlackHole {
        return swallow(client, shared).await;
    }
    until_healed(shared).await;
    let server = server.insert(TcpStream::connect(shared.server).await?);
    let _ = server.set_nodelay(true);
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let pump = |direction| Pump {
        plan,
        cut: match plan.fate {
            Fate::Cut {
                direction: cut,
                after,
                how,
            } if cut == direction => Some((after, how)),
            _ => None,
        },
        rng: Rng::of(number ^ (direction as u64 + 1) << 32),
        shared,
    };
    let (up, down) = (pump(Direction::Up), pump(Direction::Down));
    let passed = tokio::try_join!(
        up.run(&mut from_client, &mut to_server),
        down.run(&mut from_server, &mut to_client),
    );
    match passed {
        Ok(_) => Ok(End::Orderly),
        Err(end) if end.kind() == CUT_IN_ORDER => Ok(End::Orderly),
        Err(error) => Err(error),
    }
}

/// Waits until the network passes bytes.
async fn until_healed(shared: &Shared) {
    let mut state = shared.state.subscribe();
    let _ = state.wait_for(|state| *state != NetworkState::Partitioned).await;
}

/// Discards all input, until the client disconnects or the network heals.
async fn swallow(from: &mut (impl AsyncRead + Unpin), shared: &Shared) -> io::Result<End> {
    let mut state = shared.state.subscribe();
    let mut room = vec![0; 4096];
    let reading = async {
        while from.read(&mut room).await? > 0 {}
        io::Result::Ok(End::Orderly)
    };
    tokio::select! {
        end = reading => end,
        _ = state.wait_for(|state| *state == NetworkState::Healed) => Ok(End::Broken),
    }
}

/// One direction of a connection.
struct Pump<'a> {
    plan: Plan,
    cut: Option<(u64, How)>,
    rng: Rng,
    shared: &'a Shared,
}

impl Pump<'_> {
    async fn run(mut self, from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut room = vec![0; self.plan.chunk];
        let mut passed: u64 = 0;
        loop {
            let read = from.read(&mut room).await?;
            if self.plan.delay_ms > 0 {
                tokio::time::sleep(self.rng.up_to_ms(self.plan.delay_ms)).await;
            }
            until_healed(self.shared).await;
            if read == 0 {
                return to.shutdown().await;
            }
            let left = self.cut.map_or(u64::MAX, |(after, _)| after - passed);
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(read);
            to.write_all(&room[..part]).await?;
            passed += part as u64;
            match self.cut {
                Some((after, how)) if passed == after => return self.end(how, from, to).await,
                _ => {}
            }
        }
    }

    async fn end(
        self,
        how: How,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        match how {
            How::Reset => Err(io::ErrorKind::ConnectionReset.into()),
            How::End => {
                to.shutdown().await?;
                // The other direction ends with this one.
                Err(CUT_IN_ORDER.into())
            }
            How::HalfOpen => match swallow(from, self.shared).await? {
                End::Broken => Err(io::ErrorKind::ConnectionReset.into()),
                End::Orderly => to.shutdown().await,
            },
        }
    }
}
