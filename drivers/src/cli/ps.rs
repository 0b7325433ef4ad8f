//! `ps`.

use std::fmt::Write as _;
use std::io::{self, Write};

use backend::is_unprintable;
use drivers::client::{Client, Error, Escaped, Files, Pace, TreePath};
use drivers::clock;
use serde_json::{Value, json};

use super::arguments::Ps;
use super::connect::connect;
use super::desk::Desk;
use super::table::{self, Cut, Table};

/// Lists the agents that are running, by harness and pid. All it knows is in the tree; an agent that ends meanwhile is left out.
pub(super) fn run(desk: &mut Desk, options: &Ps) -> io::Result<()> {
    let mut client = match connect(desk, &options.dial) {
        Ok(client) => client,
        Err(error) => {
            desk.lament(&error);
            return Ok(());
        }
    };
    let agents = agents(desk, &mut client)?;
    if options.json {
        return write_json(desk, &agents);
    }
    // A machine that is made up has a clock of its own.
    let simulated = options.dial.machine.is_simulated();
    let now_s = if simulated { server_time_s(&mut client) } else { None };
    let now_s = now_s.unwrap_or_else(|| clock::now().wall_ns.div_euclid(clock::NS as i64));
    let mut table = Table::new(COLUMNS);
    for agent in &agents {
        table.push(agent.cells(now_s));
    }
    let width = if options.wide { None } else { table::width() };
    table.lines(width).iter().try_for_each(|line| writeln!(desk, "{line}"))
}

/// What one agent's directory says.
#[derive(Debug)]
struct Agent {
    pid: u32,
    harness: String,
    /// In the order of [`FIELDS`]; `None` for what is not known.
    values: [Option<String>; FIELDS.len()],
}

/// Finds and reads the agents. What goes wrong with one of them is complained of, and the rest is shown.
fn agents(desk: &mut Desk, client: &mut Client) -> io::Result<Vec<Agent>> {
    let top = TreePath::parse(b"/active");
    let harnesses = match client.list(&top) {
        Ok(harnesses) => harnesses,
        Err(error) => {
            desk.complain(&top, &error)?;
            return Ok(Vec::new());
        }
    };
    let mut found = Vec::new();
    for harness in harnesses {
        let path = top.join(&harness.name);
        let name = String::from_utf8_lossy(&harness.name);
        match client.list(&path) {
            Ok(entries) => {
                let mut pids: Vec<u32> = entries.iter().filter_map(|entry| pid(&entry.name)).collect();
                pids.sort_unstable();
                found.extend(
                    pids.into_iter()
                        .map(|pid| (pid, name.clone().into_owned(), path.join(pid.to_string().as_bytes()))),
                );
            }
            Err(error) if error.is_absence() => {}
            Err(error) => desk.complain(&path, &error)?,
        }
    }
    let paths: Vec<TreePath> = found.iter().map(|(.., path)| path.clone()).collect();
    let gathered = match client.gather(&paths, &FIELDS, VALUE_BYTES) {
        Ok(gathered) => gathered,
        Err(error) => {
            desk.complain(&top, &error)?;
            return Ok(Vec::new());
        }
    };
    let mut agents = Vec::new();
    for ((pid, harness, path), files) in found.into_iter().zip(gathered) {
        match files.and_then(values) {
            Ok(values) => agents.push(Agent { pid, harness, values }),
            // It has ended.
            Err(error) if error.is_absence() => {}
            Err(error) => desk.complain(&path, &error)?,
        }
    }
    Ok(agents)
}

/// The values in an agent's files. Only one of them may be absent while the agent lives.
fn values(files: Files) -> Result<[Option<String>; FIELDS.len()], Error> {
    let mut values = [const { None }; FIELDS.len()];
    for ((name, file), value) in FIELDS.into_iter().zip(files).zip(&mut values) {
        *value = match file {
            Ok(bytes) => Some(bytes.strip_suffix(b"\n").unwrap_or(&bytes))
                .filter(|bytes| !bytes.is_empty())
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            Err(error) if name == STATUS && error.is_absence() => None,
            Err(error) => return Err(error),
        };
    }
    Ok(values)
}

