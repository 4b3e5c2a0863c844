//! The way to a terminal view, which can be closed for one teller while others go on.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use plinth_tui::Message;

/// Where messages for the view go. Clones are the same line.
#[derive(Clone)]
pub(crate) struct Line(Arc<Mutex<Option<mpsc::Sender<Message>>>>);

impl Line {
    /// Sends, and says whether anybody is there to look. The line is held meanwhile, so that nothing comes after [`Line::close`].
    pub(crate) fn send(&self, message: Message) -> bool {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        line.as_ref().is_some_and(|sender| sender.send(message).is_ok())
    }

    /// From now on nothing is sent on it.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl From<mpsc::Sender<Message>> for Line {
    fn from(sender: mpsc::Sender<Message>) -> Self {
        Self(Arc::new(Mutex::new(Some(sender))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_after_the_end() {
        let (sender, messages) = mpsc::channel();
        let line = Line::from(sender);
        let other = line.clone();
        assert!(other.send(Message::Notice("before".to_owned())));
        line.close();
        assert!(!other.send(Message::Notice("after".to_owned())));
        assert_eq!(messages.iter().count(), 1);
    }
}
