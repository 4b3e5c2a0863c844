//! The controllers' side of `delivery.ocm.software/v1alpha1`: Repository, Component, Resource, Deployer, Discovery.
//!
//! What is decided is decided in functions of data ([`component`], [`resource`], [`image`], [`additional`], [`deploy`]);
//! [`report`] makes the status of all kinds. The shells only fetch and write.
//! Source: reference/ocm.md section 16, reference/openmcp.md section 3, contracts 16 to 18.

pub mod additional;
pub mod component;
pub mod config;
pub mod deploy;
mod deployer;
mod discovery;
mod found;
pub mod image;
mod kind;
mod login;
pub mod manifests;
mod parents;
mod reconcile;
mod removal;
pub mod report;
mod repository;
pub mod resource;
pub mod sources;
pub mod verify;

pub use kind::Kind;
pub use reconcile::{Delivery, ROLE};

#[cfg(test)]
mod tests;
