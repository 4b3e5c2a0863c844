//! Scripts of keys.

use plinth_run::{Event, EventKind, Health, Subject};
use plinth_tui::{
    Answer, Effect, Fetched, Lost, Message, Model, What,
    message::Key,
    model::{Overlay, View},
    update::update,
};

use crate::sample::{REVIEW, RUNNING, key, model, screen};

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    keys.chars().flat_map(|letter| update(model, Message::Key(Key::Char(letter)))).collect()
}

fn special(model: &mut Model, key: Key) -> Vec<Effect> {
    update(model, Message::Key(key))
}

fn titles(model: &Model) -> Vec<&str> {
    model.rows.iter().map(|row| row.title.as_str()).collect()
}

#[test]
fn the_question_is_asked_once_and_escape_never_agrees() {
    let mut model = model(80, 24, REVIEW);
    assert_eq!(model.ui.overlay, Some(Overlay::Question));
    assert_eq!(special(&mut model, Key::Esc), []);
    assert!(!press(&mut model, "y").contains(&Effect::Approve), "y agrees to nothing while no question is open");
    special(&mut model, Key::Esc);
    special(&mut model, Key::Enter);
    assert_eq!(press(&mut model, "y"), [Effect::Approve]);
    assert_eq!(model.ui.overlay, None);
}

#[test]
fn the_question_says_which_context_is_written_to() {
    let mut model = model(80, 24, REVIEW);
    "prod-eu".clone_into(&mut model.ui.place);
    assert!(screen(&model).contains("context   prod-eu"), "{}", screen(&model));
}

#[test]
fn the_help_says_what_the_picture_costs_the_server() {
    let mut model = model(80, 24, RUNNING);
    update(&mut model, Message::Watches(7));
    press(&mut model, "?");
    assert!(screen(&model).contains("keys (7 watches at the API server)"), "{}", screen(&model));
}

#[test]
fn after_escape_the_footer_says_how_the_question_comes_back() {
    let mut model = model(80, 24, REVIEW);
    special(&mut model, Key::Esc);
    assert!(screen(&model).contains("⏎ answer the question"), "{}", screen(&model));
    special(&mut model, Key::Enter);
    assert_eq!(model.ui.overlay, Some(Overlay::Question));
}

fn tell(model: &mut Model, seq: u64, kind: EventKind) {
    let at = model.ui.now;
    let run = model.run.run.clone().unwrap();
    update(model, Message::Run(Box::new(Event { v: 1, run, seq, at, kind })));
}

#[test]
fn a_server_that_does_not_answer_is_seen_while_the_run_prepares() {
    let mut model = model(80, 24, 1);
    let message = "https://c.test: connection refused".to_owned();
    tell(&mut model, 2, EventKind::Retry { what: "reach the cluster".to_owned(), message, attempt: 3, next_in_ms: 4000 });
    let text = screen(&model);
    for words in ["reach the cluster: attempt 3 failed, next in 4s", "connection refused"] {
        assert!(text.contains(words), "{words} is not on the screen:\n{text}");
    }
}

#[test]
fn names_are_told_apart_at_eighty_columns() {
    let mut model = model(80, 24, RUNNING);
    for (seq, name) in [(1000, "cluster-provider-kind-image"), (1001, "cluster-provider-kind-chart")] {
        let subject = Subject::root(key("ResourceGraphDefinition", name));
        let (reason, message) = ("Compiling".to_owned(), String::new());
        tell(&mut model, seq, EventKind::HealthChanged { subject, health: Health::Failed, reason, message, causes: Vec::new() });
    }
    press(&mut model, "/kind:graph");
    let text = screen(&model);
    for words in ["kind-image", "kind-chart", "Resource", "…"] {
        assert!(text.contains(words), "{words} is not on the screen:\n{text}");
    }
}

#[test]
fn time_goes_on_while_nothing_happens_and_stops_with_the_run() {
    let mut running = model(120, 40, RUNNING);
    for (seconds, elapsed) in [(100, " 1m39s"), (161, " 2m40s")] {
        update(&mut running, Message::Tick(crate::sample::at(seconds)));
        let text = screen(&running);
        assert!(text.lines().next().unwrap().ends_with(elapsed), "{text}");
    }
    let mut over = model(120, 40, usize::MAX);
    update(&mut over, Message::Tick(crate::sample::at(500)));
    assert!(screen(&over).lines().next().unwrap().ends_with(" 23s"), "{}", screen(&over));
}

