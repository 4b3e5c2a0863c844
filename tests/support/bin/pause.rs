//! Holds a pod's namespaces open and does nothing, until it is killed.

fn main() {
    loop {
        std::thread::park();
    }
}
