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

/// How long one is waited for once most of them have answered.
const GRACE: Duration = Duration::from_millis(50);

/// What one of them said: the configuration's number and the server; `None` when it does not know the name.
type Said = Result<Option<(u64, Node)>, StoreError>;

/// All that one knows of a primary, and where it is.
type Named = (HashMap<String, String>, Option<(String, u16)>);

impl Sentinels {
    pub(super) fn new(place: Arc<Place>) -> Self {
        Self { place, open: Arc::default() }
    }

    /// The server that the newest configuration names, of those of the Sentinels that answer. Each failover has a higher
    /// number, and one that was away for a while may name a former primary.
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
        let (mut newest, mut heard, mut is_unknown, mut failed) = (None::<(u64, Node)>, 0, false, None);
        loop {
            let patience = if 2 * heard > nodes.len() { GRACE } else { 2 * PATIENCE };
            match tokio::time::timeout(patience, asked.join_next()).await {
                Err(_) | Ok(None) => break,
                Ok(Some(Ok(Ok(Some(said))))) => {
                    heard += 1;
                    // The node decides between equals, so that the same one is named each time.
                    newest = newest.max(Some(said));
                }
                Ok(Some(Ok(Ok(None)))) => is_unknown = true,
                Ok(Some(Ok(Err(error)))) => failed = Some(error),
                Ok(Some(Err(_))) => {}
            }
        }
        match newest {
            Some((_, node)) => Ok(node),
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
    // While a failover comes to its end, only the second one names the new primary. In this order an old address never
    // has a new number.
    let mut asked = redis::pipe();
    asked.cmd("SENTINEL").arg("MASTER").arg(name);
    asked.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let said = asked.query_async::<Named>(&mut connection).await;
    let to = format!("the Sentinel {node}");
    let (fields, address) = match said {
        Err(error) if error.to_string().contains("No such master") => return Ok(None),
        said => said.map_err(|error| super::fault::of_connecting(&error, &to, place))?,
    };
    let epoch = fields.get("config-epoch").and_then(|epoch| epoch.parse().ok());
    let Some(epoch) = epoch else {
        return Err(StoreError::Unavailable(format!("{to} does not say how new its configuration of {name:?} is")));
    };
    Ok(address.map(|(host, port)| (epoch, Node(host, port))))
}
