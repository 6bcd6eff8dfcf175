//! A server of vectors.

use tenure_servers::Chroma;

#[test]
fn it_comes_back_with_its_collections() {
    let chroma = Chroma::start();
    let all = "/api/v2/tenants/default_tenant/databases/default_database/collections";
    assert!(chroma.ask("POST", all, r#"{"name": "one"}"#).contains(r#""name":"one""#));
    chroma.kill();
    assert!(std::net::TcpStream::connect(("127.0.0.1", chroma.port())).is_err());
    chroma.restart();
    assert!(chroma.ask("GET", &format!("{all}/one"), "").contains(r#""name":"one""#), "{}", chroma.log());
}
