//! The terminal: model, message, update, view.
