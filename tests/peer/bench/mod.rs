//! The same work done by kro and by our loop, one after the other on real API servers, and the table of what it cost.

mod definitions;
mod figures;
mod work;

use std::collections::BTreeMap;

pub use figures::{Figures, table};

use crate::{Result, peers::Peer};

/// Measures the peers in turn and prints the table. `quick` does a tenth of the work, to see that the bench itself is well.
pub async fn run(peers: &[Peer], quick: bool, out: &mut (dyn FnMut(&str) + Send)) -> Result<()> {
    let mut all: BTreeMap<&'static str, Figures> = BTreeMap::new();
    for peer in peers {
        let figures = work::measure(*peer, quick, out).await.map_err(|error| format!("{}: {error}", peer.name()))?;
        all.insert(peer.name(), figures);
    }
    table(&all).iter().for_each(|line| out(line));
    Ok(())
}
