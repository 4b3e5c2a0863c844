//! ResourceGraphDefinitions: compile, install the generated CRD, publish the graph.

pub mod crd;
pub mod definition;
pub mod status;
