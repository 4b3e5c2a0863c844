//! The whole state of the terminal: what the run is, and what the person looks at.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plinth_api::ObjectKey;
use plinth_run::RunState;

use crate::{
    rows::{Row, plan_rows, tree_rows},
    theme::Theme,
};

/// The state. `run` changes by folding events only; `ui` by keys, size and time.
#[derive(Clone, Debug)]
pub struct Model {
    /// The run, as every other presenter sees it.
    pub run: RunState,
    /// What the person looks at.
    pub ui: Ui,
    /// Rows of the current view; rebuilt by `update` whenever what they are made of has changed.
    pub rows: Vec<Row>,
}

/// What the person looks at.
#[derive(Clone, Debug)]
pub struct Ui {
    /// The view.
    pub view: View,
    /// Selected row; below the number of rows, or 0 where there are none.
    pub cursor: usize,
    /// First visible row.
    pub top: usize,
    /// Subtrees that are folded away.
    pub collapsed: BTreeSet<ObjectKey>,
    /// Rows that are ready are left out.
    pub unhealthy_only: bool,
    /// The strip with the explanation is open.
    pub why: bool,
    /// Something lies over the view.
    pub overlay: Option<Overlay>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The time, as of the last tick.
    pub now: Timestamp,
    /// Colours by role.
    pub theme: Theme,
}

/// The views, in the order of their number keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Stages and changes.
    Plan,
    /// Objects below each other.
    Tree,
    /// Preflight checks.
    Checks,
}

impl View {
    /// All views with key and title.
    pub const ALL: [(Self, char, &'static str); 3] =
        [(Self::Plan, '1', "PLAN"), (Self::Tree, '2', "TREE"), (Self::Checks, '3', "CHECKS")];
}

/// What lies over a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The one question before the first write.
    Question,
    /// Quit while the run goes on?
    Quit,
    /// All keys.
    Help,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Resolving, checking, planning.
    Preparing,
    /// The plan is there and nobody has agreed yet.
    Review,
    /// Writing and watching.
    Running,
    /// Over.
    Finished,
}

impl Model {
    /// A terminal before the first event.
    pub fn new(theme: Theme, now: Timestamp) -> Self {
        let ui = Ui {
            view: View::Plan,
            cursor: 0,
            top: 0,
            collapsed: BTreeSet::new(),
            unhealthy_only: false,
            why: true,
            overlay: None,
            size: (80, 24),
            now,
            theme,
        };
        Self { run: RunState::default(), ui, rows: Vec::new() }
    }

    /// Where the run is.
    pub fn phase(&self) -> Phase {
        if self.run.finished.is_some() {
            Phase::Finished
        } else if self.run.approved.is_some() {
            Phase::Running
        } else if self.run.plan.is_some() {
            Phase::Review
        } else {
            Phase::Preparing
        }
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&Row> {
        self.rows.get(self.ui.cursor)
    }

    /// Rebuilds the rows and keeps the selection on the same object where it is still there.
    pub fn rebuild(&mut self) {
        let selected = self.selected().and_then(|row| row.key.clone());
        self.rows = match self.ui.view {
            View::Plan => plan_rows(&self.run),
            View::Tree => tree_rows(&self.run, &self.ui.collapsed, self.ui.unhealthy_only),
            View::Checks => crate::rows::check_rows(&self.run),
        };
        let same = selected.and_then(|key| self.rows.iter().position(|row| row.key.as_ref() == Some(&key)));
        self.ui.cursor = same.unwrap_or(self.ui.cursor).min(self.rows.len().saturating_sub(1));
        self.scroll();
    }

    /// Keeps the selected row inside the window.
    pub fn scroll(&mut self) {
        let height = usize::from(crate::view::body_height(self)).max(1);
        if self.ui.cursor < self.ui.top {
            self.ui.top = self.ui.cursor;
        } else if self.ui.cursor >= self.ui.top + height {
            self.ui.top = self.ui.cursor + 1 - height;
        }
        self.ui.top = self.ui.top.min(self.rows.len().saturating_sub(height));
    }
}
