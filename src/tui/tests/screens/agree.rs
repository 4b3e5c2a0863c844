//! One journal, told in five ways: all say the same.

use plinth_run::{
    Event, RunState, journal,
    present::{github, json, junit, lines},
};
use plinth_tui::{Message, update::update};

use crate::{
    pictures::recorded,
    sample::{model, run_events, screen},
};

/// A run that failed, and the recorded one that went well.
#[test]
fn show_06_agree() {
    let exits = [run_events(), recorded()].map(|events| agree(&events));
    assert_eq!(exits, [1, 0]);
    println!("SHOW 06 agree 5 ways on {} journals, exits {exits:?}", exits.len());
}

/// Tells a run in every way and answers with its exit code.
fn agree(events: &[Event]) -> u8 {
    let text: String = events.iter().map(|event| json::line(event).unwrap()).collect();
    let replayed: Vec<Event> = journal::decode(text.as_bytes()).unwrap().events;
    let state = RunState::replay(&replayed);
    let (summary, totals) = (state.summary(), lines::totals(&state.summary()));
    let exit = state.exit_code().unwrap();
    let word = state.finished.as_ref().unwrap().outcome.word();

    let mut plain = lines::Presenter::default();
    let said: Vec<String> = events.iter().filter_map(|event| plain.line(event)).collect();
    assert!(said.last().unwrap().contains(&totals) && said.last().unwrap().starts_with(word), "{said:?}");

    let mut annotated = github::Presenter::default();
    let said: Vec<String> = events.iter().filter_map(|event| annotated.line(event)).collect();
    let said = said.last().unwrap();
    // What went well is no annotation, and says its code by none.
    let says_exit = said.contains(&format!("(exit {exit})"));
    assert!(said.contains(&totals) && says_exit == (exit != 0), "{said}");
    assert!(github::summary(&state).contains(&totals));

    let report = junit::report(&state);
    assert!(report.contains(&totals) && report.contains(&format!("(exit {exit})")) == (exit != 0), "{report}");
    assert_eq!(report.contains("<failure"), exit != 0, "{report}");

    let counts = format!("{} {}/{} !{} ~{}", word.to_uppercase(), summary.ready, summary.total, summary.failed, summary.open());
    let mut model = model(80, 24, 0);
    events.iter().for_each(|event| drop(update(&mut model, Message::Run(Box::new(event.clone())))));
    let shown = screen(&model);
    assert!(shown.contains(&counts), "{counts} is not on\n{shown}");
    exit
}