#[test]
fn names_take_the_room_that_details_leave() {
    let mut model = model(200, 60, RUNNING);
    let name = "clusterproviders.openmcp.cloud";
    let subject = Subject::root(key("CustomResourceDefinition", name));
    let health = Health::Current;
    let (reason, message) = (String::new(), String::new());
    tell(&mut model, 1000, EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() });
    press(&mut model, "/kind:customresource");
    assert!(screen(&model).contains(&format!("CustomResourceDefinition.example.dev/{name}")), "{}", screen(&model));
}

#[test]
fn an_opened_group_has_its_members_below_it() {
    let mut model = model(120, 40, RUNNING);
    for (seq, name) in (1000..).zip(["c1a", "c2a", "c3a", "c4a"]) {
        let subject = crate::sample::child("Config", name);
        let (reason, message) = ("Pending".to_owned(), String::new());
        tell(&mut model, seq, EventKind::HealthChanged { subject, health: Health::Waiting, reason, message, causes: Vec::new() });
    }
    update(&mut model, Message::Tick(crate::sample::at(91)));
    let ready = model.rows.iter().position(|row| row.title == "5 Config.example.dev").unwrap();
    model.ui.cursor = ready;
    special(&mut model, Key::Enter);
    let words: Vec<&str> = model.rows[ready..ready + 7].iter().map(|row| row.word.as_str()).collect();
    assert_eq!(words, ["ready", "ready", "ready", "ready", "ready", "ready", "waiting"]);
}

#[test]
fn quitting_a_run_that_goes_on_asks_first() {
    let mut model = model(80, 24, RUNNING);
    assert_eq!(press(&mut model, "q"), []);
    assert_eq!(model.ui.overlay, Some(Overlay::Quit));
    assert_eq!(press(&mut model, "n"), []);
    special(&mut model, Key::Ctrl('c'));
    assert_eq!(press(&mut model, "y"), [Effect::Interrupt, Effect::Quit]);
}

#[test]
fn leaving_the_question_by_ctrl_c_is_no_answer() {
    let mut model = model(80, 24, REVIEW);
    assert_eq!(special(&mut model, Key::Ctrl('c')), [Effect::Interrupt, Effect::Quit]);
    assert_eq!(press(&mut model, "q"), [Effect::Decline, Effect::Quit]);
    special(&mut model, Key::Esc);
    assert_eq!(special(&mut model, Key::Ctrl('c')), [Effect::Interrupt, Effect::Quit]);
    assert_eq!(press(&mut model, "q"), [Effect::Decline, Effect::Quit]);
}

#[test]
fn whoever_only_looks_leaves_at_once_and_is_asked_nothing() {
    let mut watching = model(80, 24, 0).watching("kind-platform");
    crate::sample::events().into_iter().take(REVIEW).for_each(|event| drop(update(&mut watching, event)));
    assert_eq!((watching.ui.overlay, watching.ui.view), (None, View::Tree));
    assert_eq!(press(&mut watching, "q"), [Effect::Quit]);
    assert!(screen(&watching).contains("kind-platform"));
}

#[test]
fn folding_hides_children_and_keeps_the_selection() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "j");
    let all = model.rows.len();
    press(&mut model, "h");
    assert_eq!((model.rows.len(), model.ui.cursor), (2, 1));
    press(&mut model, "l");
    assert_eq!(model.rows.len(), all);
}

#[test]
fn equal_siblings_are_one_row_until_it_is_opened() {
    let mut model = model(80, 24, RUNNING);
    let at = model.rows.iter().position(|row| row.group.is_some()).unwrap();
    assert_eq!(model.rows[at].title, "5 Config.example.dev");
    model.ui.cursor = at;
    let folded = model.rows.len();
    special(&mut model, Key::Enter);
    assert_eq!(model.rows.len(), folded + 5);
    press(&mut model, "h");
    assert_eq!(model.rows.len(), folded);
}

#[test]
fn a_parent_tells_how_many_below_it_are_ready_and_an_echo_is_not_repeated() {
    let model = model(200, 60, RUNNING);
    let text = screen(&model);
    assert!(text.contains("5 of 8 below ready, 1 failed"), "{text}");
    assert!(text.contains("as above"), "{text}");
}

