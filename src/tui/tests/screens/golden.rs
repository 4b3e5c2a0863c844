//! Every view at four sizes: the text as it is without colour, then what a dark terminal colours in it.

use plinth_tui::{
    Answer, Ask, ClusterEvent, Fetched, Message, Model, What, detail::Detail, message::Key, theme::Theme, update::update,
};
use ratatui::style::{Color, Modifier};

use crate::sample::{REVIEW, RUNNING, at, buffer, model_in, object, screen};

const SIZES: [(u16, u16); 4] = [(200, 60), (120, 40), (80, 24), (40, 12)];

/// A screen, how many events it has seen, and the keys that lead to it.
const SCREENS: [(&str, usize, &str); 16] = [
    ("question", REVIEW, ""),
    ("plan", usize::MAX, "1"),
    ("tree", RUNNING, "2"),
    ("timeline", RUNNING, "3"),
    ("events", RUNNING, "4"),
    ("checks", RUNNING, "5"),
    ("describe", RUNNING, "2jjd"),
    ("yaml", RUNNING, "2jjy"),
    ("diff", RUNNING, "2jj="),
    ("object-events", RUNNING, "2jje"),
    ("logs", RUNNING, "2jjL"),
    ("palette", RUNNING, ":yaml"),
    ("help", RUNNING, "?"),
    ("quit", RUNNING, "q"),
    ("unhealthy", RUNNING, "2uP"),
    ("filter", RUNNING, "2/kind:oper state:gone"),
];

fn reach(theme: Theme, (width, height): (u16, u16), seen: usize, keys: &str) -> Model {
    let mut model = model_in(theme, width, height, seen);
    for letter in keys.chars() {
        update(&mut model, Message::Key(Key::Char(letter)));
    }
    if let Some(ask) = model.ui.detail.as_ref().map(Detail::ask) {
        let answer = Ok(answer(&ask));
        update(&mut model, Message::Fetched(Box::new(Fetched { ask, answer })));
    }
    model
}

/// What the server says of the object.
fn answer(ask: &Ask) -> Answer {
    let event = |seconds, warning, reason: &str, message: &str| ClusterEvent {
        at: at(seconds),
        key: ask.key.clone(),
        warning,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    match ask.what {
        What::Object => {
            let mut desired = object();
            desired.metadata_mut().insert("labels".to_owned(), serde_json::json!({"a": "b"}));
            Answer::Object { live: Some(object()), desired: Some(desired) }
        }
        What::Events => Answer::Events(vec![
            event(20, true, "Failed", "image pull: mirror answers 404"),
            event(9, false, "Scheduled", "assigned to node-1"),
        ]),
        What::Logs => Answer::Logs {
            of: "pod operator-0 container operator, before it was restarted".to_owned(),
            lines: vec!["starting".to_owned(), "fatal: no kubeconfig".to_owned()],
        },
    }
}

/// What is drawn in another way than plain text: line, columns, how, and the text.
fn styled(model: &Model) -> String {
    let buffer = buffer(model);
    let width = usize::from(buffer.area.width);
    let mut spans = String::new();
    for (number, line) in buffer.content.chunks(width).enumerate() {
        let mut from = 0;
        while from < width {
            let style = line[from].style();
            let to = (from..width).find(|column| line[*column].style() != style).unwrap_or(width);
            let text: String = line[from..to].iter().map(ratatui::buffer::Cell::symbol).collect();
            let colour = style.fg.filter(|colour| *colour != Color::Reset).map(|colour| colour.to_string());
            let marks = [(Modifier::BOLD, "bold"), (Modifier::REVERSED, "reversed")];
            let marks = marks.iter().filter(|(mark, _)| style.add_modifier.contains(*mark)).map(|(_, name)| (*name).to_owned());
            let how: Vec<String> = colour.into_iter().chain(marks).collect();
            if !how.is_empty() && !text.trim().is_empty() {
                spans += &format!("{number}:{from}-{to} {}: {}\n", how.join(" "), text.trim_end());
            }
            from = to;
        }
    }
    spans
}

#[test]
fn show_06_screens() {
    let mut count = 0;
    for (name, seen, keys) in SCREENS {
        for size in SIZES {
            let mono = screen(&reach(Theme::Mono, size, seen, keys));
            let dark = reach(Theme::Dark, size, seen, keys);
            assert_eq!(mono, screen(&dark), "colour changes no text");
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), format!("{mono}---- dark\n{}", styled(&dark)));
            count += 2;
        }
    }
    println!("SHOW 06 screens {count}");
}

#[test]
fn small_terminals_show_states_and_tiny_ones_a_word() {
    insta::assert_snapshot!("states_30x8", screen(&reach(Theme::Mono, (30, 8), RUNNING, "")));
    assert!(screen(&reach(Theme::Mono, (12, 2), RUNNING, "")).contains("running"));
}

/// Every state is told apart by its word: the mono theme has no colour at all.
#[test]
fn words_tell_states_apart() {
    let mono = reach(Theme::Mono, (120, 40), RUNNING, "");
    for word in ["ready", "waiting", "failed", "deferred"] {
        assert!(screen(&mono).contains(word), "{word} is not on the screen:\n{}", screen(&mono));
    }
    let coloured = styled(&mono).lines().filter(|line| !line.contains("bold") && !line.contains("reversed")).count();
    assert_eq!(coloured, 0, "{}", styled(&mono));
}

#[test]
fn a_secret_is_on_no_screen() {
    for keys in ["2jjy", "2jj=", "2jjd"] {
        let text = screen(&reach(Theme::Mono, (200, 60), RUNNING, keys));
        assert!(!text.contains("aHVudGVyMg"), "{text}");
    }
}