impl Agent {
    fn cells(&self, now_s: i64) -> [String; COLUMNS.len()] {
        let [status, started, rest @ ..] = &self.values;
        let shown = |value: &Option<String>| {
            value.as_ref().map_or_else(|| "-".to_owned(), |value| Escaped(value.as_bytes()).to_string())
        };
        let started = started.as_ref().map(|started| match started.parse::<i64>() {
            Ok(started_s) => age(now_s.saturating_sub(started_s)),
            Err(_) => started.clone(),
        });
        let [zmx, via, session, model, cwd, title] = rest.each_ref().map(shown);
        let harness = Escaped(self.harness.as_bytes()).to_string();
        [self.pid.to_string(), harness, shown(status), shown(&started), zmx, via, session, model, cwd, title]
    }

    fn json(&self) -> Value {
        let mut object = json!({ "pid": self.pid, "harness": self.harness });
        for (name, value) in FIELDS.into_iter().zip(&self.values) {
            object[name] = match value.as_ref().filter(|_| name == STARTED).map(|value| value.parse::<i64>())
            {
                Some(Ok(started_s)) => started_s.into(),
                _ => value.clone().into(),
            };
        }
        object
    }
}

/// One array, an agent on each line.
fn write_json(desk: &mut Desk, agents: &[Agent]) -> io::Result<()> {
    let objects: Vec<String> = agents.iter().map(|agent| escape(&agent.json().to_string())).collect();
    writeln!(desk, "[{}]", objects.join(",\n "))
}

/// Spells out characters that a terminal would obey. Those below 32 are escaped already, and others stand in strings only.
fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unprintable(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(escaped, "\\u{unit:04x}"));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// How long something takes, in its one or two largest units.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ ..60 => format!("{s}s"),
        s @ ..3_600 => format!("{}m", s / 60),
        s @ ..86_400 => format!("{}h{:02}m", s / 3_600, s / 60 % 60),
        s => format!("{}d{:02}h", s / 86_400, s / 3_600 % 24),
    }
}

/// What the clock of a server says: it tells when it was started, and how long ago that is.
fn server_time_s(client: &mut Client) -> Option<i64> {
    let uptime = TreePath::parse(b"/uptime");
    let started_s = client.stat(&uptime).ok()?.mtime.sec;
    let mut text = Vec::new();
    client.read(&uptime, Pace::Step, &mut |bytes| text.write_all(bytes)).ok()?;
    let passed_s: i64 = str::from_utf8(&text).ok()?.trim_end().parse().ok()?;
    started_s.checked_add(passed_s)
}

/// A pid as it is spelt in the tree.
fn pid(name: &[u8]) -> Option<u32> {
    let pid = str::from_utf8(name).ok()?.parse::<u32>().ok()?;
    (pid.to_string().as_bytes() == name).then_some(pid)
}

/// The columns of the table.
const COLUMNS: [(&str, Cut); 10] = [
    ("PID", Cut::Never),
    ("HARNESS", Cut::Never),
    ("STATUS", Cut::Never),
    ("STARTED", Cut::Never),
    ("ZMX", Cut::End),
    ("VIA", Cut::Never),
    ("SESSION", Cut::Short),
    ("MODEL", Cut::End),
    ("CWD", Cut::Beginning),
    ("TITLE", Cut::End),
];
/// The files that are read of each agent: those of the columns, in their order.
const FIELDS: [&str; 8] = [STATUS, STARTED, "zmx", "via", "session", "model", "cwd", "title"];
/// Absent where the harness publishes no word of its own.
const STATUS: &str = "status";
const STARTED: &str = "started";
/// The longest value, with the newline.
const VALUE_BYTES: u32 = 257;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, shown) in [
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h00m"),
            (86_399, "23h59m"),
            (86_400, "1d00h"),
            (1_000_000, "11d13h"),
            (i64::MAX, "106751991167300d15h"),
        ] {
            assert_eq!(age(seconds), shown);
        }
    }

    #[test]
    fn a_pid_has_one_spelling() {
        assert_eq!(pid(b"4294967295"), Some(u32::MAX));
        for other in [&b"4294967296"[..], b"01", b"+1", b"", b"x", b"\xff"] {
            assert_eq!(pid(other), None);
        }
    }

    #[test]
    fn json_stays_what_it_says_and_obeys_no_one() {
        let said = "a\u{9b}31m \u{1b}[2J ü \u{202e}";
        let shown = escape(&json!([said]).to_string());
        assert_eq!(shown, r#"["a\u009b31m \u001b[2J ü \u202e"]"#);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!([said]));
    }
}
