use super::{read, write};

fn written(bytes: &[u8]) -> String {
    let mut text = String::new();
    write(&mut text, bytes);
    text
}

#[test]
fn the_examples_of_the_standard() {
    let examples =
        [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
    for (bytes, text) in examples {
        assert_eq!(written(bytes.as_bytes()), text);
        assert_eq!(read(text).as_deref(), Some(bytes.as_bytes()));
    }
}

#[test]
fn every_byte_comes_back() {
    let all: Vec<u8> = (0..=255).collect();
    for length in 0..=all.len() {
        assert_eq!(read(&written(&all[..length])).as_deref(), Some(&all[..length]));
    }
}

#[test]
fn what_is_none_is_refused() {
    for text in ["A", "AAAAA", "AB-D", "ABCD\n", "=A"] {
        assert_eq!(read(text), None, "{text:?}");
    }
}
