//! The whole state of the terminal: what the run is, and what the person looks at.

use std::cmp::Reverse;

use jiff::Timestamp;
use plinth_run::{Filter, History, RunState, filter::fuzzy};

use crate::{
    detail::Detail,
    log::Log,
    message::Lost,
    planes::Planes,
    rows::{Folds, Narrow, Row, check_rows, event_rows, plan_rows, timeline_rows, tree_rows},
    theme::Theme,
    trail::Trail,
    view,
};

/// The state. `run` and `log` change by events only; `ui` by keys, size and time.
#[derive(Clone, Debug)]
pub struct Model {
    /// The run, as every other presenter sees it.
    pub run: RunState,
    /// What happened.
    pub log: Log,
    /// How long things took in earlier runs.
    pub history: History,
    /// What the person looks at.
    pub ui: Ui,
    /// The planes that the run has objects on, as of the last rebuild: a frame must not look at every object.
    pub planes: Planes,
    /// Rows of the current view; rebuilt by `update` before anything looks at them.
    pub rows: Vec<Row>,
    /// Something changed that the rows are made of.
    pub stale: bool,
}

/// What the person looks at.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches that a person turns, none of which depends on another")]
pub struct Ui {
    /// Whose run it is.
    pub mode: Mode,
    /// The cluster, as the person calls it; empty where it is not known.
    pub place: String,
    /// Contexts that can be chosen; `None` where the cluster cannot be changed.
    pub contexts: Option<Contexts>,
    /// The cluster does not answer.
    pub lost: Option<Lost>,
    /// Why there is nothing to show.
    pub nothing: Option<String>,
    /// Where a journal that is shown was cut off; `None` for a whole one.
    pub cut: Option<String>,
    /// Watches that are open at the API server, where they are known.
    pub watches: Option<usize>,
    /// The view.
    pub view: View,
    /// Views that were shown before.
    pub trail: Trail,
    /// The person has chosen the selected row; until then it is the first one, whatever comes before it.
    pub chosen: bool,
    /// Selected row; below the number of rows, or 0 where there are none.
    pub cursor: usize,
    /// First visible row.
    pub top: usize,
    /// What is folded away.
    pub folds: Folds,
    /// Rows that are ready are left out.
    pub unhealthy_only: bool,
    /// Only this plane.
    pub plane: Option<String>,
    /// The filter.
    pub filter: Filter,
    /// The filter as it was typed.
    pub filter_text: String,
    /// Terms of it that find nothing.
    pub inactive: Vec<String>,
    /// The strip with the explanation is open.
    pub why: bool,
    /// An object that is open.
    pub detail: Option<Detail>,
    /// Keys move in the detail, not in the rows.
    pub in_detail: bool,
    /// Rows stand still, whatever happens.
    pub frozen: bool,
    /// Something lies over the view.
    pub overlay: Option<Overlay>,
    /// What is being typed.
    pub input: String,
    /// What is wrong with it.
    pub input_error: Option<String>,
    /// The chosen offer of the palette, or the first visible line of the help.
    pub choice: usize,
    /// Something to read in the place of the footer.
    pub notice: Option<String>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The time, as of the last tick.
    pub now: Timestamp,
    /// Colours by role.
    pub theme: Theme,
}

/// Whose run it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// This process does it: leaving would interrupt it.
    #[default]
    Own,
    /// It goes on elsewhere, or is long over: looking only.
    Watch,
}

/// The views, in the order of their number keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Stages and changes.
    Plan,
    /// Objects below each other.
    Tree,
    /// Stages in time.
    Timeline,
    /// What happened.
    Events,
    /// Preflight checks.
    Checks,
}

impl View {
    /// All views with key and title.
    pub const ALL: [(Self, char, &'static str); 5] = [
        (Self::Plan, '1', "PLAN"),
        (Self::Tree, '2', "TREE"),
        (Self::Timeline, '3', "TIMELINE"),
        (Self::Events, '4', "EVENTS"),
        (Self::Checks, '5', "CHECKS"),
    ];
}

/// What lies over a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The one question before the first write.
    Question,
    /// The platform's name, which whoever takes something away types.
    Name,
    /// Quit while the run goes on?
    Quit,
    /// All keys.
    Help,
    /// Commands by name.
    Palette,
    /// What is to be shown.
    Filter,
    /// Clusters by their contexts.
    Contexts,
}

/// Clusters that the person may choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contexts {
    /// Nobody has asked, or nobody has answered yet.
    #[default]
    Unread,
    /// Their names.
    Known(Vec<String>),
    /// Why they are not known.
    Unreadable(String),
}

