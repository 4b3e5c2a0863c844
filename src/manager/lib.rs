//! The generic parts of a controller.
