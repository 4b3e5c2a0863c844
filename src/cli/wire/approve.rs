//! Who says yes to a plan: a question on the terminal.

use std::sync::Mutex;

use plinth_bootstrap::{Approval, Approver};
use plinth_engine::ports::Answer;
use plinth_run::Plan;
use tokio::sync::oneshot;

/// Waits for the terminal's answer. Without one (the terminal closed) the plan is declined.
pub(crate) struct Ask(Mutex<Option<oneshot::Receiver<bool>>>);

impl Ask {
    /// An approver and the end that answers.
    pub(crate) fn new() -> (Self, oneshot::Sender<bool>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Mutex::new(Some(receiver))), sender)
    }
}

impl Approver for Ask {
    fn approve<'a>(&'a self, _plan: &'a Plan) -> Answer<'a, Approval> {
        let receiver = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        Box::pin(async move {
            let Some(receiver) = receiver else { return Approval::Declined };
            match receiver.await {
                Ok(true) => Approval::Granted("question".to_owned()),
                Ok(false) | Err(_) => Approval::Declined,
            }
        })
    }
}
