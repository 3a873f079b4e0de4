//! The unprivileged user that servers run as when rqps runs as root.
