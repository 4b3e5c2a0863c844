//! Structural schemas: reading, walking, comparing, and the CRD of a graph.
