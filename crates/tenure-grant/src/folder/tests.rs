use super::{KeyFolder, KeyState, OVERLAP};
use crate::error::KeyError;
use crate::wall::WallClock;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use tempfile::TempDir;

struct Keys {
    outer: TempDir,
    time: Arc<AtomicU64>,
}

impl Keys {
    fn new() -> Self {
        Self { outer: tempfile::tempdir().unwrap(), time: Arc::new(AtomicU64::new(1_800_000_000)) }
    }

    fn folder(&self) -> KeyFolder {
        let path = self.outer.path().join("tenure/keys");
        KeyFolder::new(path).with_clock(WallClock::Manual(Arc::clone(&self.time)))
    }

    fn states(&self) -> Vec<KeyState> {
        self.folder().list().unwrap().iter().map(|info| info.state).collect()
    }
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn keys_are_made_at_the_first_use_and_belong_to_their_owner_alone() {
    let keys = Keys::new();
    let signs = keys.folder().active().unwrap().id().clone();
    let made = keys.folder().list().unwrap();
    assert_eq!(made[0].id, signs);
    assert_eq!(keys.folder().make().unwrap(), made);
    assert_eq!(keys.states(), [KeyState::Active, KeyState::Next]);
    assert_eq!(keys.folder().list().unwrap(), made, "the second use finds those of the first");
    assert_eq!((mode(keys.folder().path()), mode(&keys.folder().file())), (0o700, 0o600));
    let left: Vec<_> = fs::read_dir(keys.folder().path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["keys.json"], "nothing else stays there");
}

/// Whoever mistyped the folder was given new keys there, and handed out public halves of keys that nobody signs with.
#[test]
fn whoever_looks_into_a_folder_without_keys_is_told_and_makes_none() {
    let keys = Keys::new();
    let folder = keys.folder();
    let id = crate::SigningKey::generate().unwrap().id().clone();
    let looks = [
        folder.list().map(drop),
        folder.public_keys().map(drop),
        folder.rotate().map(drop),
        folder.remove(&id, true).map(drop),
    ];
    for look in looks {
        let error = look.unwrap_err();
        assert!(matches!(&error, KeyError::NoKeys { path } if path == folder.path()), "{error}");
        assert!(error.to_string().contains("--keys"), "{error}");
    }
    assert!(!folder.path().exists() && !keys.outer.path().join("tenure").exists());
}

#[test]
fn of_two_that_come_at_once_both_use_the_same_keys() {
    const COMERS: usize = 8;
    for _ in 0..20 {
        let (keys, start) = (Keys::new(), Barrier::new(COMERS));
        let seen: Vec<_> = std::thread::scope(|scope| {
            let comers: Vec<_> = (0..COMERS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        keys.folder().make().unwrap()
                    })
                })
                .collect();
            comers.into_iter().map(|comer| comer.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|other| *other == seen[0]), "{seen:?}");
    }
}

#[test]
fn a_key_file_that_others_can_read_is_refused_by_name() {
    let keys = Keys::new();
    keys.folder().make().unwrap();
    let path = keys.folder().file();
    for open in [0o640, 0o604, 0o660, 0o644] {
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = keys.folder().list().unwrap_err();
        assert!(matches!(&error, KeyError::Exposed { mode, .. } if *mode == open), "{error}");
        let error = error.to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("chmod 600"), "{error}");
        assert!(keys.folder().rotate().is_err() && keys.folder().active().is_err());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(keys.folder().path(), Permissions::from_mode(0o770)).unwrap();
    let error = keys.folder().list().unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");
}

#[test]
fn a_rotation_lets_the_known_key_sign_and_keeps_the_old_one_until_its_signatures_have_expired() {
    let keys = Keys::new();
    let before = keys.folder().make().unwrap();
    keys.time.fetch_add(7_200, Ordering::AcqRel);
    let rotation = keys.folder().rotate().unwrap();
    assert_eq!(rotation.active.id, before[1].id);
    assert_eq!(rotation.retired.id, before[0].id);
    assert_eq!((rotation.known_for.as_secs(), rotation.gone.len()), (7_200, 0));
    assert_eq!(keys.states(), [KeyState::Active, KeyState::Next, KeyState::Retired]);
    assert_eq!(keys.folder().active().unwrap().id(), &before[1].id);
    let known = |id| keys.folder().public_keys().unwrap().find(id).is_some();
    assert!(before.iter().all(|info| known(&info.id)) && known(&rotation.next.id));
    keys.time.fetch_add(OVERLAP.as_secs() - 1, Ordering::AcqRel);
    assert!(known(&before[0].id));
    keys.time.fetch_add(1, Ordering::AcqRel);
    assert!(!known(&before[0].id), "its last signature has expired");
    let again = keys.folder().rotate().unwrap();
    assert_eq!(again.gone, [before[0].id.clone()]);
    assert_eq!(keys.states(), [KeyState::Active, KeyState::Next, KeyState::Retired]);
}

