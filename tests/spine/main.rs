//! From a release channel to a running platform, on a real API server.
