use super::on_free_ports;

#[test]
fn a_port_that_another_process_took_is_not_tried_again() {
    let mut tried = Vec::new();
    let got = on_free_ports("a server", |[port]| {
        tried.push(port);
        if tried.len() < 3 { Err("bind: Address already in use".to_owned()) } else { Ok(port) }
    });
    assert_eq!(tried.len(), 3);
    assert!(tried[0] != tried[1] && tried[1] != tried[2] && tried[2] == got);
}

#[test]
#[should_panic(expected = "a server did not start:\nno such option")]
fn a_server_that_does_not_start_for_another_reason_says_why() {
    on_free_ports("a server", |[_]: [u16; 1]| Err::<(), _>("no such option".to_owned()));
}
