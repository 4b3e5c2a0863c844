//! Who says yes to a plan: a question on the terminal, as a box or as a line.

use std::{
    io::{self, IsTerminal},
    sync::Mutex,
};

use plinth_bootstrap::{Approval, Approver};
use plinth_engine::ports::Answer;
use plinth_run::{Outcome, Plan};
use tokio::sync::oneshot;

use super::contexts::Contexts;
use crate::{args::Global, exit::Failure, out::Out, verbs::told};

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
///
/// What takes a platform away is answered by its name: nobody types that by habit.
pub(crate) struct AskInText {
    out: Out,
    context: Option<String>,
}

impl AskInText {
    /// A question to whoever reads `out`, about the cluster that the command line means.
    pub(crate) fn new(out: Out, global: &Global) -> Self {
        Self { out, context: Contexts::chosen(global) }
    }
}

/// Where nobody can be asked: shows the plan, and agrees to nothing.
pub(crate) struct ShowOnly(pub(crate) Out);

impl ShowOnly {
    /// Whether somebody would have to be asked, and cannot be.
    pub(crate) fn is_needed(applies: bool) -> bool {
        !applies && !io::stdin().is_terminal()
    }

    /// How a verb ends that showed its plan.
    pub(crate) fn ended(verb: &str) -> Failure {
        let message = "nothing was written: the plan is agreed to on a terminal, and there is none";
        Failure::new(Outcome::Usage, message).hint(format!("plinth {verb} --apply carries it out without a question"))
    }
}

impl Approver for ShowOnly {
    fn approve<'a>(&'a self, plan: &'a Plan) -> Answer<'a, Approval> {
        told(plan).iter().for_each(|(role, line)| self.0.told(*role, line));
        Box::pin(async { Approval::Declined })
    }
}

/// The answer that agrees to a plan, besides `yes`; its platform's name where it deletes what belongs to nothing else.
fn agreeing(plan: &Plan) -> &str {
    if plan.takes_away() { &plan.platform } else { "y" }
}

impl Approver for AskInText {
    fn approve<'a>(&'a self, plan: &'a Plan) -> Answer<'a, Approval> {
        told(plan).iter().for_each(|(role, line)| self.out.told(*role, line));
        let cluster = plan.cluster.as_ref().map_or_else(|| "an unknown cluster".to_owned(), ToString::to_string);
        let context = self.context.as_ref().map(|context| format!(" (context {context})")).unwrap_or_default();
        let answer = agreeing(plan).to_owned();
        self.out.error(&format!(
            "apply this plan of {} to {cluster}{context}? {answer} applies it, everything else writes nothing",
            plan.platform
        ));
        let (sender, receiver) = oneshot::channel();
        // A thread of its own: nothing waits for it where a signal ends the run before the answer.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = io::stdin().read_line(&mut line);
            let said = line.trim();
            let agrees = said == answer || answer == "y" && ["y", "yes"].contains(&said.to_lowercase().as_str());
            sender.send(read.is_ok() && agrees)
        });
        Box::pin(async move {
            if receiver.await.unwrap_or(false) { Approval::Granted("question".to_owned()) } else { Approval::Declined }
        })
    }
}
