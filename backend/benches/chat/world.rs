//! Transcripts as long as asked for, in the mix of records that real ones have.
//!
//! The mix was counted over recordings: which record types follow each other, how long their texts are, what is written
//! twice. The words are invented.

use std::io::{self, Write};

/// Writes a Codex rollout of about `size` bytes. Answers how many messages it holds.
pub(crate) fn codex(out: &mut impl Write, size: u64, seed: u64) -> io::Result<u32> {
    let mut world = World { out, dice: Dice(seed), written: 0, clock: 0, messages: 0 };
    let base = world.dice.prose(18_000);
    world.line(&format!(r#""type":"session_meta","payload":{{"id":"019a0000-0000-7000-8000-000000000001","timestamp":"2026-11-02T10:00:00.000Z","cwd":"/home/me/work","originator":"codex-tui","cli_version":"0.147.0","source":"cli","model_provider":"openai","base_instructions":{{"text":"{base}"}}}}"#))?;
    while world.written < size {
        world.codex_turn()?;
    }
    Ok(world.messages)
}

/// Writes a Claude Code transcript of about `size` bytes. Answers how many messages it holds.
pub(crate) fn claude(out: &mut impl Write, size: u64, seed: u64) -> io::Result<u32> {
    let mut world = World { out, dice: Dice(seed), written: 0, clock: 0, messages: 0 };
    while world.written < size {
        world.claude_turn()?;
    }
    Ok(world.messages)
}

struct World<'w, W> {
    out: &'w mut W,
    dice: Dice,
    written: u64,
    clock: u64,
    messages: u32,
}

impl<W: Write> World<'_, W> {
    fn raw(&mut self, line: &str) -> io::Result<()> {
        self.written += line.len() as u64 + 1;
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    fn now(&mut self) -> String {
        self.clock += 37 + self.dice.roll(4000);
        let (s, ms) = (self.clock / 1000, self.clock % 1000);
        format!(
            "2026-11-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
            1 + s / 86_400 % 28,
            s / 3600 % 24,
            s / 60 % 60,
            s % 60
        )
    }

    fn line(&mut self, rest: &str) -> io::Result<()> {
        let now = self.now();
        self.raw(&format!(r#"{{"timestamp":"{now}",{rest}}}"#))
    }

    fn item(&mut self, payload: &str) -> io::Result<()> {
        self.line(&format!(r#""type":"response_item","payload":{{{payload}}}"#))
    }

    fn event(&mut self, payload: &str) -> io::Result<()> {
        self.line(&format!(r#""type":"event_msg","payload":{{{payload}}}"#))
    }

    fn codex_turn(&mut self) -> io::Result<()> {
        let turn = self.dice.hex(12);
        self.event(&format!(r#""type":"task_started","turn_id":"{turn}","model_context_window":258400"#))?;
        let prompt = self.dice.text(300);
        self.item(&format!(
            r#""type":"message","role":"user","content":[{{"type":"input_text","text":"{prompt}"}}]"#
        ))?;
        self.event(&format!(r#""type":"user_message","message":"{prompt}","images":[],"local_images":[]"#))?;
        self.messages += 1;
        let instructions = self.dice.prose(3000);
        self.line(&format!(r#""type":"turn_context","payload":{{"turn_id":"{turn}","cwd":"/home/me/work","approval_policy":"on-request","sandbox_policy":{{"type":"workspace-write"}},"model":"gpt-5","effort":"high","user_instructions":"{instructions}"}}"#))?;
        for _ in 0..2 + self.dice.roll(20) {
            self.codex_step()?;
        }
        let answer = self.dice.text(900);
        self.event(&format!(r#""type":"agent_message","message":"{answer}","phase":"final_answer""#))?;
        self.item(&format!(r#""type":"message","role":"assistant","content":[{{"type":"output_text","text":"{answer}"}}],"phase":"final_answer""#))?;
        self.messages += 1;
        self.event(&format!(r#""type":"task_complete","turn_id":"{turn}","last_agent_message":"{answer}""#))
    }

    fn codex_step(&mut self) -> io::Result<()> {
        let sealed = {
            let length = 800 + self.dice.roll(3000) as usize;
            self.dice.base64(length)
        };
        let summary = self.dice.roll(3) == 0;
        let said = if summary {
            format!(r#"{{"type":"summary_text","text":"{}"}}"#, self.dice.text(200))
        } else {
            String::new()
        };
        self.messages += u32::from(summary);
        self.item(&format!(
            r#""type":"reasoning","summary":[{said}],"content":null,"encrypted_content":"{sealed}""#
        ))?;
        let call = self.dice.hex(24);
        let command = self.dice.text(120);
        self.item(&format!(r#""type":"function_call","name":"exec_command","arguments":"{{\"cmd\":\"{}\",\"workdir\":\"/home/me/work\"}}","call_id":"call_{call}""#, command.replace('\\', r"\\").replace('"', r#"\""#)))?;
        let output = {
            let length = 200 + self.dice.roll(9000) as usize;
            self.dice.output(length)
        };
        self.event(&format!(r#""type":"exec_command_end","call_id":"call_{call}","process_id":"1","command":["/bin/bash","-lc","{command}"],"cwd":"/home/me/work","stdout":"{output}","stderr":"","aggregated_output":"{output}","exit_code":0,"formatted_output":"{output}","status":"completed""#))?;
        self.item(&format!(r#""type":"function_call_output","call_id":"call_{call}","output":"Chunk ID: {}\nWall time: 0.05 seconds\nOutput:\n{output}""#, &call[..6]))?;
        self.messages += 2;
        self.event(r#""type":"token_count","info":{"total_token_usage":{"input_tokens":123456,"cached_input_tokens":120000,"output_tokens":4567,"reasoning_output_tokens":1234,"total_tokens":128023},"last_token_usage":{"input_tokens":23456,"cached_input_tokens":20000,"output_tokens":567,"reasoning_output_tokens":234,"total_tokens":24023},"model_context_window":258400},"rate_limits":{"primary":{"used_percent":12.0,"window_minutes":300,"resets_at":1777777777},"secondary":{"used_percent":3.0,"window_minutes":10080,"resets_at":1777999999}}"#)
    }

    fn claude_turn(&mut self) -> io::Result<()> {
        let prompt = self.dice.text(250);
        self.claude_record(
            &format!(r#""type":"user","message":{{"role":"user","content":"{prompt}"}}"#),
            "",
        )?;
        self.messages += 1;
        for _ in 0..1 + self.dice.roll(14) {
            self.claude_step()?;
        }
        let answer = self.dice.text(700);
        self.assistant(&format!(r#"{{"type":"text","text":"{answer}"}}"#))?;
        self.messages += 1;
        let session = self.dice.hex(16);
        self.raw(&format!(r#"{{"type":"last-prompt","lastPrompt":"{prompt}","sessionId":"{session}"}}"#))?;
        self.raw(&format!(r#"{{"type":"ai-title","aiTitle":"Fix the build","sessionId":"{session}"}}"#))?;
        let snapshot = self.dice.hex(16);
        self.raw(&format!(r#"{{"type":"file-history-snapshot","messageId":"{snapshot}","snapshot":{{"messageId":"{snapshot}","trackedFileBackups":{{}},"timestamp":"2026-11-02T10:00:00.000Z"}},"isSnapshotUpdate":false}}"#))
    }

    fn claude_step(&mut self) -> io::Result<()> {
        if self.dice.roll(3) == 0 {
            let signature = self.dice.base64(600);
            self.assistant(&format!(r#"{{"type":"thinking","thinking":"","signature":"{signature}"}}"#))?;
        }
        let call = self.dice.hex(24);
        let command = self.dice.text(150);
        self.assistant(&format!(r#"{{"type":"tool_use","id":"toolu_{call}","name":"Bash","input":{{"command":"{command}","description":"run it"}},"caller":{{"type":"direct"}}}}"#))?;
        if self.dice.roll(2) == 0 {
            self.claude_record(&format!(r#""type":"progress","data":{{"type":"hook_progress","hookEvent":"PreToolUse","hookName":"PreToolUse:Bash","command":"{command}"}},"toolUseID":"toolu_{call}""#), "")?;
        }
        let output = {
            let length = 200 + self.dice.roll(6000) as usize;
            self.dice.output(length)
        };
        self.claude_record(
            &format!(r#""type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{call}","type":"tool_result","content":"{output}","is_error":false}}]}}"#),
            &format!(r#""toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false,"isImage":false}},"#),
        )?;
        self.messages += 2;
        Ok(())
    }

    fn assistant(&mut self, block: &str) -> io::Result<()> {
        let id = self.dice.hex(24);
        self.claude_record(&format!(r#""message":{{"model":"claude-opus-5","id":"msg_{id}","type":"message","role":"assistant","content":[{block}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":3,"cache_creation_input_tokens":5112,"cache_read_input_tokens":17024,"output_tokens":3,"service_tier":"standard","cache_creation":{{"ephemeral_1h_input_tokens":5112,"ephemeral_5m_input_tokens":0}}}}}},"requestId":"req_{id}","type":"assistant""#), "")
    }

    fn claude_record(&mut self, middle: &str, more: &str) -> io::Result<()> {
        let (uuid, parent, now) = (self.dice.uuid(), self.dice.uuid(), self.now());
        self.raw(&format!(r#"{{"parentUuid":"{parent}","isSidechain":false,{middle},"uuid":"{uuid}","timestamp":"{now}",{more}"userType":"external","entrypoint":"cli","cwd":"/home/me/work","sessionId":"5c000000-0000-4000-8000-000000000000","version":"2.1.330","gitBranch":"main"}}"#))
    }
}

/// Random numbers and texts from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    fn hex(&mut self, digits: usize) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())[..digits].to_string()
    }

    fn uuid(&mut self) -> String {
        let hex = self.hex(32);
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }

    fn base64(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        (0..length).map(|_| LETTERS[self.roll(64) as usize] as char).collect()
    }

    /// Words with a newline every few lines.
    fn prose(&mut self, length: usize) -> String {
        self.words(length, 90, &[r"\n", r"\n\n"], 40)
    }

    /// What is said: a length around `mean`.
    fn text(&mut self, mean: usize) -> String {
        let length = mean / 4 + self.roll(3 * mean as u64 / 2) as usize;
        self.words(length, 70, &[r"\n", r#"\""#, r"\n\n- "], 60)
    }

    /// What a command prints: short lines, tabs, quotes.
    fn output(&mut self, length: usize) -> String {
        self.words(length, 40, &[r"\n", r"\n", r"\n", r"\n\t", r#"\""#, r"\u001b[0m"], 0)
    }

    fn words(&mut self, length: usize, line: usize, breaks: &[&str], accents: u64) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "build",
            "src/main.rs:42",
            "error",
            "of",
            "a",
            "file",
            "is",
            "test",
            "fn",
            "return",
            "passed",
            "let",
            "in",
            "running",
            "0x7f3a",
        ];
        let (mut text, mut column) = (String::with_capacity(length + 16), 0);
        while text.len() < length {
            let word = WORDS[self.roll(16) as usize];
            text.push_str(word);
            column += word.len() + 1;
            if accents > 0 && self.roll(accents) == 0 {
                text.push_str(" \u{2014} d\u{e9}j\u{e0}");
            }
            if column > line {
                text.push_str(breaks[self.roll(breaks.len() as u64) as usize]);
                column = 0;
            } else {
                text.push(' ');
            }
        }
        text
    }
}
