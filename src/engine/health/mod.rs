//! Judges health in the words of the field and explains it to the root cause.
