use super::program;

#[test]
#[should_panic(expected = "The Debian package `a-package` brings it. As root, type: apt-get install --yes a-package")]
fn a_missing_program_is_named_with_the_command_that_brings_it() {
    let _ = program("a-program-that-nobody-has", "a-package");
}
