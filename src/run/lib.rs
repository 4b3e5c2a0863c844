//! What a run is: events, plan, state, journal.
