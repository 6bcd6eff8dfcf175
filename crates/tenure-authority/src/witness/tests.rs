use super::{FileMark, Scribe, Witness, WitnessFolder};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;
use tenure_core::record::Seen;
use tenure_core::{StoreIdentity, Ttl};

fn witness(incarnation: u64, number: u64) -> Witness {
    Witness {
        identity: StoreIdentity::new("postgres:7312/1 of a cluster").expect("a name"),
        seen: Seen { incarnation, number },
        max_ttl: Ttl::MAX,
        longest_ttl: None,
        file: None,
    }
}

#[test]
fn what_was_written_is_read_back_and_nothing_else_is() {
    let plain = witness(3, 17);
    let full = Witness {
        longest_ttl: Some(Ttl::DEFAULT),
        file: Some(FileMark { inode: 12, born: Some(1_700_000_000_000_000_001) }),
        ..witness(1, 0)
    };
    for witness in [plain, full] {
        let text = witness.text();
        assert_eq!(Witness::parse(&text), Some(witness));
        for cut in 0..text.len() {
            assert_eq!(Witness::parse(&text[..cut]), None, "cut off after {cut} bytes");
        }
        assert_eq!(Witness::parse(&text.replace("number", "n")), None);
        assert_eq!(Witness::parse(&format!("{text}more\n")), None);
    }
}

#[test]
fn the_newest_stays_whoever_comes_last() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = WitnessFolder::new(home.path().join("state/witness"));
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), None);
    folder.record(&witness(1, 9)).expect("written");
    folder.record(&witness(1, 4)).expect("nothing to write");
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), Some(witness(1, 9)));
    folder.record(&witness(2, 1)).expect("written");
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), Some(witness(2, 1)));
    let other = StoreIdentity::new("postgres:7312_1 of a cluster").expect("a name");
    assert_eq!(folder.load(&other).expect("no error"), None, "another store, though the plain name is the same");
}

#[test]
fn eight_threads_leave_the_newest_and_nothing_beside_it() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = WitnessFolder::new(home.path().to_path_buf());
    folder.record(&witness(1, 0)).expect("written");
    std::thread::scope(|scope| {
        for first in 1..=8 {
            let folder = &folder;
            scope.spawn(move || {
                for number in (first..=200).step_by(8) {
                    folder.record(&witness(1, number)).expect("written");
                }
                // Whoever did not get its turn comes again.
                folder.record(&witness(1, 200)).expect("written");
            });
        }
    });
    folder.record(&witness(1, 200)).expect("written");
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), Some(witness(1, 200)));
    assert_eq!(std::fs::read_dir(home.path()).expect("the folder").count(), 1);
}

#[test]
fn a_damaged_witness_is_put_aside_and_written_anew() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = WitnessFolder::new(home.path().to_path_buf());
    folder.record(&witness(1, 9)).expect("written");
    let entry = std::fs::read_dir(home.path()).expect("the folder").next().expect("a file").expect("a file");
    assert_eq!(entry.metadata().expect("its mode").permissions().mode() & 0o777, 0o600);
    std::fs::write(entry.path(), b"tenure witness 1\nstore \xff").expect("damaged");
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), None);
    folder.record(&witness(1, 3)).expect("written");
    assert_eq!(folder.load(&witness(1, 1).identity).expect("no error"), Some(witness(1, 3)));
    assert_eq!(std::fs::read_dir(home.path()).expect("the folder").count(), 2);
}

#[test]
fn a_scribe_writes_what_it_was_told_last_and_little_in_between() {
    let (tell, told) = mpsc::channel();
    let scribe = Scribe::start(move |number: u32| tell.send(number).expect("a listener")).expect("a thread");
    scribe.tell(1);
    assert_eq!(told.recv_timeout(Duration::from_secs(5)), Ok(1));
    (2..=1_000).for_each(|number| scribe.tell(number));
    drop(scribe);
    let rest: Vec<u32> = told.iter().collect();
    assert_eq!(rest.last(), Some(&1_000));
    assert!(rest.len() < 5, "{rest:?}");
}
