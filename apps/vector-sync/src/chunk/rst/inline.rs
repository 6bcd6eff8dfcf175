//! Marks within a line.

/// Without roles, emphasis, and where links lead to.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let before = plain.chars().next_back();
        if let Some(behind) = rest.strip_prefix("``")
            && let Some((literal, behind)) = behind.split_once("``")
        {
            plain += literal;
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('`')
            && let Some((said, behind)) = behind.split_once('`')
        {
            if !said.is_empty() {
                without_role(&mut plain);
            }
            plain += shown(said);
            rest = behind.trim_start_matches('_');
        } else if char == '*' {
            let stars = rest.len() - rest.trim_start_matches('*').len();
            let behind = &rest[stars..];
            let opens = stands_apart(before) && !stands_apart(behind.chars().next());
            let closes = !before.is_none_or(char::is_whitespace) && stands_apart(behind.chars().next());
            if !(opens || closes) || stars > 2 {
                plain += &rest[..stars];
            }
            rest = behind;
        } else if char == '\\' {
            rest = &rest[1..];
            // What is escaped stands for itself; an escaped space for nothing.
            if let Some(next) = rest.chars().next() {
                if !next.is_whitespace() {
                    plain.push(next);
                }
                rest = &rest[next.len_utf8()..];
            }
        } else {
            plain.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    plain
}

/// Takes `:role:` off the end.
fn without_role(plain: &mut String) {
    let Some(inner) = plain.strip_suffix(':') else { return };
    let is_name = |char: char| char.is_alphanumeric() || "-_.+:".contains(char);
    // None is longer: `:external+python:ref:` is a long one.
    let name = inner.char_indices().rev().take(64).take_while(|(_, char)| is_name(*char)).last();
    if let Some((start, ':')) = name {
        plain.truncate(start);
    }
}

/// Of `text <target>` the text.
fn shown(said: &str) -> &str {
    match said.strip_suffix('>').and_then(|said| said.rsplit_once('<')) {
        Some((text, _)) if !text.trim().is_empty() => text.trim_end(),
        _ => said.strip_prefix('~').unwrap_or(said),
    }
}

/// Whether emphasis may begin behind this character, or end before it.
fn stands_apart(char: Option<char>) -> bool {
    char.is_none_or(|char| char.is_whitespace() || "'\"([{<>}])-/:.,;!?".contains(char))
}
