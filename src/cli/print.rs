//! Lines for the user.

/// Prints a line on standard error. Unlike `eprintln!` it does not panic if the reader is gone
/// (`rqps compare … 2>&1 | head`), because hours of measuring continue.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

/// Prints a line on standard output. A reader that stops early, such as `head`, is no error.
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}
