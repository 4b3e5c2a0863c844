//! What an instance needs next: observed state in, actions and verdicts out.
