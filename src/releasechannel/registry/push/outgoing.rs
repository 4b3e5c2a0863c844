//! A blob on its way to a registry, hashed as it goes.

use bytes::Bytes;
use futures::stream;
use reqwest::Body;
use tokio::sync::oneshot;

use crate::error::RepositoryError;
use crate::repository::BlobStream;

/// A body to be sent once.
pub(super) struct Outgoing {
    pub(super) body: Body,
    /// In bytes.
    pub(super) size: u64,
    /// Whether all of it was what it is called, or what was wrong; nothing where its end was never asked for.
    pub(super) proven: oneshot::Receiver<Result<bool, RepositoryError>>,
}

/// Bytes that are sent, one piece behind those that are hashed: the last piece leaves only once the digest has been found right, so that a
/// registry that compares nothing never has all of a damaged blob.
struct Behind {
    stream: BlobStream,
    held: Option<Bytes>,
    proof: Option<oneshot::Sender<Result<bool, RepositoryError>>>,
}

impl Behind {
    /// Reads the next piece and gives the one before.
    async fn step(mut self) -> Result<Option<(Bytes, Self)>, std::io::Error> {
        let Some(piece) = self.held.take() else { return Ok(None) };
        match self.stream.next().await {
            Ok(next) => self.held = next,
            Err(error) => {
                let text = error.to_string();
                self.say(Err(error));
                return Err(std::io::Error::other(text));
            }
        }
        if self.held.is_none() {
            self.say(Ok(true));
        }
        Ok(Some((piece, self)))
    }

    fn say(&mut self, result: Result<bool, RepositoryError>) {
        if let Some(proof) = self.proof.take() {
            // Nobody listens any more where the request has ended before.
            let _ = proof.send(result);
        }
    }
}

/// `size` is the number of bytes in `stream`.
pub(super) async fn body(mut stream: BlobStream, size: u64) -> Result<Outgoing, RepositoryError> {
    let (proof, proven) = oneshot::channel();
    let mut held = stream.next().await?;
    // Where nothing is to be sent, nobody asks for the end.
    while held.as_ref().is_some_and(Bytes::is_empty) {
        held = stream.next().await?;
    }
    let mut behind = Behind { stream, held, proof: Some(proof) };
    if behind.held.is_none() {
        behind.say(Ok(true));
    }
    Ok(Outgoing { body: Body::wrap_stream(stream::try_unfold(behind, Behind::step)), size, proven })
}
