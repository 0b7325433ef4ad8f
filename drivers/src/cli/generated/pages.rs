//! The manual pages, as man(7) has them.
//!
//! Owns how they are put together: 9agents(1) from the command line and a text about what that does not say, 9agents(4) from the
//! README that the tree itself serves. Must not know: where they are kept.

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::super::arguments::{Arguments, OF_MACHINE};

/// 9agents(1).
pub(super) fn program() -> String {
    let mut command =
        Arguments::command().disable_help_flag(true).disable_version_flag(true).override_usage(USAGE);
    command.build();
    let man = Man::new(command.clone()).date(DATE).source(SOURCE).manual("User Commands");
    let mut page = Vec::new();
    for part in [Man::render_title, Man::render_name_section, Man::render_synopsis_section] {
        part(&man, &mut page).expect("memory takes it");
    }
    page.extend_from_slice(DESCRIPTION.as_bytes());
    man.render_options_section(&mut page).expect("memory takes it");
    let mut page = String::from_utf8(page).expect("what clap writes is text");
    page.push_str(".SH VERBS\n");
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        page.push_str(&self::verb(verb));
    }
    page.push_str(REST);
    tidied(&page)
}

/// A verb's section, without what it shares with the others and the options above say.
fn verb(verb: &Command) -> String {
    let name = verb.get_name().to_owned();
    let is_shared = |id: &str| name == "serve" || OF_MACHINE.contains(&id);
    let shared: Vec<_> =
        verb.get_arguments().map(|flag| flag.get_id().clone()).filter(|id| is_shared(id.as_str())).collect();
    let hidden = |verb: Command, id| verb.mut_arg(id, |flag| flag.hide(true));
    let verb = shared.into_iter().fold(verb.clone(), hidden);
    let man = Man::new(verb);
    let mut text = Vec::new();
    for part in [Man::render_synopsis_section, Man::render_description_section, Man::render_options_section] {
        part(&man, &mut text).expect("memory takes it");
    }
    let text = String::from_utf8(text).expect("what clap writes is text");
    let headings = [".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"];
    let lines = text.lines().map(|line| if headings.contains(&line) { ".PP" } else { line });
    format!(".SS {name}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// 9agents(4).
pub(super) fn tree() -> String {
    let mut page = Roff::new();
    page.control("TH", ["9agents", "4", DATE, SOURCE, "File Servers"]);
    let mut blocks = README.split("\n\n").map(|block| block.trim_matches('\n'));
    let (name, about) =
        blocks.next().and_then(|line| line.split_once(": ")).expect("the first line is the name");
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {about}"))]);
    page.control("SH", ["DESCRIPTION"]);
    for block in blocks {
        if block.starts_with("  ") {
            items(&mut page, block);
        } else if block.chars().all(|c| c.is_ascii_uppercase() || c == ' ') {
            page.control("SH", [block]);
        } else {
            page.control("PP", []).text(inline(&block.replace('\n', " ")));
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("9agents"), roman("(1), "), bold("mount"), roman("(8)")]);
    tidied(&page.to_roff())
}

/// What is indented: points, names with what they are, or lines to type.
fn items(page: &mut Roff, block: &str) {
    let mut items: Vec<(&str, String)> = Vec::new();
    for line in block.lines() {
        let line = line.strip_prefix("  ").expect("all of it is indented");
        if let (Some((_, text)), true) = (items.last_mut(), line.starts_with(' ')) {
            text.push(' ');
            text.push_str(line.trim_start());
        } else if let Some(point) = line.strip_prefix("- ") {
            items.push(("\\(bu", point.to_owned()));
        } else {
            let (name, text) = line.split_once("  ").unwrap_or((line, ""));
            items.push((name, text.trim_start().to_owned()));
        }
    }
    for (name, text) in items {
        match (name, &*text) {
            ("\\(bu", text) => page.control("IP", [name, "2"]).text(inline(text)),
            (line, "") => {
                page.control("PP", []).control("RS", []).control("EX", []);
                page.text([roman(line)]).control("EE", []).control("RE", [])
            }
            (name, text) => page.control("TP", []).text([bold(name)]).text(inline(text)),
        };
    }
}

/// A text, with what stands between backquotes in bold.
fn inline(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(at, part)| if at % 2 == 0 { roman(part) } else { bold(part) }).collect()
}

/// Without what renders as nothing and what readers of pages complain of.
fn tidied(page: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        // Each part defines how an apostrophe is written; once is enough.
        if line.contains(".ds Aq") && lines.contains(&line) {
            continue;
        }
        let begins_paragraph = [".PP", ".TP", ".SH", ".SS"].iter().any(|macros| line.starts_with(macros));
        if begins_paragraph && lines.last() == Some(&".PP") {
            lines.pop();
        }
        let is_begun = lines.last().is_some_and(|last| last.starts_with(".S"));
        let repeats = line == ".br" && lines.last() == Some(&".br");
        if !(repeats || line == ".PP" && is_begun) {
            lines.push(line);
        }
    }
    // The brackets of a flag without a long name.
    lines.join("\n").replace(" \\fR]", "\\fR]") + "\n"
}

/// The README of the tree.
const README: &str = include_str!("../../../../backend/src/tree/README.txt");
const USAGE: &str = "9agents [serve] [option...]\n9agents verb [option...] [argument...]";
const DESCRIPTION: &str = include_str!("description.man");
const REST: &str = include_str!("rest.man");
const SOURCE: &str = concat!("9agents ", env!("CARGO_PKG_VERSION"));
/// When the pages were last read over.
const DATE: &str = "2026-11-30";
