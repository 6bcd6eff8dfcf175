//! Who is the primary, by the word of the Sentinels.

use super::fault::address;
use super::link::connect;
use super::place::{Node, Place, Target};
use crate::StoreError;
use redis::PushInfo;
use redis::aio::MultiplexedConnection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The Sentinels, with the connections to them that are open.
#[derive(Debug)]
pub(super) struct Sentinels {
    place: Arc<Place>,
    open: Arc<Mutex<HashMap<Node, MultiplexedConnection>>>,
}

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// What one of them said: `None` when it does not know the name.
type Said = Result<Option<Node>, StoreError>;

impl Sentinels {
    pub(super) fn new(place: Arc<Place>) -> Self {
        Self { place, open: Arc::default() }
    }

    /// The server that most of those who answer name. One that was away for a while may name a former one.
    pub(super) async fn primary(&self) -> Result<Node, StoreError> {
        let Target::Sentinels { nodes, primary } = &self.place.target else {
            return Err(StoreError::Unavailable(format!("{} has no Sentinels", self.place.shown)));
        };
        let mut asked = JoinSet::new();
        for node in nodes {
            let (place, open, node, name) =
                (Arc::clone(&self.place), Arc::clone(&self.open), node.clone(), primary.clone());
            asked.spawn(async move { ask(&place, &open, node, &name).await });
        }
        let (mut named, mut is_unknown, mut failed) = (HashMap::<Node, usize>::new(), false, None);
        while let Some(said) = asked.join_next().await {
            match said {
                Ok(Ok(Some(node))) => *named.entry(node).or_default() += 1,
                Ok(Ok(None)) => is_unknown = true,
                Ok(Err(error)) => failed = Some(error),
                Err(_) => {}
            }
            // Nobody else can change it any more.
            if let Some((node, _)) = named.iter().find(|(_, times)| 2 * **times > nodes.len()) {
                return Ok(node.clone());
            }
        }
        match named.into_iter().max_by_key(|(_, times)| *times) {
            Some((node, _)) => Ok(node),
            None if is_unknown => {
                Err(address(&self.place, format!("its Sentinels know no primary of the name {primary:?}")))
            }
            None => Err(failed
                .unwrap_or_else(|| StoreError::Unavailable(format!("no Sentinel of {} answers", self.place.shown)))),
        }
    }
}

async fn ask(place: &Place, open: &Mutex<HashMap<Node, MultiplexedConnection>>, node: Node, name: &str) -> Said {
    let said = tokio::time::timeout(PATIENCE, ask_patiently(place, open, &node, name)).await;
    let said = said.unwrap_or_else(|_| Err(StoreError::Unavailable(format!("the Sentinel {node} does not answer"))));
    if said.is_err() {
        open.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
    }
    said
}

async fn ask_patiently(
    place: &Place,
    open: &Mutex<HashMap<Node, MultiplexedConnection>>,
    node: &Node,
    name: &str,
) -> Said {
    let known = open.lock().unwrap_or_else(PoisonError::into_inner).get(node).cloned();
    let mut connection = match known {
        Some(connection) => connection,
        None => {
            let ignore = |_: PushInfo| Ok::<(), std::convert::Infallible>(());
            let connection = connect(place, node, place.sentinel(node), ignore).await?;
            open.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone(), connection.clone());
            connection
        }
    };
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let said: Option<(String, u16)> = command
        .query_async(&mut connection)
        .await
        .map_err(|error| super::fault::of_connecting(&error, &format!("the Sentinel {node}"), place))?;
    Ok(said.map(|(host, port)| Node(host, port)))
}
