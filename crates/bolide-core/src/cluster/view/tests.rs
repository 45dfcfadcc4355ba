use std::collections::BTreeMap;

use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::time::Monotonic;

use super::super::heartbeat::Readers;
use super::*;

fn view(nodes: &[u64]) -> View {
    let rows = nodes.iter().map(|id| {
        let heartbeat = Heartbeat {
            bound_ms: 1_000 + *id as i64,
            // Clients in direct mode do not reach the second node.
            frames: if *id == 2 {
                String::new()
            } else {
                format!("node{id}:8081")
            },
            ..Heartbeat::default()
        };
        (heartbeat::key(NodeId(*id)).bytes, heartbeat.encode())
    });
    let now = Monotonic::manual().now();
    View::default().next(UnixMillis(5_000), rows, (now, now))
}

fn owners(view: &View) -> BTreeMap<u64, NodeId> {
    let owner = |id| (id, view.owner(PartitionId(id)).expect("an owner"));
    (1..=1_000).map(owner).collect()
}

#[test]
fn partitions_are_spread_evenly_and_those_of_a_dead_node_alone_move() {
    let (three, two) = (owners(&view(&[1, 2, 3])), owners(&view(&[1, 3])));
    for id in [1, 2, 3] {
        let owned = three.values().filter(|owner| **owner == NodeId(id)).count();
        assert!((250..=420).contains(&owned), "{id} owns {owned} of 1,000");
    }
    for (partition, owner) in &three {
        if *owner != NodeId(2) {
            assert_eq!(two[partition], *owner);
        }
    }
}

#[test]
fn frames_go_to_the_owner_and_otherwise_to_the_next_one() {
    let view = view(&[1, 2, 3]);
    for id in (1..=100).map(PartitionId) {
        let owner = view.owner(id).expect("an owner");
        let places = view.frame_places(NodeId(1), id);
        assert_eq!(places.len(), 2);
        match owner {
            NodeId(1) => assert_eq!(places, [None, Some("node3:8081".to_owned())]),
            NodeId(3) => assert_eq!(places, [Some("node3:8081".to_owned()), None]),
            // The order of the others.
            _ => assert!(places.contains(&None), "{places:?}"),
        }
        // A node answers for itself, whether clients of others reach it or not.
        assert!(view.frame_places(NodeId(2), id).iter().any(Option::is_some));
        assert_eq!(
            view.frame_places(NodeId(2), id).first() == Some(&None),
            owner == NodeId(2)
        );
    }
    assert_eq!(View::default().frame_places(NodeId(1), PartitionId(1)), [None]);
}

#[test]
fn the_purge_stays_behind_the_earliest_of_the_others() {
    let container = ContainerRid::new(DatabaseRid::new(1), 1);
    let (alone, view) = (view(&[1]), view(&[1, 2, 3]));
    assert_eq!(view.purge_bound(NodeId(1), container), UnixMillis(1_002));
    assert_eq!(view.purge_bound(NodeId(2), container), UnixMillis(1_001));
    assert_eq!(alone.purge_bound(NodeId(1), container), UnixMillis(5_000));
}

#[test]
fn readers_are_listed_by_container_and_the_rest_together() {
    let mut readers = Readers::default();
    let container = |number| ContainerRid::new(DatabaseRid::new(1), number);
    assert_eq!(readers.oldest(container(1)), None);
    for number in 1..=100 {
        readers.add(container(number), UnixMillis(i64::from(number)));
    }
    assert_eq!(readers.oldest(container(7)), Some(UnixMillis(7)));
    // Those that are not listed, and containers without readers, wait for the earliest of the rest.
    assert_eq!(readers.oldest(container(90)), Some(UnixMillis(65)));
    assert_eq!(readers.oldest(container(200)), Some(UnixMillis(65)));
    let heartbeat = Heartbeat {
        readers,
        ..Heartbeat::default()
    };
    assert_eq!(Heartbeat::decode(&heartbeat.encode()), heartbeat);
    // A server of another version may tell what this one does not understand: it may read at any time.
    assert_eq!(Heartbeat::decode(b"?").bound_ms, i64::MIN);
}
