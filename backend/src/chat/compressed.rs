//! A transcript that was compressed (zstd, RFC 8878), by offsets of what it was.
//!
//! Owns: the decoder, and how far it has come. Must not know: what is in the file.
//!
//! A compressed file can only be read from its front. One decoder is kept where the last read ended, and the text just
//! before that, so that reading on costs what is read, also for who reads the end of the last block or character again; an
//! offset further back begins anew. A read decodes 4 MiB at most on the way to its
//! offset and then asks to be asked again, so that no request waits for a whole file.

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::Source;

/// The text of a compressed file.
pub struct Compressed {
    file: Box<dyn Source>,
    /// Taken out while it is used: no lock is held while the file is read.
    kept: Mutex<Option<Stream>>,
}

struct Stream {
    decoder: Decoder<'static>,
    input: Box<[u8]>,
    /// What of the input is not decoded yet.
    ahead: std::ops::Range<usize>,
    /// How much of the file has been read.
    read: u64,
    /// How much of the text has been decoded.
    text: u64,
    /// What was read last, up to there.
    last: Vec<u8>,
    /// Whether the last call left nothing to be flushed.
    is_dry: bool,
}

impl Compressed {
    /// The text of a file.
    pub fn new(file: Box<dyn Source>) -> Self {
        Self { file, kept: Mutex::new(None) }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Stream>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Compressed {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let kept = self.kept().take();
        let mut stream = match kept {
            Some(stream) if stream.text - stream.last.len() as u64 <= offset => stream,
            _ => Stream::new()?,
        };
        if stream.text < offset {
            stream.last.clear();
        }
        let mut dropped = vec![0; if stream.text < offset { DROPPED } else { 0 }];
        let limit = stream.text + STEP;
        while stream.text < offset {
            if stream.text >= limit {
                *self.kept() = Some(stream);
                return Err(Errno::AGAIN);
            }
            let rest = usize::try_from(offset - stream.text).unwrap_or(DROPPED).min(DROPPED);
            if stream.decode(&*self.file, &mut dropped[..rest])? == 0 {
                return Ok(0);
            }
        }
        let mut filled = stream.again(offset, buf);
        while filled < buf.len() {
            match stream.decode(&*self.file, &mut buf[filled..])? {
                0 => break,
                more => {
                    stream.keep(&buf[filled..filled + more]);
                    filled += more;
                }
            }
        }
        *self.kept() = Some(stream);
        Ok(filled)
    }
}

impl Stream {
    fn new() -> Result<Self, Errno> {
        let mut decoder = Decoder::new().map_err(|_| Errno::NOMEM)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(|_| Errno::IO)?;
        Ok(Self {
            decoder,
            input: vec![0; INPUT].into(),
            ahead: 0..0,
            read: 0,
            text: 0,
            last: Vec::new(),
            is_dry: true,
        })
    }

    /// Copies what was read before of what stands at an offset. Answers how much.
    fn again(&self, offset: u64, buf: &mut [u8]) -> usize {
        let back = usize::try_from(self.text - offset).unwrap_or(0).min(self.last.len());
        let again = &self.last[self.last.len() - back..];
        let length = again.len().min(buf.len());
        buf[..length].copy_from_slice(&again[..length]);
        length
    }

    /// Keeps the end of what was decoded.
    fn keep(&mut self, decoded: &[u8]) {
        self.last.extend_from_slice(decoded);
        // Not each time, for the rest moves to the front.
        if self.last.len() > 2 * BACK {
            self.last.drain(..self.last.len() - BACK);
        }
    }

    /// Decodes on. Answers how much: 0 where the file ends, be it within a frame.
    fn decode(&mut self, file: &dyn Source, out: &mut [u8]) -> Result<usize, Errno> {
        loop {
            if self.ahead.is_empty() && self.is_dry {
                let got = file.read_at(&mut self.input, self.read)?;
                if got == 0 {
                    return Ok(0);
                }
                self.read += got as u64;
                self.ahead = 0..got;
            }
            let done =
                self.decoder.run_on_buffers(&self.input[self.ahead.clone()], out).map_err(|_| Errno::IO)?;
            self.ahead.start += done.bytes_read;
            self.is_dry = done.bytes_written < out.len();
            self.text += done.bytes_written as u64;
            if done.bytes_written > 0 {
                return Ok(done.bytes_written);
            }
        }
    }
}

impl std::fmt::Debug for Compressed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressed").finish_non_exhaustive()
    }
}

