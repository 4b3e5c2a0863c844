//! Any size and any order of messages.

use plinth_tui::{Ask, Fetched, Lost, Message, Model, What, message::Key, theme::Theme, update::update};
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};

use crate::sample::{at, events, key, screen};

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        proptest::char::range(' ', '~').prop_map(Key::Char),
        proptest::char::range('a', 'z').prop_map(Key::Ctrl),
        proptest::sample::select(vec![
            Key::Up,
            Key::Down,
            Key::Left,
            Key::Right,
            Key::Enter,
            Key::Esc,
            Key::Backspace,
            Key::Tab,
            Key::BackTab,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
        ]),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let ask = Ask { key: key("Platform", "sample"), what: What::Object };
    prop_oneof![
        4 => any_key().prop_map(Message::Key),
        4 => proptest::sample::select(events()),
        1 => (1u16..=250, 1u16..=80).prop_map(|(width, height)| Message::Resize { width, height }),
        1 => proptest::collection::vec("[a-c]{1,3}", 0..4).prop_map(|names| Message::Contexts(Ok(names))),
        1 => "[a-c]{1,3}".prop_map(Message::Connected),
        1 => proptest::option::of(".{0,90}").prop_map(|why| {
            let lost = |why| Lost { since: at(3), of: None, why, hint: None };
            Message::Link(why.map(lost))
        }),
        1 => (0i64..1000).prop_map(|seconds| Message::Tick(at(seconds))),
        1 => ".{0,20}".prop_map(move |why| Message::Fetched(Box::new(Fetched { ask: ask.clone(), answer: Err(why) }))),
    ]
}

/// Keys, events, sizes and times in any order, drawn now and then; the size may be any from 1x1 on.
fn lives(messages: Vec<Message>, size: (u16, u16)) -> Result<(), TestCaseError> {
    let mut model = Model::new(Theme::Dark, at(0)).choosing();
    update(&mut model, Message::Resize { width: size.0, height: size.1 });
    for (index, message) in messages.into_iter().enumerate() {
        update(&mut model, message);
        prop_assert!(model.ui.cursor < model.rows.len().max(1));
        prop_assert!(model.ui.top <= model.ui.cursor);
        // Drawing is what takes long; every state is reached, and every fourth is drawn.
        if index % 4 == 0 {
            screen(&model);
        }
    }
    screen(&model);
    Ok(())
}

#[test]
fn show_06_random() {
    let cases = 96;
    let lists = proptest::collection::vec(any_message(), 0..60);
    let mut runner = TestRunner::new(ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(cases) });
    runner.run(&(lists, (1u16..=250, 1u16..=80)), |(messages, size)| lives(messages, size)).unwrap();
    println!("SHOW 06 random {cases} lists of messages at sizes up to 250x80, no panic, the selection always valid");
}

/// Not only the sizes that chance finds: an even net over all of them, each view in turn.
#[test]
fn show_06_sizes() {
    let mut model = Model::new(Theme::Dark, at(0));
    events().into_iter().for_each(|event| drop(update(&mut model, event)));
    let mut frames = 0;
    for width in (1u16..=250).step_by(3) {
        for height in (1u16..=80).step_by(4) {
            update(&mut model, Message::Resize { width, height });
            update(&mut model, Message::Key(Key::Char(char::from(b'1' + u8::try_from(frames % 5).unwrap()))));
            screen(&model);
            frames += 1;
        }
    }
    println!("SHOW 06 sizes {frames} frames from 1x1 to 250x77, no panic");
}