#[test]
fn the_key_that_signs_stays_and_one_that_was_stolen_goes_at_once() {
    let keys = Keys::new();
    let [active, next] = <[_; 2]>::try_from(keys.folder().make().unwrap()).unwrap();
    let error = keys.folder().remove(&active.id, true).unwrap_err().to_string();
    assert!(error.contains("rotate first"), "{error}");
    assert_eq!(keys.folder().remove(&next.id, false).unwrap(), next);
    assert_eq!(keys.states(), [KeyState::Active, KeyState::Next], "there is always a next one");
    keys.folder().rotate().unwrap();
    let error = keys.folder().remove(&active.id, false).unwrap_err().to_string();
    assert!(error.contains("--at-once"), "{error}");
    keys.folder().remove(&active.id, true).unwrap();
    assert!(keys.folder().public_keys().unwrap().find(&active.id).is_none());
    assert!(matches!(keys.folder().remove(&active.id, true), Err(KeyError::NoKey { .. })));
}

#[test]
fn two_do_not_change_the_keys_at_once() {
    let keys = Keys::new();
    keys.folder().make().unwrap();
    let guard = super::file::guard(keys.folder().path()).unwrap();
    assert!(matches!(keys.folder().rotate(), Err(KeyError::Busy { .. })));
    drop(guard);
    keys.folder().rotate().unwrap();
}

/// A change that failed at its last step left the new private keys beside the old ones, for ever.
#[test]
fn a_change_that_fails_leaves_no_secrets_behind() {
    let keys = Keys::new();
    keys.folder().make().unwrap();
    let stored = keys.folder().load().unwrap();
    fs::remove_file(keys.folder().file()).unwrap();
    // What no rename replaces.
    fs::create_dir(keys.folder().file()).unwrap();
    let error = super::file::replace(keys.folder().path(), &stored).unwrap_err().to_string();
    assert!(error.contains("replacing"), "{error}");
    let left: Vec<_> = fs::read_dir(keys.folder().path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["keys.json"]);
}

/// A rotation that was killed before its last step left private keys aside, and no later change removed them.
#[test]
fn what_a_killed_change_has_left_aside_is_removed_by_the_next_one() {
    let keys = Keys::new();
    keys.folder().make().unwrap();
    let aside = |name: &str, age: u64| {
        let path = keys.folder().path().join(name);
        let file = fs::File::create(&path).unwrap();
        let made = file.metadata().unwrap().modified().unwrap();
        file.set_modified(made - std::time::Duration::from_secs(age)).unwrap();
        path
    };
    let left = aside(".keys.json.0123456789abcdef", 3_600);
    // One that is under way, and what is not of this program.
    let under_way = aside(".keys.json.0123456789abcde0", 5);
    let others = [".keys.json.backup", ".keys.json.0123", "keys.json.0123456789abcdef", ".keys.json.0123456789abcdefg"];
    let others = others.map(|name| aside(name, 3_600));
    keys.folder().rotate().unwrap();
    assert!(!left.exists(), "secrets that nothing uses");
    assert!(under_way.exists() && others.iter().all(|path| path.exists()));
}

#[test]
fn a_damaged_file_is_named_and_left_and_its_message_holds_no_secret() {
    let keys = Keys::new();
    keys.folder().make().unwrap();
    let path = keys.folder().file();
    let whole = fs::read_to_string(&path).unwrap();
    let secret = whole.split("\"d\": \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(secret.len(), 43);
    let damaged = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace("\"version\": 1", "\"version\": 2"),
        whole.replace("\"active\"", "\"next\""),
        whole.replace("\"OKP\"", "\"EC\""),
        whole.replace("\"kid\"", "\"kind\""),
        whole.replacen(&secret, &"A".repeat(43), 1),
        whole.replacen(&secret, &secret[..40], 1),
        whole.replacen("\"created\": ", &format!("\"created\": \"{secret}\", \"was\": "), 1),
    ];
    for text in damaged {
        fs::write(&path, &text).unwrap();
        let error = keys.folder().active().map(drop).unwrap_err().to_string();
        assert!(error.contains("keys.json is damaged"), "{error}");
        assert!(!error.contains(&secret), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left as it was");
    }
}
