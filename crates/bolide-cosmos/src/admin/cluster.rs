//! `/_bolide/cluster`: the servers that use the store.

use bolide_core::Node;
use bolide_model::Result;
use serde_json::{Value, json};

use super::{Admin, ok};
use crate::wire::Reply;

pub(super) async fn show(admin: &Admin<'_>) -> Result<Reply> {
    let nodes: Vec<Value> = admin.state.account.nodes().iter().map(node).collect();
    Ok(ok(&json!({"nodes": nodes})))
}

fn node(node: &Node) -> Value {
    json!({
        "id": node.id.to_string(),
        "endpoint": node.endpoint,
        "isSelf": node.is_self,
        "aliveMs": node.alive.as_millis() as u64,
        "heartbeatAgeMs": node.heartbeat_age.as_millis() as u64,
        "clock": {"loMs": node.clock.0.0, "hiMs": node.clock.1.0},
        "partitionsOwned": node.partitions_owned,
        "conflicts": node.conflicts,
    })
}
