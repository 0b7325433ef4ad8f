//! What is hidden by name.
//!
//! Every function takes a folded name, as bytes: lower case, and ASCII wherever a rule can match. The one exception is
//! the short list of databases, which names files exactly and so looks at the name as it is spelled.

use super::Root;

/// Whether the name is hidden below `root`. `folded` is the folded form of `name`.
pub(super) fn hides(name: &str, folded: &[u8], root: Root) -> bool {
    !serves_database(name, root)
        && (is_store_or_leftover(folded)
            || is_configuration(folded)
            || is_of_harness(folded, root)
            || holds_secret_word(folded))
}

/// Whether the name is exactly that of a database whose content is known to be conversation and nothing else. It is one
/// spelling of each name, so no other rule needs to be asked about it.
pub(super) fn serves_database(name: &str, root: Root) -> bool {
    let database = match root {
        Root::Omp => "history.db",
        Root::Hermes => "state.db",
        Root::Claude | Root::Codex | Root::Dsh | Root::Proc => return false,
    };
    matches!(name.strip_prefix(database), Some("" | "-wal" | "-shm"))
}

/// Directories and files where programs keep keys, what editors and atomic writes leave behind, and archives.
fn is_store_or_leftover(name: &[u8]) -> bool {
    STORES.contains(&name) || begins(name, STORE_PREFIXES) || ends(name, LEFTOVER_SUFFIXES)
}

/// Configuration that may embed keys.
fn is_configuration(name: &[u8]) -> bool {
    let stem = name.strip_prefix(b".").unwrap_or(name);
    begins(stem, CONFIGURATION_PREFIXES)
}

/// What one harness keeps secret under a name that means nothing elsewhere.
fn is_of_harness(name: &[u8], root: Root) -> bool {
    match root {
        Root::Hermes => {
            HERMES_NAMES.contains(&name)
                || begins(name, HERMES_PREFIXES)
                || matches_glob(name, b"session_", b".json")
        }
        Root::Omp => OMP_NAMES.contains(&name) || matches_glob(name, b"mcp", b".json"),
        Root::Dsh => matches_glob(name, b"cordis", b".yml"),
        Root::Claude | Root::Codex | Root::Proc => false,
    }
}

/// Whether a word or an extension that stands anywhere in the name hides it.
///
/// Every position is looked at once, and the first byte there selects the few words that can begin with it: an innocent
/// name costs little more than its length.
fn holds_secret_word(name: &[u8]) -> bool {
    (0..name.len()).any(|at| {
        let rest = &name[at..];
        let words: &[&[u8]] = match rest[0] {
            b'a' => &[b"auth", b"apikey", b"api_key", b"api-key"],
            b'c' => &[b"credential", b"creds", b"cookie"],
            b'j' => &[b"jwt"],
            b'k' => &[b"keyring"],
            b'p' => &[b"password", b"passwd", b"private_key", b"private-key"],
            b's' => &[b"secret"],
            b't' => &[b"token"],
            b'.' if KEY_EXTENSIONS.iter().any(|extension| is_extension(rest, extension)) => return true,
            // Databases with their side files and copies, and archives.
            b'.' => &[b".db", b".sqlite", b".tar."],
            _ => return false,
        };
        begins(rest, words)
    })
}

/// Whether `rest` begins with the extension and the extension ends there. Only an ASCII letter or digit carries it on
/// (`.keyboard`): where letters of other scripts follow, hiding is the safe reading.
fn is_extension(rest: &[u8], extension: &[u8]) -> bool {
    rest.strip_prefix(extension).is_some_and(|after| !after.first().is_some_and(u8::is_ascii_alphanumeric))
}

fn begins(name: &[u8], prefixes: &[&[u8]]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn ends(name: &[u8], suffixes: &[&[u8]]) -> bool {
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether the name is `prefix`, then anything, then `suffix`.
fn matches_glob(name: &[u8], prefix: &[u8], suffix: &[u8]) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.ends_with(suffix))
}

const KEY_EXTENSIONS: &[&[u8]] =
    &[b".key", b".pem", b".p12", b".pfx", b".jks", b".kdbx", b".gpg", b".asc", b".age", b".env"];

const STORES: &[&[u8]] = &[b".git", b".ssh", b".gnupg", b".aws", b".kube", b".docker", b".azure", b".gcloud"];

const STORE_PREFIXES: &[&[u8]] = &[
    b".env",
    b".claude.json",
    b".netrc",
    b".npmrc",
    b".pypirc",
    b".pgpass",
    b"id_rsa",
    b"id_dsa",
    b"id_ecdsa",
    b"id_ed25519",
    b".tmp",
    b"#",
];

const LEFTOVER_SUFFIXES: &[&[u8]] = &[b".tmp", b".swp", b"~", b".zip", b".tar", b".tgz"];

/// `secrets.` needs no line here: `secret` hides it wherever it stands.
const CONFIGURATION_PREFIXES: &[&[u8]] = &[b"settings.", b"config.", b"models.", b"mcp."];

const HERMES_NAMES: &[&[u8]] = &[
    b"pairing",
    b"state-snapshots",
    b"backups",
    b"checkpoints",
    b"mcp-installs",
    b"chrome-debug",
    b"whatsapp",
    b"weixin",
    b"honcho.json",
    b"mem0.json",
    b"supermemory.json",
    b"gateway.json",
];

const HERMES_PREFIXES: &[&[u8]] = &[b"request_dump", b"bws_", b"op_cache", b"webhook"];

const OMP_NAMES: &[&[u8]] = &[b"smithery.json", b"ssh.json", b"omp-plugins.lock.json"];
