//! Starts a server to try something by hand: prints its address and ends it when stdin ends.

use std::io::Read;
use std::process::ExitCode;

use tenure_servers::{Chroma, Etcd, PgBouncer, Postgres, Redis, S3};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "postgres" => serve(&Postgres::shared().url()),
        "pgvector" => serve(&Postgres::shared_with_vectors().url()),
        "chroma" => serve(&Chroma::shared().url()),
        "pgbouncer" => serve(&PgBouncer::start(Postgres::shared()).url()),
        "redis" => serve(&Redis::shared().url()),
        "etcd" => serve(&Etcd::shared().url()),
        "etcd-cluster" => serve(&Etcd::cluster().url()),
        "s3" => {
            let s3 = S3::shared();
            for (name, value) in s3.credentials() {
                println!("export {name}={value}");
            }
            serve(&format!("s3://{}/first?endpoint={}", s3.bucket(), s3.endpoint()));
        }
        _ => {
            eprintln!(
                "Which server? postgres, pgvector, pgbouncer, redis, etcd, etcd-cluster, s3 or chroma. It ends with Ctrl-D."
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn serve(url: &str) {
    println!("{url}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
