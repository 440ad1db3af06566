//! A cluster: keys on one of its nodes, and nodes that send the store there.

use std::sync::Arc;

use pegboard_store::{Key, RedisStore, Store};

use super::{Server, connect, server::free_port};
use crate::{
    conformance,
    fixture::{Fixture, LONG, bytes, eventually, text},
};

/// Two nodes, of which the first has the keys of the store and the second none.
struct Cluster {
    nodes: [Server; 2],
    /// The hash slot of the store's keys.
    slot: u16,
}

impl Cluster {
    async fn start() -> Self {
        let (first, second) = (start_node().await, start_node().await);
        let slot = first.say("CLUSTER KEYSLOT {pegboard}:x").await;
        let slot: u16 = slot.trim().trim_start_matches(':').parse().unwrap();
        let (other, own) = if slot < 8192 {
            ("8192 16383", "0 8191")
        } else {
            ("0 8191", "8192 16383")
        };
        assert_ok(&first, &format!("CLUSTER ADDSLOTSRANGE {own}")).await;
        assert_ok(&second, &format!("CLUSTER ADDSLOTSRANGE {other}")).await;
        let bus = second.say("CONFIG GET cluster-port").await;
        let bus = bus.split_whitespace().last().unwrap();
        assert_ok(&first, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", second.port)).await;
        for node in [&first, &second] {
            eventually(|| async {
                node.say("CLUSTER INFO")
                    .await
                    .contains("cluster_state:ok")
                    .then_some(())
            })
            .await;
        }
        Self {
            nodes: [first, second],
            slot,
        }
    }

    /// Connects by the node that has not the keys.
    async fn connect(&self) -> RedisStore {
        let address = format!("redis+cluster://127.0.0.1:1,127.0.0.1:{}", self.nodes[1].port);
        connect(&address).await.unwrap()
    }

    /// Says which node has the slot, or gives or takes it.
    async fn set_slot(&self, node: usize, how: &str, other: usize) {
        let id = self.nodes[other].say("CLUSTER MYID").await;
        let id = id.split_whitespace().last().unwrap();
        assert_ok(&self.nodes[node], &format!("CLUSTER SETSLOT {} {how} {id}", self.slot)).await;
    }
}

async fn start_node() -> Server {
    let bus = free_port().to_string();
    Server::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]).await
}

async fn assert_ok(node: &Server, command: &str) {
    let reply = node.say(command).await;
    assert!(
        reply.starts_with("+OK") || reply.starts_with("+NOKEY"),
        "{command}: {reply}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_one_store() {
    let cluster = Cluster::start().await;
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(Arc::new(cluster.connect().await));
    }
    let fixture = Fixture::new(stores, cluster);
    conformance::a_value_is_the_one_that_was_put_last(&fixture).await;
    conformance::a_listing_has_the_values_right_below_its_key(&fixture).await;
    conformance::no_change_is_lost_between_racing_replacements(&fixture).await;
    conformance::a_log_is_read_after_a_position(&fixture).await;
    conformance::racing_draws_get_no_more_than_the_burst(&fixture).await;
    conformance::a_late_holder_cannot_write(&fixture).await;
}

#[tokio::test]
async fn keys_that_move_to_another_node_are_found_there() {
    let cluster = Cluster::start().await;
    let store = cluster.connect().await;
    let [moved, stays] = ["moved", "stays"].map(|name| Key::new("k", &[name]));
    for key in [&moved, &stays] {
        store.put(key, bytes("x"), LONG).await.unwrap();
    }
    cluster.set_slot(1, "IMPORTING", 0).await;
    cluster.set_slot(0, "MIGRATING", 1).await;
    let move_key = async |key: &str| {
        let command = format!("MIGRATE 127.0.0.1 {} {{pegboard}}:{key} 0 5000", cluster.nodes[1].port);
        assert_ok(&cluster.nodes[0], &command).await;
    };
    move_key("v:k:moved").await;
    for key in [&moved, &stays] {
        assert_eq!(text(&store, key).await.as_deref(), Some("x"), "while it moves");
    }
    for key in ["v:k:stays", "i:k", "format"] {
        move_key(key).await;
    }
    for node in [1, 0] {
        cluster.set_slot(node, "NODE", 1).await;
    }
    for key in [&moved, &stays] {
        assert_eq!(text(&store, key).await.as_deref(), Some("x"), "after it has moved");
        store.put(key, bytes("y"), LONG).await.unwrap();
    }
    assert_eq!(store.list(&Key::new("k", &[]), 9).await.unwrap().values.len(), 2);
}
