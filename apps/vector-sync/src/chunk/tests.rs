mod hostile;
mod kept;

use super::*;

fn document(id: &str, format: Format, text: &str) -> Document {
    Document { id: id.to_owned(), format, text: text.to_owned(), content: Sum::of(&[text.as_bytes()]) }
}

/// The pieces, as `heading | text`.
fn pieces(id: &str, format: Format, text: &str) -> Vec<String> {
    let chunks = chunks(&document(id, format, text));
    for (number, chunk) in chunks.iter().enumerate() {
        assert_eq!((chunk.number as usize, chunk.document.as_str()), (number, id));
    }
    chunks.into_iter().map(|chunk| format!("{} | {}", chunk.heading, chunk.text)).collect()
}

#[test]
fn markdown_is_taken_apart_by_its_headings() {
    let text = "---\ntitle: \"The Book\"\nweight: 3\n---\nBefore *all*.\n\n# Leases\n\nA lease has an\n[epoch](x.md).\n\n\
                ```sh\ntenure run \\\n  --ttl 30s\n```\n\n## Renewal\n\n- one\n- two\n  - three\n\n| a | b |\n|---|---|\n| c | d |\n\n\
                <div>In <b>a box</b></div>\n\n## Empty\n# Last\nAh<br>oh ![a drawing](d.png)[^1]\n\n[^1]: A note.\n";
    assert_eq!(
        pieces("book.md", Format::Markdown, text),
        [
            "The Book | Before all.",
            "The Book > Leases | A lease has an epoch.\n\ntenure run \\\n  --ttl 30s",
            "The Book > Leases > Renewal | one\n\ntwo\n\nthree\n\na b\n\nc d\n\nIn a box",
            "The Book > Last | Ah oh a drawing [1]\n\nA note.",
            "book | Empty",
        ]
    );
}

#[test]
fn html_is_taken_apart_without_what_is_not_said() {
    let text = "<!doctype html><html><head><title>Leases - The Book</title><style>p { color: red }</style>\
                <script>if (a < b) alert('<p>no</p>')</script></head><body><nav><ul><li>Home</ul></nav>\
                <main><h1>Leases</h1><p>Fish &amp; chips<p>and <b>bold</b>er &#8212; <img src=a alt='a map'></p>\
                <pre>let x = 1;\n  let y;</pre><h2>Tables <a href=#>&sect;</a></h2><table><tr><td>a<td>b</tr><tr><td>c</table>\
                <svg><text>drawn</text></svg>end</body></html>";
    assert_eq!(
        pieces("a/leases.html", Format::Html, text),
        [
            "Leases - The Book | Fish & chips\n\nand bolder — a map\n\nlet x = 1;\n  let y;",
            "Leases - The Book > Tables § | a b\n\nc\n\nend",
        ]
    );
}

#[test]
fn a_navigation_that_nobody_ended_takes_nothing_with_it() {
    let text = "<nav><a>Home</a><main><h1>Title</h1><p>Words.</main>";
    assert_eq!(pieces("1", Format::Html, text), ["Title | Words."]);
}

#[test]
fn rst_is_taken_apart_by_its_sections() {
    let text = "=====\nTitle\n=====\n\n.. comment\n   more of it\n\n.. _target:\n\nSome *words* with ``code()``, :ref:`a link <to>`\n\
                and `another <https://x>`_. Then::\n\n    literal [1]\n      deeper\n\nAfter.\n\nSection\n-------\n\n\
                .. note:: Mind this.\n   :class: x\n\n   Inside of it.\n\n.. code-block:: python\n   :linenos:\n\n   def f(): pass\n\n\
                .. toctree::\n   :maxdepth: 2\n\n   left\n\n- first\n- second\n\n+---+---+\n| a | b |\n+---+---+\n\n>>> 1 + 1\n2\n\n\
                **In bold**\n\nUnder it. ::\n\n    last\n";
    assert_eq!(
        pieces("doc/t.rst", Format::Rst, text),
        [
            "Title | Some words with code(), a link and another. Then:\n\nliteral [1]\n  deeper\n\nAfter.",
            "Title > Section | Mind this.\n\nInside of it.\n\ndef f(): pass\n\nfirst\n\nsecond\n\na b\n\n>>> 1 + 1\n2",
            "Title > Section > In bold | Under it.\n\nlast",
        ]
    );
}

#[test]
fn a_text_is_named_after_its_file() {
    let text = "One\nparagraph.\n \nAnother.\n\n    indented\n      as it is\n";
    let said = "One paragraph.\n\nAnother.\n\n    indented\n      as it is";
    assert_eq!(pieces("notes/today.txt", Format::Text, text), [format!("notes/today | {said}")]);
    assert_eq!(pieces("4711", Format::Text, text), [format!(" | {said}")]);
    assert_eq!(pieces("4711", Format::Text, " \n\n"), [""; 0]);
}

#[test]
fn what_is_long_is_cut_at_the_best_place() {
    let sentence = "The holder renews its lease every third of the time to live. ";
    let text = format!("{}\n\n{}", sentence.repeat(30), "x".repeat(3_000));
    let chunks = chunks(&document("a.txt", Format::Text, &text));
    assert!(chunks.len() > 3, "{chunks:?}");
    assert!(chunks[..2].iter().all(|chunk| chunk.text.ends_with("to live.")), "{chunks:?}");
}

#[test]
fn a_heading_that_is_too_long_is_shortened_above_and_kept_below() {
    let long = "endless ".repeat(400);
    let pieces = pieces("a.md", Format::Markdown, &format!("# {long}\n\ntext\n"));
    assert!(pieces[0].ends_with(" | text") && pieces[0].len() < 600, "{pieces:?}");
    let kept: usize = pieces[1..].iter().map(|piece| piece.matches("endless").count()).sum();
    assert_eq!(kept, 400);
}
