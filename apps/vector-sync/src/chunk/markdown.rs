//! Markdown, as CommonMark reads it, with tables and footnotes.

use super::html;
use super::outline::Outline;
use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

pub(super) fn read(text: &str, outline: &mut Outline<'_>) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    // What was said since the last block began or ended.
    let mut said = String::new();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) => said += &text,
            Event::InlineMath(text) | Event::DisplayMath(text) => said += &text,
            Event::InlineHtml(tag) if tag.starts_with("<br") => said.push(' '),
            Event::InlineHtml(_) | Event::TaskListMarker(_) => {}
            Event::FootnoteReference(name) => said.extend([" [", &name, "]"]),
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell) => said.push('\n'),
            Event::End(TagEnd::Heading(level)) => outline.heading(level as u8, &std::mem::take(&mut said)),
            Event::End(TagEnd::CodeBlock) => outline.code(&std::mem::take(&mut said)),
            Event::End(TagEnd::HtmlBlock) => html::read(&std::mem::take(&mut said), outline),
            Event::End(TagEnd::MetadataBlock(MetadataBlockKind::YamlStyle)) => {
                outline.heading(0, title(&std::mem::take(&mut said)));
            }
            Event::Start(tag) if is_inline(&tag) => {}
            Event::End(tag) if is_inline_end(&tag) => {}
            Event::Start(_) | Event::End(_) | Event::Rule => outline.words(&std::mem::take(&mut said)),
        }
    }
    outline.words(&said);
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::TableCell
    )
}

fn is_inline_end(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

/// The title that the document's front matter gives it, if it does.
fn title(front: &str) -> &str {
    let title = front.lines().find_map(|line| line.strip_prefix("title:")).unwrap_or_default().trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| title.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(title)
}
