//! One journal, told in five ways: all say the same.

use plinth_run::{
    Event, RunState, journal,
    present::{github, json, junit, lines},
};

use crate::sample::{model, run_events, screen};

#[test]
fn show_06_agree() {
    let events = run_events();
    let text: String = events.iter().map(|event| json::line(event).unwrap()).collect();
    let replayed: Vec<Event> = journal::decode(text.as_bytes()).unwrap().events;
    let state = RunState::replay(&replayed);
    let (summary, totals) = (state.summary(), lines::totals(&state.summary()));
    let exit = state.exit_code().unwrap();

    let mut plain = lines::Presenter::default();
    let said: Vec<String> = events.iter().filter_map(|event| plain.line(event)).collect();
    assert!(said.last().unwrap().contains(&totals) && said.last().unwrap().starts_with("failed"), "{said:?}");

    let mut annotated = github::Presenter::default();
    let said: Vec<String> = events.iter().filter_map(|event| annotated.line(event)).collect();
    let said = said.last().unwrap();
    assert!(said.contains(&totals) && said.contains(&format!("(exit {exit})")), "{said}");
    assert!(github::summary(&state).contains(&totals));

    let report = junit::report(&state);
    assert!(report.contains(&totals) && report.contains(&format!("(exit {exit})")), "{report}");

    let counts = format!("FAILED {}/{} !{} ~{}", summary.ready, summary.total, summary.failed, summary.deferred);
    let shown = screen(&model(80, 24, usize::MAX));
    assert!(shown.contains(&counts), "{counts} is not on\n{shown}");
    println!("SHOW 06 agree 5 ways, exit {exit}, {totals}");
}