/// The largest window a frame may ask for: 8 MiB.
const WINDOW_LOG: u32 = 23;
/// Bytes decoded on the way to an offset before the answer is to ask again.
const STEP: u64 = 4 * 1024 * 1024;
/// How far back a read may begin before the end of the last one: at least a block of an index.
const BACK: usize = 256 * 1024;
const INPUT: usize = 64 * 1024;
const DROPPED: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8 & 0x3f).collect()
    }

    fn read(source: &Compressed, length: usize, offset: u64) -> Vec<u8> {
        let mut buf = vec![0; length];
        for _ in 0..100 {
            match source.read_at(&mut buf, offset) {
                Ok(got) => return buf[..got].to_vec(),
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
        panic!("it never gets there");
    }

    #[test]
    fn any_offset_reads_as_the_text() {
        let text = text(9_000_000);
        let frames = text.chunks(5_000_000).flat_map(|part| zstd::encode_all(part, 1).unwrap());
        let file: &'static [u8] = Vec::leak(frames.collect());
        let source = Compressed::new(Box::new(file));
        for offset in [0, 10, 4_999_990, 8_999_000, 100, 8_999_999, 9_000_000, 10_000_000, 0] {
            let rest = text.get(offset..).unwrap_or_default();
            assert_eq!(read(&source, 1000, offset as u64), rest[..rest.len().min(1000)], "{offset}");
        }
        let mut buf = [0; 10];
        assert_eq!(Compressed::new(Box::new(file)).read_at(&mut buf, 8_000_000), Err(Errno::AGAIN));
    }

    /// Counts how often a file is read from its front.
    struct Counted(&'static [u8], Arc<AtomicU32>);

    impl Source for Counted {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
            self.1.fetch_add(u32::from(offset == 0), Ordering::Relaxed);
            self.0.read_at(buf, offset)
        }
    }

    #[test]
    fn reading_on_from_a_little_before_begins_nothing_anew() {
        let text = text(6_000_000);
        let file: &'static [u8] = Vec::leak(zstd::encode_all(&text[..], 1).unwrap());
        for (length, step) in [(16_000, 15_990), (BACK, 1000), (BACK, BACK - 1), (70, 1)] {
            let begun = Arc::new(AtomicU32::new(0));
            let source = Compressed::new(Box::new(Counted(file, Arc::clone(&begun))));
            for offset in (5_000_000..).step_by(step).take(100).take_while(|offset| *offset < text.len()) {
                let rest = &text[offset..];
                assert!(read(&source, length, offset as u64) == rest[..rest.len().min(length)], "{offset}");
            }
            assert_eq!(begun.load(Ordering::Relaxed), 1, "{length} {step}");
        }
    }

    #[test]
    fn a_cut_file_ends_early_and_a_broken_one_is_an_error() {
        let text = text(300_000);
        let mut file = zstd::encode_all(&text[..], 1).unwrap();
        let cut: &'static [u8] = Vec::leak(file[..file.len() / 2].to_vec());
        let front = read(&Compressed::new(Box::new(cut)), 300_000, 0);
        assert!(front.len() < text.len() && text.starts_with(&front));
        file[0] ^= 1;
        let broken: &'static [u8] = Vec::leak(file);
        assert_eq!(Compressed::new(Box::new(broken)).read_at(&mut [0; 10], 0), Err(Errno::IO));
    }

    #[test]
    fn a_window_past_the_limit_is_an_error() {
        let text = text(20_000_000);
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.set_parameter(zstd::zstd_safe::CParameter::WindowLog(WINDOW_LOG + 1)).unwrap();
        std::io::Write::write_all(&mut encoder, &text).unwrap();
        let file: &'static [u8] = Vec::leak(encoder.finish().unwrap());
        assert_eq!(Compressed::new(Box::new(file)).read_at(&mut [0; 10], 0), Err(Errno::IO));
    }
}
