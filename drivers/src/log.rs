//! The log: one line per event, on stderr and nowhere else.
//!
//! Owns the shape of a line and the promise that nothing from outside can break it: no value reaches a
//! terminal or the journal with a control character in it, or longer than [`CLEAN_BYTES_MAX`]. The promise is
//! kept here, where lines are made, so no caller can forget it. Knows nothing of what is logged.

use std::fmt::{self, Write};
use std::io;
use std::io::Write as _;
use std::time::{Duration, Instant};

use backend::is_unprintable;
use rustix::fs::fstat;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// Sends events of `most` and graver to stderr, for the rest of the process.
///
/// Under systemd (stderr is the stream that `JOURNAL_STREAM` names, see systemd.exec(5)) a line begins with
/// its priority, `<4>`, and carries no time, because the journal has its own. Elsewhere it begins with the
/// local time and the level. A stderr that cannot be written loses the line and nothing else. The first call
/// wins; later ones do nothing.
pub fn init(most: LevelFilter) {
    let journal = std::env::var("JOURNAL_STREAM").is_ok_and(|stream| is_stderr(&stream));
    let prefix = if journal { Prefix::Priority } else { Prefix::Time };
    // One write(2) for a line. Who reads it, if anybody does, is not our business.
    let say = |line: &str| drop(io::stderr().write_all(line.as_bytes()));
    let _ = tracing::subscriber::set_global_default(Lines { most, prefix, say });
}

/// Shows bytes from outside in a form that is safe to print: at most [`CLEAN_BYTES_MAX`] bytes of UTF-8, on
/// one line.
///
/// Control characters, line separators and the marks that reorder text become `?`, bytes that are not UTF-8
/// become U+FFFD, and a text that was cut ends in `…`.
#[derive(Debug, Clone, Copy)]
pub struct Clean<'a>(pub &'a [u8]);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut scrubbed = String::new();
        let mut scrub = Scrub::into(&mut scrubbed);
        for chunk in self.0.utf8_chunks() {
            let fits = scrub.write_str(chunk.valid()).and_then(|()| {
                if chunk.invalid().is_empty() {
                    Ok(())
                } else {
                    scrub.write_char(char::REPLACEMENT_CHARACTER)
                }
            });
            if fits.is_err() {
                break;
            }
        }
        scrub.finish();
        f.write_str(&scrubbed)
    }
}

/// Collects text, cleaned as [`Clean`] says. Refuses more (`fmt::Error`) once the limit is passed, so that a
/// formatter of a huge value stops early.
struct Scrub<'a> {
    out: &'a mut String,
    /// Where in `out` this value began.
    start: usize,
    /// Where to cut so that the ellipsis still fits.
    cut: usize,
    full: bool,
}

impl<'a> Scrub<'a> {
    fn into(out: &'a mut String) -> Self {
        let start = out.len();
        Self { out, start, cut: start, full: false }
    }

    fn finish(self) {
        if self.full {
            self.out.truncate(self.cut);
            self.out.push(ELLIPSIS);
        }
    }
}

impl Write for Scrub<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        let c = if is_unprintable(c) { '?' } else { c };
        let used = self.out.len() - self.start;
        if self.full || used + c.len_utf8() > CLEAN_BYTES_MAX {
            self.full = true;
            return Err(fmt::Error);
        }
        if used + ELLIPSIS.len_utf8() <= CLEAN_BYTES_MAX {
            self.cut = self.out.len();
        }
        self.out.push(c);
        Ok(())
    }
}

/// Makes a line of each event: a prefix, the message, then ` name=value` for each field. What spans there are (none of ours)
/// say nothing.
struct Lines<S> {
    most: LevelFilter,
    prefix: Prefix,
    say: S,
}

#[derive(Clone, Copy)]
enum Prefix {
    Priority,
    Time,
}

impl<S> Lines<S> {
    fn line(&self, event: &Event<'_>) -> String {
        let level = *event.metadata().level();
        let mut text = Text::default();
        event.record(&mut text);
        let Text { message, fields } = text;
        match self.prefix {
            Prefix::Priority => format!("<{}>{message}{fields}\n", priority(level)),
            Prefix::Time => {
                let time = jiff::Zoned::now();
                format!("{} {} {message}{fields}\n", time.strftime("%F %T"), word(level))
            }
        }
    }
}

