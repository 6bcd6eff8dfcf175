//! Texts that are made to harm: any of them is cut, in a time and on a stack that do not depend on what is nested in it. A
//! reader that took the square of the time would not be done with these before the day is over.

use super::*;
use crate::chunk::cut::weight;
use proptest::prelude::*;

const ALL: [Format; 4] = [Format::Markdown, Format::Html, Format::Rst, Format::Text];

#[test]
fn what_is_nested_without_end_is_cut() {
    let nested = [
        "[",
        "<div>",
        "<div><",
        "](",
        "![[",
        "`",
        "``a`",
        "*",
        "**_",
        "> ",
        "- ",
        ">>> ",
        "  - ",
        "&",
        "&amp",
        "<!--",
        "<!",
        "<a b=",
        "<svg>",
        "<nav>",
        "<pre>",
        "<h1>",
        "<b><i>",
        "\n# ",
        "\n#a\n",
        ".. ",
        ".. a::\n ",
        "\n::\n\n ",
        ":a:`",
        ":a:`b`",
        "|",
        "\n|a|b|\n|-|-|",
        "\\",
        "a_ ",
        "~~",
        "---\n",
        "=\n",
        "====\na\n",
        "[^a]:",
        "[^a]",
        "<?",
        "<![CDATA[",
        "\t",
        "\r",
        "x",
        "漢",
        "\u{301}",
    ];
    for part in nested {
        ALL.into_iter().for_each(|format| cuts(format, part, 50_000));
    }
}

#[test]
fn so_is_a_very_long_one() {
    let long = [
        (Format::Markdown, "["),
        (Format::Markdown, "[^a]"),
        (Format::Html, "<div>"),
        (Format::Rst, "``a`"),
        (Format::Text, "x"),
    ];
    long.into_iter().for_each(|(format, part)| cuts(format, part, 2_000_000));
}

fn cuts(format: Format, part: &str, size: usize) {
    // Whoever sees this stand still sees at which of them.
    eprintln!("{format:?} of {part:?}");
    let chunks = chunks(&document("a.md", format, &part.repeat(size / part.len())));
    assert!(chunks.iter().all(|chunk| chunk.text.len() + chunk.heading.len() < 5_000), "{format:?} of {part:?}");
}

proptest! {
    #[test]
    fn any_text_is_a_document_of_any_format(text in any::<String>()) {
        for format in ALL {
            prop_assert!(chunks(&document("a.md", format, &text)).iter().all(|chunk| weight(&chunk.words()) <= 215));
        }
    }

    #[test]
    fn so_is_any_mixture_of_marks(parts in prop::collection::vec(mark(), 0..60)) {
        let text = parts.concat();
        for format in ALL {
            prop_assert!(chunks(&document("a.md", format, &text)).iter().all(|chunk| weight(&chunk.words()) <= 215));
        }
    }
}

fn mark() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n    ".to_owned()),
        "[a-zé漢]{0,4}",
        "[-=~#*_`|+.:<>\\[\\](){}!&;/\\\\'\" \t]{1,6}",
        prop::sample::select(vec![
            "</",
            "<h1",
            "</h1>",
            "<pre>",
            "</pre>",
            "<nav>",
            "<script>",
            "</script>",
            "<title>",
            "<!--",
            "-->",
            "<br>",
            "<svg/>",
            "<img alt=a>",
            ".. ",
            ".. note::",
            "::",
            ":role:`",
            "`_",
            "====",
            "----",
            ".. |a| replace:: ",
            ".. [1] ",
            ".. _a:",
            "+---+",
            "```",
            "~~~",
            "---\n",
            "title: ",
            "[^1]",
            "[^1]: ",
            "| a |",
            "|---|",
            "# ",
            "&#x41;",
            "&#xffffffff;",
            "\u{feff}",
            "\r\n",
            "\u{85}",
            "\u{2028}",
        ])
        .prop_map(str::to_owned),
    ]
}
