//! Folders of other users: root writes, follows and removes nothing there that it did not make.
