//! One row per lock, one statement per step, prepared, a connection for each caller.

use crate::{ByHand, compare};
use tenure_servers::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

pub(crate) fn run() {
    let server = Postgres::options().conf("shared_buffers = 256MB").conf("max_connections = 200").start();
    let (url, ours) = (server.database(), server.database());
    server.psql("SELECT 1");
    let compared = format!("{ours}?create=true");
    compare("PostgreSQL, synchronous_commit on", &compared, |runtime, callers| hands(runtime, &url, callers));
}

struct Hand {
    client: Client,
    acquire: Statement,
    release: Statement,
    renew: Statement,
    key: String,
}

fn hands(runtime: &Runtime, url: &str, callers: usize) -> Vec<Hand> {
    runtime.block_on(async {
        let mut hands = Vec::new();
        for n in 0..callers {
            hands.push(Hand::connect(url, n).await);
        }
        hands
    })
}

impl Hand {
    async fn connect(url: &str, n: usize) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        let table = "CREATE TABLE IF NOT EXISTS lock (key text PRIMARY KEY, holder text, epoch bigint NOT NULL, \
                     expires timestamptz NOT NULL)";
        client.batch_execute(table).await.expect("a table");
        let key = format!("key-{n}");
        let row = "INSERT INTO lock VALUES ($1, 'me', 1, clock_timestamp() + interval '120 s') \
                   ON CONFLICT (key) DO UPDATE SET holder = 'me', expires = excluded.expires";
        client.execute(row, &[&key]).await.expect("a row");
        client.execute("UPDATE lock SET holder = NULL WHERE key = $1", &[&key]).await.expect("a row");
        let prepare = async |sql: &str| client.prepare(sql).await.expect("a statement");
        let acquire = prepare(
            "UPDATE lock SET holder = $2, epoch = epoch + 1, expires = clock_timestamp() + interval '120 s' \
             WHERE key = $1 AND (holder IS NULL OR expires <= clock_timestamp()) RETURNING epoch",
        )
        .await;
        let release = prepare("UPDATE lock SET holder = NULL WHERE key = $1 AND holder = $2 RETURNING epoch").await;
        let renew = prepare(
            "UPDATE lock SET expires = clock_timestamp() + interval '120 s' \
             WHERE key = $1 AND expires > clock_timestamp() RETURNING epoch",
        )
        .await;
        Self { client, acquire, release, renew, key }
    }
}

impl ByHand for Hand {
    async fn cycle(&mut self) {
        self.client.query_one(&self.acquire, &[&self.key, &"me"]).await.expect("acquired");
        self.client.query_one(&self.release, &[&self.key, &"me"]).await.expect("released");
    }

    async fn renew(&mut self) {
        self.client.query_one(&self.renew, &[&self.key]).await.expect("renewed");
    }
}
