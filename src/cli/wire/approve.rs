//! Who says yes to a plan: a question on the terminal, as a box or as a line.

use std::{io, sync::Mutex};

use plinth_bootstrap::{Approval, Approver};
use plinth_engine::ports::Answer;
use plinth_run::Plan;
use tokio::sync::oneshot;

use crate::{out::Out, verbs::told};

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

/// Asks in lines, for screen readers and terminals that nothing is drawn on: the whole plan, then one question.
pub(crate) struct AskInText(pub(crate) Out);

impl Approver for AskInText {
    fn approve<'a>(&'a self, plan: &'a Plan) -> Answer<'a, Approval> {
        told(plan).iter().for_each(|line| self.0.data(line));
        let cluster = plan.cluster.as_ref().map_or_else(|| "an unknown cluster".to_owned(), ToString::to_string);
        self.0.error(&format!("apply this plan of {} to {cluster}? y applies it, everything else writes nothing", plan.platform));
        let (sender, receiver) = oneshot::channel();
        // A thread of its own: nothing waits for it where a signal ends the run before the answer.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = io::stdin().read_line(&mut line);
            sender.send(read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
        });
        Box::pin(async move {
            if receiver.await.unwrap_or(false) { Approval::Granted("question".to_owned()) } else { Approval::Declined }
        })
    }
}
