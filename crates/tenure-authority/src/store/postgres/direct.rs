//! Whether a pooler stands between.

use tokio::io::{AsyncReadExt, duplex};
use tokio_postgres::{Client, NoTls};

/// What a request to cancel a statement is on the wire: length, code, process, key; four bytes each.
const REQUEST: usize = 16;

/// Whether this is a connection to a process of the server, and no pooler's, which would hand the next transaction to
/// another process. Only then may a statement be kept in the session: behind a pooler, its name may be somebody else's
/// there.
///
/// The server tells its process at the start, for requests to cancel; a pooler tells a number of its own. `false` also
/// where it cannot be told, as when TLS is required.
pub(super) async fn is_direct(client: &Client) -> bool {
    let Some(told) = told(client).await else { return false };
    let process = client.query_typed("SELECT pg_backend_pid()", &[]).await;
    let process = process.ok().and_then(|rows| rows.first()?.try_get::<_, i32>(0).ok());
    process == Some(told)
}

/// The process as it was told. The driver keeps it to itself, and writes it into a request, which goes nowhere here.
async fn told(client: &Client) -> Option<i32> {
    let (near, mut far) = duplex(REQUEST);
    client.cancel_token().cancel_query_raw(near, NoTls).await.ok()?;
    let mut request = [0; REQUEST];
    far.read_exact(&mut request).await.ok()?;
    let (_, process) = request.split_at(8);
    Some(i32::from_be_bytes(process.get(..4)?.try_into().ok()?))
}
