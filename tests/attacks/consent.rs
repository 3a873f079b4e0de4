//! A stranger's plan, bundle or folder: nothing of it runs before its whole effect was accepted.
