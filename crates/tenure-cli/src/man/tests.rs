use super::{after, ascii, escaped};
use clap::Command;

#[test]
fn what_stands_behind_the_options_keeps_its_lines() {
    let help =
        "Examples:\n  tenure run -- a\n  .hidden \\n\n\nIt is prose\nof two lines.\n\nExit status:\n  0   success";
    let expected = ".SH \"EXAMPLES\"\n.nf\ntenure run \\-\\- a\n\\&.hidden \\en\n.PP\n.fi\nIt is prose\nof two lines.\n.PP\n\
                    .SH \"EXIT STATUS\"\n.nf\n0   success\n.fi\n";
    assert_eq!(after(&Command::new("x").after_help(help)), expected);
    assert_eq!(after(&Command::new("x")), "");
}

#[test]
fn roff_reads_text_as_text() {
    assert_eq!(escaped("'a' \\ -b"), "\\&'a' \\e \\-b");
    assert_eq!(ascii("a – b"), "a \\[u2013] b");
}
