use super::super::finding::Verdict;
use super::*;

#[test]
fn the_file_of_an_address_is_found() {
    let cases = [
        ("sqlite:a.db", Some("a.db")),
        ("sqlite:///var/a.db?create=true", Some("/var/a.db")),
        ("sqlite:/var/what%3F.db", Some("/var/what?.db")),
        ("sqlite:", None),
        ("sqlite:a%4", None),
        ("memory:", None),
    ];
    for (url, expected) in cases {
        assert_eq!(path_of(url), expected.map(PathBuf::from), "{url}");
    }
}

#[test]
fn an_authority_on_a_network_file_system_is_wrong_and_one_in_memory_is_suspicious() {
    let path = Path::new("/x");
    assert_eq!(kind_of(0x6969, path).verdict, Verdict::Fail);
    assert_eq!(kind_of(0xfe53_4d42, path).verdict, Verdict::Fail);
    assert_eq!(kind_of(TMPFS, path).verdict, Verdict::Warn);
    assert_eq!(kind_of(FUSE, path).verdict, Verdict::Warn);
    assert_eq!(kind_of(0xef53, path).verdict, Verdict::Ok, "ext4");
}

#[test]
fn little_room_is_said_before_it_is_none() {
    let found = |free: u64| StatVfs { f_bavail: free / 4096, f_frsize: 4096, ..statvfs("/").unwrap() };
    let path = Path::new("/x");
    assert_eq!(room_of(&found(8 << 20), path).verdict, Verdict::Fail);
    assert_eq!(room_of(&found(100 << 20), path).verdict, Verdict::Warn);
    assert_eq!(room_of(&found(1 << 30), path).verdict, Verdict::Ok);
}
