use super::{Gone, Link, Order, Status, Tidings};
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;

fn pair() -> (Link, Link) {
    let (here, there) = UnixStream::pair().unwrap();
    (Link::new(here), Link::new(there))
}

#[test]
fn messages_arrive_whole_and_in_order() {
    let (run, mut watchdog) = pair();
    let orders =
        [Order::Until(7), Order::Signal(15), Order::Lost("a \"reason\"\n".into()), Order::Freeze, Order::Thaw(9)];
    for order in &orders {
        run.send(order).unwrap();
    }
    drop(run);
    for order in &orders {
        assert_eq!(watchdog.receive::<Order>().unwrap().as_ref(), Some(order));
    }
    assert_eq!(watchdog.receive::<Order>().unwrap(), None);
}

#[test]
fn a_message_in_pieces_waits_for_its_end() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut link = Link::new(there);
    let line = serde_json::to_vec(&Tidings::Gone(Gone { at: 5, ..Gone::default() })).unwrap();
    (&here).write_all(&line).unwrap();
    assert!(link.fill().unwrap());
    assert_eq!(link.waiting::<Tidings>().unwrap(), None);
    (&here).write_all(b"\n").unwrap();
    assert!(link.fill().unwrap());
    assert!(matches!(link.waiting::<Tidings>().unwrap(), Some(Tidings::Gone(gone)) if gone.at == 5));
}

#[test]
fn an_open_file_is_handed_over_before_the_first_message() {
    let (run, mut watchdog) = pair();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"input").unwrap();
    file.rewind().unwrap();
    run.hand_over(&file).unwrap();
    run.send(&Order::Until(1)).unwrap();
    let mut text = String::new();
    std::fs::File::from(watchdog.take_over().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "input");
    assert_eq!(watchdog.receive().unwrap(), Some(Order::Until(1)));
}

#[test]
fn a_status_is_what_a_shell_shows() {
    assert_eq!((Status::Exited(3).code(), Status::Killed(9).code()), (3, 137));
}
