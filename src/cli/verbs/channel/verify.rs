//! `plinth channel verify`: who says so, and what of it was proven. 0 proven, 4 refused.

use plinth_releasechannel::{Channel, Selection, Verification, Verify};
use plinth_run::Outcome;
use serde_json::json;

use crate::{
    args::{ChannelVerify, Output},
    exit::Failure,
    load::{self, refusal},
    out::Out,
};

/// Runs `plinth channel verify`.
pub(super) async fn run(args: &ChannelVerify, out: Out) -> Result<Outcome, Failure> {
    let mut options = load::options(&args.source);
    options.verify = Some(Verify::Required);
    let channel = load::inspected(&args.source, &Selection::default(), &options).await?;
    every_key_was_used(args, &channel)?;
    let verification = channel.verify_resources().await.map_err(|error| refusal(&error))?;
    match args.output {
        Output::Human => human(&channel, &verification).iter().for_each(|line| out.data(line)),
        Output::Json => out.data(&document(&channel, &verification).to_string()),
    }
    Ok(Outcome::Done)
}

/// A signature that a key was given for is one that is wanted.
fn every_key_was_used(args: &ChannelVerify, channel: &Channel) -> Result<(), Failure> {
    let is_there = |name: &str| channel.verification.signatures.iter().any(|signature| signature.name == name);
    let missing: Vec<&str> =
        args.source.access.key.iter().map(|(name, _)| name.as_str()).filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let there: Vec<&str> = channel.verification.signatures.iter().map(|signature| signature.name.as_str()).collect();
    Err(Failure::refused(format!(
        "component {} has no signature {}; it has: {}",
        channel.root,
        missing.join(", "),
        there.join(", ")
    )))
}

fn human(channel: &Channel, verification: &Verification) -> Vec<String> {
    let mut lines = vec![format!("proven  {}", channel.root)];
    lines
        .extend(verification.signatures.iter().map(|signature| format!("  signature {}  {}", signature.name, signature.verdict)));
    lines.push(format!("  component versions  {} of {}", verification.proven.len(), channel.lock.components.len()));
    lines.push(format!(
        "  resources  {} read and right, {} by their manifests here and {} elsewhere, {} compared when they are used",
        verification.resources_read, verification.manifests_read, verification.artifacts_compared, verification.resources_later
    ));
    lines.extend(channel.remarks.iter().chain(&verification.remarks).map(|remark| format!("  note: {remark}")));
    lines
}

fn document(channel: &Channel, verification: &Verification) -> serde_json::Value {
    let signatures: Vec<_> = verification
        .signatures
        .iter()
        .map(|signature| json!({"name": signature.name, "proven": signature.is_proven, "verdict": signature.verdict}))
        .collect();
    let proven: Vec<String> = verification.proven.iter().map(ToString::to_string).collect();
    json!({
        "root": channel.lock.root,
        "proven": verification.is_proven(),
        "signatures": signatures,
        "components": proven,
        "resources": {"read": verification.resources_read, "manifests": verification.manifests_read, "compared": verification.artifacts_compared, "byReference": verification.resources_later},
        "remarks": channel.remarks.iter().chain(&verification.remarks).collect::<Vec<_>>(),
    })
}
