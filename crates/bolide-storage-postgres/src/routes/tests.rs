use std::net::{Ipv4Addr, TcpListener};

use bolide_postgres_server::Database;

use super::*;
use crate::options::PostgresOptions;

const HOME: HomeId = HomeId(7);
const LIMITS: (usize, Duration) = (2, Duration::from_secs(10));

fn routes(database: &Database, is_on_citus: bool, clock: &Monotonic) -> Routes {
    let options = PostgresOptions::parse(&database.address()).unwrap();
    Routes::new(&options.target, LIMITS, is_on_citus, clock.clone()).unwrap()
}

/// The node where the database is, by the port in its address.
fn itself(database: &Database) -> Node {
    let address = database.address();
    let port = address.rsplit_once('/').unwrap().0.rsplit_once(':').unwrap().1;
    ("127.0.0.1".to_owned(), port.parse().unwrap())
}

/// A node that refuses connections.
fn closed() -> Node {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    ("127.0.0.1".to_owned(), listener.local_addr().unwrap().port())
}

/// Tries a node, and returns whether it is used then.
async fn is_reached(owners: &Arc<Owners>, node: &Node) -> bool {
    assert!(owners.reached(node).is_none(), "nobody waits for the first connection");
    loop {
        match owners.nodes.lock().get(node) {
            Some(State::Trying) | None => {}
            Some(State::Reached(_)) => return true,
            Some(State::Away(_)) => return false,
        }
        tokio::task::yield_now().await;
    }
}

async fn works(connection: &mut Pooled) -> bool {
    connection.client().simple_query("select 1").await.is_ok()
}

#[tokio::test]
async fn a_home_whose_node_cannot_be_told_is_reached_through_the_entry() {
    let database = Database::create().unwrap();
    // Without the extension there is no catalog of nodes.
    let routes = routes(&database, true, &Monotonic::system());
    assert!(works(&mut routes.get(HOME).await.unwrap()).await);
    assert!(routes.target(HOME).is_none());
}

#[tokio::test]
async fn a_home_is_reached_through_its_node_once_that_answers() {
    let database = Database::create().unwrap();
    let routes = routes(&database, true, &Monotonic::system());
    let (owners, node) = (routes.owners.as_ref().unwrap(), itself(&database));
    owners.learn(HOME, &node);
    assert!(routes.target(HOME).is_none(), "it has not been tried");
    while routes.target(HOME).is_none() {
        tokio::task::yield_now().await;
    }
    // The entry has none: each of the two comes from the node.
    routes.entry.close();
    let mut both = [routes.get(HOME).await.unwrap(), routes.get(HOME).await.unwrap()];
    assert!(works(&mut both[0]).await && works(&mut both[1]).await);
    assert!(routes.get(HomeId(8)).await.is_err(), "it has no node yet");
}

#[tokio::test]
async fn a_node_that_is_not_reached_is_left_alone_for_a_while() {
    let database = Database::create().unwrap();
    let clock = Monotonic::manual();
    let routes = routes(&database, true, &clock);
    let (owners, node) = (routes.owners.as_ref().unwrap(), closed());
    owners.learn(HOME, &node);
    assert!(!is_reached(owners, &node).await);
    assert!(works(&mut routes.get(HOME).await.unwrap()).await, "through the entry");
    assert!(
        matches!(owners.nodes.lock().get(&node), Some(State::Away(_))),
        "nobody has tried it again"
    );
    clock.advance(AWAY_FOR);
    assert!(!is_reached(owners, &node).await, "it was tried again");
}

#[tokio::test]
async fn a_node_that_is_lost_is_asked_for_again() {
    let database = Database::create().unwrap();
    let routes = routes(&database, true, &Monotonic::system());
    let (owners, node) = (routes.owners.as_ref().unwrap(), itself(&database));
    owners.learn(HOME, &node);
    // As if it had answered before it ended.
    let gone = Connections::new(&owners.target_of(&closed()), 2, CONNECT).unwrap();
    owners.nodes.lock().insert(node.clone(), State::Reached(Arc::new(gone)));
    assert!(works(&mut routes.get(HOME).await.unwrap()).await, "through the entry");
    assert!(matches!(owners.nodes.lock().get(&node), Some(State::Away(_))));
    assert_eq!(owners.known(HOME), None);
}

#[tokio::test]
async fn shards_move_so_a_node_is_known_for_a_while_only() {
    let database = Database::create().unwrap();
    let clock = Monotonic::manual();
    let routes = routes(&database, true, &clock);
    let (owners, node) = (routes.owners.as_ref().unwrap(), itself(&database));
    owners.learn(HOME, &node);
    assert_eq!(owners.known(HOME), Some(node));
    clock.advance(KNOWN_FOR);
    assert_eq!(owners.known(HOME), None);
}

#[tokio::test]
async fn without_citus_everything_goes_to_the_entry() {
    let database = Database::create().unwrap();
    let routes = routes(&database, false, &Monotonic::system());
    assert!(routes.owners.is_none());
    assert!(works(&mut routes.get(HOME).await.unwrap()).await);
}
