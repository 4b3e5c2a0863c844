//! Presenters: pure functions from events to text.
