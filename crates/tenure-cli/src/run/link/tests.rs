use super::{Gone, Link, Order, Status, Tidings};
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;

fn pair() -> (Link, Link) {
    let (here, there) = UnixStream::pair().unwrap();
    (Link::new(here), Link::new(there))
}

#[test]
fn messages_arrive_whole_and_in_order() {
    let (mut run, mut watchdog) = pair();
    let orders = [
        Order::Until(7),
        Order::Signal(15),
        Order::Lost("a \"reason\"\n".into()),
        Order::Freeze,
        Order::Thaw { since: 8, end_at: 9 },
    ];
    for order in &orders {
        run.send(order);
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
    let (mut run, mut watchdog) = pair();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"input").unwrap();
    file.rewind().unwrap();
    run.hand_over(&file).unwrap();
    run.send(&Order::Until(1));
    let mut text = String::new();
    std::fs::File::from(watchdog.take_over().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "input");
    assert_eq!(watchdog.receive().unwrap(), Some(Order::Until(1)));
}

#[test]
fn a_status_is_what_a_shell_shows() {
    assert_eq!((Status::Exited(3).code(), Status::Killed(9).code()), (3, 137));
}

/// A run that was stopped does not read, and its watchdog sent so much that it waited for it, beyond the deadline.
#[test]
fn whoever_sends_does_not_wait_for_an_end_that_does_not_read() {
    let (mut watchdog, mut run) = pair();
    for _ in 0..20_000 {
        watchdog.send(&Tidings::Stopped(20));
    }
    assert!(watchdog.owes());
    let reading = std::thread::spawn(move || {
        let mut count = 0;
        while run.receive::<Tidings>().unwrap().is_some() {
            count += 1;
        }
        count
    });
    watchdog.finish();
    assert_eq!(reading.join().unwrap(), 20_000);
}
