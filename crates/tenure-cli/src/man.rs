//! The manual, made from what the verbs say of themselves.

use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::Out;
use clap::Command;
use clap_mangen::Man;
use std::path::PathBuf;

/// Print the manual, or write its pages where man looks for them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure man | man -l -
  tenure man --dir /usr/local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each verb into this folder, which is made if it is missing: tenure.1, tenure-run.1, and so on.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Args {
    /// Does it for this command, which is the whole of `tenure`.
    pub(crate) fn run(&self, command: Command) -> Result<Exit, Problem> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let Some(dir) = &self.dir else {
            Out::new().write(&one_page(&command)?)?;
            return Ok(Exit::Success);
        };
        let wrong =
            |error| Problem::failure(format_args!("the pages cannot be written into {}: {error}", dir.display()));
        std::fs::create_dir_all(dir).map_err(wrong)?;
        for command in std::iter::once(&command).chain(verbs(&command)) {
            let path = dir.join(Man::new(command.clone()).get_filename());
            std::fs::write(path, page(command)?).map_err(wrong)?;
        }
        Ok(Exit::Success)
    }
}

/// All visible verbs, and theirs behind each.
fn verbs(command: &Command) -> Vec<&Command> {
    let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    visible.flat_map(|verb| std::iter::once(verb).chain(verbs(verb))).collect()
}

/// The page of one command, which refers to those of its verbs.
fn page(command: &Command) -> Result<String, Problem> {
    let man = Man::new(command.clone());
    let mut text = head(command)?;
    text += &usage(command, command)?;
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        text += &roff(|out| man.render_subcommands_section(out))?;
    }
    text += &after(command);
    text += &roff(|out| man.render_version_section(out))?;
    Ok(ascii(&text))
}

/// The whole manual as one page: a section for each verb. What most verbs share stands there once.
fn one_page(command: &Command) -> Result<String, Problem> {
    let verbs = verbs(command);
    let mut text = head(command)?;
    text += &usage(command, command)?;
    if let Some(verb) = verbs.iter().find(|verb| verb.get_arguments().any(is_shared)) {
        let shared = verb.get_arguments().filter(|argument| is_shared(argument)).cloned();
        let options = options(&Command::new("shared").disable_help_flag(true).args(shared))?;
        text += &options.replace(".SH AUTHORITY\n", ".SH AUTHORITY\nMost verbs take these, behind their name.\n");
    }
    text += &after(command);
    for verb in verbs {
        let own = verb.clone().mut_args(|argument| {
            let everywhere = is_shared(&argument) || ["help", "version"].contains(&argument.get_id().as_str());
            argument.hide(everywhere)
        });
        let name = verb.get_bin_name().unwrap_or(verb.get_name()).to_uppercase();
        let sections = usage(verb, &own)? + &after(verb);
        text += &format!(".SH \"{}\"", escaped(&name));
        text += &format!("\n{sections}").replace("\n.SH ", "\n.SS ");
        if verb.get_arguments().any(is_shared) {
            text += ".PP\nThe options of the section AUTHORITY belong to it as well.\n";
        }
    }
    text += &roff(|out| Man::new(command.clone()).render_version_section(out))?;
    Ok(ascii(&text))
}

/// Whether an option is one of those that lead to the authority, which most verbs have.
fn is_shared(argument: &clap::Arg) -> bool {
    argument.get_help_heading() == Some("Authority")
}

/// What a page begins with.
fn head(command: &Command) -> Result<String, Problem> {
    let man = Man::new(command.clone()).source(concat!("tenure ", env!("CARGO_PKG_VERSION"))).manual("Tenure");
    Ok(QUOTE.to_owned() + &roff(|out| man.render_title(out))? + &roff(|out| man.render_name_section(out))?)
}

/// How it is called, what it is for, and the options that are not hidden in `shown`.
fn usage(command: &Command, shown: &Command) -> Result<String, Problem> {
    let usage = command.clone().render_usage().to_string();
    let usage = escaped(usage.strip_prefix("Usage: ").unwrap_or(&usage));
    let man = Man::new(command.clone());
    let description = roff(|out| man.render_description_section(out))?;
    Ok(format!(".SH SYNOPSIS\n{usage}\n{description}{}", options(shown)?))
}

fn options(command: &Command) -> Result<String, Problem> {
    let man = Man::new(command.clone());
    roff(|out| man.render_options_section(out))
}

/// How a part defines the apostrophe that it writes; once for each page is enough.
const QUOTE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

fn roff(render: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    render(&mut bytes).map_err(Problem::failure)?;
    let text = String::from_utf8(bytes).map_err(Problem::failure)?;
    Ok(text.strip_prefix(QUOTE).map_or(text.clone(), str::to_owned))
}

/// Without characters that an older roff does not read by itself.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() { plain.push(c) } else { plain += &format!("\\[u{:04X}]", u32::from(c)) }
    }
    plain
}

/// What stands behind the options: each line with a colon at its end heads a section, and indented lines stay as they are.
fn after(command: &Command) -> String {
    let Some(help) = command.get_after_long_help().or(command.get_after_help()) else { return String::new() };
    let (mut text, mut as_it_is) = (String::new(), false);
    for line in help.to_string().lines() {
        let indented = line.starts_with(' ');
        if indented != as_it_is && !line.is_empty() {
            text += if indented { ".nf\n" } else { ".fi\n" };
            as_it_is = indented;
        }
        text += &match line.strip_suffix(':') {
            Some(heading) if !indented => format!(".SH \"{}\"\n", escaped(heading).to_uppercase()),
            _ if line.is_empty() => ".PP\n".to_owned(),
            _ => escaped(line.strip_prefix("  ").unwrap_or(line)) + "\n",
        };
    }
    if as_it_is { text + ".fi\n" } else { text }
}

/// As text that roff takes for no command of its own.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests;
