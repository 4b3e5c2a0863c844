//! Looking at another cluster: contexts are asked for, chosen by some of their letters, and everything of the one before is forgotten.

use plinth_tui::{Effect, Message, Model, message::Key, model::Overlay, theme::Theme, update::update};

use crate::sample::{RUNNING, at, events, screen};

fn watching((width, height): (u16, u16)) -> Model {
    let mut model = Model::new(Theme::Mono, at(0)).watching("kind-platform").choosing();
    update(&mut model, Message::Resize { width, height });
    events().into_iter().take(RUNNING).for_each(|event| drop(update(&mut model, event)));
    update(&mut model, Message::Tick(at(90)));
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let key = |letter| if letter == '\n' { Key::Enter } else { Key::Char(letter) };
    keys.chars().flat_map(|letter| update(model, Message::Key(key(letter)))).collect()
}

fn known() -> Message {
    Message::Contexts(Ok(["kcp-prod", "kind-platform", "kind-second", "prod-eu"].map(str::to_owned).to_vec()))
}

#[test]
fn show_06_contexts() {
    let mut count = 0;
    for size in [(200, 60), (120, 40), (80, 24), (40, 12)] {
        let mut model = watching(size);
        press(&mut model, "C");
        update(&mut model, known());
        insta::assert_snapshot!(format!("contexts_{}x{}", size.0, size.1), screen(&model));
        press(&mut model, "prod");
        insta::assert_snapshot!(format!("contexts-typed_{}x{}", size.0, size.1), screen(&model));
        count += 2;
    }
    println!("SHOW 06 contexts {count} screens of the choice of a cluster");
}

#[test]
fn contexts_are_asked_for_when_they_are_to_be_seen() {
    let mut model = watching((80, 24));
    assert_eq!(press(&mut model, "C"), [Effect::Contexts]);
    assert!(screen(&model).contains("reading the kubeconfig"), "{}", screen(&model));
    update(&mut model, Message::Contexts(Err("read kubeconfig /none: no such file".to_owned())));
    assert!(screen(&model).contains("/none: no such file"), "{}", screen(&model));
    assert_eq!(press(&mut model, "\n"), [], "there is nothing to choose");
    update(&mut model, Message::Key(Key::Esc));
    assert_eq!(model.ui.overlay, None);
    // A kubeconfig may be mended while the view is open.
    assert_eq!(press(&mut model, ":another cluster\n"), [Effect::Contexts], "the palette has it, too");
}

#[test]
fn a_context_is_chosen_by_some_of_its_letters_or_by_moving() {
    let mut model = watching((80, 24));
    press(&mut model, "C");
    update(&mut model, known());
    assert_eq!(press(&mut model, "peu\n"), [Effect::Connect("prod-eu".to_owned())]);
    assert!(screen(&model).contains("connecting to prod-eu"), "{}", screen(&model));
    press(&mut model, "C");
    update(&mut model, known());
    for _ in 0..9 {
        update(&mut model, Message::Key(Key::Down));
    }
    update(&mut model, Message::Key(Key::Up));
    assert_eq!(press(&mut model, "\n"), [Effect::Connect("kind-second".to_owned())]);
    press(&mut model, "C");
    update(&mut model, known());
    assert_eq!(press(&mut model, "platform\n"), [], "it is shown already");
    press(&mut model, "C");
    update(&mut model, known());
    assert_eq!(press(&mut model, "nothing\n"), []);
    assert!(screen(&model).contains("no context has this name"), "{}", screen(&model));
}

#[test]
fn nothing_of_the_cluster_before_is_left_and_what_was_asked_for_is() {
    let mut model = watching((120, 40));
    press(&mut model, "/kind:operator\n");
    press(&mut model, "jdf");
    update(&mut model, Message::Connected("prod-eu".to_owned()));
    let text = screen(&model);
    assert!(text.contains("prod-eu") && text.contains("filter: kind:operator"), "{text}");
    assert!(!text.contains("Operator.") && !text.contains("FROZEN") && !text.contains("sample"), "{text}");
    assert!(model.rows.is_empty() && model.log.entries().next().is_none() && model.ui.overlay != Some(Overlay::Contexts));
}

#[test]
fn whoever_runs_something_stays_where_it_runs() {
    let mut model = Model::new(Theme::Mono, at(0)).watching("replay of x");
    assert_eq!(press(&mut model, "C"), []);
    assert!(screen(&model).contains("only plinth dash"), "{}", screen(&model));
}
