//! Nothing that is said is lost, and no piece is too large.

use super::*;
use crate::chunk::cut::{By, cut, weight};
use proptest::prelude::*;

/// Texts as people write them: words, long words, other scripts, white space of all kinds.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[a-z]{1,12}",
        2 => Just(" ".to_owned()),
        1 => "[.!?;:,] ",
        1 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => "[A-Za-z0-9_/-]{1,300}",
        1 => "[漢字かな한글。！]{1,40}",
        1 => any::<String>(),
    ];
    prop::collection::vec(part, 0..200).prop_map(|parts| parts.join(" "))
}

/// Without white space.
fn solid(text: &str) -> String {
    text.split_whitespace().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_loses_nothing_but_white_space(text in text(), room in 1_usize..300) {
        for by in [By::Sentences, By::Lines, By::Words, By::Letters] {
            let mut pieces = Vec::new();
            cut(&text, room, by, &mut pieces);
            prop_assert_eq!(solid(&pieces.concat()), solid(&text));
            for piece in pieces {
                prop_assert!(weight(piece) <= room, "{} has {}", piece, weight(piece));
                prop_assert!(!piece.trim().is_empty());
            }
        }
    }

    /// Plain text has no marks, so that all of it must be there, in its order.
    #[test]
    fn a_text_is_kept_whole(text in text()) {
        let chunks = chunks(&document("name.txt", Format::Text, &text));
        let kept: String = chunks.iter().map(|chunk| solid(&chunk.text)).collect();
        prop_assert_eq!(kept, solid(&text));
    }

    /// Whatever the format makes of it, a word that stands in a paragraph, a list, a heading or code is found again.
    #[test]
    fn every_word_is_kept_in_every_format(parts in prop::collection::vec((0_usize..6, "[a-z]{1,9}", 1_usize..90), 1..30)) {
        for format in [Format::Markdown, Format::Html, Format::Rst] {
            let (mut text, mut said) = (String::new(), Vec::new());
            for (at, (kind, word, times)) in parts.iter().enumerate() {
                // No two are the same.
                let words: Vec<String> = (0..*times).map(|number| format!("{word}{at}q{number}")).collect();
                text += &written(format, *kind, &words.join(" "));
                said.extend(words);
            }
            let chunks = chunks(&document("name.x", format, &text));
            let kept: String = chunks.iter().flat_map(|chunk| [chunk.heading.as_str(), " ", &chunk.text, "\n"]).collect();
            let kept: std::collections::HashSet<&str> = kept.split_whitespace().collect();
            for word in said {
                prop_assert!(kept.contains(word.as_str()), "{} is lost of {}: {:#?}", word, text, chunks);
            }
            for chunk in &chunks {
                // A piece of an empty text has a heading all the same.
                prop_assert!(weight(&chunk.words()) <= 215, "{:?} has {}", chunk, weight(&chunk.words()));
            }
        }
    }
}

/// A part of a document in a format.
fn written(format: Format, kind: usize, words: &str) -> String {
    match (format, kind) {
        (Format::Markdown, 0) => format!("\n# {words}\n"),
        (Format::Markdown, 1) => format!("\n### {words}\n"),
        (Format::Markdown, 2) => format!("\n- {words}\n"),
        (Format::Markdown, 3) => format!("\n```\n{words}\n```\n"),
        (Format::Markdown, 4) => format!("\n<div>{words}</div>\n"),
        (Format::Html, 0) => format!("<h1>{words}</h1>"),
        (Format::Html, 1) => format!("<h3>{words}"),
        (Format::Html, 2) => format!("<ul><li>{words}</ul>"),
        (Format::Html, 3) => format!("<pre>{words}</pre>"),
        (Format::Html, 4) => format!("<td>{words}</span>"),
        (Format::Html, _) => format!("<p>{words}</p>"),
        (Format::Rst, 0) => format!("\n\n{words}\n====\n"),
        (Format::Rst, 1) => format!("\n\n====\n{words}\n====\n"),
        (Format::Rst, 2) => format!("\n\n- {words}\n"),
        (Format::Rst, 3) => format!("\n\n::\n\n    {words}\n"),
        (Format::Rst, 4) => format!("\n\n.. note:: {words}\n"),
        _ => format!("\n\n{words}\n"),
    }
}
