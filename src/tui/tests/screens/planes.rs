//! A platform on three planes: a provider's workspace, seven consumers' workspaces, and the host.

use plinth_run::{Event, journal};
use plinth_tui::{Message, Model, message::Key, theme::Theme, update::update, why};

use crate::sample::screen;

fn recorded() -> Vec<Event> {
    let replay = journal::decode(include_bytes!("planes.jsonl")).unwrap();
    assert_eq!(replay.cut, None);
    replay.events
}

fn reach((width, height): (u16, u16), keys: &str) -> Model {
    let events = recorded();
    let mut model = Model::new(Theme::Mono, events[0].at).watching("kcp-prod");
    update(&mut model, Message::Resize { width, height });
    for event in &events {
        update(&mut model, Message::Run(Box::new(event.clone())));
    }
    update(&mut model, Message::Tick(events.last().unwrap().at));
    press(&mut model, keys);
    model
}

fn press(model: &mut Model, keys: &str) {
    for letter in keys.chars() {
        update(model, Message::Key(if letter == '\n' { Key::Enter } else { Key::Char(letter) }));
    }
}

#[test]
fn show_06_planes() {
    let mut count = 0;
    for (name, keys) in [("all", ""), ("why", "/reason:resourcesnot\nn"), ("consumer", "PP"), ("events", "4G")] {
        for (width, height) in [(200, 60), (120, 40), (80, 24), (40, 12)] {
            let shown = screen(&reach((width, height), keys));
            insta::assert_snapshot!(format!("planes-{name}_{width}x{height}"), shown);
            count += 1;
        }
    }
    println!("SHOW 06 planes {count} screens of three planes");
}

#[test]
fn roles_are_walked_through_from_provider_to_host() {
    let mut model = reach((120, 40), "");
    let mut seen = Vec::new();
    for _ in 0..4 {
        press(&mut model, "P");
        seen.push(model.ui.plane.clone());
        let others = model.rows.iter().filter(|row| row.hit && Some(row.plane()) != model.ui.plane.as_deref());
        assert_eq!(if model.ui.plane.is_some() { others.count() } else { 0 }, 0);
    }
    assert_eq!(
        seen,
        ["provider", "consumer", "host"].map(|plane| Some(plane.to_owned())).into_iter().chain([None]).collect::<Vec<_>>()
    );
}

/// The workspace is said where the tree comes to it, and of the selected row always.
#[test]
fn objects_of_one_name_in_two_workspaces_are_told_apart() {
    for size in [(200, 60), (80, 24)] {
        let mut model = reach(size, "/kind:database.\n");
        for workspace in ["team-a", "team-b"] {
            press(&mut model, "n");
            assert_eq!(model.selected().unwrap().key.as_ref().unwrap().cluster.0, format!("root:org:{workspace}"));
            let text = screen(&model);
            assert!(
                text.lines().any(|line| line.contains("APIBinding") && line.contains(&format!("@root:org:{workspace}"))
                    || line.contains(&format!("@{workspace} "))),
                "{text}"
            );
            assert!(text.contains(&format!("Database.databases.example.dev/shop/db @root:org:{workspace}")), "{text}");
        }
    }
}

#[test]
fn bindings_of_many_consumers_are_one_row() {
    let text = screen(&reach((120, 40), ""));
    assert!(text.lines().any(|line| line.contains("5 APIBinding") && line.contains("consumer")), "{text}");
}

#[test]
fn a_filter_asks_for_a_role_or_for_one_workspace() {
    for (filter, hits) in [("plane:consumer", 10), ("plane:team-b", 2), ("plane:host", 2), ("plane:provider", 6)] {
        let model = reach((120, 40), &format!("/{filter}\n"));
        assert_eq!(model.rows.iter().filter(|row| row.hit).count(), hits, "{filter}");
    }
}

/// The chain goes from the consumer's claim over the provider to a pod on the host, and says each time where it is.
#[test]
fn the_strip_says_which_plane_a_cause_is_on() {
    let mut model = reach((200, 60), "");
    let row = model.rows.iter().position(|row| row.title.starts_with("Database.") && row.plane() == "consumer").unwrap();
    model.ui.cursor = row;
    assert!(screen(&model).contains("because provider"), "{}", screen(&model));
    let known = &model.run.subjects[model.rows[row].key.as_ref().unwrap()];
    let chain = why::chain(known, &model.run, &model.planes);
    let begins = [
        "waiting: ",
        "because provider Allocation",
        "  because host VirtualMachine",
        "    because Pod/tenants",
        "next: look for",
    ];
    assert_eq!(chain.len(), begins.len(), "{chain:#?}");
    assert!(chain.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{chain:#?}");
}

/// Where the chain does not fit, what is between goes first.
#[test]
fn at_eighty_columns_the_root_and_the_next_step_are_seen() {
    let text = screen(&reach((80, 24), "/reason:resourcesnot\nn"));
    for words in ["waiting: ResourcesNotReady", "because … host Pod/tenants/", "404", "next: look for the image"] {
        assert!(text.contains(words), "{words} is not on\n{text}");
    }
}

/// On the way through a cluster's own role nothing of the place is lost: the lines of a log say the workspace, too.
#[test]
fn lines_say_plane_and_workspace() {
    let mut plain = plinth_run::present::lines::Presenter::default();
    let lines: Vec<String> = recorded().iter().filter_map(|event| plain.line(event)).collect();
    let text = lines.join("\n");
    assert!(text.contains("waiting  consumer root:org:team-b  Database.databases.example.dev/shop/db"), "{text}");
    assert!(text.contains("failed  host  Pod/tenants/"), "{text}");
}