#[test]
fn a_filter_is_tried_while_it_is_typed_and_taken_back_by_escape() {
    let mut model = model(120, 40, RUNNING);
    let all = model.rows.len();
    press(&mut model, "/state:failed");
    assert_eq!(titles(&model), ["Platform.example.dev/sample", "Operator.example.dev/operator"]);
    special(&mut model, Key::Esc);
    assert_eq!(model.rows.len(), all);
    press(&mut model, "/state:failed");
    special(&mut model, Key::Enter);
    assert!(screen(&model).contains("filter: state:failed"));
    press(&mut model, "gn");
    assert_eq!(model.selected().unwrap().title, "Operator.example.dev/operator");
    special(&mut model, Key::Esc);
    assert_eq!(model.rows.len(), all);
}

#[test]
fn an_unknown_key_of_a_filter_is_said_and_changes_nothing() {
    let mut model = model(100, 24, RUNNING);
    let all = model.rows.len();
    press(&mut model, "/colour:red");
    special(&mut model, Key::Enter);
    assert_eq!((model.ui.overlay, model.rows.len()), (Some(Overlay::Filter), all));
    assert!(screen(&model).contains("colour: is no key"), "{}", screen(&model));
    special(&mut model, Key::Ctrl('u'));
    press(&mut model, "kind:nothing");
    special(&mut model, Key::Enter);
    assert!(screen(&model).contains("finds nothing: kind:nothing"), "{}", screen(&model));
}

#[test]
fn the_next_match_of_a_filter_that_leaves_nothing_is_none() {
    let mut model = model(100, 24, RUNNING);
    press(&mut model, "/kind:nothing");
    special(&mut model, Key::Enter);
    for key in ["n", "N"] {
        press(&mut model, key);
        assert!(screen(&model).contains("nothing matches"), "{}", screen(&model));
    }
}

#[test]
fn planes_are_walked_through_one_by_one() {
    let mut model = model(120, 40, RUNNING);
    let mut seen = Vec::new();
    for _ in 0..3 {
        press(&mut model, "P");
        seen.push(model.ui.plane.clone());
    }
    assert_eq!(seen, [Some("consumer".to_owned()), Some("host".to_owned()), None]);
}

#[test]
fn the_palette_does_what_a_key_does() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, ":timeline");
    special(&mut model, Key::Enter);
    assert_eq!((model.ui.view, model.ui.overlay), (View::Timeline, None));
    press(&mut model, ":nosuchcommand");
    special(&mut model, Key::Enter);
    assert!(screen(&model).contains("no command has this name"));
}

#[test]
fn history_goes_back_and_forward() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "345");
    press(&mut model, "[[");
    assert_eq!(model.ui.view, View::Timeline);
    press(&mut model, "]");
    assert_eq!(model.ui.view, View::Events);
    press(&mut model, "-");
    assert_eq!(model.ui.view, View::Timeline);
}

#[test]
fn an_open_object_asks_for_what_its_tab_needs() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "j");
    for (letter, what) in [("y", What::Object), ("L", What::Logs), ("e", What::Events), ("=", What::Object)] {
        match press(&mut model, letter).as_slice() {
            [Effect::Fetch(ask)] => assert_eq!((&ask.key, ask.what), (&key("Platform", "sample"), what), "{letter}"),
            other => panic!("{letter}: {other:?}"),
        }
    }
    assert!(screen(&model).contains("asking the server"));
    special(&mut model, Key::Tab);
    press(&mut model, "j");
    assert_eq!(model.ui.cursor, 2, "keys move in the list again");
    special(&mut model, Key::Esc);
    assert_eq!(model.ui.detail, None);
}

#[test]
fn a_key_that_does_nothing_says_why() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "n");
    assert!(screen(&model).contains("there is no filter"));
    press(&mut model, "3y");
    assert!(screen(&model).contains("no object is selected"));
}

#[test]
fn a_copy_goes_to_the_clipboard_by_name() {
    let mut model = model(80, 24, RUNNING);
    assert_eq!(press(&mut model, "c"), [Effect::Copy("Definition.example.dev/operator".to_owned())]);
}

