use jiff::Timestamp;

use super::*;
use crate::{
    event::{EventKind, Verb},
    subject::RunId,
};

fn event(seq: u64) -> Event {
    let kind = EventKind::RunStarted {
        verb: Verb::Up,
        platform: "p".into(),
        source: "s".into(),
        cluster: None,
        resumed: Some(RunId("r0".into())),
    };
    Event { v: VERSION, run: RunId("r1".into()), seq, at: Timestamp::UNIX_EPOCH, kind }
}

fn text(count: u64) -> String {
    (1..=count).map(|seq| encode(&event(seq)).unwrap()).collect()
}

#[test]
fn a_line_reads_as_people_expect() {
    assert_eq!(
        encode(&event(3)).unwrap(),
        "{\"v\":1,\"run\":\"r1\",\"seq\":3,\"at\":\"1970-01-01T00:00:00Z\",\"kind\":\"RunStarted\",\"verb\":\"up\",\
         \"platform\":\"p\",\"source\":\"s\",\"resumed\":\"r0\"}\n"
    );
}

#[test]
fn a_journal_cut_anywhere_gives_every_whole_line() {
    let text = text(3);
    for length in 0..=text.len() {
        let replay = decode(&text.as_bytes()[..length]).unwrap();
        let whole = text[..length].matches('\n').count();
        assert_eq!(replay.events, (1..=whole as u64).map(event).collect::<Vec<_>>(), "{length}");
        let whole_bytes = text[..length].rfind('\n').map_or(0, |end| end + 1);
        let cut = (whole_bytes < length).then_some(Cut { line: whole + 1, whole_bytes });
        assert_eq!(replay.cut, cut, "{length}");
    }
}

#[test]
fn broken_lines_are_named() {
    let good = text(1);
    let cases = [
        (format!("{good}{{\n"), "line 2 is not an event"),
        (format!("{good}\n\n{{\"v\":2,\"kind\":\"New\"}}\n"), "line 4 has event version 2"),
        ("{\"v\":1}\n".to_owned(), "line 1 is not an event: missing field `run`"),
        ("[]\n".to_owned(), "line 1 is not an event"),
        (good.replace("RunStarted", "Unheard"), "line 1 is not an event: unknown variant `Unheard`"),
        (format!("{}\n", "x".repeat(MAX_LINE)), "line 1 is longer than"),
    ];
    for (text, expect) in cases {
        let error = decode(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expect), "{error}");
    }
}

#[test]
fn unknown_fields_of_the_same_version_are_ignored() {
    let line = text(1).replace("\"v\":1", "\"v\":1,\"later\":{\"a\":1}");
    assert_eq!(decode(line.as_bytes()).unwrap().events, [event(1)]);
}
