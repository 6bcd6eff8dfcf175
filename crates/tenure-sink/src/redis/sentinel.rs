//! Who is the primary, by the word of the Sentinels.

use super::fault;
use super::place::{Node, Place};
use super::server::connected;
use crate::SinkError;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long one is waited for once most of them have answered.
const GRACE: Duration = Duration::from_millis(50);

/// What one of them said: the configuration's number and the server; `None` when it does not know the name.
type Said = Result<Option<(u64, Node)>, SinkError>;

/// All that one knows of a primary, and where it is.
type Named = (HashMap<String, String>, Option<(String, u16)>);

/// The server that the newest configuration names, of those of the Sentinels that answer: one that was away for a while may
/// name a former primary.
pub(super) fn primary(place: &Arc<Place>, nodes: &[Node], name: &str) -> Result<Node, SinkError> {
    let (answers, answered) = channel::<Said>();
    let (mut newest, mut heard, mut is_unknown, mut failed) = (None::<(u64, Node)>, 0, false, None);
    for node in nodes {
        let of = format!("the Sentinel {node}");
        let (place, node, name, answers) = (Arc::clone(place), node.clone(), name.to_owned(), answers.clone());
        let asks = move || {
            // Nobody may be listening any more.
            let _ = answers.send(ask(&place, &node, &name));
        };
        // Where the system has no thread to spare, the others may be enough.
        if let Err(error) = std::thread::Builder::new().name("tenure-sentinel".to_owned()).spawn(asks) {
            let why = format!("no thread could be started to ask it: {error}");
            failed = Some(SinkError::Unreachable { place: of, why });
        }
    }
    drop(answers);
    loop {
        let patience = if 2 * heard > nodes.len() { GRACE } else { 2 * PATIENCE };
        match answered.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            Ok(Ok(Some(said))) => {
                heard += 1;
                // The node decides between equals, so that the same one is named each time.
                newest = newest.max(Some(said));
            }
            Ok(Ok(None)) => is_unknown = true,
            Ok(Err(error)) => failed = Some(error),
        }
    }
    match newest {
        Some((_, node)) => Ok(node),
        None if is_unknown => Err(SinkError::Address {
            url: place.shown.clone(),
            why: format!("its Sentinels know no primary of the name {name:?}"),
        }),
        None => Err(failed.unwrap_or_else(|| SinkError::Unreachable {
            place: place.shown.clone(),
            why: "no Sentinel answers".to_owned(),
        })),
    }
}

fn ask(place: &Place, node: &Node, name: &str) -> Said {
    let of = format!("the Sentinel {node}");
    let client = place.sentinel(node).map_err(|error| fault::of_connecting(&error, &of))?;
    let mut connection = connected(&client, PATIENCE, &of)?;
    // While a failover comes to its end, only the second one names the new primary. In this order an old address never
    // has a new number.
    let mut asked = redis::pipe();
    asked.cmd("SENTINEL").arg("MASTER").arg(name);
    asked.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let (fields, address) = match asked.query::<Named>(&mut connection) {
        Err(error) if error.to_string().contains("No such master") => return Ok(None),
        said => said.map_err(|error| fault::of_connecting(&error, &of))?,
    };
    match fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()) {
        Some(epoch) => Ok(address.map(|(host, port)| (epoch, Node(host, port)))),
        None => Err(SinkError::Unreachable {
            place: of,
            why: format!("it does not say how new its configuration of {name:?} is"),
        }),
    }
}