impl<S: Fn(&str) + Send + Sync + 'static> Subscriber for Lines<S> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn event(&self, event: &Event<'_>) {
        (self.say)(&self.line(event));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let out = if field.name() == "message" {
            &mut self.message
        } else {
            self.fields.push(' ');
            self.fields.push_str(field.name());
            self.fields.push('=');
            &mut self.fields
        };
        let mut scrub = Scrub::into(out);
        // An error only says that the value was cut.
        let _ = scrub.write_fmt(value);
        scrub.finish();
    }
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}

/// The priority of sd-daemon(3) and syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error:",
        Level::WARN => "warning:",
        Level::INFO => "info:",
        Level::DEBUG => "debug:",
        Level::TRACE => "trace:",
    }
}

/// Whether a `JOURNAL_STREAM` value (`device:inode`, decimal) names the file that stderr is.
fn is_stderr(stream: &str) -> bool {
    fstat(rustix::stdio::stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Keeps a peer that is refused all the time from filling the log.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Logs, with how often it was left out since the last time, unless that is too short ago.
    pub(crate) fn log(&mut self, line: impl FnOnce(u64)) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < COMPLAINT_INTERVAL) {
            self.left_out += 1;
            return;
        }
        self.last = Some(now);
        line(std::mem::take(&mut self.left_out));
    }
}

/// The most bytes of one value in a line.
pub const CLEAN_BYTES_MAX: usize = 256;
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(1);

const ELLIPSIS: char = '…';

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clean_replaces_what_a_terminal_would_obey() {
        assert_eq!(Clean(b"plain").to_string(), "plain");
        assert_eq!(Clean(b"a\x1b[2J\r\nb\0\x7f").to_string(), "a?[2J??b??");
        assert_eq!(Clean("\u{9b}1m\u{202e}x\u{2028}".as_bytes()).to_string(), "?1m?x?");
        assert_eq!(Clean(b"a\xffb\xc3").to_string(), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn clean_cuts_at_the_limit_and_says_so() {
        let full = "x".repeat(CLEAN_BYTES_MAX);
        assert_eq!(Clean(full.as_bytes()).to_string(), full);
        let cut = Clean("x".repeat(CLEAN_BYTES_MAX + 1).as_bytes()).to_string();
        assert_eq!(cut, format!("{}…", "x".repeat(CLEAN_BYTES_MAX - 3)));
    }

    proptest! {
        #[test]
        fn clean_keeps_its_promise(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = Clean(&bytes).to_string();
            prop_assert!(text.len() <= CLEAN_BYTES_MAX);
            prop_assert!(!text.chars().any(is_unprintable));
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_the_values_hold() {
        let lines = logged(Prefix::Priority, || {
            tracing::warn!(peer = "evil\n<3>forged", tag = ?b'\n', "closed {}", "with\na newline");
            tracing::info!("{}", "y".repeat(1000));
        });
        assert_eq!(lines[0], "<4>closed with?a newline peer=evil?<3>forged tag=10");
        assert_eq!(lines[1].len(), "<6>".len() + CLEAN_BYTES_MAX);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn outside_the_journal_a_line_has_time_and_level() {
        let lines = logged(Prefix::Time, || tracing::error!("no room"));
        let (time, rest) = lines[0].split_at("2000-01-01 00:00:00".len());
        assert!(jiff::civil::DateTime::strptime("%F %T", time).is_ok(), "{time}");
        assert_eq!(rest, " error: no room");
    }

    #[test]
    fn journal_stream_must_match_stderr() {
        let stat = fstat(rustix::stdio::stderr()).unwrap();
        assert!(is_stderr(&format!("{}:{}", stat.st_dev, stat.st_ino)));
        assert!(!is_stderr(&format!("{}:{}", stat.st_dev, stat.st_ino.wrapping_add(1))));
        assert!(!is_stderr(""));
    }

    #[test]
    fn complaints_are_counted_while_they_are_left_out() {
        let mut complaints = Seldom::default();
        let mut logged = Vec::new();
        for _ in 0..5 {
            complaints.log(|left_out| logged.push(left_out));
        }
        complaints.last = Instant::now().checked_sub(COMPLAINT_INTERVAL);
        complaints.log(|left_out| logged.push(left_out));
        assert_eq!(logged, [0, 4]);
    }

    /// The lines that `act` logs.
    fn logged(prefix: Prefix, act: impl FnOnce()) -> Vec<String> {
        let said = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&said);
        let say = move |line: &str| sink.lock().unwrap().push_str(line);
        tracing::subscriber::with_default(Lines { most: LevelFilter::TRACE, prefix, say }, act);
        let said = said.lock().unwrap();
        said.lines().map(str::to_owned).collect()
    }
}
