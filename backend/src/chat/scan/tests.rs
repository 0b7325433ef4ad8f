use proptest::collection::vec;
use proptest::prelude::*;

use super::super::tape::{Value, fields};
use super::*;

fields! { FIELDS:
    A "a" Inside,
    WHOLE "whole" Whole,
    KEYS "keys" Keys,
}

fn read(json: &[u8]) -> Scanner {
    let mut scanner = Scanner::new(&FIELDS);
    assert_eq!(scanner.feed(json, 100, true, &|_| true), Ok(json.len()));
    scanner
}

fn is_record(json: &[u8]) -> bool {
    read(json).record().is_some()
}

#[test]
fn the_grammar_is_that_of_json() {
    for json in [
        "{}",
        " {\"x\" : [ ] , \"y\":[1,-0.5e+7,true,false,null,{\"z\":\"\"}]}\t\r",
        "\0\0{\"a\":\"\\ud83d\"}\0\0",
        "{\"a\":\"\u{7f}\u{2028}\"}",
    ] {
        assert!(is_record(json.as_bytes()), "{json}");
    }
    assert!(is_record(b"{\"a\":\"\xff\xe2\x82\"}"));
    for json in [
        "",
        "[]",
        "1",
        "\"a\"",
        "{",
        "{}{}",
        "{} x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":[1,]}",
        "{\"a\":[,1]}",
        "{\"a\":[1}",
        "{\"a\":{]}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":+1}",
        "{\"a\":tru}",
        "{\"a\":truee}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\0\"}",
        "{\"a\":\"}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":NaN}",
        "{\"x\":\"\\x\"}",
        "{\"whole\":[01]}",
        "{\"a\":1}\0{\"a\":1}",
        "{\"a\":\0 1}",
    ] {
        assert!(!is_record(json.as_bytes()), "{json}");
    }
    let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    assert!(is_record(format!("{{\"a\":{}}}", deep(DEPTH - 1)).as_bytes()));
    assert!(!is_record(format!("{{\"a\":{}}}", deep(DEPTH)).as_bytes()));
}

#[test]
fn a_tape_holds_what_matters_where_it_stands() {
    let json =
        br#"{"x":{"a":1},"a":{"a":"\u00e9\n","x":2,"whole":{"a":[1]}},"keys":{"p\t":{"a":1},"a":2},"a":3}"#;
    let scanner = read(json);
    let record = scanner.record().and_then(Tape::record).unwrap();
    let keys: Vec<_> = record.items().map(|value| value.node().key).collect();
    assert_eq!(keys, [A, KEYS, A]);
    let inner = record.get(A).unwrap();
    let string = inner.get(A).unwrap();
    assert_eq!(string.text(), Some("\u{e9}\n".as_bytes()));
    assert!(string.node().ends_line && string.node().text == 3);
    let at = |value: Value<'_>| &json[value.node().start as usize - 100..value.node().end as usize - 100];
    assert_eq!(at(string), br"\u00e9\n");
    assert_eq!(at(inner.get(WHOLE).unwrap()), br#"{"a":[1]}"#);
    assert_eq!(inner.get(WHOLE).unwrap().items().count(), 0);
    let names: Vec<_> = record.get(KEYS).unwrap().items().map(|name| name.text().unwrap()).collect();
    assert_eq!(names, [&b"p\t"[..], b"a"]);
    assert_eq!(record.items().last().unwrap().integer(), Some(3));
}

#[test]
fn what_is_not_wanted_is_not_read() {
    let mut scanner = Scanner::new(&FIELDS);
    let wanted =
        |tape: &Tape| tape.record().and_then(|record| record.get(A)).and_then(Value::text) != Some(b"no");
    assert_eq!(scanner.feed(br#"{"a":"no","a":[[["#, 0, false, &wanted), Ok(17));
    assert_eq!(scanner.feed(b"whatever", 17, true, &wanted), Ok(8));
    assert!(scanner.record().is_none());
}

#[test]
fn plain_bytes_are_told_from_others_wherever_they_stand() {
    for byte in 0..=u8::MAX {
        let plain = matches!(byte, 0x20..=0x7f) && byte != b'"' && byte != b'\\';
        for length in [1, 7, 8, 9, 31, 32, 33, 71] {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[at] = byte;
                assert_eq!(
                    plain_front(&bytes),
                    if plain { length } else { at },
                    "{byte:#x} at {at} of {length}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn a_record_read_in_pieces_is_the_record(words in vec(word(), 0..30), sizes in vec(1usize..9, 1..20)) {
        let json = words.concat();
        let whole = read(&json);
        let mut pieces = Scanner::new(&FIELDS);
        let (mut at, mut end, mut sizes) = (0, 0, sizes.iter().cycle());
        while end < json.len() {
            end = json.len().min(end + sizes.next().unwrap());
            at += pieces.feed(&json[at..end], 100 + at as u64, end == json.len(), &|_| true).unwrap();
            prop_assert!(at <= end);
        }
        prop_assert_eq!(whole.record().is_some(), pieces.record().is_some() && !json.is_empty());
        if let (Some(whole), Some(pieces)) = (whole.record(), pieces.record()) {
            prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        }
    }
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    let words: [&[u8]; 22] = [
        b"{\"a\":",
        b"}",
        b"[",
        b"]",
        b",",
        b"\"a\":",
        b"\"x\":",
        b"\"whole\":{\"a\":",
        b"\"keys\":{\"k\":",
        b"12.5e3",
        b"true",
        b"null",
        b"\"text\"",
        b"\"\\ud83d\\ude00\"",
        b"\"\\n\\u00e9",
        b"\"",
        b" ",
        b"\0",
        b"\xe2\x82\xac",
        b"\"\xe2\x82\"",
        b"\"\\ud83d",
        b"-",
    ];
    proptest::sample::select(words.to_vec()).prop_map(<[u8]>::to_vec)
}
