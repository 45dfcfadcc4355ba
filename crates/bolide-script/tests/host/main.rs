//! Serves scripts, as the server's own binary does.

fn main() {
    panic!("scripts cannot be served: {}", bolide_script::serve_process());
}
