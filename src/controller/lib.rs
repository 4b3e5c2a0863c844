//! The loop that keeps the platform.
