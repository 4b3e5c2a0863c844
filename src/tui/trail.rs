//! What was looked at, as a browser remembers it.

use crate::model::View;

/// How many steps are remembered.
const STEPS: usize = 50;

/// Views in the order in which they were shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    back: Vec<View>,
    forward: Vec<View>,
}

impl Trail {
    /// Another view is shown now.
    pub fn leave(&mut self, from: View) {
        self.forward.clear();
        self.back.push(from);
        if self.back.len() > STEPS {
            self.back.remove(0);
        }
    }

    /// The view before; `now` is what is left.
    pub fn back(&mut self, now: View) -> Option<View> {
        let view = self.back.pop()?;
        self.forward.push(now);
        Some(view)
    }

    /// The view after; `now` is what is left.
    pub fn forward(&mut self, now: View) -> Option<View> {
        let view = self.forward.pop()?;
        self.back.push(now);
        Some(view)
    }

    /// The view that was shown before this one.
    pub fn last(&self) -> Option<View> {
        self.back.last().copied()
    }

    /// Whether there is a step back.
    pub fn has_back(&self) -> bool {
        !self.back.is_empty()
    }

    /// Whether there is a step forward.
    pub fn has_forward(&self) -> bool {
        !self.forward.is_empty()
    }
}
