//! kro's list functions.

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give_list, int, take_list},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("lists.setAtIndex", &["lists.setAtIndex(list(<T>), int, <T>) -> list(<T>)"], set_at_index),
        ours("lists.insertAtIndex", &["lists.insertAtIndex(list(<T>), int, <T>) -> list(<T>)"], insert_at_index),
        ours("lists.removeAtIndex", &["lists.removeAtIndex(list(<T>), int) -> list(<T>)"], remove_at_index),
    ]
}

fn set_at_index<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut elements = take_list(&mut arguments, 0)?;
    let index = int(&arguments, 1)?;
    match usize::try_from(index).ok().filter(|index| *index < elements.len()) {
        Some(at) => elements[at] = arguments.remove(2).into_owned(),
        None => return fail(format!("lists.setAtIndex: index {index} out of bounds [0, {})", elements.len())),
    }
    give_list(elements)
}

fn insert_at_index<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut elements = take_list(&mut arguments, 0)?;
    let index = int(&arguments, 1)?;
    match usize::try_from(index).ok().filter(|index| *index <= elements.len()) {
        Some(at) => elements.insert(at, arguments.remove(2).into_owned()),
        None => return fail(format!("lists.insertAtIndex: index {index} out of bounds [0, {}]", elements.len())),
    }
    give_list(elements)
}

fn remove_at_index<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut elements = take_list(&mut arguments, 0)?;
    let index = int(&arguments, 1)?;
    match usize::try_from(index).ok().filter(|index| *index < elements.len()) {
        Some(at) => drop(elements.remove(at)),
        None => return fail(format!("lists.removeAtIndex: index {index} out of bounds [0, {})", elements.len())),
    }
    give_list(elements)
}
