//! The environment of a process. Never served: variables are looked up by name, and their values parsed.

/// `NAME=value` strings, each ended by NUL (proc_pid_environ(5)). Debug tells nothing of it.
pub(crate) struct Environ(Vec<u8>);

impl Environ {
    /// The content of `/proc/<pid>/environ`, or the beginning of it.
    pub(crate) fn new(content: Vec<u8>) -> Self {
        Self(content)
    }

    /// The value of a variable, unless it is empty, which every harness takes as not set. Of several of one name the
    /// first counts, as with getenv(3).
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        let of_name = |variable: &'_ [u8]| -> Option<usize> {
            let rest = variable.strip_prefix(name.as_bytes())?;
            (rest.first() == Some(&b'=')).then_some(name.len() + 1)
        };
        let (variable, at) =
            self.0.split(|byte| *byte == 0).find_map(|variable| Some((variable, of_name(variable)?)))?;
        let value = &variable[at..];
        if value.is_empty() { None } else { Some(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::Environ;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = Environ::new(b"A=1\0ZMX=no\0ZMX_SESSION=w=1\0EMPTY=\0ZMX_SESSION=2\0CUT".to_vec());
        assert_eq!(environ.value("ZMX_SESSION"), Some(&b"w=1"[..]));
        assert_eq!(environ.value("A"), Some(&b"1"[..]));
        for absent in ["EMPTY", "MX_SESSION", "CUT", "B", ""] {
            assert_eq!(environ.value(absent), None, "{absent}");
        }
    }
}
