//! Clients of crates.io as a program: `clients-of-crates-io ninep|styx9p UNIX-SOCKET TCP-PORT ls|stat|cat PATH`, which prints
//! what the others do (see `verbs.py`).

use std::error::Error;
use std::io::Write;

use ninep::fs::FileType;
use ninep::sync::client::Client;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a verb yields.
enum Seen {
    Names(Vec<String>),
    Stat { length: u64, is_dir: bool },
    Content(Vec<u8>),
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [client, unix, port, verb, path] = arguments.try_into().expect("five arguments");
    let seen = match client.as_str() {
        "ninep" => ninep(&unix, &verb, &path)?,
        _ => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(styx9p(port.parse()?, &verb, &path))?
        }
    };
    let mut out = std::io::stdout().lock();
    match seen {
        Seen::Names(names) => names.iter().try_for_each(|name| writeln!(out, "{name}"))?,
        Seen::Stat { length, is_dir } => writeln!(out, "{length} {}", if is_dir { "dir" } else { "file" })?,
        Seen::Content(content) => out.write_all(&content)?,
    }
    Ok(())
}

/// In 9P2000, over the unix socket.
fn ninep(unix: &str, verb: &str, path: &str) -> Result<Seen> {
    let client = Client::new_unix_with_explicit_path("me", unix, "")?;
    Ok(match verb {
        "ls" => Seen::Names(client.read_dir(path)?.into_iter().map(|stat| stat.name).collect()),
        "stat" => {
            let stat = client.stat(path)?;
            Seen::Stat { length: stat.n_bytes, is_dir: stat.qid.ty == FileType::DIRECTORY }
        }
        _ => Seen::Content(client.read(path)?),
    })
}

/// In 9P2000, over TCP.
async fn styx9p(port: u16, verb: &str, path: &str) -> Result<Seen> {
    let mut client = styx9p::client::Client::dial(("127.0.0.1", port), "me", "").await?;
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    Ok(match verb {
        "ls" => Seen::Names(client.read_dir(&names).await?.into_iter().map(|stat| stat.name).collect()),
        "stat" => {
            let stat = client.stat_path(&names).await?;
            Seen::Stat { length: stat.length, is_dir: stat.qid.is_dir() }
        }
        _ => Seen::Content(client.read_file(&names).await?),
    })
}