impl Contexts {
    /// Those that what was typed may mean, best first; all of them for nothing.
    pub fn offers(&self, typed: &str) -> Vec<&str> {
        let Self::Known(names) = self else { return Vec::new() };
        let wanted: String = typed.to_lowercase().split_whitespace().collect();
        let found = names.iter().filter_map(|name| Some((fuzzy(&wanted, name)?, name.as_str())));
        let mut found: Vec<(usize, &str)> = found.collect();
        found.sort_by_key(|(score, _)| Reverse(*score));
        found.into_iter().map(|(_, name)| name).collect()
    }
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
            mode: Mode::Own,
            place: String::new(),
            contexts: None,
            lost: None,
            nothing: None,
            cut: None,
            watches: None,
            view: View::Plan,
            trail: Trail::default(),
            chosen: false,
            cursor: 0,
            top: 0,
            folds: Folds::default(),
            unhealthy_only: false,
            plane: None,
            filter: Filter::default(),
            filter_text: String::new(),
            inactive: Vec::new(),
            why: true,
            detail: None,
            in_detail: false,
            frozen: false,
            overlay: None,
            input: String::new(),
            input_error: None,
            choice: 0,
            notice: None,
            size: (80, 24),
            now,
            theme,
        };
        Self {
            run: RunState::default(),
            log: Log::default(),
            history: History::default(),
            ui,
            planes: Planes::default(),
            rows: Vec::new(),
            stale: false,
        }
    }

    /// A terminal that only looks, at the tree first.
    #[must_use]
    pub fn watching(mut self, place: impl Into<String>) -> Self {
        self.ui.mode = Mode::Watch;
        self.ui.place = place.into();
        self.ui.view = View::Tree;
        self
    }

    /// The same, on a cluster that the person can change.
    #[must_use]
    pub fn choosing(mut self) -> Self {
        self.ui.contexts = Some(Contexts::Unread);
        self
    }

    /// Forgets everything of the cluster that was looked at. What the person asked for (filter, view) stays.
    pub(crate) fn connected(&mut self, place: String) {
        (self.run, self.log, self.history) = (RunState::default(), Log::default(), History::default());
        let ui = &mut self.ui;
        (ui.cursor, ui.top, ui.choice, ui.chosen) = (0, 0, 0, false);
        (ui.folds, ui.plane, ui.detail) = (Folds::default(), None, None);
        (ui.in_detail, ui.frozen, ui.overlay, ui.notice) = (false, false, None, None);
        (ui.watches, ui.lost, ui.nothing) = (None, None, None);
        ui.place = place;
        self.rows.clear();
        self.rebuild();
    }

    /// Where the run is.
    pub fn phase(&self) -> Phase {
        if self.run.finished.is_some() {
            Phase::Finished
        } else if self.run.approved.is_some() || self.ui.mode == Mode::Watch && self.run.run.is_some() {
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

    /// Rebuilds the rows and keeps the selection on the same thing where it is still there.
    pub fn rebuild(&mut self) {
        self.stale = false;
        self.planes = Planes::of(&self.run);
        let at_end = self.ui.cursor + 1 >= self.rows.len();
        let selected = self.selected().cloned();
        let ui = &mut self.ui;
        let narrow = Narrow { filter: &ui.filter, plane: ui.plane.as_deref(), unhealthy_only: ui.unhealthy_only };
        let narrowed = match ui.view {
            View::Plan => narrow.apply(plan_rows(&self.run, &self.planes)),
            View::Tree => tree_rows(&self.run, &self.planes, &ui.folds, &narrow),
            View::Timeline => narrow.apply(timeline_rows(&self.run, &self.history, ui.now)),
            View::Events => narrow.apply(event_rows(&self.log, &self.planes)),
            View::Checks => narrow.apply(check_rows(&self.run)),
        };
        (self.rows, ui.inactive) = (narrowed.rows, narrowed.inactive);
        let follows = ui.view == View::Events && at_end;
        if !ui.chosen && !follows {
            ui.cursor = 0;
        }
        let same =
            selected.filter(|_| !follows && ui.chosen).and_then(|row| self.rows.iter().position(|other| row.is_same(other)));
        let fallback = if follows { usize::MAX } else { ui.cursor };
        ui.cursor = same.unwrap_or(fallback).min(self.rows.len().saturating_sub(1));
        self.scroll();
        self.refresh_detail();
    }

    /// Makes the open object's lines anew.
    pub fn refresh_detail(&mut self) {
        let height = usize::from(view::detail_height(self));
        if let Some(detail) = &mut self.ui.detail {
            detail.refresh(&self.run, &self.planes, self.ui.now, height);
        }
    }

    /// Keeps the selected row inside the window.
    pub fn scroll(&mut self) {
        let height = usize::from(view::body_height(self)).max(1);
        if self.ui.cursor < self.ui.top {
            self.ui.top = self.ui.cursor;
        } else if self.ui.cursor >= self.ui.top + height {
            self.ui.top = self.ui.cursor + 1 - height;
        }
        self.ui.top = self.ui.top.min(self.rows.len().saturating_sub(height));
    }
}
