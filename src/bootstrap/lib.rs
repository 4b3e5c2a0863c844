//! The use case: plan, stages, deferral, preflight, runner.