#[test]
fn a_frozen_picture_stands_still_while_the_run_goes_on() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "f");
    let rows = model.rows.clone();
    crate::sample::events().into_iter().skip(RUNNING).for_each(|event| drop(update(&mut model, event)));
    update(&mut model, Message::Tick(crate::sample::at(100)));
    assert_eq!(model.rows, rows);
    assert!(screen(&model).contains("FROZEN") && screen(&model).contains("FAILED"), "{}", screen(&model));
    press(&mut model, "f");
    assert!(screen(&model).contains("FAILED"));
}

#[test]
fn events_follow_the_newest_until_somebody_looks_back() {
    let mut model = model(80, 24, RUNNING);
    press(&mut model, "4G");
    let last = model.ui.cursor;
    update(&mut model, crate::sample::events()[RUNNING].clone());
    update(&mut model, Message::Tick(crate::sample::at(91)));
    assert_eq!(model.ui.cursor, last + 1);
    press(&mut model, "k");
    let here = model.selected().cloned();
    update(&mut model, crate::sample::events()[RUNNING + 1].clone());
    update(&mut model, Message::Tick(crate::sample::at(92)));
    assert_eq!(model.selected().cloned(), here);
}

#[test]
fn a_timeline_is_honest_about_what_it_does_not_know() {
    let mut model = model(120, 40, RUNNING);
    press(&mut model, "3");
    let text = screen(&model);
    assert!(text.contains("4s in one earlier run") && text.contains("no history"), "{text}");
}

#[test]
fn the_header_counts_what_the_unhealthy_view_lists() {
    let mut model = model(120, 40, RUNNING);
    press(&mut model, "2u");
    let listed = model.rows.iter().filter(|row| row.hit).count();
    let summary = model.run.summary();
    assert_eq!((listed, listed), (summary.failed + summary.open(), summary.total - summary.ready));
    let counts = format!("!{} ~{}", summary.failed, summary.open());
    assert!(screen(&model).lines().next().unwrap().contains(&counts), "{}", screen(&model));
}

#[test]
fn what_is_being_deleted_is_compared_and_said_to_go() {
    let mut model = model(120, 40, RUNNING);
    press(&mut model, "2jj=");
    let ask = model.ui.detail.as_ref().unwrap().ask();
    let mut live = crate::sample::object();
    live.metadata_mut().insert("deletionTimestamp".to_owned(), "1970-01-01T00:00:00Z".into());
    let answer = Ok(Answer::Object { live: Some(live), desired: Some(crate::sample::object()) });
    update(&mut model, Message::Fetched(Box::new(Fetched { ask, answer })));
    assert!(screen(&model).contains("it is being deleted"), "{}", screen(&model));
}

/// Nobody deletes by habit: what belongs to nothing else goes by the platform's name.
#[test]
fn what_takes_something_away_is_agreed_to_by_name() {
    for (width, height) in [(120, 40), (40, 12)] {
        let mut model = model(width, height, REVIEW);
        let mut plan = model.run.plan.clone().unwrap();
        plan.stages[0].changes[0].action = plinth_run::Action::Delete;
        tell(&mut model, 100, EventKind::Planned { plan });
        assert_eq!(press(&mut model, "y"), []);
        let text = screen(&model);
        assert!(text.contains("type sample to agree") && text.contains("delete Definition"), "{text}");
        press(&mut model, "y");
        assert_eq!(special(&mut model, Key::Enter), []);
        assert!(screen(&model).contains("that is not its name"), "{}", screen(&model));
        special(&mut model, Key::Esc);
        assert_eq!(model.ui.overlay, Some(Overlay::Question));
        press(&mut model, "ysample");
        assert_eq!(special(&mut model, Key::Enter), [Effect::Approve]);
    }
}

#[test]
fn a_small_terminal_shows_every_answer_and_what_is_more() {
    let mut asked = model(40, 12, REVIEW);
    let text = screen(&asked);
    for words in ["create 2", "y    ", "n q  ", "esc  ", "more"] {
        assert!(text.contains(words), "{words} is not on the screen:\n{text}");
    }
    special(&mut asked, Key::Esc);
    for (keys, words) in [("?", "more below"), (":", "(1 of ")] {
        let mut model = model(40, 12, RUNNING);
        assert!(screen(&model).lines().last().unwrap().contains("? keys  q quit"), "{}", screen(&model));
        press(&mut model, keys);
        assert!(screen(&model).contains(words), "{}", screen(&model));
    }
    let mut palette = model(40, 12, RUNNING);
    press(&mut palette, ":yaml");
    assert!(screen(&palette).contains("YAML of the object") && screen(&palette).contains(" y│"), "{}", screen(&palette));
}

