//! A lease, a transaction that puts the key if it is absent, and the lease's end; renewal is the lease's keep-alive. Over
//! the same JSON gateway as ours.

use crate::{ByHand, compare};
use serde_json::{Value, json};
use tenure_servers::Etcd;
use tokio::runtime::Runtime;

pub(crate) fn run() {
    let server = Etcd::start();
    let endpoint = format!("http://{}", server.endpoints()[0]);
    let ours = format!("{}?create=true&name=bench", server.url());
    compare("etcd, one member, over its JSON gateway", &ours, |runtime, callers| hands(runtime, &endpoint, callers));
}

struct Hand {
    client: reqwest::Client,
    endpoint: String,
    key: String,
    lease: Option<String>,
}

fn hands(_: &Runtime, endpoint: &str, callers: usize) -> Vec<Hand> {
    // Reqwest looks for a provider even where nothing is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    // Four bytes, whose base64 needs no padding.
    let hand = |n: usize| Hand { client: client.clone(), endpoint: endpoint.to_owned(), key: key(n), lease: None };
    (0..callers).map(hand).collect()
}

/// base64 of `kNN` + a filler is not needed: any base64 text names a key.
fn key(n: usize) -> String {
    format!("key{}", char::from(b'A' + u8::try_from(n % 26).unwrap_or(0))) + &format!("{n:04}")
}

impl Hand {
    async fn call(&self, path: &str, body: &Value) -> Value {
        let answer = self.client.post(format!("{}{path}", self.endpoint)).json(body).send().await.expect("an answer");
        answer.error_for_status().expect("success").json().await.expect("JSON")
    }

    async fn grant(&self) -> String {
        let granted = self.call("/v3/lease/grant", &json!({ "TTL": "120" })).await;
        granted["ID"].as_str().expect("an id").to_owned()
    }
}

impl ByHand for Hand {
    async fn cycle(&mut self) {
        let lease = self.grant().await;
        let txn = json!({
            "compare": [{ "key": self.key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" }],
            "success": [{ "request_put": { "key": self.key, "value": "bWUh", "lease": lease } }],
        });
        let made = self.call("/v3/kv/txn", &txn).await;
        assert_eq!(made["succeeded"], true, "{made}");
        self.call("/v3/lease/revoke", &json!({ "ID": lease })).await;
    }

    async fn renew(&mut self) {
        if self.lease.is_none() {
            self.lease = Some(self.grant().await);
        }
        let kept = self.call("/v3/lease/keepalive", &json!({ "ID": self.lease })).await;
        assert!(kept["result"]["TTL"].is_string(), "{kept}");
    }
}
