use super::*;

#[test]
fn what_comes_out_is_what_went_in() {
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
        let content: Vec<u8> = (0..=250).cycle().take(size).collect();
        let mut spool = Spool::of(&mut content.as_slice(), folder.path(), None).unwrap();
        assert_eq!(spool.bytes(), size as u64);
        assert_eq!(spool.digest().0, <[u8; 32]>::from(Sha256::digest(&content)));
        let mut target = tempfile::tempfile().unwrap();
        spool.copy_to(&mut target).unwrap();
        target.rewind().unwrap();
        let mut copy = Vec::new();
        target.read_to_end(&mut copy).unwrap();
        assert!(copy == content, "{size} bytes");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves nothing behind");
}
