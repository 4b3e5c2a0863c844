//! What tests and the README's first command start.
