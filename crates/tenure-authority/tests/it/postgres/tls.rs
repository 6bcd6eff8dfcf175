//! Connections that nobody else reads.

use super::{error, looked, store};
use tenure_authority::StoreError;
use tenure_servers::postgres::psql;
use tenure_servers::{Certificates, Postgres};

#[test]
fn tls_is_spoken_and_the_server_is_checked() {
    let server = Postgres::options().tls().start();
    let database = server.database();
    let ca = server.ca().display().to_string();
    let url = format!("{database}?sslmode=verify-full&tls_ca={ca}");
    let store = store(&format!("{url}&create=true"));
    looked(&store).expect("over TLS");
    let plain = "select count(*) from pg_stat_ssl s join pg_stat_activity a using (pid) \
                 where a.application_name = 'tenure' and a.datname = current_database() and s.ssl";
    assert_ne!(psql(&database, plain).expect("SQL"), "0");
    // Nobody vouches for it, and another authority does not either.
    let stranger = Certificates::make();
    for url in [
        format!("{database}?sslmode=require"),
        // Offered TLS is taken, and then checked: falling back would help whoever stands between.
        database.clone(),
        format!("{database}?sslmode=require&tls_ca={}", stranger.ca().display()),
    ] {
        let error = error(&url);
        assert!(matches!(error, StoreError::Address { .. }), "{url}: {error:?}");
        assert!(error.to_string().contains("tls_ca=FILE"), "{error}");
    }
    looked(&super::store(&format!("{database}?sslmode=disable"))).expect("in the clear, when asked for");
}

#[test]
fn a_server_without_tls_is_refused_when_tls_is_asked_for() {
    let server = Postgres::shared();
    let error = error(&format!("{}?sslmode=verify-full&tls_ca={}", server.database(), server.ca().display()));
    assert!(error.to_string().contains("does not support TLS"), "{error}");
}