/// Who has not touched anything looks at the top; who has chosen a row keeps it.
#[test]
fn what_comes_before_the_first_row_is_seen_unless_a_row_was_chosen() {
    for (keys, expect) in [("", "Aaa.example.dev/first"), ("jk", "Definition.example.dev/operator")] {
        let mut model = model(80, 24, RUNNING);
        press(&mut model, keys);
        let subject = Subject::root(key("Aaa", "first"));
        let (reason, message) = (String::new(), String::new());
        tell(
            &mut model,
            1000,
            EventKind::HealthChanged { subject, health: Health::Current, reason, message, causes: Vec::new() },
        );
        update(&mut model, Message::Tick(crate::sample::at(91)));
        assert_eq!(model.selected().unwrap().title, expect, "{keys:?}");
    }
}

fn lost(of: Option<&str>) -> Lost {
    let why = "GET https://c.test/api: connection refused".to_owned();
    Lost { since: crate::sample::at(78), of: of.map(str::to_owned), why, hint: Some("C chooses another context".to_owned()) }
}

#[test]
fn a_cluster_that_is_lost_is_said_and_what_was_known_stays() {
    for (width, height) in [(200, 60), (120, 40), (80, 24), (40, 12), (30, 8)] {
        let mut model = model(width, height, RUNNING);
        press(&mut model, "2");
        let before = model.rows.len();
        update(&mut model, Message::Link(Some(lost(None))));
        assert_eq!(model.rows.len(), before);
        let text = screen(&model);
        assert!(text.lines().next().unwrap().contains("NO CONNECTION"), "{text}");
        let is_told = text.contains("no connection for 12s: GET ");
        assert!(is_told || height < 10, "{text}");
        assert!(text.contains("connection refused; retrying") || width < 80, "{text}");
        update(&mut model, Message::Link(None));
        assert!(!screen(&model).to_lowercase().contains("no connection"), "{}", screen(&model));
    }
}

#[test]
fn a_cluster_that_never_answered_is_named_with_the_next_step() {
    for (width, height) in [(80, 24), (40, 12)] {
        let mut model = Model::new(plinth_tui::theme::Theme::Mono, crate::sample::at(0)).watching("kind");
        update(&mut model, Message::Resize { width, height });
        update(&mut model, Message::Tick(crate::sample::at(90)));
        update(&mut model, Message::Link(Some(lost(Some("https://c.test (context kind)")))));
        let text = screen(&model).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["no connection to https://c.test (context kind) for 12s", "connection refused; retrying", "hint: C chooses another"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn a_journal_that_was_cut_off_is_said_in_every_view() {
    for (width, height) in [(120, 40), (40, 12)] {
        let mut model = model(width, height, RUNNING);
        model.ui.cut = Some("journal cut at line 22".to_owned());
        for key in ["1", "2", "3", "4", "5"] {
            press(&mut model, key);
            let text = screen(&model);
            assert!(text.contains("CUT OFF") && text.contains("journal cut at"), "{text}");
        }
    }
}

/// What a person sees of a cluster that went away, and of one that never was there.
#[test]
fn show_06_lost() {
    let mut count = 0;
    for (width, height) in [(200, 60), (120, 40), (80, 24), (40, 12)] {
        let mut gone = model(width, height, RUNNING);
        press(&mut gone, "2");
        update(&mut gone, Message::Link(Some(lost(None))));
        insta::assert_snapshot!(format!("lost_{width}x{height}"), screen(&gone));
        let mut never = Model::new(plinth_tui::theme::Theme::Mono, crate::sample::at(0)).watching("kind");
        update(&mut never, Message::Resize { width, height });
        update(&mut never, Message::Link(Some(lost(Some("https://c.test (context kind)")))));
        update(&mut never, Message::Tick(crate::sample::at(90)));
        insta::assert_snapshot!(format!("never-reached_{width}x{height}"), screen(&never));
        count += 2;
    }
    println!("SHOW 06 lost {count} screens of a cluster that does not answer");
}
